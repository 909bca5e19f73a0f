//! Little is not nothing: a thread of next to no weight, among many that never sleep.
//!
//! What its weight makes it due may be a turn in several minutes. The kernel takes a scheduler off of
//! which one thread waits for 30 s, whatever the weights.

use crate::Test;
use crate::actor::{set_nice, set_sched};
use crate::cpu::{Progress, Standing, spinners, tids};
use crate::guest::{Daemon, Work, Worker, wait_for_pool};
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
"#
    )
}

fn watch(light: &Worker, standing: &Standing) {
    let mut progress = Progress::of(light);
    let begin = Instant::now();
    while begin.elapsed() < WINDOW {
        progress.look();
        std::thread::sleep(Duration::from_millis(50));
    }
    progress.look();
    progress.assert_steady("the light thread", LONGEST_PAUSE);
    standing.assert_unbroken();
}

fn light_thread() -> Worker {
    let light = Worker::start("light-0", Work::Spin);
    wait_for_pool(light.tid(), "background");
    light
}

fn nice_19_among_fifty() {
    let _daemon = Daemon::start(&policy("20ms", 100));
    let standing = Standing::now();
    let _hogs = spinners("hog-", 50);
    let light = light_thread();
    set_nice(light.tid(), 19);
    watch(&light, &standing);
}

fn sched_idle_among_long_slices() {
    let _daemon = Daemon::start(&policy("100ms", 100));
    let standing = Standing::now();
    let _hogs = spinners("hog-", 40);
    let light = light_thread();
    set_sched(light.tid(), libc::SCHED_IDLE);
    watch(&light, &standing);
}

fn the_least_weight_that_can_be_had() {
    let _daemon = Daemon::start(&policy("20ms", 1));
    let standing = Standing::now();
    let _hogs = spinners("hog-", 6);
    let light = light_thread();
    set_nice(light.tid(), 19);
    watch(&light, &standing);
}

/// It is of neutral weight, and light beside them.
fn nice_0_among_nice_minus_20() {
    let _daemon = Daemon::start(&policy("20ms", 100));
    let standing = Standing::now();
    let hogs = spinners("hog-", 50);
    let light = light_thread();
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
    let light = light_thread();
    set_nice(light.tid(), 19);
    light.assert_progress();
    let _many = spinners("late-", 60);
    watch(&light, &standing);
}
