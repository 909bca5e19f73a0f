//! `Thread`: what rules can see of a thread.

use crate::policy::Sched;

/// Longest thread or process name that the kernel keeps, in bytes.
pub const NAME_BYTES: usize = 15;

/// A thread as rules see it: real, simulated, from a `[[test]]` or from a TSV row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Its id on this host, if it is a real one.
    pub tid: Option<i32>,
    /// Its name, at most 15 bytes.
    pub thread: Vec<u8>,
    /// Its thread group leader's name, at most 15 bytes.
    pub process: Vec<u8>,
    /// Its cgroup v2 path: one leading slash, no trailing one; `/` is the root.
    pub cgroup: Vec<u8>,
    /// Effective uid, or an id from `UNKNOWN_ID_BASE`, or `u64::MAX - 1` for a name nobody knows.
    pub user: u64,
    /// Effective gid, likewise.
    pub group: u64,
    /// -20..=19.
    pub nice: i8,
    /// A kernel thread.
    pub kthread: bool,
    /// Its process's first thread.
    pub leader: bool,
    /// Scheduling policy.
    pub sched: Sched,
    /// Hint level, 0..=1023.
    pub hint: u16,
}

impl Thread {
    /// A thread with the documented defaults: process = thread, cgroup `/`, user and group 0,
    /// nice 0, not a kernel thread, leader, normal, level 0. The name is cut to 15 bytes.
    pub fn named(name: &[u8]) -> Self {
        let name = cut(name).to_vec();
        Self {
            tid: None,
            process: name.clone(),
            thread: name,
            cgroup: b"/".to_vec(),
            user: 0,
            group: 0,
            nice: 0,
            kthread: false,
            leader: true,
            sched: Sched::Normal,
            hint: 0,
        }
    }
}

/// A name as the kernel keeps it.
pub fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME_BYTES)]
}

/// A cgroup path as the kernel has it, from one as people write it: `a//b/` is `/a/b`, nothing is `/`.
pub fn cgroup_path(path: &[u8]) -> Vec<u8> {
    let parts = path.split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty()).collect();
    [b"/", parts.join(&b'/').as_slice()].concat()
}

/// A kernel worker's name without the work queue that /proc adds: `kworker/u8:0-events` is
/// `kworker/u8:0` to the kernel. Any other name is itself; so is a rescuer's, `kworker/R-xfs`.
pub fn without_workqueue(name: &[u8]) -> &[u8] {
    let Some(rest) = name.strip_prefix(b"kworker/") else {
        return name;
    };
    if rest.starts_with(b"R-") {
        return name;
    }
    match rest.iter().position(|b| matches!(b, b'-' | b'+')) {
        // Only behind the CPU and the number of the worker: `kworker/*-x` is somebody's pattern.
        Some(at) if rest[..at].contains(&b':') => &name[..name.len() - rest.len() + at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g01_spellings_of_one_cgroup() {
        for path in ["/a/b", "a/b", "a/b/", "//a//b"] {
            assert_eq!(cgroup_path(path.as_bytes()), b"/a/b", "{path}");
        }
        assert_eq!(cgroup_path(b""), b"/");
        assert_eq!(cgroup_path(b"/"), b"/");
    }
}
