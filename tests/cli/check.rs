//! `check` and `test`.

use serde_json::json;

use crate::{POLICY, Place};

#[test]
fn a_valid_policy_is_one_line() {
    let place = Place::with(POLICY);
    for arguments in ["check policy.toml", "check --policy policy.toml"] {
        let run = place.run(arguments).ends_with(0);
        assert_eq!(run.stdout, "policy.toml: ok, 3 rules, 2 tests passed\n");
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn a_directory_stands_for_the_policy_in_it() {
    let place = Place::empty();
    place.write("conf/policy.toml", POLICY);
    let run = place.run("check conf").ends_with(0);
    assert_eq!(
        run.stdout,
        "conf/policy.toml: ok, 3 rules, 2 tests passed\n"
    );
}

#[test]
fn the_documents_of_check() {
    let place = Place::with(POLICY);
    let run = place.run("check policy.toml --format json").ends_with(0);
    assert_eq!(
        run.json(),
        json!({ "format_version": "1", "valid": true, "error_count": 0, "warning_count": 0, "diagnostics": [],
            "tests": { "passed": 2, "failed": 0, "rules_reached": 2, "rules": 3 } })
    );
    place.write(
        "policy.toml",
        "version = 1\ndefault = \"background\"\n[pool.critical]\nwieght = 1\n",
    );
    let document = place
        .run("check policy.toml --format json")
        .ends_with(1)
        .json();
    assert_eq!(
        (&document["valid"], &document["error_count"]),
        (&json!(false), &json!(1))
    );
    let found = &document["diagnostics"][0];
    assert_eq!(
        (&found["severity"], &found["code"]),
        (&json!("error"), &json!("unknown-key"))
    );
    assert_eq!(
        found["range"],
        json!({ "filename": "policy.toml", "start": { "line": 4, "column": 1, "byte": 51 },
            "end": { "line": 4, "column": 7, "byte": 57 } })
    );
}

#[test]
fn errors_go_to_standard_error_all_of_them_at_once() {
    let place = Place::with(
        "version = 1\ndefalt = \"background\"\n[pool.critical]\nwieght = 1\nslice = \"20\"\n",
    );
    let run = place.run("check policy.toml").ends_with(1);
    for code in ["unknown-key", "missing-key", "invalid-value"] {
        assert!(
            run.stderr.contains(&format!("error[{code}]")),
            "{code} is not in\n{}",
            run.stderr
        );
    }
    assert_eq!(run.stdout, "policy.toml: not valid: 4 errors\n");
}

#[test]
fn drop_ins_beside_the_policy_take_part() {
    let place = Place::with(POLICY);
    place.write(
        "policy.d/10-extra.toml",
        "[[rule]]\npool = \"background\"\nthread = \"extra\"\n",
    );
    place.write("policy.d/.10-extra.toml.swp", "not TOML at all [");
    place.write("policy.d/notes.txt", "neither");
    let run = place.run("check policy.toml").ends_with(0);
    assert_eq!(run.stdout, "policy.toml: ok, 4 rules, 2 tests passed\n");
    place.write("policy.d/10-extra.toml", "[[rule]]\npool = \"fast\"\n");
    let run = place.run("check policy.toml").ends_with(1);
    assert!(
        run.stderr.contains("policy.d/10-extra.toml:2:8"),
        "{}",
        run.stderr
    );
    // Named, it must exist; then it takes the place of the one beside the policy.
    let run = place
        .run("check policy.toml --policy-dir elsewhere")
        .ends_with(66);
    assert!(run.stderr.contains("elsewhere"), "{}", run.stderr);
    place.write("elsewhere/notes.txt", "no drop-in");
    place
        .run("check policy.toml --policy-dir elsewhere")
        .ends_with(0);
}

#[test]
fn standard_input_is_a_policy_without_drop_ins() {
    let place = Place::empty();
    place.write("policy.d/10-bad.toml", "nonsense");
    let run = place
        .run_args(&["check", "-"], POLICY.as_bytes())
        .ends_with(0);
    assert_eq!(run.stdout, "<stdin>: ok, 3 rules, 2 tests passed\n");
    let run = place
        .run_args(
            &["check", "-", "--policy-dir", "policy.d"],
            POLICY.as_bytes(),
        )
        .ends_with(1);
    assert!(
        run.stderr.contains("policy.d/10-bad.toml"),
        "{}",
        run.stderr
    );
}

#[test]
fn several_policies_are_each_their_own_and_the_worst_decides() {
    let place = Place::with(POLICY);
    place.write("bad.toml", "version = 2\ndefault = \"background\"\n");
    let run = place
        .run("check policy.toml bad.toml policy.toml")
        .ends_with(1);
    assert_eq!(run.stdout.lines().count(), 3);
    let document = place
        .run("check policy.toml bad.toml --format json")
        .ends_with(1)
        .json();
    assert_eq!(document["valid"], false);
    assert_eq!(document["tests"]["passed"], 2);
}

#[test]
fn a_missing_input_ends_with_66() {
    let place = Place::with(POLICY);
    let run = place.run("check none.toml").ends_with(66);
    assert_eq!(
        run.stderr,
        "error: cannot read none.toml: no such file or directory\n"
    );
    let run = place
        .run("check policy.toml none.toml --format json")
        .ends_with(66);
    assert_eq!(run.json()["error"]["code"], "no-input");
    place.run("check --policy none.toml").ends_with(66);
    place.run("show --policy none.toml").ends_with(66);
    place.run("test none.toml").ends_with(66);
}

#[test]
fn warnings_can_be_denied() {
    let place = Place::with("version = 1\ndefault = \"background\"\n");
    let run = place.run("check policy.toml").ends_with(0);
    assert!(run.stderr.contains("warning[no-rules]"), "{}", run.stderr);
    assert_eq!(run.stdout, "policy.toml: ok, 0 rules, 1 warning\n");
    place.run("check policy.toml --deny-warnings").ends_with(3);
    // An error stays an error.
    place.write("bad.toml", "x = 1\n");
    place
        .run("check policy.toml bad.toml --deny-warnings")
        .ends_with(1);
}

#[test]
fn test_names_each_test_and_counts_rules_reached() {
    let run = Place::with(POLICY).run("test policy.toml").ends_with(0);
    assert_eq!(
        run.stdout,
        "test servers are critical ... ok\n\
         test debugging is not ... ok\n\
         policy.toml: 2 passed, 0 failed, 2 of 3 rules reached\n  \
         no test reaches rule 3 `root's own`\n"
    );
}

#[test]
fn a_failed_test_ends_with_1_and_says_what_was_found() {
    let failing = POLICY.replace(
        "expect = { pool = \"background\", rule = \"debug\" }",
        "expect = { pool = \"critical\" }",
    );
    let place = Place::with(&failing);
    let run = place.run("test policy.toml").ends_with(1);
    assert!(
        run.stdout.contains("test debugging is not ... FAILED"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("error[failed-test]"), "{}", run.stderr);
    // The same policy can neither be checked nor shown.
    place.run("check policy.toml").ends_with(1);
    place.run("show --policy policy.toml").ends_with(1);
    assert_eq!(
        place
            .run("test policy.toml --format json")
            .ends_with(1)
            .json()["tests"]["failed"],
        1
    );
}

#[test]
fn no_test_ends_with_4() {
    let place = Place::with(
        "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"critical\"\nthread = \"x\"\n",
    );
    place.run("test policy.toml").ends_with(4);
    place
        .run("test policy.toml --format json")
        .ends_with(4)
        .json();
    // A policy that is not valid is that first of all.
    place.write("policy.toml", "x = 1\n");
    place.run("test policy.toml").ends_with(1);
}

#[test]
fn coverage_can_be_required() {
    let place = Place::with(POLICY);
    place
        .run("test policy.toml --require-coverage 66")
        .ends_with(0);
    let run = place
        .run("test policy.toml --require-coverage 67")
        .ends_with(1);
    assert!(
        run.stderr
            .ends_with("less than 67%; not reached: `root's own`\n"),
        "{}",
        run.stderr
    );
    place
        .run("test policy.toml --require-coverage 101")
        .ends_with(64);
}
