//! Edits of the policy under a running scheduler: every kind of save, good and bad.
//!
//! Two policies take turns here that differ in two coupled ways: under one the workers are critical
//! by rule 1, under the other background by rule 2. The numbers of the policies tell which is
//! which, so that whoever sees anything else of a thread saw half of a policy.

use crate::Test;
use crate::guest::{
    Class, DAEMON_LOG, Daemon, POLICY, SOON, Work, Worker, classes, epoch, save, sched_ext, status,
    twopool, wait_for, wait_that, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    Test {
        name: "reload::two_hundred_reloads_under_load",
        cpus: 2,
        limit_s: 900,
        run: two_hundred_reloads_under_load,
    },
    Test {
        name: "reload::l01_saves_by_rename_each_reload_once",
        cpus: 1,
        limit_s: 300,
        run: l01_saves_by_rename_each_reload_once,
    },
    Test {
        name: "reload::l03_truncate_then_write_is_never_half_a_policy",
        cpus: 2,
        limit_s: 600,
        run: l03_truncate_then_write_is_never_half_a_policy,
    },
    Test {
        name: "reload::l05_bad_policies_are_told_and_change_nothing",
        cpus: 1,
        limit_s: 300,
        run: l05_bad_policies_are_told_and_change_nothing,
    },
    Test {
        name: "reload::reload_on_demand_returns_the_verdict",
        cpus: 1,
        limit_s: 300,
        run: reload_on_demand_returns_the_verdict,
    },
];

/// The policy with that number. The tools come last and are critical, so that a test is not made
/// slow by its own load.
fn policy(number: u64) -> String {
    let workers = if number % 2 == 1 {
        rule("workers", "critical", "work-*")
    } else {
        rule("decoy", "critical", "decoy-*") + &rule("workers", "background", "work-*")
    };
    format!(
        "# {number}\nversion = 1\ndefault = \"background\"\n{workers}[[rule]]\nname = \"tools\"\npool = \"critical\"\nprocess = [\"twopool\", \"twopool-vm-test\"]\n"
    )
}

fn rule(name: &str, pool: &str, thread: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\npool = \"{pool}\"\nthread = \"{thread}\"\n")
}

/// Whether a worker may be seen like this.
fn is_whole(class: &Class) -> bool {
    match class.epoch % 2 {
        1 => class.pool == "critical" && class.rule == 1,
        _ => class.pool == "background" && class.rule == 2,
    }
}

const UNKNOWN_POOL: &str =
    "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"fast\"\nthread = \"work-*\"\n";
const BROKEN_REGEX: &str = "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"critical\"\nthread = { regex = '(' }\n";

/// Saves a policy that must be refused for `code` and waits until the daemon has said so.
fn refuse(text: &str, code: &str) -> Value {
    let before = epoch();
    save(POLICY, text);
    let status = wait_for("the bad policy to be refused", || {
        let status = status()?;
        let last = &status["last_reload"];
        let told = last["diagnostics"]
            .as_array()?
            .iter()
            .any(|d| d["code"] == code);
        (last["result"] == "rejected" && told).then_some(status)
    });
    assert_eq!(
        status["policy"]["epoch"], before,
        "a bad policy is in force"
    );
    assert_eq!(status["state"], "attached");
    status
}

/// Looks at threads over and over, from a thread of its own.
struct Sampler {
    stop: Arc<AtomicBool>,
    handle: JoinHandle<Result<[u64; 2], String>>,
}

impl Sampler {
    fn start(workers: &[Worker]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let tids: Vec<u32> = workers.iter().map(Worker::tid).collect();
        let handle = std::thread::spawn(move || sample(&tids, &stopped));
        Self { stop, handle }
    }

    /// How often a worker was seen under either policy; panics if half a policy was seen, or
    /// either of them never.
    #[track_caller]
    fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        match self.handle.join().expect("the sampler") {
            Ok(seen) => assert!(seen.iter().all(|n| *n > 0), "policies seen: {seen:?}"),
            Err(fault) => panic!("{fault}"),
        }
    }
}

/// A line may be read while the thread's own CPU writes it, and then mixes old and new; the next
/// reading is right. A class that was computed from half a policy would stay until the next one.
fn sample(tids: &[u32], stop: &AtomicBool) -> Result<[u64; 2], String> {
    let mut seen = [0; 2];
    let mut suspects = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        let Some(classes) = classes() else {
            return Err("the daemon did not answer".to_owned());
        };
        let mut odd = BTreeSet::new();
        for tid in tids {
            let class = classes
                .get(tid)
                .ok_or(format!("thread {tid} has no class"))?;
            if is_whole(class) {
                seen[(class.epoch % 2) as usize] += 1;
            } else {
                odd.insert((*tid, class.pool.clone(), class.rule, class.epoch));
            }
        }
        if let Some(half) = odd.intersection(&suspects).next() {
            return Err(format!(
                "half of a policy: (thread, pool, rule, epoch) = {half:?}"
            ));
        }
        suspects = odd;
    }
    Ok(seen)
}

