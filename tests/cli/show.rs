//! `show`.

use crate::{POLICY, Place};

#[test]
fn every_value_with_the_file_and_line_it_came_from() {
    let place = Place::with(POLICY);
    place.write("policy.d/10-local.toml", "[pool.critical]\nweight = 900\n");
    let run = place.run("show --policy policy.toml").ends_with(0);
    let origin_of = |path: &str| {
        let line = run
            .stdout
            .lines()
            .find(|line| line.starts_with(&format!("{path} = ")))
            .unwrap_or_else(|| panic!("{path} is not in\n{}", run.stdout));
        let (value, origin) = line.split_once("  # ").expect("an origin");
        (
            value
                .trim_end()
                .split_once(" = ")
                .expect("a value")
                .1
                .to_owned(),
            origin.to_owned(),
        )
    };
    assert_eq!(
        origin_of("default"),
        ("\"background\"".into(), "policy.toml:2".into())
    );
    assert_eq!(
        origin_of("pool.critical.weight"),
        ("900".into(), "policy.d/10-local.toml:2".into())
    );
    assert_eq!(
        origin_of("pool.critical.slice"),
        ("\"3ms\"".into(), "default".into())
    );
    assert_eq!(run.stderr, "");
}

#[test]
fn the_document_holds_the_same() {
    let place = Place::with(POLICY);
    let document = place
        .run("show --policy policy.toml --format json")
        .ends_with(0)
        .json();
    assert_eq!(document["format_version"], "1");
    assert_eq!(document["files"], serde_json::json!(["policy.toml"]));
    let settings = document["settings"].as_array().expect("a list");
    let default = settings
        .iter()
        .find(|setting| setting["path"] == "default")
        .expect("listed");
    assert_eq!(
        default["origin"],
        serde_json::json!({ "filename": "policy.toml", "line": 2 })
    );
}

#[test]
fn an_invalid_policy_gives_its_check_document() {
    let place = Place::with("version = 1\n");
    let run = place
        .run("show --policy policy.toml --format json")
        .ends_with(1);
    assert_eq!(run.json()["diagnostics"][0]["code"], "missing-key");
    let run = place.run("show --policy policy.toml").ends_with(1);
    assert_eq!(run.stdout, "");
}

#[test]
fn a_path_without_its_option_is_told_of_the_option() {
    let run = Place::with(POLICY).run("show policy.toml").ends_with(64);
    assert!(run.stderr.contains("'--policy PATH'"), "{}", run.stderr);
    let run = Place::with(POLICY).run("show --nonsense").ends_with(64);
    assert!(!run.stderr.contains("'--policy PATH'"), "{}", run.stderr);
}
