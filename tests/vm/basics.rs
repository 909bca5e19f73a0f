//! What every other test takes for granted.

use crate::Test;
use crate::guest::{Class, Daemon, Work, Worker, class_of, epoch, sched_ext, status, wait_that};

pub const TESTS: &[Test] = &[
    Test {
        name: "basics::the_kernel_has_sched_ext",
        cpus: 1,
        limit_s: 60,
        run: the_kernel_has_sched_ext,
    },
    Test {
        name: "basics::the_kernel_describes_its_types",
        cpus: 1,
        limit_s: 60,
        run: the_kernel_describes_its_types,
    },
    Test {
        name: "basics::it_attaches_and_schedules_a_thread",
        cpus: 1,
        limit_s: 240,
        run: it_attaches_and_schedules_a_thread,
    },
];

/// Without this every other test would fail for a reason that is not its own.
fn the_kernel_has_sched_ext() {
    assert_eq!(sched_ext("state"), "disabled");
    assert_eq!(sched_ext("nr_rejected"), "0");
}

fn the_kernel_describes_its_types() {
    let btf = std::fs::read("/sys/kernel/btf/vmlinux").expect("the kernel has BTF");
    assert_eq!(&btf[..2], &[0x9f, 0xeb], "BTF's magic number");
}

/// The object loads on this kernel, attaches, runs a thread by its rule, is accounted for, and goes.
/// Without this, a kernel whose verifier refuses the program is found out by every other test at
/// once.
fn it_attaches_and_schedules_a_thread() {
    let daemon = Daemon::start(
        r#"
version = 1
default = "background"
[[rule]]
name = "one"
pool = "critical"
thread = "one-*"
"#,
    );
    let worker = Worker::start("one-1", Work::Spin);
    let class = Class {
        pool: "critical".to_owned(),
        rule: 1,
        epoch: epoch(),
    };
    wait_that("the thread to be scheduled by its rule", || {
        class_of(worker.tid()).as_ref() == Some(&class)
    });
    wait_that("its CPU time to be counted for the rule", || {
        status().is_some_and(|status| {
            let rule = &status["rules"][0];
            rule["threads"] == 1 && rule["cpu_seconds"].as_f64() > Some(0.0)
        })
    });
    worker.assert_progress();
    assert!(daemon.stop().success());
    assert_eq!(sched_ext("state"), "disabled");
    worker.assert_progress();
}
