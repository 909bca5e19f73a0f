//! The classification functions of the kernel program (`bpf/`), built for the host.
//!
//! For tests: what the kernel would answer, a million times a second and without a kernel. The
//! one crate besides the program's ABI module that needs `unsafe`, all of it in `ffi` and in the
//! calls below.
//!
//! Invariant: an image is always backed by a buffer of the full size of `struct policy_image`, so
//! that no masked index of the C code can leave it.

#![allow(unsafe_code)]

mod cgroup;
mod ffi;

pub use cgroup::{Cgroup, Fingerprint, Watched};

use twopool_policy::eval::{Class, thread_key};
use twopool_policy::image::{Image, RULE_HINTS, offset};
use twopool_policy::policy::Pool;
use twopool_policy::thread::Thread;

/// Longest cgroup path that [`Buffer::classify`] takes, in bytes: that of the test entry point.
pub const MAX_PATH: usize = ffi::PATH_LEN;

/// Memory that holds one image as the kernel would see it: full size, zero after the used part.
pub struct Buffer {
    words: Vec<u64>,
    used: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            words: vec![0; Image::full_len() / 8],
            used: 0,
        }
    }
}

impl Buffer {
    /// A buffer with this image, published under `epoch` (1 or more).
    pub fn with(image: &Image, epoch: u32) -> Self {
        let mut buffer = Self::default();
        buffer.load(image, epoch);
        buffer
    }

    /// Replaces the image.
    pub fn load(&mut self, image: &Image, epoch: u32) {
        let mut image = image.clone();
        image.set_epoch(epoch);
        self.load_bytes(image.as_bytes());
    }

    /// Numbers the image anew, as publishing the same policy again would.
    pub fn set_epoch(&mut self, epoch: u32) {
        let at = offset::EPOCH;
        let mut bytes = self.words[at / 8].to_ne_bytes();
        bytes[at % 8..at % 8 + 4].copy_from_slice(&epoch.to_ne_bytes());
        self.words[at / 8] = u64::from_ne_bytes(bytes);
    }

    /// Replaces the image by any bytes, at most [`Image::full_len`] of them.
    pub fn load_bytes(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= Image::full_len(), "longer than an image");
        self.words[..self.used].fill(0);
        self.used = bytes.len().div_ceil(8);
        for (word, eight) in self.words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..eight.len()].copy_from_slice(eight);
            *word = u64::from_ne_bytes(padded);
        }
    }

    /// The class that the C code gives a thread; `None` if it finds the image unusable.
    ///
    /// # Panics
    /// If the cgroup path is longer than [`MAX_PATH`].
    pub fn classify(&self, thread: &Thread) -> Option<Class> {
        let probe = probe_thread(thread);
        let mut class = ffi::ThreadClass::default();
        // SAFETY: the image pointer is valid for the full struct (see the invariant above) and
        // aligned for u64, the other two point to live values of the layouts that `tests/layout`
        // compares with C; nothing is kept after the call.
        let usable = unsafe { ffi::native_classify(self.as_ptr(), &probe, &mut class) };
        usable.then(|| class.decode())
    }

    pub(crate) fn as_ptr(&self) -> *const u64 {
        self.words.as_ptr()
    }
}

fn probe_thread(thread: &Thread) -> ffi::ProbeThread {
    let mut path = [0; MAX_PATH];
    path[..thread.cgroup.len()].copy_from_slice(&thread.cgroup);
    ffi::ProbeThread {
        thread: name_words(&thread.thread),
        process: name_words(&thread.process),
        uid: thread.user,
        gid: thread.group,
        bits: thread_key(thread),
        path_len: thread.cgroup.len() as u32,
        path,
    }
}

/// A name as `task->comm` holds it, in two words.
pub(crate) fn name_words(name: &[u8]) -> [u64; 2] {
    let mut comm = [0; 16];
    comm[..name.len().min(15)].copy_from_slice(&name[..name.len().min(15)]);
    let half = |at: usize| u64::from_ne_bytes(comm[at..at + 8].try_into().expect("eight bytes"));
    [half(0), half(8)]
}

impl ffi::ThreadClass {
    pub(crate) fn decode(self) -> Class {
        Class {
            pool: Pool::ALL[usize::from(self.pool)],
            rule: self.rule,
            slice_us: self.slice_ns / 1000,
            weight: self.weight,
            hints: u16::from(self.flags) & RULE_HINTS != 0,
        }
    }
}

/// A named number of `bpf/intf.h` as the C compiler sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The C name.
    pub name: String,
    /// Offset in `struct policy_image`, in bytes; 0 for sizes and constants.
    pub offset: u64,
    /// Size in bytes, or the constant's value.
    pub value: u64,
}

/// The fields of `struct policy_image`.
pub fn image_fields() -> Vec<Fact> {
    layout(0)
}

/// Sizes of the structs in an image.
pub fn struct_sizes() -> Vec<Fact> {
    layout(1)
}

/// The limits and constants.
pub fn constants() -> Vec<Fact> {
    layout(2)
}

fn layout(table: u32) -> Vec<Fact> {
    let mut count = 0;
    // SAFETY: the function returns a static table of `count` entries whose names are static,
    // NUL-terminated strings.
    let fields = unsafe {
        let first = ffi::native_layout(table, &mut count);
        std::slice::from_raw_parts(first, count as usize)
    };
    let fact = |field: &ffi::Field| Fact {
        // SAFETY: as above.
        name: unsafe { std::ffi::CStr::from_ptr(field.name) }
            .to_string_lossy()
            .into_owned(),
        offset: field.offset,
        value: field.size,
    };
    fields.iter().map(fact).collect()
}
