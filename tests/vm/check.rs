//! The dry run where it asks the kernel or the daemon: `check --kernel` and `plan NEW`.

use crate::Test;
use crate::guest::{Daemon, POLICY, Work, Worker, save, sched_ext, twopool, wait_for_pool};

pub const TESTS: &[Test] = &[
    Test {
        name: "check::the_kernel_takes_the_scheduler_and_nothing_is_attached",
        cpus: 1,
        limit_s: 300,
        run: the_kernel_takes_the_scheduler_and_nothing_is_attached,
    },
    Test {
        name: "check::a_plan_compares_with_the_policy_in_force",
        cpus: 1,
        limit_s: 300,
        run: a_plan_compares_with_the_policy_in_force,
    },
];

const POLICY_TEXT: &str = "version = 1\ndefault = \"background\"\n[[rule]]\nname = \"requests\"\npool = \"critical\"\nuser = 0\nthread = \"req-*\"\n";

fn the_kernel_takes_the_scheduler_and_nothing_is_attached() {
    save(POLICY, POLICY_TEXT);
    let enabled = sched_ext("enable_seq");
    let check = || {
        let (status, stdout, stderr) = twopool(&["check", "--kernel", "--host"]);
        assert_eq!(status.code(), Some(0), "{stdout}{stderr}");
    };
    check();
    assert_eq!(sched_ext("enable_seq"), enabled);
    assert_eq!(sched_ext("state"), "disabled");
    // Beside a scheduler that runs, which runs on.
    let daemon = Daemon::start(POLICY_TEXT);
    let enabled = sched_ext("enable_seq");
    check();
    assert_eq!(sched_ext("enable_seq"), enabled);
    assert_eq!(sched_ext("state"), "enabled");
    daemon.stop();
}

/// With what is on the disk the same comparison would say that nothing changes.
fn a_plan_compares_with_the_policy_in_force() {
    let daemon = Daemon::start(POLICY_TEXT);
    let worker = Worker::start("req-1", Work::Spin);
    wait_for_pool(worker.tid(), "critical");
    let next = POLICY_TEXT.replace("req-*", "other-*");
    save("/tmp/next.toml", &next);
    let (status, stdout, stderr) = twopool(&["plan", "/tmp/next.toml"]);
    assert_eq!(status.code(), Some(2), "{stdout}{stderr}");
    assert!(stdout.contains("req-1"), "{stdout}");
    daemon.reload(&next);
    let (status, stdout, stderr) = twopool(&["plan", "/tmp/next.toml"]);
    assert_eq!(status.code(), Some(0), "{stdout}{stderr}");
    daemon.stop();
}
