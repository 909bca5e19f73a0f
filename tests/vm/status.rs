//! What the daemon says of itself: to operators, to programs, and to its supervisor.

use crate::Test;
use crate::guest::{
    DAEMON_LOG, Daemon, POLICY, Work, Worker, kernel_series, save, sched_ext, status, twopool,
    wait_for, wait_that,
};
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    Test {
        name: "status::it_is_as_documented_and_its_figures_move",
        cpus: 2,
        limit_s: 300,
        run: it_is_as_documented_and_its_figures_move,
    },
    Test {
        name: "status::the_supervisor_is_told_when_it_is_attached",
        cpus: 1,
        limit_s: 300,
        run: the_supervisor_is_told_when_it_is_attached,
    },
    Test {
        name: "status::its_log_is_json_when_asked_for",
        cpus: 1,
        limit_s: 300,
        run: its_log_is_json_when_asked_for,
    },
];

const POLICY_TEXT: &str = r#"version = 1
default = "background"
[[rule]]
name = "busy"
pool = "critical"
thread = "busy-*"
[[rule]]
name = "nobody"
pool = "critical"
thread = "nobody-*"
"#;

/// The members of a JSON object, in order.
fn members(value: &Value) -> Vec<&str> {
    let object = value.as_object().unwrap_or_else(|| panic!("{value}"));
    object.keys().map(String::as_str).collect()
}

