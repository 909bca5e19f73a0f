//! CPU time is divided as the policy says: between the pools by weight, inside a pool by the rules'
//! weights and by niceness.

use crate::Test;
use crate::cpu::{Standing, assert_all_progress, cpus_used, online, spinners, spinners_on, tids};
use crate::guest::{Daemon, Work, Worker, wait_for_pool};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    Test {
        name: "shares::pools_share_by_weight",
        cpus: 2,
        limit_s: 300,
        run: pools_share_by_weight,
    },
    Test {
        name: "shares::threads_of_a_pool_share_by_weight_and_nice",
        cpus: 2,
        limit_s: 300,
        run: threads_of_a_pool_share_by_weight_and_nice,
    },
    Test {
        name: "shares::threads_of_one_cpu_share_by_weight",
        cpus: 2,
        limit_s: 300,
        run: threads_of_one_cpu_share_by_weight,
    },
];

/// Long enough for debts of an earlier policy to be paid.
const SETTLE: Duration = Duration::from_secs(1);

/// An emulated CPU that its host stops for a second runs whoever it runs for a second: that window
/// says nothing. A scheduler that is wrong is so in every window.
const WINDOWS: usize = 5;

fn pools(critical: u32, background: u32) -> String {
    format!(
        r#"
version = 1
default = "background"
[pool.critical]
weight = {critical}
[pool.background]
weight = {background}
[[rule]]
name = "requests"
pool = "critical"
thread = ["lat-*", "twopool*"]
"#
    )
}

/// The promise that a weight is: within 2 points over 5 s in which both pools want all CPUs. Without
/// it the background pool starves (or, as easily, takes several times its share, a tick at a time).
fn pools_share_by_weight() {
    let daemon = Daemon::start(&pools(100, 200));
    let standing = Standing::now();
    let critical = spinners("lat-", 8);
    let background = spinners("batch-", 8);
    let all = [tids(&critical), tids(&background)].concat();
    let machine = online().len() as f64;
    for (critical, background) in [(800, 100), (100, 100), (950, 50)] {
        daemon.reload(&pools(critical, background));
        cpus_used(&all, SETTLE);
        let due = 100.0 * f64::from(background) / f64::from(critical + background);
        let measure = |_| {
            let used = cpus_used(&all, Duration::from_secs(5));
            let (theirs, ours): (f64, f64) = (used[8..].iter().sum(), used[..8].iter().sum());
            let share = 100.0 * theirs / (theirs + ours);
            println!("{critical}:{background}: {share:.2} %, due {due:.2} %: {used:.3?}");
            // The rest is the observer's, the daemon's and the kernel's.
            assert!(theirs + ours > 0.9 * machine, "CPUs stood idle: {used:?}");
            share
        };
        assert!(
            (0..WINDOWS)
                .map(measure)
                .any(|share| (share - due).abs() <= 2.0),
            "{critical}:{background}: background was due {due:.2} %"
        );
    }
    standing.assert_unbroken();
}

fn groups(pool: &str) -> String {
    format!(
        r#"
version = 1
default = "background"
[[rule]]
name = "observers"
pool = "critical"
thread = "twopool*"
[[rule]]
name = "heavy"
pool = "{pool}"
thread = "heavy-*"
weight = 400
[[rule]]
name = "light"
pool = "{pool}"
thread = "light-*"
weight = 50
[[rule]]
name = "the others"
pool = "{pool}"
thread = ["plain-*", "nice-*"]
"#
    )
}

