//! The daemon stopped, killed, ended, and ejected: scheduling never depends on it, and nothing that
//! it leaves behind stands in the way of the next one.

use crate::Test;
use crate::guest::{
    DAEMON_LOG, Daemon, SOON, STATE, classes, epoch, make_cgroup, move_to_cgroup, save, sched_ext,
    status, twopool, wait_for, wait_that, wait_until,
};
use crate::load::{Churn, Spinners};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    Test {
        name: "daemon::asked_to_end_it_detaches",
        cpus: 1,
        limit_s: 300,
        run: asked_to_end_it_detaches,
    },
    Test {
        name: "daemon::k12_killed_fifty_times_it_starts_again",
        cpus: 2,
        limit_s: 1200,
        run: k12_killed_fifty_times_it_starts_again,
    },
    Test {
        name: "daemon::k11_stopped_for_a_minute_under_load",
        cpus: 2,
        limit_s: 600,
        run: k11_stopped_for_a_minute_under_load,
    },
    Test {
        name: "daemon::k11_squeezed_by_memory_high",
        cpus: 2,
        limit_s: 600,
        run: k11_squeezed_by_memory_high,
    },
    Test {
        name: "daemon::k06_ejected_it_says_so_and_attaches_again",
        cpus: 1,
        limit_s: 600,
        run: k06_ejected_it_says_so_and_attaches_again,
    },
];

const SOCKET: &str = "/run/twopool/control.sock";

/// Critical: threads named crit-*, those of /ads.slice, and the tools (but not the load), so that a
/// test is not made slow by its own load.
const POLICY_TEXT: &str = r#"version = 1
default = "background"
[[rule]]
name = "named"
pool = "critical"
thread = "crit-*"
[[rule]]
name = "placed"
pool = "critical"
cgroup = { under = "/ads.slice" }
[[rule]]
name = "tools"
pool = "critical"
process = ["twopool", "twopool-vm-test"]
"#;

fn is_default_scheduler() -> bool {
    sched_ext("state") == "disabled"
}

/// Without the clean end the kernel would have to notice the death of the process, and the socket
/// would stay.
fn asked_to_end_it_detaches() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut daemon = Daemon::start(POLICY_TEXT);
        assert!(Path::new(SOCKET).exists());
        daemon.signal(signal);
        let status = daemon.wait();
        assert_eq!(status.code(), Some(0), "{signal:?}: {status}");
        assert!(is_default_scheduler(), "it ends only when it has detached");
        assert!(!Path::new(SOCKET).exists(), "the socket goes with it");
    }
    let log = fs::read_to_string(DAEMON_LOG).expect("a log");
    assert!(log.contains("SIGTERM") && log.contains("SIGINT"), "{log}");
    assert!(!Path::new(STATE).join("load.log").exists());
    assert_eq!(
        dumps(),
        [] as [PathBuf; 0],
        "an end on request is no ejection"
    );
}

/// Nothing may be pinned or locked by the dead: a pinned link would keep a scheduler without a
/// daemon, a stale socket would keep the next daemon out.
fn k12_killed_fifty_times_it_starts_again() {
    // Threads of both pools that wake all the time, and leave the CPUs to the fifty starts.
    let _load = ["crit-N", "back-N"].map(|name| {
        let pace = ["--burn-us", "500", "--sleep-us", "5000"];
        Spinners::start(&[&["--threads", "2", "--name", name], &pace[..]].concat())
    });
    save(crate::guest::POLICY, POLICY_TEXT);
    let mut default_after: Vec<Duration> = (0..50)
        .map(|round| {
            let mut daemon = Daemon::start_with(&["run"]);
            daemon.signal(Signal::KILL);
            let killed = Instant::now();
            wait_that(
                "the kernel's own scheduler to be back",
                is_default_scheduler,
            );
            let took = killed.elapsed();
            assert_eq!(daemon.wait().code(), None, "round {round}: it was killed");
            assert!(Path::new(SOCKET).exists(), "what the dead leave behind");
            took
        })
        .collect();
    assert_eq!(twopool(&["status"]).0.code(), Some(69));
    // A round may meet a busy host; nearly all must keep the promise of a second.
    default_after.sort();
    println!("default scheduler back: {default_after:?}");
    let most = default_after[default_after.len() * 9 / 10];
    assert!(most < Duration::from_secs(1), "{default_after:?}");
    assert_eq!(sched_ext("nr_rejected"), "0");
    let daemon = Daemon::start_with(&["run"]);
    assert!(daemon.stop().success(), "the last one ends as usual");
}