/// Other people's scripts read this document; a member that is renamed or missing breaks them, one
/// that does not move misleads them.
fn it_is_as_documented_and_its_figures_move() {
    let daemon = Daemon::start(POLICY_TEXT);
    // One uses CPU time, one waits for it.
    let _busy = [
        Worker::start("busy-1", Work::Spin),
        Worker::start("busy-2", Work::Nap),
    ];
    let status = wait_for(
        "both threads, their CPU time and waits to be counted",
        || {
            status().filter(|status| {
                let (rule, wait) = (&status["rules"][0], &status["pools"]["critical"]["wait_us"]);
                let busy = rule["cpu_seconds"].as_f64().is_some_and(|s| s > 0.1);
                rule["threads"] == 2 && busy && wait["p50"] != Value::Null
            })
        },
    );
    assert_eq!(
        members(&status),
        [
            "format_version",
            "state",
            "kernel",
            "policy",
            "last_reload",
            "pools",
            "events",
            "rules"
        ]
    );
    assert_eq!(status["format_version"], "1");
    assert_eq!(status["last_reload"], Value::Null, "nothing was reloaded");
    check_kernel_and_policy(&status);
    check_pools(&status["pools"]);
    let woken = ["idle_hits", "borrows"].map(|name| status["events"][name].as_u64().expect(name));
    assert!(woken.iter().sum::<u64>() > 0, "{status}");
    for name in ["fallback_no_context", "fallback_no_image"] {
        assert_eq!(status["events"][name], 0, "{status}");
    }
    check_rules(&status["rules"]);
    let (done, text, _) = twopool(&["status"]);
    assert!(done.success());
    for word in [
        "attached",
        "epoch 1",
        POLICY,
        "critical",
        "background",
        "busy",
        "never",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(daemon.stop().success());
}

fn check_kernel_and_policy(status: &Value) {
    let (major, minor) = kernel_series();
    let release = status["kernel"]["release"].as_str().expect("a release");
    assert!(
        release.starts_with(&format!("{major}.{minor}")),
        "{release}"
    );
    assert_eq!(status["kernel"]["ops"], "twopool");
    let policy = &status["policy"];
    assert_eq!(
        members(policy),
        ["epoch", "hash", "files", "rules", "loaded_at"]
    );
    assert_eq!((&policy["epoch"], &policy["rules"]), (&1.into(), &2.into()));
    assert_eq!(policy["files"], Value::Array(vec![POLICY.into()]));
    let hash = policy["hash"].as_str().expect("a hash");
    assert!(hash.starts_with("sha256:") && hash.len() == 71, "{hash}");
    assert_time(&policy["loaded_at"]);
}

fn check_pools(pools: &Value) {
    let mut owned: Vec<u64> = Vec::new();
    for name in ["critical", "background"] {
        let pool = &pools[name];
        assert_eq!(
            members(pool),
            ["cpus", "threads", "cpu_seconds", "preemptions", "wait_us"]
        );
        let cpus = pool["cpus"].as_array().expect("CPUs").iter();
        owned.extend(cpus.map(|cpu| cpu.as_u64().expect("a CPU")));
        assert!(pool["threads"].as_u64() > Some(0), "{name}: {pool}");
        assert!(pool["cpu_seconds"].as_f64() > Some(0.0), "{name}: {pool}");
        let [p50, p99] = ["p50", "p99"].map(|p| pool["wait_us"][p].as_u64());
        assert!(p50.is_some() && p50 <= p99, "{name}: {pool}");
    }
    owned.sort();
    let cpus = std::thread::available_parallelism().expect("CPUs").get() as u64;
    let all: Vec<u64> = (0..cpus).collect();
    assert_eq!(owned, all, "each CPU has one owner");
}

fn check_rules(rules: &Value) {
    let [busy, nobody] = &rules.as_array().expect("rules")[..] else {
        panic!("{rules}");
    };
    assert_eq!(
        members(busy),
        [
            "index",
            "name",
            "threads",
            "matches",
            "cpu_seconds",
            "last_match_at"
        ]
    );
    assert_eq!((&busy["index"], &busy["name"]), (&1.into(), &"busy".into()));
    assert!(busy["matches"].as_u64() >= Some(2), "{busy}");
    assert_time(&busy["last_match_at"]);
    for figure in ["threads", "matches"] {
        assert_eq!(nobody[figure], 0, "{nobody}");
    }
    assert_eq!(
        nobody["last_match_at"],
        Value::Null,
        "a rule that is not used shows"
    );
}

/// RFC 3339, in UTC.
fn assert_time(value: &Value) {
    let text = value.as_str().unwrap_or_else(|| panic!("{value}"));
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert!(
        shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z'),
        "{text}"
    );
}

/// A unit that is ready too early lets services start that rely on the policy.
fn the_supervisor_is_told_when_it_is_attached() {
    save(POLICY, POLICY_TEXT);
    let path = "/tmp/notify";
    let supervisor = UnixDatagram::bind(path).expect("a supervisor's socket");
    // Before its start it has nothing to say, and after that it says READY or dies.
    supervisor
        .set_read_timeout(Some(Duration::from_secs(200)))
        .expect("a deadline");
    let mut child = Command::new("twopool")
        .arg("run")
        .env("NOTIFY_SOCKET", path)
        .stdin(Stdio::null())
        .spawn()
        .expect("started");
    let told = || {
        let mut buffer = [0; 256];
        let length = supervisor.recv(&mut buffer).expect("a notification");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let first = told();
    assert!(first.contains("READY=1"), "{first}");
    assert_eq!(sched_ext("root/ops"), "twopool", "ready means attached");
    rustix::process::kill_process(crate::guest::pid(child.id()), rustix::process::Signal::TERM)
        .expect("signalled");
    let last = told();
    assert!(last.contains("STOPPING=1"), "{last}");
    assert!(child.wait().expect("it ends").success());
}

/// Collectors take one object a line or nothing.
fn its_log_is_json_when_asked_for() {
    save(POLICY, POLICY_TEXT);
    let daemon = Daemon::start_with(&["--log-format", "json", "run"]);
    save(POLICY, "version = 1\ndefault = \"fast\"\n");
    wait_that("the bad policy to be refused", || {
        status().is_some_and(|status| status["last_reload"]["result"] == "rejected")
    });
    assert!(daemon.stop().success());
    let log = fs::read_to_string(DAEMON_LOG).expect("a log");
    let levels: Vec<Value> = log
        .lines()
        .map(|line| {
            let event: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
            event["level"].clone()
        })
        .collect();
    assert!(
        levels.contains(&"INFO".into()) && levels.contains(&"ERROR".into()),
        "{log}"
    );
}
