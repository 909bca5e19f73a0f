//! `check --kernel`: the verifier's own verdict, and nothing attached.

use crate::Test;
use crate::guest::{Daemon, POLICY, save, sched_ext, twopool};

pub const TESTS: &[Test] = &[Test {
    name: "check::the_kernel_takes_the_scheduler_and_nothing_is_attached",
    cpus: 1,
    limit_s: 300,
    run: the_kernel_takes_the_scheduler_and_nothing_is_attached,
}];

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
