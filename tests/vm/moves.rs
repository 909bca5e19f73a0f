//! Processes that become something else right after they start: by exec, or because a session
//! manager or container runtime moves them. Their class depends on what they are in the end alone.

use crate::Test;
use crate::actor::{Row, counts, rows};
use crate::guest::{Daemon, make_cgroup, move_to_cgroup, wait_for_pool, wait_that};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    Test {
        name: "moves::exec_gives_a_process_another_class",
        cpus: 1,
        limit_s: 300,
        run: exec_gives_a_process_another_class,
    },
    Test {
        name: "moves::g07_a_process_that_is_moved_after_its_start",
        cpus: 2,
        limit_s: 600,
        run: g07_a_process_that_is_moved_after_its_start,
    },
    Test {
        name: "moves::g10_a_cgroup_that_is_made_again_under_its_path",
        cpus: 1,
        limit_s: 600,
        run: g10_a_cgroup_that_is_made_again_under_its_path,
    },
];

const BUSYBOX: &str = "/bin/busybox";

/// Under its own path busybox executes no other program when a shell says `exec`, so that the kernel
/// would not see one.
fn applet(name: &str) -> String {
    let path = format!("/tmp/{name}");
    if !Path::new(&path).exists() {
        symlink(BUSYBOX, &path).expect("a link to busybox");
    }
    path
}

fn shell(script: &str) -> Child {
    Command::new(applet("sh"))
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a shell can be started")
}

/// Kills all before it waits for any: those that still spin would delay the end of the others.
fn end(mut children: Vec<Child>) {
    for child in &mut children {
        child.kill().expect("a process can be killed");
    }
    for child in &mut children {
        child.wait().expect("and waited for");
    }
}

/// `yes` never sleeps: nothing but a tick can find out that the shell has become something else.
fn exec_gives_a_process_another_class() {
    let _daemon = Daemon::start(
        r#"
version = 1
default = "background"
[[rule]]
name = "after"
pool = "critical"
process = "yes"
"#,
    );
    let mut child = shell(&format!("read line; exec {}", applet("yes")));
    wait_for_pool(child.id(), "background");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"go\n").expect("the shell reads");
    wait_for_pool(child.id(), "critical");
    let charged_ns = counts()["after"].cpu_ns;
    wait_that("its CPU time to go to the rule", || {
        counts()["after"].cpu_ns > charged_ns
    });
    end(vec![child]);
}

const LAB_POLICY: &str = r#"
version = 1
default = "background"
[[rule]]
name = "the test itself, which must not wait behind its load"
pool = "critical"
process = "twopool*"
weight = 10000
[[rule]]
name = "fast"
pool = "critical"
cgroup = { under = "/lab/fast" }
"#;

#[track_caller]
fn wait_for_pools(children: &[Child], pool: &str) {
    wait_that(&format!("all of them to be {pool}"), || {
        let rows = rows();
        let holds = |row: &Row| row.pool == pool && row.epoch > 0;
        children
            .iter()
            .all(|child| rows.get(&child.id()).is_some_and(holds))
    });
}

fn g07_a_process_that_is_moved_after_its_start() {
    // A hundred in all.
    const BATCHES: usize = 5;
    const AT_ONCE: usize = 20;
    let _daemon = Daemon::start(LAB_POLICY);
    make_cgroup("/lab/fast");
    // Children begin where their parent is.
    move_to_cgroup(std::process::id(), "/lab/slow");
    for _ in 0..BATCHES {
        let children: Vec<Child> = (0..AT_ONCE)
            .map(|_| {
                let child = shell("while :; do :; done");
                // The case itself: so long after the start the process is moved.
                std::thread::sleep(Duration::from_millis(5));
                move_to_cgroup(child.id(), "/lab/fast");
                child
            })
            .collect();
        wait_for_pools(&children, "critical");
        for child in &children {
            move_to_cgroup(child.id(), "/lab/slow");
        }
        wait_for_pools(&children, "background");
        end(children);
    }
}

/// What is cached for a cgroup must go with it: a new one under the old path has another id, and may
/// have the memory of the old one.
fn g10_a_cgroup_that_is_made_again_under_its_path() {
    const TIMES: u64 = 100;
    let daemon = Daemon::start(
        r#"
version = 1
default = "background"
[[rule]]
name = "fast"
pool = "critical"
cgroup = { under = "/lab/fast" }
process = "usleep"
[[rule]]
name = "missed"
pool = "background"
process = "usleep"
"#,
    );
    let memory_kib = memory_of(daemon.pid());
    let task = format!(
        "echo 0 > /sys/fs/cgroup/lab/fast/cgroup.procs; exec {} 1000",
        applet("usleep")
    );
    for _ in 0..TIMES {
        let dir = make_cgroup("/lab/fast");
        let status = shell(&task).wait().expect("the task can be waited for");
        assert!(status.success(), "{status}");
        wait_that("the empty cgroup to go", || {
            std::fs::remove_dir(&dir).is_ok()
        });
    }
    // The task sleeps once, so that it is looked at once at least as what it is.
    let counts = counts();
    let (hits, missed) = (counts["fast"].matches, counts["missed"].matches);
    assert!(
        hits >= TIMES && missed == 0,
        "{hits} of {TIMES} were found, {missed} missed"
    );
    let grown_kib = memory_of(daemon.pid()).saturating_sub(memory_kib);
    assert!(grown_kib < 4096, "the daemon grew by {grown_kib} KiB");
    let log = daemon.log();
    let loud = log
        .lines()
        .find(|line| line.contains("ERROR") || line.contains("WARN"));
    assert_eq!(loud, None);
}

/// Resident memory of a process in KiB.
fn memory_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.expect("VmRSS").trim().trim_end_matches(" kB");
    number.parse().expect("a number")
}
