//! Nobody is forgotten: whoever may run on a CPU gets there, whatever the critical pool wants.
//!
//! All tests flood the CPUs with critical threads, and look at the one thread that could starve.
//! The harness and the daemon are critical too: they are the observers.

use crate::Test;
use crate::cpu::{Progress, Standing, cpu_ns, online, pin, spinners, spinners_on};
use crate::guest::{
    Daemon, SOON, Work, Worker, epoch, make_cgroup, status, wait_for, wait_for_pool, wait_until,
};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    Test {
        name: "schedule::k01_pinned_threads_progress",
        cpus: 2,
        limit_s: 300,
        run: k01_pinned_threads_progress,
    },
    Test {
        name: "schedule::k02_per_cpu_kernel_threads_run_at_once",
        cpus: 2,
        limit_s: 300,
        run: k02_per_cpu_kernel_threads_run_at_once,
    },
    Test {
        name: "schedule::threads_whose_mask_cuts_through_a_cache_progress",
        cpus: 4,
        limit_s: 300,
        run: threads_whose_mask_cuts_through_a_cache_progress,
    },
    Test {
        name: "schedule::a_storm_breaks_nothing",
        cpus: 2,
        limit_s: 300,
        run: a_storm_breaks_nothing,
    },
];

/// `lat-*` is critical, and so is who observes; the rest is background.
fn policy(critical: u32, background: u32, wait: &str) -> String {
    format!(
        r#"
version = 1
default = "background"
[pool.critical]
weight = {critical}
[pool.background]
weight = {background}
[limits]
background_wait = "{wait}"
[[rule]]
name = "flood"
pool = "critical"
thread = "lat-*"
[[rule]]
name = "observers"
pool = "critical"
thread = "twopool*"
"#
    )
}

/// Longest time without progress that is allowed: K01 asks for some in each second. The policy
/// bounds the wait to 200 ms; the rest is for an emulator that is itself starved.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What K01 asks for.
const LONG: Duration = Duration::from_secs(60);

/// Without a queue for each CPU, a thread that may run on one only is passed over by the others and
/// starves; without carrying its wait over, each change of its mask starts its wait anew.
fn k01_pinned_threads_progress() {
    let _daemon = Daemon::start(&policy(800, 100, "200ms"));
    let standing = Standing::now();
    let cpus = online();
    let last = cpus.len() - 1;
    let flood = spinners("lat-", 4 * cpus.len());
    let still = Worker::start_with("batch-still", Work::Spin, || {});
    let moved = Worker::start("batch-moved", Work::Spin);
    pin(still.tid(), &[1]);
    let masks: [&[usize]; 5] = [&[1], &[0, 1], &[last], &cpus, &[0, last]];

    let bound = || {
        let status = wait_for("a status", status);
        status["events"]["own_queue"].as_u64().expect("a count")
    };
    let bound_before = bound();
    let mut progress = [&still, &moved, &flood[0], &flood[1]].map(Progress::of);
    let begin = Instant::now();
    for round in 0.. {
        if begin.elapsed() > LONG {
            break;
        }
        pin(moved.tid(), masks[round % masks.len()]);
        pin(flood[0].tid(), masks[(round + 2) % masks.len()]);
        progress.iter_mut().for_each(Progress::look);
        std::thread::sleep(Duration::from_millis(10));
    }
    for (progress, what) in progress.iter().zip([
        "the pinned background thread",
        "the background thread whose mask changes",
        "the critical thread whose mask changes",
        "a critical thread without a mask",
    ]) {
        progress.assert_steady(what, LONGEST_PAUSE);
    }
    assert!(bound() > bound_before, "they are counted");
    standing.assert_unbroken();
}

/// Runs a work item on each CPU's kernel worker and waits for all of them.
fn work_on_each_cpu() -> Duration {
    let begin = Instant::now();
    std::fs::read("/proc/sys/vm/stat_refresh").expect("the kernel refreshes its statistics");
    begin.elapsed()
}

/// A policy that puts kernel threads into a pool without weight must not take the kernel's own
/// workers off their CPUs: everything that waits for them would stand still. Nor may those that are bound
/// to none starve, whatever wait the policy allows: without RCU's the kernel reports a stall, and
/// without sched_ext's own it takes the scheduler off.
fn k02_per_cpu_kernel_threads_run_at_once() {
    let _daemon = Daemon::start(&policy(10_000, 1, "1s"));
    let standing = Standing::now();
    // Workers that are missing are made by a kernel thread that is not bound to a CPU.
    work_on_each_cpu();
    let flood = spinners("lat-", 3 * online().len());
    let hog = spinners("batch-", 2);
    wait_for_pool(flood[0].tid(), "critical");
    wait_for_pool(hog[0].tid(), "background");

    let mut took: Vec<Duration> = (0..60).map(|_| work_on_each_cpu()).collect();
    took.sort();
    let (usual, worst) = (took[took.len() * 9 / 10], took[took.len() - 1]);
    println!("work on each CPU: 9 of 10 within {usual:?}, the longest {worst:?}");
    // Held up by the pool's weight, each would take what `background_wait` allows.
    assert!(usual < Duration::from_millis(100), "{took:?}");
    assert!(worst < Duration::from_secs(1), "{took:?}");
    // Longer than RCU and the watchdog would have been patient, with more that want the little.
    let _more = spinners("hog-", 8);
    let mut progress = Progress::of(&hog[0]);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(25) {
        progress.look();
        std::thread::sleep(Duration::from_millis(100));
    }
    println!(
        "a background thread's longest pause: {:?}",
        progress.longest
    );
    assert!(progress.longest < Duration::from_secs(10));
    standing.assert_unbroken();
}

