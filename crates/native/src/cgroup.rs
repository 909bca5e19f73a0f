//! Cgroups with the caches that the kernel program keeps in them, and a thread that is watched
//! through its fingerprint.

use std::ffi::CString;
use std::sync::Arc;

use twopool_policy::eval::{Class, thread_key};
use twopool_policy::thread::Thread;

use crate::{Buffer, ffi, name_words};

/// One cgroup and its cache. Children keep their parents alive.
pub struct Cgroup {
    raw: *mut ffi::NativeCgroup,
    id: u64,
    _parent: Option<Arc<Cgroup>>,
}

// SAFETY: the C side reads names, ids and parents, which never change after `new`, and writes the
// cache alone, whose publication is atomic by design (that is what the tests are after).
unsafe impl Send for Cgroup {}
// SAFETY: as above.
unsafe impl Sync for Cgroup {}

impl Cgroup {
    /// The root, `/`.
    pub fn root() -> Arc<Self> {
        Self::new(None, "", 1)
    }

    /// A child. `id` must be unique in the tree; `name` is at most 255 bytes, without NUL.
    pub fn child(self: &Arc<Self>, name: &str, id: u64) -> Arc<Self> {
        Self::new(Some(self.clone()), name, id)
    }

    fn new(parent: Option<Arc<Self>>, name: &str, id: u64) -> Arc<Self> {
        let name = CString::new(name).expect("a cgroup name has no NUL");
        let above = parent.as_ref().map_or(std::ptr::null_mut(), |p| p.raw);
        // SAFETY: `above` is null or a live cgroup that `_parent` keeps; the name is copied.
        let raw = unsafe { ffi::native_cgroup_new(above, name.as_ptr(), id) };
        Arc::new(Self {
            raw,
            id,
            _parent: parent,
        })
    }

    /// Epoch of the cached row, 0 if there is none.
    pub fn cached_epoch(&self) -> u32 {
        // SAFETY: `raw` is live until drop.
        unsafe { ffi::native_cgroup_epoch(self.raw) }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // SAFETY: made by `native_cgroup_new`, freed once; children hold their parents.
        unsafe { ffi::native_cgroup_free(self.raw) }
    }
}

/// What the kernel program compares: a thread in a cgroup, without the image's epoch.
#[derive(Clone, Copy)]
pub struct Fingerprint(ffi::ThreadKey);

impl Fingerprint {
    /// Of a thread (its `cgroup` is ignored) in `cgroup`. Ids are cut to 32 bits, as real ones are.
    pub fn new(thread: &Thread, cgroup: &Cgroup) -> Self {
        Self(ffi::ThreadKey {
            thread: name_words(&thread.thread),
            process: name_words(&thread.process),
            cgroup_id: cgroup.id,
            uid: thread.user as u32,
            gid: thread.group as u32,
            bits: thread_key(thread),
            epoch: 0,
            reserved: 0,
        })
    }
}

impl Buffer {
    /// The class of a thread in a cgroup, by way of the cgroups' caches.
    pub fn classify_in(&self, cgroup: &Cgroup, now: &Fingerprint) -> Option<Class> {
        let mut class = ffi::ThreadClass::default();
        // SAFETY: a full image buffer, a live cgroup, and two live values of the C layouts.
        let usable =
            unsafe { ffi::native_classify_in(self.as_ptr(), cgroup.raw, &now.0, &mut class) };
        usable.then(|| class.decode())
    }
}

/// A thread as the scheduler keeps it: the class it acts on, and what that was computed from.
#[derive(Default)]
pub struct Watched(ffi::TaskCtx);

impl Watched {
    /// One look at the thread as it is now; `None`: no image. True if the class changed, or the
    /// policy that gave it.
    pub fn refresh(&mut self, image: Option<&Buffer>, cgroup: &Cgroup, now: &Fingerprint) -> bool {
        let image = image.map_or(std::ptr::null(), Buffer::as_ptr);
        // SAFETY: null or a full image buffer, a live cgroup, two live values of the C layouts;
        // `TaskCtx` has room for the whole struct task_ctx, asserted in C.
        unsafe { ffi::native_refresh(image, cgroup.raw, &now.0, &mut self.0) }
    }

    /// The class to act on.
    pub fn class(&self) -> Class {
        self.0.class.decode()
    }

    /// Epoch of the image that gave it; 0: none did, it is the fallback.
    pub fn epoch(&self) -> u32 {
        self.0.key.epoch
    }
}
