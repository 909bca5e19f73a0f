//! `check --explain-overlaps`: what it shows is so.

use serde_json::{Value, json};

use crate::{POLICY, Place};

/// The options of `explain` that describe a thread of a document.
fn options(thread: &Value) -> Vec<String> {
    let text = |key: &str| thread[key].as_str().expect("text").to_owned();
    let mut options = Vec::new();
    for key in ["thread", "process", "cgroup", "sched"] {
        options.extend([format!("--{key}"), text(key)]);
    }
    for (key, field) in [
        ("user", "uid"),
        ("group", "gid"),
        ("nice", "nice"),
        ("hint", "hint"),
    ] {
        options.push(format!("--{key}={}", thread[field]));
    }
    for key in ["kthread", "leader"] {
        options.push(format!("--{key}={}", thread[key]));
    }
    options
}

fn explained(place: &Place, thread: &Value) -> Value {
    let options = options(thread);
    let mut arguments = vec!["explain", "--policy", "policy.toml", "--format", "json"];
    arguments.extend(options.iter().map(String::as_str));
    place.run_args(&arguments, b"").ends_with(0).json()
}

#[test]
fn every_witness_is_confirmed_by_explain() {
    let place = Place::with(POLICY);
    let run = place
        .run("check --explain-overlaps --format json policy.toml")
        .ends_with(0);
    let document = run.json();
    let proofs = &document["proofs"][0];
    assert_eq!(proofs["policy"], "policy.toml");
    let rules = proofs["rules"].as_array().expect("a list");
    assert_eq!(rules.len(), 3);
    for rule in rules {
        assert_eq!(rule["verdict"], "reachable");
        let why = explained(&place, &rule["witness"]);
        assert_eq!(why["rule"]["index"], rule["index"], "{rule}");
    }
    let overlaps = proofs["overlaps"].as_array().expect("a list");
    assert_eq!(overlaps.len(), 2, "{overlaps:?}");
    for overlap in overlaps {
        let why = explained(&place, &overlap["witness"]);
        assert_eq!(why["rule"], overlap["winner"], "{overlap}");
        let loser = overlap["loser"]["index"].as_u64().expect("a number") as usize;
        assert_eq!(why["rules"][loser - 1]["matched"], true, "{overlap}");
    }
    assert_eq!(
        (&proofs["undecided"], &proofs["undecided_overlaps"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn people_read_what_to_type() {
    let place = Place::with(POLICY);
    let run = place
        .run("check --explain-overlaps policy.toml")
        .ends_with(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "policy.toml: ok, 3 rules, 2 tests passed");
    let pair = "    1  debug (background) before 2 request path (critical): ";
    let found = lines.iter().find_map(|line| line.strip_prefix(pair));
    let found = found.unwrap_or_else(|| panic!("no such line in\n{}", run.stdout));
    let run = place
        .run(&format!("explain --policy policy.toml {found}"))
        .ends_with(0);
    assert!(run.stdout.contains("by rule 1 `debug`"), "{}", run.stdout);
}

#[test]
fn an_unreachable_rule_has_no_witness_and_says_who_blocks_it() {
    let place = Place::with(
        "version = 1\ndefault = \"background\"\n\
         [[rule]]\nname = \"low\"\npool = \"critical\"\nnice = { max = 0 }\n\
         [[rule]]\nname = \"high\"\npool = \"critical\"\nnice = { min = 1 }\n\
         [[rule]]\nname = \"rest\"\npool = \"background\"\nthread = \"x\"\n",
    );
    let run = place
        .run("check --explain-overlaps --format json policy.toml")
        .ends_with(0);
    let rest = &run.json()["proofs"][0]["rules"][2];
    assert_eq!(
        rest,
        &json!({ "index": 3, "name": "rest", "verdict": "unreachable", "witness": null,
            "blocked_by": [{ "index": 1, "name": "low" }, { "index": 2, "name": "high" }] })
    );
    let run = place
        .run("check --explain-overlaps policy.toml")
        .ends_with(0);
    assert!(
        run.stdout
            .contains("    3  rest: unreachable behind `low`, `high`\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn several_policies_have_their_proofs_side_by_side() {
    let place = Place::with(POLICY);
    place.write("second.toml", POLICY);
    let run = place
        .run("check --explain-overlaps --format json policy.toml second.toml")
        .ends_with(0);
    let document = run.json();
    let proofs = document["proofs"].as_array().expect("a list");
    let policies: Vec<&Value> = proofs.iter().map(|proof| &proof["policy"]).collect();
    assert_eq!(policies, ["policy.toml", "second.toml"]);
}