/// Such threads wait in the queues of single CPUs. Nothing else would serve them: the pool as a
/// whole gets its share, on the CPUs that they may not use.
fn threads_whose_mask_cuts_through_a_cache_progress() {
    let _daemon = Daemon::start(&policy(800, 100, "200ms"));
    let standing = Standing::now();
    let cpus = online();
    let (here, elsewhere) = (&cpus[..2], &cpus[2..]);
    let _flood = spinners_on("lat-", 8, here);
    let _hogs = spinners_on("hog-", 2 * elsewhere.len(), elsewhere);
    let masked = spinners_on("batch-", 2, here);
    let in_cpuset = make_cpuset("/cut", here).map(|cgroup| {
        // A process: cpusets hold whole processes, as `cgroup.procs` does.
        let child = Command::new("twopool-load")
            .args(["spin", "--until-eof", "--name", "set-N", "--cgroup", cgroup])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        child.expect("twopool-load can be started")
    });
    if in_cpuset.is_none() {
        println!("without a cpuset: this kernel has none");
    }

    for worker in &masked {
        assert_served_again_and_again(worker.tid());
    }
    if let Some(mut child) = in_cpuset {
        let tid = wait_until(SOON, || thread_named(child.id(), "set-0")).expect("its thread");
        assert_served_again_and_again(tid);
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    standing.assert_unbroken();
}

/// Ten turns on a CPU, each within the time that the policy allows and then some.
#[track_caller]
fn assert_served_again_and_again(tid: u32) {
    for turn in 1..=10 {
        let before = cpu_ns(tid);
        let served = wait_until(5 * LONGEST_PAUSE, || (cpu_ns(tid) > before).then_some(()));
        assert!(served.is_some(), "thread {tid} waits for its turn {turn}");
    }
}

/// A cgroup whose processes may use these CPUs only; `None` without the controller.
fn make_cpuset<'a>(path: &'a str, cpus: &[usize]) -> Option<&'a str> {
    let root = Path::new("/sys/fs/cgroup");
    std::fs::write(root.join("cgroup.subtree_control"), "+cpuset").ok()?;
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    std::fs::write(make_cgroup(path).join("cpuset.cpus"), list.join(",")).expect("a cpuset");
    Some(path)
}

fn thread_named(process: u32, name: &str) -> Option<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let named = |entry: &std::fs::DirEntry| {
        std::fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let entry = tasks.flatten().find(named)?;
    entry.file_name().to_string_lossy().parse().ok()
}

/// Threads that fork, rename themselves, change masks, niceness and policy, under a policy that
/// changes too. A count that leaks, a claim that is lost, a thread in a queue that nobody serves:
/// all end in a stall, and the kernel takes the scheduler off.
fn a_storm_breaks_nothing() {
    let daemon = Daemon::start(&policy(800, 100, "200ms"));
    let standing = Standing::now();
    let first = epoch();
    let mut storm = Command::new("twopool-load")
        .args(["storm", "--threads", "24", "--seconds", "10"])
        .args(["--names", "lat-N,batch-N,storm-N"])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create("/tmp/storm").expect("a file"))
        .spawn()
        .expect("twopool-load can be started");
    let mut turn = 0;
    let done = wait_until(2 * SOON, || {
        turn += 1;
        daemon.reload(&policy(800 - turn % 2, 100, "200ms"));
        storm.try_wait().expect("wait for the storm")
    });
    assert!(done.expect("the storm ends").success());
    let told = std::fs::read_to_string("/tmp/storm").expect("the storm's report");
    let counts: serde_json::Value = serde_json::from_str(&told).expect("the storm's report");
    for kind in [
        "forks",
        "renames",
        "affinities",
        "nices",
        "policies",
        "yields",
    ] {
        assert!(counts[kind].as_u64() > Some(0), "no {kind}: {told}");
    }
    assert!(epoch() > first, "no reload took place");
    standing.assert_unbroken();
    let attached = status().is_some_and(|status| status["state"] == "attached");
    assert!(attached, "the daemon says otherwise: {}", daemon.log());
    // Whoever is left is served.
    let cpus = online();
    let workers = [spinners("lat-", cpus.len()), spinners("batch-", cpus.len())];
    workers.iter().flatten().for_each(Worker::assert_progress);
}
