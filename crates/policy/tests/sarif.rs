//! Every bad policy of the corpus as a SARIF log, held to the schema: the part of SARIF 2.1.0 that
//! is written, closed against all else.

// The corpus is files.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use twopool_diag::render::{Checked, diagnostics, sarif};

fn validator() -> jsonschema::Validator {
    let schema: Value =
        serde_json::from_str(include_str!("sarif-2.1.0.schema.json")).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

fn checked(path: &Path) -> Checked {
    let out = common::compiled(fs::read(path).expect("readable"));
    Checked {
        name: "policy.toml".to_owned(),
        found: diagnostics(&out.sources, out.diagnostics.kept()),
        omitted: out.diagnostics.omitted(),
    }
}

#[test]
fn the_log_of_every_bad_policy_is_sarif() {
    let validator = validator();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ui");
    let mut results = 0;
    for entry in fs::read_dir(corpus).expect("tests/ui is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let log = sarif(&[checked(&path)], &["cannot read x".to_owned()], "1.2.3");
        let errors: Vec<String> = validator
            .iter_errors(&log)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        results += log["runs"][0]["results"].as_array().map_or(0, Vec::len);
    }
    assert!(results > 100, "the corpus has {results} findings");
}

/// A schema that takes everything would prove nothing.
#[test]
fn the_schema_refuses_what_sarif_does_not_have() {
    let validator = validator();
    let mut log = sarif(&[], &[], "1.2.3");
    assert!(validator.is_valid(&log));
    log["runs"][0]["tool"]["driver"]["vendor"] = json!("x");
    assert!(!validator.is_valid(&log));
    let mut log = sarif(&[], &[], "1.2.3");
    log["version"] = json!("2.0.0");
    assert!(!validator.is_valid(&log));
}
