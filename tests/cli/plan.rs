//! `plan`.

use serde_json::json;

use crate::{POLICY, Place};

const THREADS: &str = "thread\tprocess\nsrv-1\tadserver\nsrv-debug-1\tadserver\nother\tother\n";

fn two(new: &str) -> Place {
    let place = Place::with(POLICY);
    place.write("new/policy.toml", new);
    place.write("threads.tsv", THREADS);
    place
}

#[test]
fn a_change_of_weight_is_a_move_and_ends_with_2() {
    let place = two(&POLICY.replace("weight = 200", "weight = 300"));
    for list in ["--threads", "--snapshot"] {
        let run = place.run(&format!(
            "plan policy.toml new {list} threads.tsv --format json"
        ));
        let document = run.ends_with(2).json();
        assert_eq!(document["threads"], 3);
        assert_eq!(document["moves"].as_array().map(Vec::len), Some(1));
        let moved = &document["moves"][0];
        assert_eq!(moved["thread"]["thread"], "srv-1");
        assert_eq!(
            moved["from"],
            json!({ "pool": "critical", "rule": { "index": 2, "name": "request path" }, "slice_us": 1000, "weight": 200 })
        );
        assert_eq!(moved["to"]["weight"], 300);
    }
    let run = place
        .run("plan policy.toml new --threads threads.tsv")
        .ends_with(2);
    assert!(
        run.stdout.contains("1 of 3 threads would change"),
        "{run:#?}"
    );
    assert!(run.stdout.contains("weight 200 -> 300"), "{run:#?}");
}

#[test]
fn policies_that_differ_in_text_only_change_nothing() {
    let place = two(&POLICY.replace("\"srv-debug*\"", "{ prefix = \"srv-debug\" }"));
    place
        .run("plan policy.toml new --threads threads.tsv")
        .ends_with(0);
    let run = place
        .run("plan policy.toml new --witness --format json")
        .ends_with(0);
    assert_eq!(run.json()["moves"], json!([]));
}

#[test]
fn a_witness_is_confirmed_by_explain() {
    let place = two(&POLICY.replace("weight = 200", "weight = 300"));
    let run = place
        .run("plan policy.toml new --witness --format json")
        .ends_with(2);
    let document = run.json();
    let moves = document["moves"].as_array().expect("a list");
    assert_eq!(moves.len(), 1, "{document}");
    let thread = moves[0]["explain"].as_str().expect("text");
    for (policy, side) in [("policy.toml", "from"), ("new/policy.toml", "to")] {
        let run = place.run(&format!("explain --policy {policy} {thread} --format json"));
        assert_eq!(run.ends_with(0).json()["weight"], moves[0][side]["weight"]);
    }
}

#[test]
fn what_cannot_be_compared_has_its_own_exit() {
    let place = two("version = 1\n");
    place
        .run("plan policy.toml new --format json")
        .ends_with(1)
        .json();
    place.run("plan policy.toml none.toml").ends_with(66);
    place.run("plan policy.toml --runtime-dir .").ends_with(69);
    place.run("plan").ends_with(64);
    place
        .run("plan policy.toml policy.toml --threads none.tsv")
        .ends_with(66);
    place
        .run("plan policy.toml policy.toml --policy-dir x")
        .ends_with(64);
}
