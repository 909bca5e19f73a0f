//! A thread of this host as the kernel program sees it, from /proc.
//!
//! /proc shows some things differently from what the scheduler reads: a kernel worker's name gets
//! a suffix that changes from second to second, other kernel threads show more than 15 bytes.
//! Here both are undone, so that `explain` and the kernel agree.

use std::fs;
use std::io;
use std::path::Path;

use twopool_policy::policy::Sched;
use twopool_policy::thread::{Thread, cut, without_workqueue};

/// `PF_KTHREAD` of the kernel, as in field 9 of /proc/PID/stat. Stable since 2.6.
const PF_KTHREAD: u64 = 0x0020_0000;

/// `SCHED_BATCH` and `SCHED_IDLE` of the kernel's user interface.
const SCHED_BATCH: u64 = 3;
const SCHED_IDLE: u64 = 5;
/// The policies of the classes above ours, likewise.
const OTHER_CLASSES: [(u64, &str); 3] = [(1, "SCHED_FIFO"), (2, "SCHED_RR"), (6, "SCHED_DEADLINE")];

/// Bytes of a command line that are of interest; it may be megabytes long.
const MOST_COMMAND_LINE: usize = 4096;

/// A thread and whether it is ours to schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// As rules see it.
    pub thread: Thread,
    /// Its class if the kernel runs that before ours: `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`.
    pub other_class: Option<&'static str>,
    /// What its process was started with or has put there, with blanks between the words. Empty for
    /// a kernel thread, and where it cannot be read.
    pub command_line: Vec<u8>,
}

/// Reads a thread; an error of kind `NotFound` if it does not exist (any more).
pub fn read_thread(proc_root: &Path, tid: i32) -> io::Result<Seen> {
    // A zero or negative number is no thread, but "/proc/0" must not be asked for to know it.
    if tid <= 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    let directory = proc_root.join(tid.to_string());
    let read = |name: &str| fs::read(directory.join(name)).map_err(vanished);
    let stat = Stat::parse(&read("stat")?).ok_or_else(|| malformed("stat"))?;
    if stat.is_dead {
        return Err(io::ErrorKind::NotFound.into());
    }
    let ids = Ids::parse(&read("status")?).ok_or_else(|| malformed("status"))?;
    let thread = kernel_name(&read("comm")?, stat.kthread);
    let process = match ids.tgid == tid {
        true => thread.clone(),
        false => {
            let leader = proc_root.join(ids.tgid.to_string()).join("comm");
            kernel_name(&fs::read(leader).map_err(vanished)?, stat.kthread)
        }
    };
    let thread = Thread {
        tid: Some(tid),
        thread,
        process,
        cgroup: cgroup_path(&read("cgroup")?),
        user: ids.euid,
        group: ids.egid,
        nice: stat.nice,
        kthread: stat.kthread,
        leader: ids.tgid == tid,
        sched: stat.sched,
        hint: 0,
    };
    Ok(Seen {
        thread,
        other_class: stat.other_class,
        command_line: command_line(fs::read(directory.join("cmdline")).unwrap_or_default()),
    })
}

/// Words end with NUL; a title that was put in their place may be followed by many.
fn command_line(mut text: Vec<u8>) -> Vec<u8> {
    let end = text
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    text.truncate(end.min(MOST_COMMAND_LINE));
    text.iter_mut()
        .filter(|byte| **byte == 0)
        .for_each(|byte| *byte = b' ');
    text
}

/// A thread that ends while it is read gives ESRCH where one that never was gives ENOENT.
fn vanished(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::SRCH.raw_os_error() => {
            io::ErrorKind::NotFound.into()
        }
        _ => error,
    }
}

fn malformed(file: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("its {file} is not as the kernel writes it"),
    )
}

/// What /proc/PID/stat says; the name in it may hold any byte, so fields count from its last `)`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// It has ended, and its parent has not asked for its exit status yet: it is never scheduled again.
    is_dead: bool,
    nice: i8,
    kthread: bool,
    sched: Sched,
    other_class: Option<&'static str>,
}

