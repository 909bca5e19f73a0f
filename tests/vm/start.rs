//! Starts that must fail, and must say why: the exit code is for the supervisor, the named reason
//! for the person who reads its log.

use crate::Test;
use crate::guest::{Daemon, POLICY, save, sched_ext, status, wait_that};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

pub const TESTS: &[Test] = &[
    Test {
        name: "start::k07_another_scheduler_is_named",
        cpus: 1,
        limit_s: 300,
        run: k07_another_scheduler_is_named,
    },
    Test {
        name: "start::k07_of_two_starts_at_once_one_wins",
        cpus: 2,
        limit_s: 300,
        run: k07_of_two_starts_at_once_one_wins,
    },
    Test {
        name: "start::k08_what_the_host_lacks_is_named",
        cpus: 1,
        limit_s: 300,
        run: k08_what_the_host_lacks_is_named,
    },
    Test {
        name: "start::k08_without_rights_policies_can_still_be_checked",
        cpus: 1,
        limit_s: 300,
        run: k08_without_rights_policies_can_still_be_checked,
    },
    Test {
        name: "start::a_bad_policy_ends_in_78",
        cpus: 1,
        limit_s: 300,
        run: a_bad_policy_ends_in_78,
    },
    Test {
        name: "start::warnings_are_told_when_it_is_attached",
        cpus: 1,
        limit_s: 300,
        run: warnings_are_told_when_it_is_attached,
    },
];

const POLICY_TEXT: &str = "version = 1\ndefault = \"background\"\n[[rule]]\nname = \"requests\"\npool = \"critical\"\nthread = \"req-*\"\n";
const PROGRAM: &str = "/usr/local/bin/twopool";

/// `twopool run` in directories of its own, so that only the kernel stands between two daemons.
fn run_apart(program: &str, directory: &str) -> Command {
    let mut command = Command::new(program);
    command
        .arg("run")
        .env("TWOPOOL_RUNTIME_DIR", format!("{directory}/run"))
        .env("TWOPOOL_STATE_DIR", format!("{directory}/state"))
        .stdin(Stdio::null());
    command
}

/// `twopool run` as everybody starts it.
fn run_as_usual() -> Command {
    let mut command = Command::new("twopool");
    command.arg("run").stdin(Stdio::null());
    command
}

