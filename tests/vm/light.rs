//! Little is not nothing: a thread of next to no weight, among many that never sleep.
//!
//! What its weight makes it due may be a turn in several minutes. The kernel takes a scheduler off of
//! which one thread waits for 30 s, whatever the weights.

use crate::Test;
use crate::actor::{set_nice, set_sched};
use crate::cpu::{Progress, Standing, spinners, tids};
use crate::guest::{Daemon, Worker, wait_for_pool};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    Test {
        name: "light::nice_19_among_fifty",
        cpus: 2,
        limit_s: 300,
        run: nice_19_among_fifty,
    },
    Test {
        name: "light::sched_idle_among_long_slices",
        cpus: 2,
        limit_s: 300,
        run: sched_idle_among_long_slices,
    },
    Test {
        name: "light::the_least_weight_that_can_be_had",
        cpus: 2,
        limit_s: 300,
        run: the_least_weight_that_can_be_had,
    },
    Test {
        name: "light::nice_0_among_nice_minus_20",
        cpus: 2,
        limit_s: 300,
        run: nice_0_among_nice_minus_20,
    },
    Test {
        name: "light::those_who_come_after_it_do_not_pass_it",
        cpus: 2,
        limit_s: 300,
        run: those_who_come_after_it_do_not_pass_it,
    },
    Test {
        name: "light::many_beside_the_heaviest_with_the_longest_slices",
        cpus: 2,
        limit_s: 300,
        run: many_beside_the_heaviest_with_the_longest_slices,
    },
];

/// Two laps of a queue are 4 s, then everybody who stands in it has one turn. The rest is for an
/// emulator that is itself starved.
const LONGEST_PAUSE: Duration = Duration::from_secs(12);

/// So long that a pause past the bound shows, wherever in it the window begins.
const WINDOW: Duration = Duration::from_secs(20);

fn policy(slice: &str, weight: u32) -> String {
    format!(
        r#"
version = 1
default = "background"
[pool.background]
slice = "{slice}"
[[rule]]
name = "observers"
pool = "critical"
thread = "twopool*"
[[rule]]
name = "light"
pool = "background"
thread = "light-*"
weight = {weight}
[[rule]]
name = "heaviest"
pool = "background"
thread = "heaviest-*"
weight = 10000
"#
    )
}

/// That each of them runs again and again, for longer than the bound.
fn watch(lights: &[Worker], standing: &Standing) {
    let mut progress: Vec<Progress<'_>> = lights.iter().map(Progress::of).collect();
    let begin = Instant::now();
    while begin.elapsed() < WINDOW {
        progress.iter_mut().for_each(Progress::look);
        std::thread::sleep(Duration::from_millis(50));
    }
    progress.iter_mut().for_each(Progress::look);
    for progress in &progress {
        progress.assert_steady("a light thread", LONGEST_PAUSE);
    }
    standing.assert_unbroken();
}

/// So many of them, in the pool that is looked at.
fn light_threads(count: usize) -> Vec<Worker> {
    let lights = spinners("light-", count);
    wait_for_pool(lights[0].tid(), "background");
    lights
}

/// One light thread, made so by `lighten`, among so many others.
fn one_among(hogs: usize, policy: &str, lighten: fn(u32)) {
    let _daemon = Daemon::start(policy);
    let standing = Standing::now();
    let _hogs = spinners("hog-", hogs);
    let light = light_threads(1);
    lighten(light[0].tid());
    watch(&light, &standing);
}

fn nice_19_among_fifty() {
    one_among(50, &policy("20ms", 100), |tid| set_nice(tid, 19));
}

fn sched_idle_among_long_slices() {
    one_among(40, &policy("100ms", 100), |tid| {
        set_sched(tid, libc::SCHED_IDLE);
    });
}

fn the_least_weight_that_can_be_had() {
    one_among(6, &policy("20ms", 1), |tid| set_nice(tid, 19));
}

/// It is of neutral weight, and light beside them.
fn nice_0_among_nice_minus_20() {
    let _daemon = Daemon::start(&policy("20ms", 100));
    let standing = Standing::now();
    let hogs = spinners("hog-", 50);
    let light = light_threads(1);
    for tid in tids(&hogs) {
        set_nice(tid, -20);
    }
    watch(&light, &standing);
}

/// It takes its place while there is little to do; then many come, and virtual time slows down.
fn those_who_come_after_it_do_not_pass_it() {
    let _daemon = Daemon::start(&policy("20ms", 1));
    let standing = Standing::now();
    let _few = spinners("hog-", 2);
    let light = light_threads(1);
    set_nice(light[0].tid(), 19);
    light[0].assert_progress();
    let _many = spinners("late-", 60);
    watch(&light, &standing);
}

/// A second of virtual time is 100 s of a heavy thread's: it must not be what it comes back with.
fn many_beside_the_heaviest_with_the_longest_slices() {
    let _daemon = Daemon::start(&policy("1s", 100));
    let standing = Standing::now();
    let lights = light_threads(12);
    let _heaviest = spinners("heaviest-", 12);
    watch(&lights, &standing);
}
