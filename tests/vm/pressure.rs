//! The daemon on a host that is short of something: CPU time, room, files.

use crate::Test;
use crate::daemon::eject;
use crate::guest::{
    DAEMON_LOG, Daemon, POLICY, STATE, pid, save, sched_ext, status, twopool, wait_for,
    wait_for_pool, wait_that,
};
use crate::load::Spinners;
use rustix::process::{Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    Test {
        name: "pressure::k06_ejected_under_load_it_answers_and_comes_back",
        cpus: 2,
        limit_s: 600,
        run: k06_ejected_under_load_it_answers_and_comes_back,
    },
    Test {
        name: "pressure::asked_to_end_while_it_loads_it_ends",
        cpus: 2,
        limit_s: 600,
        run: asked_to_end_while_it_loads_it_ends,
    },
    Test {
        name: "pressure::asked_to_end_while_it_reads_its_policy_it_ends",
        cpus: 1,
        limit_s: 300,
        run: asked_to_end_while_it_reads_its_policy_it_ends,
    },
    Test {
        name: "pressure::it_is_urgent_and_a_policy_sees_that",
        cpus: 1,
        limit_s: 300,
        run: it_is_urgent_and_a_policy_sees_that,
    },
    Test {
        name: "pressure::without_room_for_its_socket_it_ends_in_75",
        cpus: 1,
        limit_s: 300,
        run: without_room_for_its_socket_it_ends_in_75,
    },
    Test {
        name: "pressure::k06_without_room_for_it_a_report_is_in_the_log",
        cpus: 1,
        limit_s: 300,
        run: k06_without_room_for_it_a_report_is_in_the_log,
    },
];

/// The client is critical, so that what is slow is the daemon.
const POLICY_TEXT: &str = r#"version = 1
default = "background"
[[rule]]
name = "urgent"
pool = "critical"
process = "twopool"
nice = { max = -20 }
"#;

/// As many as the host can take, of everybody's priority.
fn hogs() -> Spinners {
    Spinners::start(&["--threads", "32", "--name", "hog-N"])
}

/// Loading costs seconds of CPU time here. At everybody's priority it took a minute to get them, for
/// which the host was without its policy; on the event loop, nobody could ask why.
fn k06_ejected_under_load_it_answers_and_comes_back() {
    let daemon = Daemon::start(POLICY_TEXT);
    let _hogs = hogs();
    let before = sched_ext("enable_seq");
    eject();
    let ejected = Instant::now();
    let (mut answers, mut slowest) = (Vec::new(), Duration::ZERO);
    wait_that("it to attach again", || {
        let asked = Instant::now();
        let (ended, stdout, stderr) = twopool(&["status", "--format", "json"]);
        assert!(ended.success(), "after {:?}: {stderr}", ejected.elapsed());
        slowest = slowest.max(asked.elapsed());
        let document: serde_json::Value = serde_json::from_str(&stdout).expect("one document");
        let state = document["state"].as_str().expect("a state").to_owned();
        let is_back = state == "attached" && sched_ext("enable_seq") != before;
        answers.push(state);
        is_back
    });
    println!(
        "back after {:?}, of which it waits 1 s; {} answers meanwhile, the slowest after {slowest:?}",
        ejected.elapsed(),
        answers.len()
    );
    assert!(
        answers.iter().any(|state| state == "ejected"),
        "{answers:?}"
    );
    assert_eq!(sched_ext("root/ops"), "twopool");
    assert!(daemon.stop().success());
}

/// Killed by the signal, it would look to its supervisor like a daemon that failed.
fn asked_to_end_while_it_reads_its_policy_it_ends() {
    // Takes long to compile.
    let names: Vec<String> = (0..16_000)
        .map(|number| format!("\"name-{number}\""))
        .collect();
    let rule = format!(
        "[[rule]]\npool = \"critical\"\nthread = [{}]\n",
        names.join(", ")
    );
    save(
        POLICY,
        &format!("version = 1\ndefault = \"background\"\n{rule}"),
    );
    let mut daemon = Daemon::spawn(&["run"]);
    wait_that("it to catch SIGTERM", || {
        catches(daemon.pid(), Signal::TERM)
    });
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    let log = daemon.log();
    assert!(log.contains("nothing was attached"), "{log}");
    assert_eq!(sched_ext("state"), "disabled");
}

/// Whether a process has a handler for a signal.
fn catches(process: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal.as_raw() - 1) != 0)
}

