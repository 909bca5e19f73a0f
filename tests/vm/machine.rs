//! The machine itself: all its CPUs are used, whatever their caches and cores, and they may come and
//! go.

use crate::Test;
use crate::actor::set_sched;
use crate::cpu::{
    Standing, assert_all_progress, cpu_list, cpus_used, online, pin, spinners, spinners_on, tids,
};
use crate::guest::{Daemon, Work, Worker, epoch, status, wait_for, wait_that};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    Test {
        name: "machine::as_many_threads_as_cpus_use_them_all",
        cpus: 2,
        limit_s: 300,
        run: as_many_threads_as_cpus_use_them_all,
    },
    Test {
        name: "machine::pools_own_whole_cores",
        cpus: 2,
        limit_s: 240,
        run: pools_own_whole_cores,
    },
    Test {
        name: "machine::k04_cpus_come_and_go",
        cpus: 2,
        limit_s: 300,
        run: k04_cpus_come_and_go,
    },
    Test {
        name: "machine::k04_a_crowded_cpu_goes_off",
        cpus: 2,
        limit_s: 300,
        run: k04_a_crowded_cpu_goes_off,
    },
    Test {
        name: "machine::who_loses_the_cpu_to_a_real_time_thread_finds_another",
        cpus: 2,
        limit_s: 240,
        run: who_loses_the_cpu_to_a_real_time_thread_finds_another,
    },
];

const POLICY: &str = r#"
version = 1
default = "background"
[[rule]]
name = "requests"
pool = "critical"
thread = ["lat-*", "twopool*"]
"#;

/// Ownership of CPUs is soft: a pool alone has the machine, and no CPU sleeps while somebody waits.
/// A lost idle claim, or a search that stops at the edge of a cache, leaves a CPU idle here.
fn as_many_threads_as_cpus_use_them_all() {
    let _daemon = Daemon::start(POLICY);
    let standing = Standing::now();
    let machine = online().len();
    for critical in [0, machine / 2, machine] {
        let mut workers = spinners("lat-", critical);
        workers.extend(spinners("batch-", machine - critical));
        // They start where their parent runs.
        cpus_used(&tids(&workers), Duration::from_secs(1));
        let used = cpus_used(&tids(&workers), Duration::from_secs(3));
        let sum: f64 = used.iter().sum();
        println!("{critical} critical of {machine}: {sum:.3} CPUs: {used:.3?}");
        assert!(sum > 0.85 * machine as f64, "CPUs stood idle: {used:?}");
        assert!(used.iter().all(|used| *used > 0.4), "uneven: {used:?}");
    }
    standing.assert_unbroken();
}

/// CPUs that `status` says a pool owns.
fn owned(pool: &str) -> Option<BTreeSet<usize>> {
    let cpus = status()?["pools"][pool]["cpus"].as_array()?.clone();
    cpus.iter()
        .map(|cpu| usize::try_from(cpu.as_u64()?).ok())
        .collect()
}

/// Every CPU in use has one owner, and no core is divided while there is a choice: two pools on one
/// core's two threads would take each other's speed.
fn pools_own_whole_cores() {
    let _daemon = Daemon::start(POLICY);
    let (critical, background) = wait_for("the pools to own CPUs", || {
        let both = (owned("critical")?, owned("background")?);
        (!both.0.is_empty() && !both.1.is_empty()).then_some(both)
    });
    println!("critical {critical:?}, background {background:?}");
    assert!(critical.is_disjoint(&background));
    let all: BTreeSet<usize> = critical.union(&background).copied().collect();
    assert_eq!(all, online().into_iter().collect());
    let divided: BTreeSet<Vec<usize>> = all
        .iter()
        .map(|cpu| cpu_list(&format!("cpu{cpu}/topology/core_cpus_list")))
        .filter(|core| core.iter().any(|cpu| critical.contains(cpu)))
        .filter(|core| core.iter().any(|cpu| background.contains(cpu)))
        .collect();
    // The background pool owns a CPU in any case, though it be half a core.
    assert!(
        divided.is_empty() || (divided.len() == 1 && background.len() == 1),
        "divided cores: {divided:?}"
    );
}