/// The kernel program runs the policy alone. If it waited for the daemon anywhere, new threads
/// would hang or go unclassified, and the kernel would eject it after 20 s.
fn k11_stopped_for_a_minute_under_load() {
    let daemon = Daemon::start(POLICY_TEXT);
    daemon.signal(Signal::STOP);
    let kept = fight_without_the_daemon(Duration::from_secs(60));
    daemon.signal(Signal::CONT);
    assert_classes(&kept);
    assert!(daemon.stop().success());
}

/// A daemon whose own pages are taken away crawls from one page fault to the next. Scheduling must
/// not fault with it.
fn k11_squeezed_by_memory_high() {
    let group = make_cgroup("/squeezed");
    let control = group
        .parent()
        .expect("a root")
        .join("cgroup.subtree_control");
    if fs::write(control, "+memory").is_err() {
        println!("skipped: this kernel has no memory controller");
        return;
    }
    // Memory is charged to the group in which it is first touched.
    move_to_cgroup(std::process::id(), "/squeezed");
    let daemon = Daemon::start(POLICY_TEXT);
    move_to_cgroup(std::process::id(), "/");
    let used = |file: &str| -> u64 {
        let text = fs::read_to_string(group.join(file)).expect("a figure");
        text.trim().parse().expect("a number")
    };
    let before = used("memory.current");
    fs::write(group.join("memory.high"), "1M").expect("a limit");
    let kept = fight_without_the_daemon(Duration::from_secs(10));
    // There is no swap, so most of it stays, above the limit all the time.
    let after = used("memory.current");
    println!("{before} bytes were used, then {after}");
    assert!(after > 1 << 20, "the limit was never reached");
    fs::write(group.join("memory.high"), "max").expect("no limit");
    assert_classes(&kept);
    assert!(daemon.stop().success());
}

/// New processes and cgroups all the time, while the daemon is no help. The last few stay.
fn fight_without_the_daemon(length: Duration) -> Vec<Duel> {
    let before = ["enable_seq", "nr_rejected"].map(sched_ext);
    let churn = Churn::start();
    let begun = Instant::now();
    let mut kept = Vec::new();
    let mut used = Shares::default();
    let mut round = 0;
    while begun.elapsed() < length {
        let duel = Duel::start(round);
        used.add(duel.fight());
        duel.freeze();
        kept.push(duel);
        if kept.len() > 3 {
            drop(kept.remove(0));
        }
        assert_eq!(sched_ext("state"), "enabled", "after {:?}", begun.elapsed());
        round += 1;
    }
    let processes = churn.stop();
    assert_eq!(sched_ext("root/ops"), "twopool");
    assert_eq!(["enable_seq", "nr_rejected"].map(sched_ext), before);
    println!("{processes} other processes in {:?}", begun.elapsed());
    assert!(processes > 10 * length.as_secs(), "{processes} are no load");
    // Due to the critical pool are 8 of 9 parts; without classes it would get half.
    let share = used.critical as f64 / (used.critical + used.background) as f64;
    println!("{round} rounds; critical share {share:.3}, {used:?}");
    assert!(
        share > 0.75,
        "critical threads got {share:.3} of the CPU: {used:?}"
    );
    kept
}

fn assert_classes(kept: &[Duel]) {
    let classes = wait_for("the daemon to answer again", classes);
    for duel in kept {
        for (tid, pool, rule) in duel.expected() {
            let class = &classes[&tid];
            let found = (class.pool.as_str(), class.rule, class.epoch);
            assert_eq!(found, (pool, rule, 1), "thread {tid}");
        }
    }
}

/// CPU time, in nanoseconds.
#[derive(Debug, Default)]
struct Shares {
    critical: u64,
    background: u64,
}

impl Shares {
    fn add(&mut self, other: Self) {
        self.critical += other.critical;
        self.background += other.background;
    }
}

/// Threads that were all born while the daemon was stopped, on one CPU: one critical by name,
/// one critical by a cgroup that is new as well, two background.
struct Duel {
    named: Spinners,
    placed: Spinners,
    background: Spinners,
}

