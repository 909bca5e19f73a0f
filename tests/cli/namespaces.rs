//! Commands that look at this host from inside a namespace, which hides some of it.

use std::process::Command;

use crate::snapshot::own_tid;
use crate::{Place, Run};

const BY_CGROUP: &str = "version = 1\ndefault = \"background\"\n\
    [[rule]]\nname = \"by cgroup\"\npool = \"critical\"\ncgroup = { under = \"/ads.slice\" }\n";

/// Whether these tests run inside a namespace themselves, as in a container; says so.
pub fn hide_the_host() -> bool {
    let initial = ["cgroup:[4026531835]", "user:[4026531837]"];
    let is_initial = initial.iter().all(|link| {
        let kind = link.split(':').next().expect("a kind");
        std::fs::read_link(format!("/proc/self/ns/{kind}"))
            .is_ok_and(|found| found.as_os_str() == *link)
    });
    if !is_initial {
        eprintln!("SKIPPED: needs the initial cgroup and user namespaces");
    }
    !is_initial
}

/// Runs `twopool` under `unshare` with these options; `None` where this host does not allow that.
fn inside(place: &Place, options: &[&str], arguments: &str) -> Option<Run> {
    if hide_the_host() {
        return None;
    }
    let allowed = Command::new("unshare").args(options).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!(
            "SKIPPED: `unshare {}` is not allowed here",
            options.join(" ")
        );
        return None;
    }
    let mut command = place.command_of("unshare");
    command.args(options).arg(env!("CARGO_BIN_EXE_twopool"));
    command.args(arguments.split(' '));
    Some(Run::of(command.output().expect("unshare can be started")))
}

#[test]
fn in_a_cgroup_namespace_no_pool_is_guessed() {
    let place = Place::with(BY_CGROUP);
    let tid = own_tid();
    let explain = format!("explain --policy policy.toml {tid}");
    let Some(run) = inside(&place, &["--cgroup"], &format!("{explain} --format json")) else {
        return;
    };
    let json = run.ends_with(0).json();
    assert!(json["pool"].is_null() && json["rule"].is_null(), "{json}");
    assert!(json["thread"]["cgroup"].is_null() && json["thread"]["uid"].is_number());
    assert_eq!(json["unknown"], serde_json::json!(["cgroup"]));
    let run = inside(&place, &["--cgroup"], &explain).expect("allowed before");
    let run = run.ends_with(0);
    for text in [
        "-> unknown, which depends on its cgroup",
        "may match",
        "in a cgroup namespace",
    ] {
        assert!(run.stdout.contains(text), "{}", run.stdout);
    }
}

#[test]
fn in_a_user_namespace_no_user_is_guessed() {
    let policy = "version = 1\ndefault = \"background\"\n\
        [[rule]]\nname = \"by user\"\npool = \"critical\"\nuser = 0\n";
    let place = Place::with(policy);
    let explain = format!("explain --policy policy.toml {} --format json", own_tid());
    if let Some(run) = inside(&place, &["--user", "--map-root-user"], &explain) {
        let json = run.ends_with(0).json();
        assert!(
            json["pool"].is_null() && json["thread"]["uid"].is_null(),
            "{json}"
        );
        assert_eq!(json["unknown"], serde_json::json!(["user", "group"]));
    }
}

/// A list that says less than the scheduler sees would be taken for the host's elsewhere.
#[test]
fn in_a_namespace_the_host_is_not_listed() {
    let place = Place::with(BY_CGROUP);
    for arguments in ["snapshot", "plan policy.toml policy.toml"] {
        if let Some(run) = inside(&place, &["--cgroup"], arguments) {
            let run = run.ends_with(66);
            assert!(
                run.stderr.contains("in a cgroup namespace"),
                "{}",
                run.stderr
            );
            assert!(run.stdout.is_empty(), "{}", run.stdout);
        }
    }
}