fn set_online(cpu: usize, on: bool) {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    std::fs::write(&path, if on { "1" } else { "0" }).unwrap_or_else(|e| panic!("{path}: {e}"));
}

/// Twice all CPUs but the first, off and on again, under load. A scheduler without the callbacks is
/// taken off by the kernel; one that leaves threads in a lost CPU's queue stalls.
fn k04_cpus_come_and_go() {
    let _daemon = Daemon::start(POLICY);
    let standing = Standing::now();
    let (before, all) = (epoch(), online());
    let mut workers = spinners("lat-", all.len());
    workers.extend(spinners("batch-", 2));
    // The kernel widens the mask of a thread that loses its last CPU.
    for name in ["lat-bound", "batch-bound"] {
        let bound = Worker::start(name, Work::Spin);
        pin(bound.tid(), &all[all.len() - 1..]);
        workers.push(bound);
    }
    workers.push(Worker::start("lat-nap", Work::Nap));
    workers.push(Worker::start("batch-nap", Work::Nap));
    let owners_follow = || {
        wait_that("the CPUs in use to have owners", || {
            let both = owned("critical").zip(owned("background"));
            both.is_some_and(|(critical, background)| {
                let owned: BTreeSet<usize> = critical.union(&background).copied().collect();
                owned == online().into_iter().collect()
            })
        });
    };
    for cpu in all[1..].iter().chain(&all[1..]) {
        set_online(*cpu, false);
        assert_all_progress(&workers);
        set_online(*cpu, true);
        assert_all_progress(&workers);
    }
    owners_follow();
    for cpu in &all[1..] {
        set_online(*cpu, false);
    }
    owners_follow();
    assert_all_progress(&workers);
    for cpu in &all[1..] {
        set_online(*cpu, true);
    }
    owners_follow();
    assert_all_progress(&workers);
    assert_eq!(epoch(), before);
    standing.assert_unbroken();
}

/// Threads that may run nowhere else wait in the queue of a CPU that goes. The kernel asks nobody for
/// work of such a CPU, waits until it has none, and takes the scheduler off after 30 s.
fn k04_a_crowded_cpu_goes_off() {
    let _daemon = Daemon::start(POLICY);
    let standing = Standing::now();
    let all = online();
    let last = all[all.len() - 1];
    let _elsewhere = spinners_on("hog-", all.len(), &all[..all.len() - 1]);
    for _ in 0..4 {
        let mut bound = spinners_on("lat-", 2, &[last]);
        bound.extend(spinners_on("batch-", 4, &[last]));
        assert_all_progress(&bound);
        let begin = Instant::now();
        set_online(last, false);
        println!("CPU {last} went off in {:?}", begin.elapsed());
        assert_all_progress(&bound);
        set_online(last, true);
        assert_all_progress(&bound);
    }
    standing.assert_unbroken();
}

/// The CPU that a thread runs on or ran on last.
fn last_cpu(tid: u32) -> usize {
    let path = format!("/proc/{tid}/stat");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // Behind the name, which may hold anything: field 39 of the line is the 37th from there.
    let (_, behind) = text.rsplit_once(')').expect("a name in brackets");
    let cpu = behind.split_whitespace().nth(36).expect("a CPU");
    cpu.parse().expect("the CPU's number")
}

/// A thread that was cut short stands first in its CPU's local queue, out of the scheduler's reach. The
/// kernel leaves 5 % of a CPU to other classes: that would be all it gets while CPUs are idle.
fn who_loses_the_cpu_to_a_real_time_thread_finds_another() {
    let _daemon = Daemon::start(POLICY);
    let standing = Standing::now();
    // Whether the kernel moves it by itself is luck: more than once.
    for name in ["lat-0", "batch-0"].repeat(3) {
        let worker = Worker::start(name, Work::Spin);
        worker.assert_progress();
        let taker = Worker::start("taker", Work::Spin);
        pin(taker.tid(), &[last_cpu(worker.tid())]);
        set_sched(taker.tid(), libc::SCHED_FIFO);
        let used = cpus_used(&[worker.tid()], Duration::from_secs(2))[0];
        println!("{name} used {used:.3} CPUs");
        assert!(used > 0.4, "{name} used {used:.3} CPUs");
    }
    standing.assert_unbroken();
}