impl Duel {
    fn start(round: u32) -> Self {
        let cgroup = format!("/ads.slice/job-{round}");
        let spin = |name: &str, more: &[&str]| {
            Spinners::start(&[&["--cpus", "1", "--name", name], more].concat())
        };
        Self {
            named: spin("crit-N", &[]),
            placed: spin("job-N", &["--cgroup", &cgroup]),
            background: spin("back-N", &["--threads", "2"]),
        }
    }

    /// Lets them compete until they have used half a second of their CPU together.
    fn fight(&self) -> Shares {
        let now = || Shares {
            critical: self.named.cpu_ns() + self.placed.cpu_ns(),
            background: self.background.cpu_ns(),
        };
        let before = now();
        wait_for("the CPU to be used", || {
            let after = now();
            let used = Shares {
                critical: after.critical - before.critical,
                background: after.background - before.background,
            };
            (used.critical + used.background > 500_000_000).then_some(used)
        })
    }

    fn freeze(&self) {
        for spinners in [&self.named, &self.placed, &self.background] {
            spinners.freeze();
        }
    }

    /// Thread, pool, rule.
    fn expected(&self) -> Vec<(u32, &'static str, u64)> {
        let one = |spinners: &Spinners, pool, rule| (spinners.tids()[0], pool, rule);
        vec![
            one(&self.named, "critical", 1),
            one(&self.placed, "critical", 2),
            one(&self.background, "background", 0),
        ]
    }
}

fn dumps() -> Vec<PathBuf> {
    let entries = fs::read_dir(STATE).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("ejection-"))
        .collect();
    paths.sort();
    paths
}

/// Has the kernel disable whatever sched_ext scheduler there is, as SysRq-S does. The one way that
/// tests eject: whoever runs them takes an ejection for any other reason for a fault.
pub fn eject() {
    fs::write("/proc/sysrq-trigger", "S").expect("SysRq-S");
}

fn wait_for_status(what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    wait_for(what, || status().filter(&holds))
}

/// A daemon that lives on while the kernel says "disabled" is the worst of both: nobody schedules
/// by the policy and nobody says so. One that attaches for ever hides the fault.
fn k06_ejected_it_says_so_and_attaches_again() {
    let mut daemon = Daemon::start(POLICY_TEXT);
    let first = wait_for("its status", status);
    daemon.reload(&format!("{POLICY_TEXT}# suspect\n"));
    let suspect = wait_for("its status", status);
    eject();
    let status = wait_for_status("the ejection to be told", |s| s["state"] == "ejected");
    assert_eq!(status["last_reload"]["result"], "rolled-back");
    assert_eq!(status["policy"]["hash"], first["policy"]["hash"]);
    assert!(twopool(&["status"]).1.contains("ejected by the kernel"));
    assert_eq!(twopool(&["threads"]).0.code(), Some(69), "nothing to ask");
    wait_for_status("it to attach again", |s| s["state"] == "attached");
    assert_eq!(sched_ext("root/ops"), "twopool");
    let (_, line, _) = twopool(&["reload", "--wait"]);
    assert!(
        line.starts_with("applied"),
        "asked again, it is tried again: {line}"
    );
    wait_for_status("the policy to be back", |s| {
        s["policy"]["hash"] == suspect["policy"]["hash"] && epoch() == 4
    });
    let code = eject_until_it_gives_up(&mut daemon);
    assert_eq!(code, Some(86));
    assert!(is_default_scheduler());
    check_dumps();
}

/// The exit code after so many ejections that it ends.
fn eject_until_it_gives_up(daemon: &mut Daemon) -> Option<i32> {
    for _ in 0..10 {
        wait_until(SOON, || {
            (sched_ext("state") == "enabled" || !daemon.is_running()).then_some(())
        });
        if !daemon.is_running() {
            return daemon.wait().code();
        }
        eject();
        wait_that("the kernel to disable it", is_default_scheduler);
        // Attached again or ended: either way this ejection has been dealt with.
        wait_that("the daemon to react", || {
            !daemon.is_running() || sched_ext("state") == "enabled"
        });
    }
    None
}

fn check_dumps() {
    let dumps = dumps();
    assert!((2..=5).contains(&dumps.len()), "{dumps:?}");
    let text = fs::read_to_string(&dumps[0]).expect("a dump");
    assert!(text.to_lowercase().contains("sysrq"), "{text}");
    let log = fs::read_to_string(DAEMON_LOG).expect("a log");
    for line in [
        "the kernel ejected the scheduler",
        "attached again",
        "ejected too often",
    ] {
        assert!(log.contains(line), "{line}:\n{log}");
    }
}
