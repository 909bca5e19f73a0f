//! `snapshot`, and what `explain` and `plan` read back from it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::namespaces::hide_the_host;
use crate::{POLICY, Place};

#[test]
fn what_is_recorded_reads_back() {
    if hide_the_host() {
        return;
    }
    let place = Place::with(POLICY);
    let written = place
        .run("snapshot --output threads.tsv --format json")
        .ends_with(0);
    let count = written.json()["threads"].as_u64().expect("a number");
    assert!(count > 0);
    let run = place.run("plan policy.toml policy.toml --snapshot threads.tsv --format json");
    assert_eq!(run.ends_with(0).json()["threads"], count);
    let run = place
        .run("explain --policy policy.toml --threads threads.tsv")
        .ends_with(0);
    assert_eq!(run.stdout.lines().count() as u64, count);
}

/// A list that loses one byte of a name plans for a thread that does not exist.
#[test]
fn t05_a_recorded_thread_keeps_every_byte_of_its_name() {
    if hide_the_host() {
        return;
    }
    let place = Place::with(POLICY);
    fs::write("/proc/thread-self/comm", b"a\tb\\n\nc\\\xff) R").expect("a thread names itself");
    let tid = own_tid();
    let run = place.run(&format!("explain --policy policy.toml {tid} --format json"));
    let mut live = run.ends_with(0).json();
    assert_eq!(live["thread"]["thread"], r"a\x09b\\n\x0ac\\\xff) R");
    live["thread"]["tid"] = Value::Null;
    // A list holds no command lines, so that nothing is said about them.
    let near = live
        .as_object_mut()
        .and_then(|all| all.remove("near_misses"));
    assert_eq!(near, Some(json!([])));
    place.run("snapshot --output threads.tsv").ends_with(0);
    let run = place
        .run("explain --policy policy.toml --threads threads.tsv --format json")
        .ends_with(0);
    let mut listed = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("one object a line"));
    assert!(listed.any(|document| document == live), "{live}");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_and_not_a_result() {
    if hide_the_host() {
        return;
    }
    let run = Place::empty()
        .run("snapshot --output none/threads.tsv --format json")
        .ends_with(69);
    assert_eq!(run.json()["error"]["code"], json!("output"));
}

/// The id of the thread that this test runs on.
pub fn own_tid() -> i32 {
    let link = fs::read_link(Path::new("/proc/thread-self")).expect("/proc is mounted");
    let tid = link
        .file_name()
        .and_then(|name| name.to_str())
        .expect("an id");
    tid.parse().expect("a number")
}