fn workers() -> Vec<Worker> {
    let spinning = (0..2).map(|n| Worker::start(&format!("work-spin-{n}"), Work::Spin));
    let napping = (0..3).map(|n| Worker::start(&format!("work-nap-{n}"), Work::Nap));
    spinning.chain(napping).collect()
}

/// What must not change however often the policy does.
fn kernel_side() -> [String; 4] {
    ["state", "root/ops", "enable_seq", "nr_rejected"].map(sched_ext)
}

/// Without the one write of a whole image, some thread would be classified by rules of one policy
/// and rows of another; with a detach per reload, `enable_seq` would count it.
fn two_hundred_reloads_under_load() {
    let daemon = Daemon::start(&policy(1));
    let workers = workers();
    wait_that("the workers to be classified", || {
        classes().is_some_and(|all| workers.iter().all(|w| all.contains_key(&w.tid())))
    });
    let before = kernel_side();
    let sampler = Sampler::start(&workers);
    for number in 2..=201 {
        if number % 20 == 0 {
            refuse(UNKNOWN_POOL, "unknown-pool");
        } else if number % 20 == 10 {
            refuse(BROKEN_REGEX, "invalid-regex");
        }
        save(POLICY, &policy(number));
        // Most saves are followed by the command, as tools do it; some are left to the watcher.
        if number % 4 == 0 {
            wait_that("the policy to be in force", || epoch() == number);
        } else {
            let (status, line, stderr) = twopool(&["reload", "--wait"]);
            assert!(status.success(), "{stderr}");
            assert!(line.contains(&format!("epoch {number}\n")), "{line}");
        }
    }
    sampler.finish();
    assert_eq!(kernel_side(), before);
    workers.iter().for_each(Worker::assert_progress);
    assert!(daemon.stop().success());
}

/// Without a watch on the directory the second save is lost; without the content hash an editor's
/// probe files count as reloads.
fn l01_saves_by_rename_each_reload_once() {
    let daemon = Daemon::start(&policy(1));
    let backup = format!("{POLICY}~");
    for number in 2..=6 {
        daemon.reload(&policy(number));
        assert_eq!(epoch(), number);
    }
    for number in 7..=11 {
        fs::rename(POLICY, &backup).expect("the old file is kept");
        fs::write(POLICY, policy(number)).expect("the new file is written");
        wait_that("the save to be in force", || epoch() == number);
    }
    let directory = Path::new(POLICY).parent().expect("a directory");
    for name in [
        "4913",
        ".policy.toml.swp",
        ".policy.toml.swx",
        "#policy.toml#",
    ] {
        fs::write(directory.join(name), "x = [").expect("an editor's file");
        fs::remove_file(directory.join(name)).expect("it goes again");
    }
    fs::remove_file(&backup).expect("the backup goes");
    // The answer comes after everything that those files could have started.
    let (status, line, _) = twopool(&["reload", "--wait"]);
    assert!(status.success() && line.starts_with("unchanged"), "{line}");
    assert_eq!(epoch(), 11, "ten saves, ten reloads");
    let rules = &status_now()["rules"];
    assert_eq!(rules[0]["name"], "workers", "the last content is in force");
    assert!(daemon.stop().success());
}

/// Without the rule that an empty file is nobody's policy, the moment after the truncation would be
/// an error or a policy without rules.
fn l03_truncate_then_write_is_never_half_a_policy() {
    let daemon = Daemon::start(&policy(1));
    let workers = workers();
    wait_that("the workers to be classified", || {
        classes().is_some_and(|all| workers.iter().all(|w| all.contains_key(&w.tid())))
    });
    let before = kernel_side();
    let sampler = Sampler::start(&workers);
    let mut number = 1;
    for (pause_ms, rounds) in [(0, 150), (50, 40), (500, 8), (5000, 2)] {
        for _ in 0..rounds {
            number += 1;
            // Truncated here, filled later.
            let file = fs::File::create(POLICY).expect("truncated");
            let pause = Duration::from_millis(pause_ms);
            std::thread::sleep(pause);
            write_in_pieces(file, pause.min(Duration::from_millis(500)), &policy(number));
            wait_that("the new policy to be in force", || epoch() == number);
        }
    }
    sampler.finish();
    assert_eq!(kernel_side(), before);
    let log = fs::read_to_string(DAEMON_LOG).expect("a log");
    assert!(
        !log.contains("is empty"),
        "its writer is known to be at work:\n{log}"
    );
    assert!(!log.contains("rejected"), "{log}");
    assert!(daemon.stop().success());
}

