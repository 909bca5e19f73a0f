//! `test`: runs the `[[test]]` tables of policies.

use std::fmt::Write;

use serde_json::{Value, json};
use twopool_diag::{Severity, printable};
use twopool_policy::compile::Compiled;
use twopool_policy::testing::TestCase;
use twopool_policy::text::escape;

use super::check::{merge, plural};
use super::test_junit::{Case, Outcome, Suite, junit};
use super::{locations, read_and_compile};
use crate::cli::{Global, Test, TestFormat};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::report::Report;

/// Tests each policy; the worst outcome decides.
pub fn run(args: &Test, global: &Global) -> Result<Exit, Failure> {
    let mut tested = Vec::new();
    let mut exit = Exit::Done;
    for location in locations(&args.paths, global) {
        let compiled = read_and_compile(&location)?;
        let report = Report::of(&compiled, output::stderr_colour());
        output::findings(&report);
        let tested_one = Tested::new(location.label(), compiled, args.require_coverage);
        if args.format == TestFormat::Human {
            output::result(&tested_one.human())?;
        }
        if let Some(shortfall) = &tested_one.shortfall {
            output::error_text(&format!("error: {}: {shortfall}\n", tested_one.label));
        }
        if !report.valid || tested_one.shortfall.is_some() {
            exit = Exit::Rejected;
        }
        tested.push((tested_one, report.document));
    }
    let ran: usize = tested
        .iter()
        .map(|(one, _)| one.compiled.tests.cases.len())
        .sum();
    if exit == Exit::Done && ran == 0 {
        output::error_text("error: no test ran: the policy has no [[test]] table\n");
        exit = Exit::NoTest;
    }
    match args.format {
        TestFormat::Human => {}
        TestFormat::Json => output::json(&document(tested))?,
        TestFormat::Junit => {
            let suites: Vec<Suite> = tested.iter().map(|(one, _)| one.suite()).collect();
            output::result(&junit(&suites))?;
        }
    }
    Ok(exit)
}

/// One policy and what became of its tests.
struct Tested {
    label: String,
    compiled: Compiled,
    /// The required percentage and, if the tests do not reach it, what is missing.
    required: Option<u8>,
    shortfall: Option<String>,
}

impl Tested {
    fn new(label: String, compiled: Compiled, required: Option<u8>) -> Self {
        let shortfall = required.and_then(|percent| shortfall(&compiled, percent));
        Self {
            label,
            compiled,
            required,
            shortfall,
        }
    }

    fn human(&self) -> String {
        let tests = &self.compiled.tests;
        let mut text = String::new();
        for case in &tests.cases {
            let outcome = match case.failure {
                None => "ok",
                Some(_) => "FAILED",
            };
            let _ = writeln!(text, "test {} ... {outcome}", printable(&case.name));
        }
        let _ = writeln!(
            text,
            "{}: {} passed, {} failed, {} of {} reached",
            self.label,
            tests.passed,
            tests.failed,
            tests.rules_reached,
            plural(tests.rules, "rule")
        );
        for rule in &tests.unreached {
            let name = printable(&rule.name);
            let _ = writeln!(text, "  no test reaches rule {} `{name}`", rule.index);
        }
        text
    }

    fn cases(&self) -> impl Iterator<Item = Value> {
        let cases = self.compiled.tests.cases.iter();
        cases.map(|case: &TestCase| {
            let taken = case.rule.zip(case.rule_name.as_ref());
            json!({
                "policy": escape(self.label.as_bytes()),
                "name": case.name,
                "passed": case.failure.is_none(),
                "failure": case.failure,
                "pool": case.pool.as_str(),
                "rule": taken.map(|(index, name)| json!({ "index": index + 1, "name": name })),
            })
        })
    }

    fn unreached(&self) -> impl Iterator<Item = Value> {
        let rules = self.compiled.tests.unreached.iter();
        rules.map(|rule| {
            json!({
                "policy": escape(self.label.as_bytes()),
                "index": rule.index,
                "name": rule.name,
            })
        })
    }

    /// The tests, then the demands on the policy as a whole: build servers show cases alone.
    fn suite(&self) -> Suite {
        let tests = &self.compiled.tests;
        let mut cases: Vec<Case> = tests.cases.iter().map(case).collect();
        if !self.compiled.is_valid() && tests.failed == 0 {
            cases.push(Case {
                name: "the policy is valid".to_owned(),
                outcome: Outcome::Error(errors(&self.compiled)),
            });
        }
        if let Some(percent) = self.required {
            cases.push(Case {
                name: format!("tests reach {percent}% of the rules"),
                outcome: match &self.shortfall {
                    None => Outcome::Passed,
                    Some(text) => Outcome::Failed(text.clone()),
                },
            });
        }
        Suite {
            name: self.label.clone(),
            cases,
        }
    }
}

fn case(case: &TestCase) -> Case {
    let outcome = match &case.failure {
        None => Outcome::Passed,
        Some(text) => Outcome::Failed(text.clone()),
    };
    Case {
        name: case.name.clone(),
        outcome,
    }
}

/// Why the tests of a policy could not run, one line an error.
fn errors(compiled: &Compiled) -> String {
    let found = compiled.diagnostics.iter();
    let errors = found.filter(|found| found.severity() == Severity::Error);
    let lines: Vec<String> = errors
        .map(|error| format!("{}: {}", error.code.as_str(), error.summary))
        .collect();
    lines.join("\n")
}

/// What is missing of the required part of the rules, if anything.
fn shortfall(compiled: &Compiled, percent: u8) -> Option<String> {
    let tests = &compiled.tests;
    if tests.rules_reached * 100 >= tests.rules * usize::from(percent) {
        return None;
    }
    let missed = tests.unreached.iter();
    let missed: Vec<String> = missed
        .map(|rule| format!("`{}`", printable(&rule.name)))
        .collect();
    Some(format!(
        "the tests reach {} of {}, less than {percent}%; not reached: {}",
        tests.rules_reached,
        plural(tests.rules, "rule"),
        missed.join(", ")
    ))
}

/// The document of `check` with every test, and every rule that none of them reaches.
fn document(tested: Vec<(Tested, Value)>) -> Value {
    let cases: Vec<Value> = tested.iter().flat_map(|(one, _)| one.cases()).collect();
    let unreached: Vec<Value> = tested.iter().flat_map(|(one, _)| one.unreached()).collect();
    let mut document = merge(tested.into_iter().map(|(_, document)| document).collect());
    document["cases"] = json!(cases);
    document["unreached"] = json!(unreached);
    document
}