/// A supervisor kills what does not end in time, and whoever stops a service expects its effect to be
/// gone.
fn asked_to_end_while_it_loads_it_ends() {
    let _hogs = hogs();
    save(POLICY, POLICY_TEXT);
    let mut was_loading = 0;
    for _ in 0..5 {
        let before = sched_ext("enable_seq");
        let mut daemon = Daemon::spawn(&["run"]);
        let state = wait_for("an answer", || {
            status()?["state"].as_str().map(str::to_owned)
        });
        daemon.signal(Signal::TERM);
        let asked = Instant::now();
        assert_eq!(daemon.wait().code(), Some(0));
        println!("{state}: ended after {:?}", asked.elapsed());
        assert_eq!(sched_ext("state"), "disabled");
        assert!(!Path::new("/run/twopool/control.sock").exists());
        was_loading += usize::from(sched_ext("enable_seq") == before);
    }
    assert!(
        was_loading > 0,
        "it was attached each time before it was asked"
    );
}

/// Operators write rules about nice values and users, and must know what they do to the daemon.
fn it_is_urgent_and_a_policy_sees_that() {
    let daemon = Daemon::start(POLICY_TEXT);
    let nice = |name: &str| {
        let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("its threads");
        let of = |task: fs::DirEntry| {
            let stat = fs::read_to_string(task.path().join("stat")).ok()?;
            let (before, fields) = stat.rsplit_once(") ")?;
            let nice = fields.split(' ').nth(16)?.parse::<i32>().ok()?;
            before.ends_with(&format!("({name}")).then_some(nice)
        };
        tasks.flatten().find_map(of)
    };
    assert_eq!(nice("twopool"), Some(-20));
    assert_eq!(nice("worker"), Some(-20));
    assert_eq!(nice("control"), Some(0), "anybody may connect");
    wait_for_pool(daemon.pid(), "critical");
    assert!(daemon.stop().success());

    leads_a_session();

    save(POLICY, POLICY_TEXT);
    rustix::process::setpriority_process(None, 3).expect("less urgent");
    let chosen = Daemon::start_with(&["run"]);
    let stat = fs::read_to_string(format!("/proc/{}/stat", chosen.pid())).expect("its figures");
    let nice = stat
        .rsplit_once(") ")
        .and_then(|(_, fields)| fields.split(' ').nth(16));
    assert_eq!(nice, Some("3"), "somebody's choice stays");
    assert!(chosen.stop().success());
}

/// As under systemd: nice values count inside the session's group only, so the group must rise too.
fn leads_a_session() {
    let autogroup = |process: u32| fs::read_to_string(format!("/proc/{process}/autogroup"));
    if autogroup(std::process::id()).is_err() {
        println!("skipped: this kernel does not group by session");
        return;
    }
    let child = Command::new("setsid")
        .args(["twopool", "run"])
        .stdin(Stdio::null())
        .spawn();
    let mut child = child.expect("started");
    wait_that("it to attach", || {
        status().is_some_and(|status| status["state"] == "attached")
    });
    let group = autogroup(child.id()).expect("readable");
    assert!(group.trim_end().ends_with("nice -20"), "{group:?}");
    kill_process(pid(child.id()), Signal::TERM).expect("signalled");
    assert!(child.wait().expect("it ends").success());
}

/// The sample unit tries again after 75 and after nothing else, because room may come back.
fn without_room_for_its_socket_it_ends_in_75() {
    save(POLICY, POLICY_TEXT);
    let enabled = sched_ext("enable_seq");
    let full = "mount -t tmpfs -o nr_inodes=1 none /run || exit 99; exec twopool run";
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", full])
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("No space left"), "{stderr}");
    assert_eq!(sched_ext("enable_seq"), enabled);
}

/// An empty file looks like a report without a cause, and the kernel gives the cause only once.
fn k06_without_room_for_it_a_report_is_in_the_log() {
    fs::create_dir_all(STATE).expect("made");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4k", "none", STATE])
        .status()
        .expect("started");
    assert!(mounted.success());
    // All the room there is, but not all names.
    fs::write(Path::new(STATE).join("full"), [0; 4096]).expect("written");
    let daemon = Daemon::start(POLICY_TEXT);
    eject();
    wait_that("the ejection to be told", || {
        status().is_some_and(|status| status["state"] == "ejected")
    });
    let entries = fs::read_dir(STATE).expect("readable").flatten();
    let left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["full"]);
    let log = fs::read_to_string(DAEMON_LOG).expect("a log");
    let (_, report) = log.split_once("here is all of it:\n").expect("the report");
    assert!(report.to_lowercase().contains("sysrq"), "{log}");
    assert!(daemon.stop().success());
}