/// The file is a valid policy after its first piece too, which is not what it is meant to be.
fn write_in_pieces(mut file: fs::File, pause: Duration, text: &str) {
    use std::io::Write;
    let rules = text.find("[[rule]]").expect("a rule");
    file.write_all(&text.as_bytes()[..rules]).expect("written");
    std::thread::sleep(pause);
    file.write_all(&text.as_bytes()[rules..]).expect("written");
}

/// Without the status of the last attempt nobody learns that an edit did not take effect; without
/// the retry the daemon would never look again.
fn l05_bad_policies_are_told_and_change_nothing() {
    let daemon = Daemon::start(&policy(1));
    let first = status_now();
    assert_eq!(first["last_reload"], Value::Null);
    for (text, code, line) in [
        (UNKNOWN_POOL, "unknown-pool", 4),
        (BROKEN_REGEX, "invalid-regex", 5),
    ] {
        let status = refuse(text, code);
        assert_eq!(status["policy"], first["policy"]);
        let diagnostic = &status["last_reload"]["diagnostics"][0];
        assert_eq!(diagnostic["severity"], "error");
        assert_eq!(diagnostic["range"]["filename"], POLICY);
        assert_eq!(diagnostic["range"]["start"]["line"], line);
        let (_, human, _) = twopool(&["status"]);
        assert!(human.contains("REJECTED, the old policy stays"), "{human}");
        assert!(human.contains(&format!("error[{code}]")), "{human}");
    }
    daemon.reload(&policy(2));
    let status = wait_for("the status of the good policy", || {
        status().filter(|status| status["last_reload"]["result"] == "applied")
    });
    assert_eq!(status["policy"]["epoch"], 2);
    assert_ne!(status["policy"]["hash"], first["policy"]["hash"]);
    let told = status["last_reload"]["diagnostics"].as_array();
    let told = told.expect("a list of diagnostics");
    // A rule by thread name alone, which takes the test's threads, is worth a warning.
    assert!(
        told.iter().all(|told| told["severity"] == "warning"),
        "{told:?}"
    );
    let log = daemon.log();
    assert!(
        log.contains("policy.toml:4:"),
        "the log names the line:\n{log}"
    );
    assert!(daemon.stop().success());
}

/// Deployments decide by exit codes; without them a rejected policy looks deployed.
fn reload_on_demand_returns_the_verdict() {
    let daemon = Daemon::start(&policy(1));
    let reload = |arguments: &[&str]| {
        let (status, stdout, _) = twopool(&[&["reload"], arguments].concat());
        (status.code(), stdout)
    };
    let json = || {
        let (code, stdout) = reload(&["--wait", "--format", "json"]);
        let document: Value = serde_json::from_str(&stdout).expect("one document");
        (code, document)
    };
    let (code, document) = json();
    assert_eq!((code, &document["result"]), (Some(0), &"unchanged".into()));

    save(POLICY, &policy(2));
    let (code, document) = json();
    // The watcher may have been faster; then there is nothing left to do.
    assert!(document["result"] == "applied" || document["result"] == "unchanged");
    assert_eq!((code, &document["policy"]["epoch"]), (Some(0), &2.into()));

    save(POLICY, UNKNOWN_POOL);
    let (code, document) = json();
    assert_eq!((code, &document["result"]), (Some(1), &"rejected".into()));
    assert_eq!(document["check"]["diagnostics"][0]["code"], "unknown-pool");
    assert_eq!(document["policy"]["epoch"], 2, "the old one stays");
    let (status, line, complaint) = twopool(&["reload", "--wait"]);
    assert_eq!(status.code(), Some(1));
    assert!(line.starts_with("rejected, epoch 2 stays"), "{line}");
    assert!(complaint.contains("unknown-pool"), "{complaint}");

    fs::remove_file(POLICY).expect("removed");
    assert_eq!(reload(&["--wait"]).0, Some(1), "no file is no policy");

    hang_up(&daemon);
    assert!(daemon.stop().success());
    for arguments in [&[][..], &["--wait"]] {
        assert_eq!(reload(arguments).0, Some(69), "no daemon");
    }
    assert_eq!(twopool(&["status"]).0.code(), Some(69), "no daemon");
}

/// SIGHUP reads what is there, changed or not.
fn hang_up(daemon: &Daemon) {
    save(POLICY, &policy(2));
    daemon.signal(Signal::HUP);
    wait_that("SIGHUP to find the policy in force unchanged", || {
        status().is_some_and(|status| {
            status["last_reload"]["result"] == "unchanged" && status["policy"]["epoch"] == 2
        })
    });
    save(POLICY, &policy(3));
    daemon.signal(Signal::HUP);
    wait_that("SIGHUP to apply the new policy", || epoch() == 3);
}

fn status_now() -> Value {
    wait_until(SOON, status).expect("a daemon that answers")
}