/// Four threads a CPU: one of weight 400, one of weight 100 and two of weight 100 and nice 10, which
/// makes 11. In either pool the order must hold with a wide margin; it would be lost if virtual time
/// ignored one of the two factors.
fn threads_of_a_pool_share_by_weight_and_nice() {
    let daemon = Daemon::start(&groups("background"));
    let standing = Standing::now();
    let count = online().len();
    let heavy = spinners("heavy-", count);
    let plain = spinners("plain-", count);
    let nice: Vec<Worker> = (0..2 * count)
        .map(|number| {
            Worker::start_with(&format!("nice-{number}"), Work::Spin, || {
                rustix::process::setpriority_process(None, 10).expect("a thread may be nice");
            })
        })
        .collect();
    let all = [tids(&heavy), tids(&plain), tids(&nice)].concat();
    for pool in ["critical", "background"] {
        daemon.reload(&groups(pool));
        wait_for_pool(heavy[0].tid(), pool);
        cpus_used(&all, SETTLE);
        let used = cpus_used(&all, Duration::from_secs(4));
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let means = [
            mean(&used[..count]),
            mean(&used[count..2 * count]),
            mean(&used[2 * count..]),
        ];
        println!("{pool}: weights 400, 100 and 11: {means:.3?} of {used:.3?}");
        let [heavy, plain, nice] = means;
        assert!(heavy > 1.5 * plain, "{pool}: {means:?}");
        assert!(plain > 2.0 * nice, "{pool}: {means:?}");
    }
    // Little is not nothing.
    assert_all_progress(&nice);
    standing.assert_unbroken();
}

/// Rules for threads `w0-*`, `w1-*` and so on, with these weights.
fn weighted(pool: &str, slice: &str, weights: &[u32]) -> String {
    let head = format!(
        "version = 1\ndefault = \"background\"\n[pool.{pool}]\nslice = \"{slice}\"\n\
         [[rule]]\nname = \"observers\"\npool = \"critical\"\nthread = \"twopool*\"\n"
    );
    let rules = weights.iter().enumerate().map(|(i, weight)| {
        format!("[[rule]]\npool = \"{pool}\"\nthread = \"w{i}-*\"\nweight = {weight}\n")
    });
    head + &rules.collect::<String>()
}

/// More than half of a CPU is for one thread to have while others wait for it: a thread at the end of its
/// slice that is due more goes on. Made to queue, the heavy one would get every other slice; and were
/// it taken for a sleeper, whose credit is bounded, two slices of three. A slice that is shorter than a
/// tick lasts a tick, all of which counts.
fn threads_of_one_cpu_share_by_weight() {
    let sets: &[(&str, &str, &[u32])] = &[
        ("critical", "3ms", &[400, 100, 50]),
        ("background", "20ms", &[400, 100, 50]),
        ("background", "20ms", &[100, 10]),
        ("critical", "500us", &[1000, 400, 100, 50]),
    ];
    let daemon = Daemon::start(&weighted("critical", "3ms", &[100]));
    let standing = Standing::now();
    for (pool, slice, weights) in sets {
        daemon.reload(&weighted(pool, slice, weights));
        let workers: Vec<Worker> = (0..weights.len())
            .flat_map(|i| spinners_on(&format!("w{i}-"), 1, &[1]))
            .collect();
        wait_for_pool(workers[0].tid(), pool);
        cpus_used(&tids(&workers), SETTLE);
        let all: u32 = weights.iter().sum();
        let due = weights
            .iter()
            .map(|weight| 100.0 * f64::from(*weight) / f64::from(all));
        let due: Vec<f64> = due.collect();
        let measure = |_| {
            let used = cpus_used(&tids(&workers), Duration::from_secs(5));
            let all: f64 = used.iter().sum();
            assert!(all > 0.9, "the CPU stood idle: {used:?}");
            let shares: Vec<f64> = used.iter().map(|used| 100.0 * used / all).collect();
            println!("{pool}, {slice}: {shares:.2?} %, due {due:.2?} %");
            shares
        };
        let close = |shares: Vec<f64>| {
            let pairs = shares.iter().zip(&due);
            pairs
                .map(|(share, due)| (share - due).abs())
                .all(|off| off <= 2.0)
        };
        assert!(
            (0..WINDOWS).map(measure).any(close),
            "{pool}, {slice}: not as due"
        );
    }
    standing.assert_unbroken();
}
