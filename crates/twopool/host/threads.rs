//! All threads of this host, from /proc.
//!
//! Threads come and go while they are listed: one that ended in between is left out, silently.

use std::fs;
use std::io;
use std::path::Path;

use twopool_policy::thread::Thread;

use super::procfs::read_thread;

/// What a walk through /proc found.
#[derive(Debug, Default)]
pub struct HostThreads {
    /// Those that are ours to schedule, by process and thread id.
    pub threads: Vec<Thread>,
    /// How many are in a class that the kernel runs before ours: real-time and deadline.
    pub other_class: usize,
    /// How many could not be read, for want of permission.
    pub unreadable: usize,
}

impl HostThreads {
    /// Reads them all.
    ///
    /// # Errors
    /// There is no list of processes.
    pub fn read(proc_root: &Path) -> io::Result<Self> {
        let mut found = Self::default();
        for pid in numbers(proc_root)? {
            for tid in thread_ids(proc_root, pid).unwrap_or_default() {
                found.add(proc_root, tid);
            }
        }
        Ok(found)
    }

    fn add(&mut self, proc_root: &Path, tid: i32) {
        match read_thread(proc_root, tid) {
            Ok(seen) if seen.other_class.is_some() => self.other_class += 1,
            Ok(seen) => self.threads.push(seen.thread),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.unreadable += 1,
        }
    }
}

/// The threads of a process, by id.
pub fn thread_ids(proc_root: &Path, pid: i32) -> io::Result<Vec<i32>> {
    numbers(&proc_root.join(pid.to_string()).join("task"))
}

/// The entries of a directory that are numbers, in order.
fn numbers(directory: &Path) -> io::Result<Vec<i32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_thread_is_among_them() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let found = HostThreads::read(Path::new("/proc")).expect("/proc is mounted");
        assert!(found.threads.iter().any(|thread| thread.tid == Some(tid)));
    }

    #[test]
    fn what_ended_or_is_no_thread_is_left_out() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for path in ["7/task/7", "7/task/8", "self/task/9", "9"] {
            fs::create_dir_all(root.path().join(path)).expect("created");
        }
        let found = HostThreads::read(root.path()).expect("readable");
        assert_eq!((found.threads.len(), found.unreadable), (0, 0));
        assert_eq!(thread_ids(root.path(), 7).expect("readable"), [7, 8]);
    }
}
