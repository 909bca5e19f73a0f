//! `explain`.

use std::process::Command;

use serde_json::{Value, json};

use crate::snapshot::own_tid;
use crate::{POLICY, Place};

#[test]
fn a_simulated_thread_and_the_rule_that_takes_it() {
    let place = Place::with(POLICY);
    let run = place
        .run("explain --policy policy.toml --thread srv-1 --process adserver --format json")
        .ends_with(0);
    let document = run.json();
    assert_eq!(document["pool"], "critical");
    assert_eq!(
        document["rule"],
        json!({ "index": 2, "name": "request path" })
    );
    assert_eq!(
        (&document["slice_us"], &document["weight"]),
        (&json!(1000), &json!(200))
    );
    assert_eq!(
        document["thread"],
        json!({ "tid": null, "thread": "srv-1", "process": "adserver", "cgroup": "/", "uid": 0, "gid": 0, "nice": 0,
            "kthread": false, "leader": false, "sched": "normal", "hint": 0 })
    );
    assert_eq!(
        document["rules"][0],
        json!({ "index": 1, "name": "debug", "matched": false,
            "conditions": [{ "path": "thread", "matched": false, "pattern": "srv-debug*" }] })
    );
}

#[test]
fn people_read_the_same() {
    let place = Place::with(POLICY);
    let run = place
        .run("explain --policy policy.toml --thread srv-1 --process adserver")
        .ends_with(0);
    for word in ["critical", "request path", "debug", "srv-debug*"] {
        assert!(
            run.stdout.contains(word),
            "{word} is not in\n{}",
            run.stdout
        );
    }
}

#[test]
fn everything_about_a_simulated_thread_can_be_said() {
    let place = Place::with(POLICY);
    let run = place
        .run(
            "explain --policy policy.toml --thread kworker/0:1 --cgroup ads.slice/x/ --user root --group 7 --nice -5 \
             --kthread --leader=false --sched batch --hint 3 --format json",
        )
        .ends_with(0);
    let document = run.json();
    assert_eq!(document["rule"]["name"], "root's own");
    assert_eq!(
        document["thread"],
        json!({ "tid": null, "thread": "kworker/0:1", "process": "kworker/0:1", "cgroup": "/ads.slice/x", "uid": 0,
            "gid": 7, "nice": -5, "kthread": true, "leader": false, "sched": "batch", "hint": 3 })
    );
}

#[test]
fn t03_a_name_cut_inside_a_character_is_shown_and_judged() {
    let place = Place::with(
        "version = 1\ndefault = \"background\"\n\
         [[rule]]\nname = \"x\"\npool = \"critical\"\nthread = { exact = \"process-name-t\u{f6}\u{f6}\" }\n",
    );
    let name = "process-name-t\u{f6}\u{f6}";
    let run = place
        .run_args(
            &[
                "explain",
                "--policy",
                "policy.toml",
                "--thread",
                name,
                "--format",
                "json",
            ],
            b"",
        )
        .ends_with(0);
    assert_eq!(run.json()["thread"]["thread"], "process-name-t\\xc3");
    assert_eq!(run.json()["rule"]["name"], "x");
}

#[test]
fn this_very_process_can_be_explained() {
    let place = Place::with(POLICY);
    let pid = std::process::id();
    let document = place
        .run(&format!("explain --policy policy.toml {pid} --format json"))
        .ends_with(0)
        .json();
    assert_eq!(document["thread"]["tid"], pid);
    assert_eq!(document["thread"]["leader"], true);
}

#[test]
fn e01_a_thread_that_does_not_exist_is_one_line_and_66() {
    let place = Place::with(POLICY);
    for tid in ["0", "2147483647"] {
        let run = place
            .run(&format!("explain --policy policy.toml {tid}"))
            .ends_with(66);
        assert_eq!(run.stderr, format!("error: there is no thread {tid}\n"));
    }
    let run = place
        .run("explain --policy policy.toml 2147483647 --format json")
        .ends_with(66);
    assert_eq!(run.json()["error"]["code"], "no-thread");
}

const TSV: &str = "thread\tprocess\tcgroup\tuid\n\
    srv-1\tadserver\t/\t0\nsrv-debug-1\tadserver\t/\t7\nx\tx\t/ads.slice/y\t0\n";