impl Stat {
    fn parse(text: &[u8]) -> Option<Stat> {
        let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&text[after_name..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // proc(5) numbers fields from 1 and the first one after the name is 3.
        let field = |number: usize| fields.get(number - 3).copied();
        let policy = field(41)?.parse().ok()?;
        Some(Stat {
            is_dead: matches!(field(3)?, "Z" | "X"),
            kthread: field(9)?.parse::<u64>().ok()? & PF_KTHREAD != 0,
            nice: field(19)?.parse().ok()?,
            sched: match policy {
                SCHED_BATCH => Sched::Batch,
                SCHED_IDLE => Sched::Idle,
                _ => Sched::Normal,
            },
            other_class: OTHER_CLASSES
                .iter()
                .find_map(|(number, name)| (*number == policy).then_some(*name)),
        })
    }
}

/// What /proc/PID/status says of identities.
#[derive(Debug, PartialEq, Eq)]
struct Ids {
    tgid: i32,
    euid: u64,
    egid: u64,
}

impl Ids {
    fn parse(text: &[u8]) -> Option<Ids> {
        // The name comes first, with newlines escaped: no line of it can pose as another field.
        let text = String::from_utf8_lossy(text);
        let field = |name: &str, index: usize| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().nth(index)
        };
        Some(Ids {
            tgid: field("Tgid:", 0)?.parse().ok()?,
            euid: field("Uid:", 1)?.parse().ok()?,
            egid: field("Gid:", 1)?.parse().ok()?,
        })
    }
}

/// The name that the kernel keeps, from a `comm` file.
fn kernel_name(comm: &[u8], kthread: bool) -> Vec<u8> {
    let name = comm.strip_suffix(b"\n").unwrap_or(comm);
    let name = if kthread {
        without_workqueue(name)
    } else {
        name
    };
    cut(name).to_vec()
}

