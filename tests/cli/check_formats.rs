//! `check --format sarif` and `--format github`.

use crate::{POLICY, Place};

/// One warning before one error, in two policies.
fn two_policies() -> Place {
    let place = Place::with("version = 1\ndefault = \"background\"\n");
    place.write(
        "bad.toml",
        "version = 1\ndefault = \"background\"\nsizng = 1\n",
    );
    place
}

#[test]
fn github_shows_errors_first_one_command_a_line() {
    let run = two_policies()
        .run("check policy.toml bad.toml --format github")
        .ends_with(1);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{run:#?}");
    assert!(
        lines[0].starts_with("::error file=bad.toml,line=3,endLine=3,col=1,endColumn=6,title=unknown-key::unknown key `sizng`"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("::warning file=policy.toml,line=2,endLine=2,col="),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains(",title=no-rules::"), "{}", lines[1]);
}

#[test]
fn nothing_in_a_policy_forges_a_command() {
    let place = Place::empty();
    place.write(
        "a,b:c%.toml",
        "version = 1\ndefault = \"background\"\n\"x\\n::stop-commands::y\\r%0A\" = 1\n",
    );
    let run = place.run("check a,b:c%.toml --format github").ends_with(1);
    assert!(
        run.stdout
            .lines()
            .all(|line| line.starts_with("::error file=a%2Cb%3Ac%25.toml,")
                || line.starts_with("::warning file=a%2Cb%3Ac%25.toml,")),
        "{run:#?}"
    );
    assert!(!run.stdout.contains('\r'), "{run:#?}");
}

#[test]
fn a_valid_policy_has_no_commands_and_an_empty_log() {
    let place = Place::with(POLICY);
    let run = place.run("check policy.toml --format github").ends_with(0);
    assert_eq!(run.stdout, "");
    let log = place
        .run("check policy.toml --format sarif")
        .ends_with(0)
        .json();
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
    assert_eq!(
        log["runs"][0]["invocations"][0]["executionSuccessful"],
        true
    );
}

#[test]
fn sarif_holds_all_policies_in_one_log() {
    let run = two_policies()
        .run("check policy.toml bad.toml --format sarif")
        .ends_with(1);
    let log = run.json();
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    let error = results
        .iter()
        .find(|r| r["level"] == "error")
        .expect("the error");
    assert_eq!(error["ruleId"], "unknown-key");
    let place = &error["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "bad.toml");
    assert_eq!(
        place["region"],
        serde_json::json!({ "startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 6 })
    );
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        let rule = &log["runs"][0]["tool"]["driver"]["rules"][index];
        assert_eq!(rule["id"], result["ruleId"]);
    }
}

#[test]
fn what_is_missing_is_part_of_both() {
    let place = Place::with(POLICY);
    let run = place
        .run("check none.toml policy.toml --format github")
        .ends_with(66);
    assert_eq!(
        run.stdout,
        "::error title=twopool::cannot read none.toml: no such file or directory\n"
    );
    let log = place
        .run("check none.toml policy.toml --format sarif")
        .ends_with(66)
        .json();
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let text = &invocation["toolExecutionNotifications"][0]["message"]["text"];
    assert_eq!(text, "cannot read none.toml: no such file or directory");
}

#[test]
fn proofs_have_no_place_in_them() {
    let place = Place::with(POLICY);
    for format in ["sarif", "github"] {
        place
            .run(&format!(
                "check policy.toml --explain-overlaps --format {format}"
            ))
            .ends_with(64);
    }
}