#[test]
fn a_file_of_threads_is_one_line_each() {
    let place = Place::with(POLICY);
    place.write("threads.tsv", TSV);
    let run = place
        .run("explain --policy policy.toml --threads threads.tsv --format json")
        .ends_with(0);
    let rules: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("one object a line")["rule"]["name"].clone()
        })
        .collect();
    assert_eq!(
        rules,
        [json!("request path"), json!("debug"), json!("root's own")]
    );
    let run = place
        .run_args(
            &["explain", "--policy", "policy.toml", "--threads", "-"],
            TSV.as_bytes(),
        )
        .ends_with(0);
    assert_eq!(run.stdout.lines().count(), 3);
    assert!(
        run.stdout.starts_with("critical    srv-1"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_malformed_row_is_named_by_its_line() {
    let place = Place::with(POLICY);
    place.write("threads.tsv", "thread\tuid\na\t1\nb\tx\nc\n");
    let run = place
        .run("explain --policy policy.toml --threads threads.tsv")
        .ends_with(1);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", run.stderr);
    assert!(
        lines[0].starts_with("error: threads.tsv:3: "),
        "{}",
        run.stderr
    );
    assert!(
        lines[1].starts_with("error: threads.tsv:4: "),
        "{}",
        run.stderr
    );
    let run = place
        .run("explain --policy policy.toml --threads threads.tsv --format json")
        .ends_with(1);
    assert_eq!(run.json()["error"]["code"], "malformed-input");
    place
        .run("explain --policy policy.toml --threads none.tsv")
        .ends_with(66);
}

#[test]
fn an_id_that_cannot_exist_is_no_name() {
    let place = Place::with(POLICY);
    for id in ["--user=-1", "--group=4294967295", "--nice=200"] {
        let run = place
            .run(&format!("explain --policy policy.toml --thread x {id}"))
            .ends_with(64);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn an_invalid_policy_explains_nothing() {
    let place = Place::with("version = 1\n");
    let run = place
        .run("explain --policy policy.toml --thread x --format json")
        .ends_with(1);
    assert_eq!(run.json()["valid"], false);
}

#[test]
fn t08_all_threads_of_a_process_are_explained() {
    let place = Place::with(POLICY);
    let pid = std::process::id();
    // Another thread than the one that the harness starts on, however it runs tests.
    let run = std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (done, wait) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            sender.send(own_tid()).expect("somebody waits");
            let _ = wait.recv();
        });
        let tid = receiver.recv().expect("the thread runs");
        let json = place.run(&format!(
            "explain --policy policy.toml --pid {pid} --format json"
        ));
        let human = place.run(&format!("explain --policy policy.toml --pid {pid}"));
        place
            .run(&format!("explain --policy policy.toml --pid {tid}"))
            .ends_with(66);
        drop(done);
        let human = human.ends_with(0).stdout;
        assert!(human.contains(&format!("(tid {tid}) -> ")), "{human}");
        (tid, json.ends_with(0))
    });
    let (tid, run) = run;
    let threads: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("one object a line")["thread"].clone()
        })
        .collect();
    assert_eq!(
        (&threads[0]["tid"], &threads[0]["leader"]),
        (&json!(pid), &json!(true))
    );
    let other = threads.iter().find(|thread| thread["tid"] == tid);
    assert_eq!(other.expect("the other thread")["leader"], false);
}

#[test]
fn e01_a_process_that_does_not_exist_is_one_line_and_66() {
    let place = Place::with(POLICY);
    for pid in ["0", "2147483647"] {
        let run = place
            .run(&format!("explain --policy policy.toml --pid {pid}"))
            .ends_with(66);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

/// A process that forks and ends as fast as it can: whatever moment the program looks at, it either
/// explains the thread or says in one line that there is none.
#[test]
fn e01_a_thread_that_ends_while_it_is_looked_at() {
    let place = Place::with(POLICY);
    let mut missing = 0;
    for round in 0..60 {
        let mut child = Command::new("true").spawn().expect("a process");
        let command = format!("explain --policy policy.toml {} --format json", child.id());
        // Every other one is certainly gone.
        if round % 2 == 0 {
            child.wait().expect("it ends");
        }
        let run = place.run(&command);
        child.wait().expect("it ends");
        match run.code {
            Some(0) => assert_eq!(run.json()["thread"]["leader"], true),
            Some(66) => {
                missing += 1;
                assert_eq!(run.json()["error"]["code"], "no-thread");
                assert_eq!(run.stderr.lines().count(), 1, "{run:#?}");
            }
            _ => panic!("{run:#?}"),
        }
    }
    assert!(missing >= 30, "{missing} of 60 were missing");
}
