//! `test`: where tests stand, which rules they reach, and how build servers read it.

use serde_json::json;

use crate::{POLICY, Place};

/// A test of the third rule, which none of the policy's own tests reaches.
const BESIDE: &str = "[[test]]\nname = \"all of /ads.slice\"\nthread = \"x\"\n\
    cgroup = \"/ads.slice/y\"\nexpect = { pool = \"critical\", rule = \"root's own\" }\n";

#[test]
fn tests_in_a_file_beside_the_policy_count_like_its_own() {
    let place = Place::with(POLICY);
    let run = place.run("test policy.toml").ends_with(0);
    let unreached = "  no test reaches rule 3 `root's own`\n";
    assert!(run.stdout.ends_with(unreached), "{}", run.stdout);
    place.write("policy.test.toml", BESIDE);
    let run = place
        .run("test policy.toml --require-coverage 100")
        .ends_with(0);
    assert!(
        run.stdout
            .ends_with("policy.toml: 3 passed, 0 failed, 3 of 3 rules reached\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_failing_test_beside_the_policy_makes_it_invalid() {
    let place = Place::with(POLICY);
    place.write("policy.test.toml", BESIDE.replace("critical", "background"));
    for arguments in ["test policy.toml", "check .", "show --policy policy.toml"] {
        let run = place.run(arguments).ends_with(1);
        assert!(run.stderr.contains("policy.test.toml:5:"), "{}", run.stderr);
    }
    // Another policy's tests are no business of this one.
    place.write("other.toml", POLICY);
    place.run("check other.toml").ends_with(0);
}

/// What is tested would else depend on its tests.
#[test]
fn f01_a_file_of_tests_holds_nothing_but_tests() {
    let place = Place::with(POLICY);
    let more = format!("default = \"critical\"\n{BESIDE}[[rule]]\npool = \"critical\"\n");
    place.write("policy.test.toml", more);
    let document = place
        .run("check policy.toml --format json")
        .ends_with(1)
        .json();
    let found = document["diagnostics"].as_array().expect("a list");
    let lines: Vec<_> = found
        .iter()
        .map(|found| (&found["code"], &found["range"]["start"]["line"]))
        .collect();
    let code = json!("unknown-key");
    assert_eq!(
        lines,
        [(&code, &json!(1)), (&code, &json!(7))],
        "{document}"
    );
}

#[test]
fn a_candidate_for_the_file_of_tests_is_judged_with_the_policy() {
    let place = Place::with(POLICY);
    place.write("candidate", BESIDE);
    let run = place.run("check --as policy.test.toml candidate --format json");
    assert_eq!(run.ends_with(0).json()["tests"]["passed"], 3);
    place.write("candidate", BESIDE.replace("critical", "background"));
    place
        .run("check --as policy.test.toml candidate")
        .ends_with(1);
    // In `policy.d` the name says nothing: it is a drop-in like any other, and may hold rules.
    place.write("policy.d/policy.toml", BESIDE);
    place.write("candidate", "[[rule]]\npool = \"critical\"\nnice = -20\n");
    place
        .run("check --as policy.d/policy.test.toml candidate")
        .ends_with(0);
    // And a candidate for the policy with the tests that stand beside it.
    place.write("policy.test.toml", BESIDE);
    place.write("candidate", POLICY.replace("/ads.slice", "/other.slice"));
    place.run("check --as policy.toml candidate").ends_with(1);
}

#[test]
fn json_names_every_test_and_every_rule_that_none_reaches() {
    let place = Place::with(POLICY);
    let run = place.run("test policy.toml --format json").ends_with(0);
    let document = run.json();
    assert_eq!(
        document["cases"][0],
        json!({ "policy": "policy.toml", "name": "servers are critical", "passed": true,
            "failure": null, "pool": "critical", "rule": { "index": 2, "name": "request path" } })
    );
    assert_eq!(
        document["unreached"],
        json!([{ "policy": "policy.toml", "index": 3, "name": "root's own" }])
    );
    assert_eq!(document["tests"]["rules_reached"], 2);
}

/// The names of rules are not lost with the policy that a failing test makes invalid.
#[test]
fn coverage_is_known_where_a_test_fails() {
    let failing = POLICY.replace(
        "expect = { pool = \"background\", rule = \"debug\" }",
        "expect = { pool = \"critical\" }",
    );
    let run = Place::with(&failing)
        .run("test policy.toml --require-coverage 100")
        .ends_with(1);
    assert!(
        run.stderr.contains("not reached: `root's own`"),
        "{}",
        run.stderr
    );
}

/// Name, kind of outcome and message of every case of a document.
fn cases(text: &str) -> Vec<(String, Option<(String, String)>)> {
    let document = roxmltree::Document::parse(text).expect("well-formed");
    let cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    cases
        .map(|case| {
            let outcome = case.first_element_child().map(|node| {
                let message = node.attribute("message").expect("a message");
                (node.tag_name().name().to_owned(), message.to_owned())
            });
            (case.attribute("name").expect("a name").to_owned(), outcome)
        })
        .collect()
}

#[test]
fn junit_has_a_case_for_each_test_and_one_for_coverage() {
    let name = "\"debugging <is> not\\u001b & more\"";
    let place = Place::with(&POLICY.replace("\"debugging is not\"", name));
    let run = place
        .run("test policy.toml --format junit --require-coverage 100")
        .ends_with(1);
    let found = cases(&run.stdout);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "servers are critical",
            "debugging <is> not\\u{1b} & more",
            "tests reach 100% of the rules"
        ]
    );
    assert_eq!((&found[0].1, &found[1].1), (&None, &None));
    let (kind, message) = found[2].1.as_ref().expect("it failed");
    assert_eq!(kind, "failure");
    assert!(message.contains("`root's own`"), "{message}");
    place.run("test policy.toml --format junit").ends_with(0);
}

#[test]
fn junit_says_why_no_test_ran() {
    let place = Place::with("version = 1\ndefault = \"background\"\nx = \"a < b\"\n");
    let run = place.run("test policy.toml --format junit").ends_with(1);
    let found = cases(&run.stdout);
    let (kind, message) = found[0].1.as_ref().expect("an error");
    assert_eq!(kind, "error");
    assert!(message.starts_with("unknown-key: "), "{message}");
    place.write("policy.toml", "version = 1\ndefault = \"background\"\n");
    let run = place.run("test policy.toml --format junit").ends_with(4);
    assert_eq!(cases(&run.stdout), []);
    place.run("test none.toml --format junit").ends_with(66);
}
