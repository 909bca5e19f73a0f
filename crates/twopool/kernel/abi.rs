//! Memory shared with the kernel program: the generated skeleton, and the only `unsafe` of the
//! program.
//!
//! Three things need it: reading variables that the kernel program writes at the same time (from
//! whichever thread owns the scheduler), filling a policy map through a mapping (one system call less
//! per page than copying 4 MiB), and the generated code itself. Everything else decodes bytes.
//!
//! Invariant: the layout that the policy compiler writes (`twopool_policy::image`) is the layout
//! that the C compiler made of `bpf/intf.h`; the program does not compile otherwise.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use twopool_policy::image::{FIELDS, Image};
use twopool_policy::policy::Pool;
use twopool_telemetry::WAIT_BUCKETS;

/// Generated from the BPF object by build.rs.
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::pedantic,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/twopool.skel.rs"));
}

pub use generated::{OpenTwopoolSkel, TwopoolSkel, TwopoolSkelBuilder, types};

/// Names and offsets of fields of the C struct.
macro_rules! c_field {
    ($($field:ident)*) => {
        &[$((stringify!($field), offset_of!(types::policy_image, $field)),)*]
    };
}

/// `struct policy_image` as the C compiler laid it out, in the order of `FIELDS`.
const C_FIELDS: &[(&str, usize)] = c_field! {
    abi epoch words rule_count plane_rows rows names name_slots name_displacements name_seed
    name_dims cgroup user group hint
    nice_row flags_row alt_rule rules pools steal_ns sizing_interval_ns background_wait_ns
    hint_boost_ns hint_share_permille pool_used pool
};

const _: () = {
    assert!(size_of::<types::policy_image>() == Image::full_len());
    assert!(C_FIELDS.len() == FIELDS.len());
    let mut i = 0;
    while i < FIELDS.len() {
        assert!(
            C_FIELDS[i].1 == FIELDS[i].1,
            "an offset in image/mod.rs is not the C compiler's"
        );
        i += 1;
    }
};

// Lengths that this side names; a line that does not compile names one that `bpf/` changed.
const _: fn(&types::bss) -> &[u64; CPU_WORDS] = |bss| &bss.online;
const _: fn(&types::pool_counters) -> &[u64; WAIT_BUCKETS] = |counters| &counters.wait;
const _: fn(&types::exit_report) -> &[i8; EXIT_DUMP_BYTES] = |report| &report.dump;

/// Variables of the kernel program that it changes while we look.
#[derive(Debug, Clone, Copy)]
pub struct Variables {
    bss: *const types::bss,
}

// SAFETY: the pointer is to memory shared with the kernel program, which belongs to no thread; it is
// only read, and valid for `'static` (see `of`).
unsafe impl Send for Variables {}

impl Variables {
    /// The variables of a loaded program. They live as long as `'static`: the mapping belongs to
    /// an object that its owner never frees while it holds this.
    pub fn of(bss: &types::bss) -> Self {
        Self { bss }
    }

    /// The kernel's reason to end the scheduler; 0 while it has none.
    fn exit_kind(self) -> u32 {
        // SAFETY: `bss` points into the mapped .bss of an object that outlives `self` (see `of`);
        // the kernel program may store to it at any time, hence volatile.
        unsafe { ptr::read_volatile(&raw const (*self.bss).exit_report.kind) }
    }

    /// What the kernel said about the end; `None` while it has not ended the scheduler.
    pub fn exit_report(self) -> Option<Box<types::exit_report>> {
        if self.exit_kind() == 0 {
            return None;
        }
        // The kernel program writes the kind last; nothing below may be read before it.
        fence(Ordering::Acquire);
        let mut report = Box::<types::exit_report>::new_uninit();
        // SAFETY: `bss` as in `exit_kind`. The report is written once, before the kind that was
        // seen above. It is copied as memory: as a value, 64 KiB would pass through registers.
        // All bytes are initialised after the copy, and every pattern of them is valid.
        unsafe {
            let source = &raw const (*self.bss).exit_report;
            ptr::copy_nonoverlapping(source, report.as_mut_ptr(), 1);
            Some(report.assume_init())
        }
    }

    /// Bit per CPU: online, as the kernel program has it.
    pub fn online(self) -> [u64; CPU_WORDS] {
        // SAFETY: `bss` as in `exit_kind`; taking an address reads nothing.
        read_words(unsafe { &raw const (*self.bss).online })
    }

    /// Bit per CPU: owned by a pool.
    pub fn owned(self, pool: Pool) -> [u64; CPU_WORDS] {
        // SAFETY: as for `online`; the array has an element for each pool.
        read_words(unsafe { &raw const (*self.bss).owned[pool as usize] })
    }
}

/// Reads words of the kernel program's memory. Each may be older or newer than the next, which a
/// report bears.
fn read_words(words: *const [u64; CPU_WORDS]) -> [u64; CPU_WORDS] {
    let first = words.cast::<u64>();
    // SAFETY: callers pass the address of a live array of `CPU_WORDS` words, which the kernel
    // program may write at any time, hence volatile.
    std::array::from_fn(|index| unsafe { ptr::read_volatile(first.add(index)) })
}

/// Words of a bit per CPU.
pub const CPU_WORDS: usize = 16;

/// Size of the dump that the kernel writes when it ejects.
pub const EXIT_DUMP_BYTES: usize = 65_536;

/// Copies an image into the value of a fresh policy map, whose memory is zero.
///
/// # Errors
/// The kernel cannot map the value.
///
/// # Panics
/// If the image is longer than the value: the compiler's limits rule that out.
pub fn fill_policy_map(map: BorrowedFd<'_>, image: &[u8]) -> io::Result<()> {
    assert!(image.len() <= size_of::<types::policy_image>());
    let length = size_of::<types::policy_image>();
    // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
    let value: *mut c_void = unsafe {
        mmap(
            ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            map,
            0,
        )?
    };
    // SAFETY: the mapping holds `length` >= `image.len()` writable bytes, and nobody else has the
    // map yet: it is published after this returns.
    unsafe { ptr::copy_nonoverlapping(image.as_ptr(), value.cast::<u8>(), image.len()) };
    // SAFETY: this very mapping, used by nobody any more.
    unsafe { munmap(value, length)? };
    Ok(())
}

/// Text of a C string in a fixed array; bytes that are not UTF-8 are replaced.
pub fn c_text(chars: &[i8]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .map(|c| c.cast_unsigned())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_same_names_on_both_sides() {
        let ours: Vec<&str> = FIELDS.iter().map(|(name, _, _)| *name).collect();
        let c: Vec<&str> = C_FIELDS.iter().map(|(name, _)| *name).collect();
        assert_eq!(ours, c);
    }
}
