//! Near misses of `explain`: what people take for a thread's name.

use serde_json::{Value, json};

use crate::Place;
use crate::namespaces::hide_the_host;

fn place(condition: &str) -> Place {
    Place::with(&format!(
        "version = 1\ndefault = \"background\"\n\
         [[rule]]\nname = \"r\"\npool = \"critical\"\n{condition}\n"
    ))
}

fn misses(condition: &str, thread: &str) -> Value {
    misses_in("/", condition, thread)
}

fn misses_in(cgroup: &str, condition: &str, thread: &str) -> Value {
    let arguments = [
        "explain",
        "--policy",
        "policy.toml",
        "--thread",
        thread,
        "--cgroup",
        cgroup,
        "--format",
        "json",
    ];
    let run = place(condition).run_args(&arguments, b"").ends_with(0);
    run.json()["near_misses"].clone()
}

fn miss(condition: &str, reason: &str, name: &str) -> Value {
    json!([{ "rule": { "index": 1, "name": "r" }, "condition": condition, "reason": reason, "name": name }])
}

#[test]
fn r01_a_name_in_another_case_is_a_near_miss() {
    assert_eq!(
        misses("thread = \"Nginx\"", "nginx"),
        miss("thread", "case", "Nginx")
    );
    assert_eq!(
        misses("thread = \"KWIN-*\"", "kwin-x11"),
        miss("thread", "case", "KWIN-X11")
    );
    // It matches, or the rest of the rule would keep it out all the same.
    assert_eq!(misses("thread = \"nginx\"", "nginx"), json!([]));
    assert_eq!(misses("thread = \"Nginx\"\nnice = -5", "nginx"), json!([]));
    assert_eq!(misses("thread = \"apache\"", "nginx"), json!([]));
}

#[test]
fn t01_a_name_that_the_kernel_cuts_is_a_near_miss() {
    let glob = "thread = { glob = \"*resolved\" }";
    assert_eq!(
        misses(glob, "systemd-resolved"),
        miss("thread", "cut", "systemd-resolved")
    );
    // Cut like the name itself, an exact one matches.
    assert_eq!(
        misses("thread = \"systemd-resolved\"", "systemd-resolved"),
        json!([])
    );
}

#[test]
fn g02_a_unit_without_its_escapes_is_a_near_miss() {
    let slice = "/user.slice/app.slice";
    let cgroup = format!(r"{slice}/app-firefox\x2desr-07dd.scope");
    let condition = format!("cgroup = '{slice}/app-firefox-esr-*'");
    let path = format!("{slice}/app-firefox-esr-07dd.scope");
    let found = misses_in(&cgroup, &condition, "firefox-esr");
    assert_eq!(found, miss("cgroup", "systemd-escape", &path));
    let condition = format!(r"cgroup = '{slice}/app-firefox\x2desr-*'");
    assert_eq!(misses_in(&cgroup, &condition, "firefox-esr"), json!([]));
}

#[test]
fn g01_a_cgroup_above_is_a_near_miss() {
    let found = misses_in("/ads.slice/web.service/a", "cgroup = \"/ads.slice\"", "srv");
    assert_eq!(found, miss("cgroup", "above", "/ads.slice"));
    let other = misses_in("/adsx.slice/web.service", "cgroup = \"/ads.slice\"", "srv");
    assert_eq!(other, json!([]));
}

#[test]
fn t09_a_command_line_that_matches_where_the_name_does_not() {
    if hide_the_host() {
        return;
    }
    let place = place("thread = \"title: worker *\"");
    let mut child = std::os::unix::process::CommandExt::arg0(
        &mut std::process::Command::new("sleep"),
        "title: worker 7",
    )
    .arg("600")
    .spawn()
    .expect("a process");
    let json = place.run(&format!(
        "explain --policy policy.toml {} --format json",
        child.id()
    ));
    let human = place.run(&format!("explain --policy policy.toml {}", child.id()));
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let document = json.ends_with(0).json();
    assert_eq!(document["pool"], "background");
    let found = &document["near_misses"];
    assert_eq!(found, &miss("thread", "command-line", "title: worker 7"));
    let text = human.ends_with(0).stdout;
    for words in [
        "would match if thread were `title: worker 7`; rules see the name, not the command line",
        "command line, which rules do not see: title: worker 7 600",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}