/// Runs to the end; a start that should have failed is ended by the harness' limit.
fn output(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().expect("the program can be started");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// Without the kernel's word for it, "busy" sends people looking in the wrong place.
fn k07_another_scheduler_is_named() {
    let daemon = Daemon::start(POLICY_TEXT);
    let enabled = sched_ext("enable_seq");
    for mut second in [run_as_usual(), run_apart("twopool", "/tmp/second")] {
        let (code, stderr) = output(&mut second);
        assert_eq!(code, Some(69), "{stderr}");
        assert!(
            stderr.contains("scheduler is attached: twopool"),
            "{stderr}"
        );
    }
    assert_eq!(
        sched_ext("enable_seq"),
        enabled,
        "the first one is not disturbed"
    );
    assert_eq!(status().expect("it answers")["state"], "attached");
    assert!(daemon.stop().success());

    let _foreign = attach_foreign();
    let (code, stderr) = output(&mut run_as_usual());
    assert_eq!(code, Some(69), "{stderr}");
    assert!(
        stderr.contains("scheduler is attached: foreign"),
        "{stderr}"
    );
    assert!(!Path::new("/run/twopool/control.sock").exists());
}

/// Killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A scheduler with another name: our own, under the name "foreign".
fn attach_foreign() -> Killed {
    // The name is a field of 128 bytes in the program's BPF object.
    let field = |name: &[u8]| [name, &[0; 121][..]].concat();
    let (ours, theirs) = (field(b"twopool"), field(b"foreign"));
    let mut program = fs::read(PROGRAM).expect("the program");
    let places: Vec<usize> = program
        .windows(ours.len())
        .enumerate()
        .filter_map(|(at, bytes)| (bytes == ours).then_some(at))
        .collect();
    assert_eq!(
        places.len(),
        1,
        "the name's field in the program: {places:?}"
    );
    program[places[0]..][..theirs.len()].copy_from_slice(&theirs);
    let path = "/tmp/foreign";
    fs::write(path, program).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
    let foreign = Killed(run_apart(path, "/tmp/foreigners").spawn().expect("started"));
    wait_that("the foreign scheduler to attach", || {
        sched_ext("state") == "enabled" && sched_ext("root/ops") == "foreign"
    });
    foreign
}

/// Both pass the check before loading; the kernel decides, and the loser must still name the other
/// one instead of an error number.
fn k07_of_two_starts_at_once_one_wins() {
    save(POLICY, POLICY_TEXT);
    let mut racers = ["/tmp/a", "/tmp/b"].map(|directory| {
        let child = run_apart("twopool", directory)
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        Killed(child)
    });
    let ended = |racer: &mut Killed| racer.0.try_wait().expect("wait").is_some();
    wait_that("one of them to give up", || racers.iter_mut().any(ended));
    let loser = racers.iter_mut().position(ended).expect("one has ended");
    wait_that("the other to be attached", || {
        sched_ext("state") == "enabled"
    });
    assert!(!ended(&mut racers[1 - loser]), "both gave up");
    let mut stderr = String::new();
    let pipe = racers[loser].0.stderr.take().expect("a pipe");
    std::io::Read::read_to_string(&mut { pipe }, &mut stderr).expect("its last words");
    let status = racers[loser].0.wait().expect("wait");
    assert_eq!(status.code(), Some(69), "{stderr}");
    assert!(
        stderr.contains("scheduler is attached: twopool"),
        "{stderr}"
    );
}

/// A raw error of the loader does not tell what to install or switch on. Each lack is made in a
/// mount namespace of its own, which ends with the command.
fn k08_what_the_host_lacks_is_named() {
    save(POLICY, POLICY_TEXT);
    let lacks = [
        (
            "/sys/kernel/btf",
            "mount -t tmpfs none /sys/kernel/btf",
            "CONFIG_DEBUG_INFO_BTF",
        ),
        (
            "/sys/kernel",
            "mount -t tmpfs none /sys/kernel && mkdir -p /sys/kernel/btf && touch /sys/kernel/btf/vmlinux",
            "CONFIG_SCHED_CLASS_EXT",
        ),
        (
            "/proc/sys/net/core/bpf_jit_enable",
            "echo 0 >/tmp/off && mount --bind /tmp/off /proc/sys/net/core/bpf_jit_enable",
            "net.core.bpf_jit_enable",
        ),
        (
            "/sys/kernel/security",
            "mount -t tmpfs none /sys/kernel/security && echo 'none integrity [confidentiality]' >/sys/kernel/security/lockdown",
            "locked down",
        ),
        // Present, but not the types of any kernel.
        (
            "/sys/kernel/btf",
            "mount -t tmpfs none /sys/kernel/btf && echo nonsense >/sys/kernel/btf/vmlinux",
            "type information cannot be read",
        ),
    ];
    for (place, lack, reason) in lacks {
        if Path::new(place).exists() {
            refuses_for(lack, reason);
        } else {
            println!("skipped: this kernel has no {place}, so it cannot lack {reason}");
        }
    }
    assert_eq!(sched_ext("state"), "disabled");
    starts_without_bpffs();
}

/// Starting fails with that reason where the shell command `lack` was run; policies are judged.
fn refuses_for(lack: &str, reason: &str) {
    let in_namespace = |then: &str| {
        let script = format!("{lack} || exit 99; {then}");
        output(Command::new("unshare").args(["-m", "sh", "-c", &script]))
    };
    let (code, stderr) = in_namespace("exec twopool run");
    assert_eq!(code, Some(69), "{lack}: {stderr}");
    assert!(stderr.contains(reason), "{lack}: {stderr}");
    for command in ["check", "explain --thread req-1"] {
        let (code, stderr) = in_namespace(&format!("exec twopool {command}"));
        assert_eq!(code, Some(0), "{lack}: {command}: {stderr}");
    }
}

/// Nothing is pinned, so a host without bpffs is fit.
fn starts_without_bpffs() {
    let script = "umount /sys/fs/bpf || exit 99; exec twopool run";
    let child = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .spawn()
        .expect("started");
    let _daemon = Killed(child);
    wait_that("it to attach", || {
        status().is_some_and(|status| status["state"] == "attached")
    });
}

/// People write and judge policies where they may not load them.
fn k08_without_rights_policies_can_still_be_checked() {
    save(POLICY, POLICY_TEXT);
    let as_dev = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).uid(1000).gid(1000);
        command
    };
    let (code, stderr) = output(&mut as_dev(&["run"]));
    assert_eq!(code, Some(77), "{stderr}");
    assert!(stderr.contains("needs root"), "{stderr}");
    assert_eq!(output(&mut as_dev(&["check"])).0, Some(0));
    assert_eq!(output(&mut as_dev(&["test"])).0, Some(4), "it has no tests");
    let explained = as_dev(&["explain", "--thread", "req-1", "--format", "json"])
        .output()
        .expect("started");
    let document: Value = serde_json::from_slice(&explained.stdout).expect("one document");
    assert_eq!(document["rule"]["name"], "requests");

    let daemon = Daemon::start(POLICY_TEXT);
    assert_eq!(output(&mut as_dev(&["status"])).0, Some(0), "all may ask");
    let (code, stderr) = output(&mut as_dev(&["reload", "--wait"]));
    assert_eq!(code, Some(77), "only root may change: {stderr}");
    let (code, _) = output(&mut as_dev(&["explain", "1"]));
    assert_eq!(code, Some(0), "init's names are everybody's to read");
    assert!(daemon.stop().success());
}

