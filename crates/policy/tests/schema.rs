//! The JSON Schema against the compiler, by a validator that knows nothing of either: what compiles
//! is valid, and every misspelt key, wrong type, unknown word and number out of range is refused.
//!
//! `TWOPOOL_BLESS=1` writes docs/policy.schema.json anew.

// Policies and the schema are files.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;
use twopool_diag::Code;
use twopool_policy::{generate, schema};

/// Codes of mistakes in one key or value alone, which a schema can see.
const SEEN: &[Code] = &[
    Code::UnknownKey,
    Code::UnknownPool,
    Code::InvalidType,
    Code::OutOfRange,
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn validator() -> Validator {
    jsonschema::draft7::new(&schema::document()).expect("a valid schema")
}

/// A policy as editors see it; `None`: it is not TOML.
fn document(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table: toml::Table = toml::from_str(text).ok()?;
    Some(serde_json::to_value(table).expect("TOML fits into JSON"))
}

fn complaints(validator: &Validator, document: &Value) -> String {
    let all = validator.iter_errors(document);
    all.map(|error| format!("{}: {error}\n", error.instance_path()))
        .collect()
}

fn toml_files(directory: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join(directory))
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no policy in {directory}");
    paths
}

#[test]
fn the_schema_in_the_documents_is_this_one() {
    let path = root().join("docs/policy.schema.json");
    if std::env::var_os("TWOPOOL_BLESS").is_some() {
        return fs::write(path, schema::text()).expect("the schema can be written");
    }
    assert!(
        fs::read_to_string(path).expect("docs/policy.schema.json") == schema::text(),
        "docs/policy.schema.json is out of date: run with TWOPOOL_BLESS=1 and read the difference"
    );
}

#[test]
fn the_schema_is_a_schema() {
    let document = schema::document();
    assert!(jsonschema::meta::is_valid(&document), "{document:#}");
}

#[test]
fn every_shipped_policy_is_valid() {
    let validator = validator();
    for directory in ["policies", "examples/policies"] {
        for path in toml_files(directory) {
            let document = document(&fs::read(&path).expect("readable")).expect("TOML");
            let found = complaints(&validator, &document);
            assert!(found.is_empty(), "{}:\n{found}", path.display());
        }
    }
}

/// The corpus of bad policies is the compiler's; the schema must agree wherever it can judge.
#[test]
fn the_corpus_of_bad_policies_is_judged_as_the_compiler_does() {
    let validator = validator();
    let (mut accepted, mut refused) = (0, 0);
    for path in toml_files("tests/ui") {
        let bytes = fs::read(&path).expect("readable");
        let Some(document) = document(&bytes) else {
            continue;
        };
        let out = common::compiled(&bytes);
        let found = complaints(&validator, &document);
        if out.is_valid() {
            accepted += 1;
            assert!(found.is_empty(), "{}:\n{found}", path.display());
        } else if common::codes(&out).iter().any(|code| SEEN.contains(code)) {
            refused += 1;
            assert!(!found.is_empty(), "{} is accepted", path.display());
        }
    }
    assert!(accepted >= 15 && refused >= 15, "{accepted} and {refused}");
}

/// One mistake a policy, so that no other one hides that it is not seen.
#[test]
fn each_mistake_alone_is_refused() {
    let validator = validator();
    let mistakes = [
        "defualt = \"critical\"",
        "[pool.critical]\nwieght = 800",
        "[pool.lat]\nweight = 800",
        "[pool.critical]\nweight = \"800\"",
        "[pool.critical]\nweight = 0",
        "[pool.critical]\nslice = 3",
        "[pool.critical]\nslice = \"3\"",
        "[pool.critical]\nslice = \"2s\"",
        "[pool.critical]\nslice = \"off\"",
        "[pool.critical]\ncpus = { min = \"101%\" }",
        "[pool.critical]\nplacement = \"spraed\"",
        "[steal]\nsmt = \"1001ms\"",
        "[[rule]]\nthread = \"no-pool\"",
        "[[rule]]\npool = \"critcal\"",
        "[[rule]]\npool = \"critical\"\ntread = \"x\"",
        "[[rule]]\npool = \"critical\"\npreempt = true",
        "[[rule]]\npool = \"critical\"\nthread = 7",
        "[[rule]]\npool = \"critical\"\nthread = []",
        "[[rule]]\npool = \"critical\"\nthread = \"\"",
        "[[rule]]\npool = \"critical\"\nthread = { contains = \"x\" }",
        "[[rule]]\npool = \"critical\"\nthread = { exact = \"a\", prefix = \"b\" }",
        "[[rule]]\npool = \"critical\"\ncgroup = { prefix = \"/a\" }",
        "[[rule]]\npool = \"critical\"\nuser = \"1000\"",
        "[[rule]]\npool = \"critical\"\nuser = 4294967295",
        "[[rule]]\npool = \"critical\"\nnice = \"low\"",
        "[[rule]]\npool = \"critical\"\nnice = { from = 1 }",
        "[[rule]]\npool = \"critical\"\nnice = 20",
        "[[rule]]\npool = \"critical\"\nkthread = \"false\"",
        "[[rule]]\npool = \"critical\"\nsched = \"fifo\"",
        "[[rule]]\npool = \"critical\"\nnot = { any = [{ nice = 1 }] }",
        "[[rule]]\npool = \"critical\"\nnot = {}",
        "[[rule]]\npool = \"critical\"\nany = { nice = 1 }",
        "[[test]]\nthread = \"x\"",
        "[[test]]\nexpect = { pool = \"critical\" }",
        "[[test]]\nthread = \"x\"\nexpect = { rule = \"y\" }",
        "[[test]]\nthread = \"x\"\nuid = 0\nexpect = { pool = \"critical\" }",
    ];
    for mistake in mistakes {
        let text = format!("version = 1\ndefault = \"background\"\n{mistake}\n");
        let found = complaints(&validator, &document(text.as_bytes()).expect("TOML"));
        assert!(!found.is_empty(), "accepted:\n{mistake}");
        assert!(!common::compiled(&text).is_valid(), "compiles:\n{mistake}");
    }
}

/// What the compiler accepts, an editor must not underline.
#[test]
fn random_policies_that_compile_are_valid() {
    let validator = validator();
    let mut judged = 0;
    for seed in 0..200 {
        let text = generate::policy_text(seed);
        if common::compiled(&text).is_valid() {
            judged += 1;
            let found = complaints(&validator, &document(text.as_bytes()).expect("TOML"));
            assert!(found.is_empty(), "{text}\n{found}");
        }
    }
    assert!(judged > 100, "only {judged} policies compile");
}

#[test]
fn defaults_of_the_schema_are_values_that_it_accepts() {
    let schema = schema::document();
    let pools = &schema["properties"]["pool"]["properties"];
    assert_eq!(pools["critical"]["properties"]["weight"]["default"], 800);
    assert_eq!(pools["background"]["properties"]["weight"]["default"], 100);
    assert_eq!(
        pools["background"]["properties"]["slice"]["default"],
        "20ms"
    );
    let mut texts = String::from("version = 1\ndefault = \"background\"\n");
    for (path, _, default) in twopool_policy::keys::settings() {
        if let Some(default) = default {
            texts.push_str(&format!("{path} = {default}\n"));
        }
    }
    let found = complaints(&validator(), &document(texts.as_bytes()).expect("TOML"));
    assert!(found.is_empty(), "{texts}\n{found}");
}