/// The cgroup v2 path: the `0::` line, never a v1 controller's. Without one (no v2 hierarchy is
/// mounted) the kernel has every thread in the root.
fn cgroup_path(text: &[u8]) -> Vec<u8> {
    let line = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"));
    let path = line.unwrap_or(b"/");
    path.strip_suffix(b" (deleted)").unwrap_or(path).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, flags: u64, nice: i8, policy: u64) -> Vec<u8> {
        let mut fields: Vec<String> = vec!["0".into(); 50];
        fields[0] = "S".into();
        fields[9 - 3] = flags.to_string();
        fields[19 - 3] = nice.to_string();
        fields[41 - 3] = policy.to_string();
        format!("17 ({name}) {}\n", fields.join(" ")).into_bytes()
    }

    #[test]
    fn t05_a_name_with_parentheses_does_not_shift_the_fields() {
        let parsed = Stat::parse(&stat("x)) R 1 (", 0, -5, 3)).expect("parsed");
        assert_eq!(
            parsed,
            Stat {
                is_dead: false,
                nice: -5,
                kthread: false,
                sched: Sched::Batch,
                other_class: None,
            }
        );
    }

    #[test]
    fn ext_and_real_time_count_as_normal() {
        for policy in [0, 1, 2, 6, 7] {
            assert_eq!(
                Stat::parse(&stat("a", 0, 0, policy)).expect("parsed").sched,
                Sched::Normal
            );
        }
        assert_eq!(
            Stat::parse(&stat("a", 0, 0, 5)).expect("parsed").sched,
            Sched::Idle
        );
    }

    #[test]
    fn the_classes_above_ours_are_named() {
        let class = |policy| {
            Stat::parse(&stat("a", 0, 0, policy))
                .expect("parsed")
                .other_class
        };
        assert_eq!(
            [1, 2, 6].map(class),
            ["SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"].map(Some)
        );
        assert_eq!([0, 3, 5, 7].map(class), [None; 4]);
    }

    #[test]
    fn t11_kernel_threads_have_the_name_that_the_scheduler_sees() {
        let name =
            |comm: &str| String::from_utf8(kernel_name(comm.as_bytes(), true)).expect("ASCII");
        assert_eq!(name("kworker/u8:0-ext4-rsv-conversion\n"), "kworker/u8:0");
        assert_eq!(name("kworker/2:0H+events\n"), "kworker/2:0H");
        assert_eq!(name("kworker/u128:12-x\n"), "kworker/u128:12");
        assert_eq!(name("rcu_exp_par_gp_kthread_worker/0\n"), "rcu_exp_par_gp_");
        assert_eq!(name("kworker/R-mm_percpu_wq\n"), "kworker/R-mm_pe");
    }

    #[test]
    fn a_user_thread_keeps_every_byte_but_one_newline() {
        assert_eq!(kernel_name(b"kworker/u8:0-x\n", false), b"kworker/u8:0-x");
        assert_eq!(kernel_name(b"a\nb\n\n", false), b"a\nb\n");
        assert_eq!(kernel_name(b"\n", false), b"");
    }

    #[test]
    fn g04_only_the_unified_line_counts() {
        assert_eq!(
            cgroup_path(b"9:name=systemd:/a\n4:memory:/jobs/x\n0::/\n"),
            b"/"
        );
        assert_eq!(cgroup_path(b"9:name=systemd:/a\n"), b"/");
        assert_eq!(
            cgroup_path(b"0::/ads.slice/web.service\n"),
            b"/ads.slice/web.service"
        );
        assert_eq!(cgroup_path(b"0::/gone (deleted)\n"), b"/gone");
    }

    #[test]
    fn effective_ids_are_the_second_of_four() {
        let text = b"Name:\tUid: 7\\n\nTgid:\t12\nPid:\t13\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n";
        assert_eq!(
            Ids::parse(text),
            Some(Ids {
                tgid: 12,
                euid: 2,
                egid: 6
            })
        );
    }

    #[test]
    fn t09_a_command_line_is_shown_without_what_fills_it_up() {
        let of = |text: &[u8]| command_line(text.to_vec());
        assert_eq!(of(b"a\0-b c\0"), b"a -b c");
        assert_eq!(
            of(b"nginx: worker process\0\0\0\0"),
            b"nginx: worker process"
        );
        assert_eq!(of(b""), b"");
        assert_eq!(of(&[b'x'; 9000]).len(), MOST_COMMAND_LINE);
    }

    #[test]
    fn e01_no_thread_is_not_found() {
        for tid in [0, -1, i32::MAX] {
            assert_eq!(
                read_thread(Path::new("/proc"), tid)
                    .expect_err("none")
                    .kind(),
                io::ErrorKind::NotFound
            );
        }
    }

    #[test]
    fn e01_a_zombie_is_no_thread() {
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let tid = i32::try_from(child.id()).expect("a process id");
        let begun = std::time::Instant::now();
        let found = loop {
            match read_thread(Path::new("/proc"), tid) {
                // Not ended yet.
                Ok(_) if begun.elapsed().as_secs() < 60 => std::thread::yield_now(),
                found => break found,
            }
        };
        assert!(
            Path::new(&format!("/proc/{tid}")).exists(),
            "nobody waited for it"
        );
        assert_eq!(found.expect_err("it ended").kind(), io::ErrorKind::NotFound);
        child.wait().expect("waited for");
    }

    #[test]
    fn this_thread_is_found_with_its_leader() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let seen = read_thread(Path::new("/proc"), tid).expect("this very thread");
        let thread = seen.thread;
        assert_eq!(thread.tid, Some(tid));
        assert_eq!(thread.leader, tid == std::process::id() as i32);
        assert!(!thread.kthread);
        assert!(thread.cgroup.starts_with(b"/"));
    }
}
