//! CPUs and CPU time: which CPUs there are, who may use them, and who used how much.
//!
//! CPU time is the kernel's own account of each thread (schedstat), so that a window may be longer
//! or shorter than asked for without telling lies.

use crate::guest::{Work, Worker, sched_ext, wait_that};
use rustix::thread::CpuSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// `0-2,5` as numbers.
fn parse_list(text: &str) -> Vec<usize> {
    let number = |text: &str| -> usize { text.parse().expect("a CPU number") };
    text.trim()
        .split(',')
        .filter(|range| !range.is_empty())
        .flat_map(|range| match range.split_once('-') {
            Some((first, last)) => number(first)..=number(last),
            None => number(range)..=number(range),
        })
        .collect()
}

/// A list of CPUs below /sys/devices/system/cpu.
#[track_caller]
pub fn cpu_list(file: &str) -> Vec<usize> {
    let path = PathBuf::from("/sys/devices/system/cpu").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    parse_list(&text)
}

/// CPUs in use.
pub fn online() -> Vec<usize> {
    cpu_list("online")
}

/// Restricts a thread to these CPUs.
#[track_caller]
pub fn pin(tid: u32, cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    rustix::thread::sched_setaffinity(Some(crate::guest::pid(tid)), &set)
        .unwrap_or_else(|e| panic!("cannot restrict {tid} to {cpus:?}: {e}"));
}

/// So many threads that never sleep, named with this prefix and a number.
pub fn spinners(prefix: &str, count: usize) -> Vec<Worker> {
    (0..count)
        .map(|number| Worker::start(&format!("{prefix}{number}"), Work::Spin))
        .collect()
}

/// Like `spinners`, on these CPUs only.
pub fn spinners_on(prefix: &str, count: usize, cpus: &[usize]) -> Vec<Worker> {
    let workers = spinners(prefix, count);
    workers.iter().for_each(|worker| pin(worker.tid(), cpus));
    workers
}

/// CPU time of a thread so far; of one that runs right now, up to its last tick.
#[track_caller]
pub fn cpu_ns(tid: u32) -> u64 {
    let path = format!("/proc/{tid}/schedstat");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let first = text.split_whitespace().next().unwrap_or_default();
    first
        .parse()
        .unwrap_or_else(|e| panic!("{path}: {text:?}: {e}"))
}

/// How many CPUs each thread used on average over a window of about this length.
pub fn cpus_used(tids: &[u32], window: Duration) -> Vec<f64> {
    let read = || -> Vec<u64> { tids.iter().map(|tid| cpu_ns(*tid)).collect() };
    let (begin, before) = (Instant::now(), read());
    std::thread::sleep(window);
    let (length, after) = (begin.elapsed(), read());
    let used = |(before, after): (&u64, &u64)| (after - before) as f64 / length.as_nanos() as f64;
    before.iter().zip(&after).map(used).collect()
}

/// Ids of workers.
pub fn tids(workers: &[Worker]) -> Vec<u32> {
    workers.iter().map(Worker::tid).collect()
}

/// Panics unless all of them make progress soon.
#[track_caller]
pub fn assert_all_progress(workers: &[Worker]) {
    let before: Vec<u64> = workers.iter().map(Worker::rounds).collect();
    wait_that("all threads to make progress", || {
        let pairs = workers.iter().zip(&before);
        pairs
            .into_iter()
            .all(|(worker, before)| worker.rounds() > *before)
    });
}

/// Watches one thread's progress.
pub struct Progress<'a> {
    worker: &'a Worker,
    rounds: u64,
    since: Instant,
    /// The longest time without progress so far.
    pub longest: Duration,
}

impl<'a> Progress<'a> {
    /// From now on.
    pub fn of(worker: &'a Worker) -> Self {
        Self {
            worker,
            rounds: worker.rounds(),
            since: Instant::now(),
            longest: Duration::ZERO,
        }
    }

    /// To be called often: the time between two calls is the resolution.
    pub fn look(&mut self) {
        let rounds = self.worker.rounds();
        self.longest = self.longest.max(self.since.elapsed());
        if rounds != self.rounds {
            (self.rounds, self.since) = (rounds, Instant::now());
        }
    }

    /// Panics if it ever stood still for as long as that.
    #[track_caller]
    pub fn assert_steady(&self, what: &str, limit: Duration) {
        println!("{what}: longest pause {:?}", self.longest);
        assert!(
            self.longest < limit,
            "{what} did not run for {:?}",
            self.longest
        );
    }
}

/// That twopool has been the scheduler since a moment, without a break, and that the kernel had
/// nothing to complain of.
#[derive(Debug, PartialEq, Eq)]
pub struct Standing {
    state: String,
    ops: String,
    enable_seq: String,
    nr_rejected: String,
    /// Inserts that the kernel dropped, where it counts them.
    not_owned: Option<String>,
}

impl Standing {
    /// As things are now.
    pub fn now() -> Self {
        let events = sched_ext("root/events");
        let not_owned = events
            .lines()
            .find_map(|line| line.strip_prefix("SCX_EV_INSERT_NOT_OWNED "));
        Self {
            state: sched_ext("state"),
            ops: sched_ext("root/ops"),
            enable_seq: sched_ext("enable_seq"),
            nr_rejected: sched_ext("nr_rejected"),
            not_owned: not_owned.map(str::to_owned),
        }
    }

    /// Panics if anything changed.
    #[track_caller]
    pub fn assert_unbroken(&self) {
        assert_eq!(self, &Self::now(), "twopool was to stay attached");
    }
}