/// A supervisor must not restart a daemon for ever whose policy cannot be loaded, and nothing may
/// be attached meanwhile.
fn a_bad_policy_ends_in_78() {
    let enabled = sched_ext("enable_seq");
    let run = || output(&mut run_as_usual());
    let bad = POLICY_TEXT.replace("critical", "fast");
    for (text, code, reason) in [
        (bad.as_str(), 78, "unknown-pool"),
        ("# nothing yet\n", 78, "empty-policy"),
        ("", 78, "empty-policy"),
    ] {
        save(POLICY, text);
        let (ended, stderr) = run();
        assert_eq!(ended, Some(code), "{text:?}: {stderr}");
        assert!(stderr.contains(reason), "{text:?}: {stderr}");
    }
    fs::remove_file(POLICY).expect("removed");
    assert_eq!(run().0, Some(66), "no file is not a bad one");
    assert_eq!(sched_ext("enable_seq"), enabled);
    assert!(!Path::new("/run/twopool/control.sock").exists());
}

/// Proofs come after the attach, so that no thread waits for them; what they find must not get lost
/// on the way.
fn warnings_are_told_when_it_is_attached() {
    let again = POLICY_TEXT.replace("requests", "too late");
    let (_, rule) = again.split_once("[[rule]]").expect("a rule");
    let daemon = Daemon::start(&format!("{POLICY_TEXT}[[rule]]{rule}"));
    wait_that("the warning", || daemon.log().contains("duplicate-rule"));
    let log = daemon.log();
    let place = |text: &str| log.find(text).unwrap_or_else(|| panic!("{text}: {log}"));
    assert!(
        place("attached") < place("the policy has warnings"),
        "{log}"
    );
    assert_eq!(log.matches("the policy has warnings").count(), 1, "{log}");
    assert_eq!(
        status().expect("it answers")["last_reload"],
        Value::Null,
        "a start is no reload"
    );
    assert!(daemon.stop().success());
}
