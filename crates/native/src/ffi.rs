//! What `bpf/native.c` exports. Layouts mirror `bpf/intf.h`; nothing else may depend on them.

use std::ffi::c_char;

/// `PROBE_PATH_LEN`.
pub const PATH_LEN: usize = 512;

/// `struct probe_thread`.
#[repr(C)]
pub struct ProbeThread {
    pub thread: [u64; 2],
    pub process: [u64; 2],
    pub uid: u64,
    pub gid: u64,
    pub bits: u32,
    pub path_len: u32,
    pub path: [u8; PATH_LEN],
}

/// `struct thread_class`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
pub struct ThreadClass {
    pub slice_ns: u64,
    pub weight: u32,
    pub rule: u16,
    pub pool: u8,
    pub flags: u8,
}

/// `struct thread_key`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
pub struct ThreadKey {
    pub thread: [u64; 2],
    pub process: [u64; 2],
    pub cgroup_id: u64,
    pub uid: u32,
    pub gid: u32,
    pub bits: u32,
    pub epoch: u32,
    pub reserved: u64,
}

/// The beginning of `struct task_ctx`, with room for the rest of it.
#[repr(C)]
#[derive(Default)]
pub struct TaskCtx {
    pub key: ThreadKey,
    pub class: ThreadClass,
    pub rest: [u64; 8],
}

/// `struct native_cgroup`, never seen from here.
#[repr(C)]
pub struct NativeCgroup {
    _opaque: [u8; 0],
}

/// `struct native_field`.
#[repr(C)]
pub struct Field {
    pub name: *const c_char,
    pub offset: u64,
    pub size: u64,
}

unsafe extern "C" {
    pub fn native_classify(
        image: *const u64,
        thread: *const ProbeThread,
        class: *mut ThreadClass,
    ) -> bool;
    pub fn native_cgroup_new(
        parent: *mut NativeCgroup,
        name: *const c_char,
        id: u64,
    ) -> *mut NativeCgroup;
    pub fn native_cgroup_free(cgroup: *mut NativeCgroup);
    pub fn native_cgroup_epoch(cgroup: *mut NativeCgroup) -> u32;
    pub fn native_classify_in(
        image: *const u64,
        cgroup: *mut NativeCgroup,
        key: *const ThreadKey,
        class: *mut ThreadClass,
    ) -> bool;
    pub fn native_refresh(
        image: *const u64,
        cgroup: *mut NativeCgroup,
        now: *const ThreadKey,
        task: *mut TaskCtx,
    ) -> bool;
    pub fn native_layout(table: u32, count: *mut u64) -> *const Field;
}
