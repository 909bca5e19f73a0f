//! `test`: runs the `[[test]]` tables of policies.

use std::fmt::Write;

use twopool_policy::compile::Compiled;

use twopool_diag::printable;

use super::check::{merge, plural};
use super::{locations, read_and_compile};
use crate::cli::{Format, Global, Test};
use crate::exit::{Exit, Failure};
use crate::host::input::Location;
use crate::output;
use crate::report::Report;

/// Tests each policy; the worst outcome decides.
pub fn run(args: &Test, global: &Global) -> Result<Exit, Failure> {
    let mut documents = Vec::new();
    let mut ran = 0;
    let mut exit = Exit::Done;
    for location in locations(&args.paths, global) {
        let compiled = read_and_compile(&location)?;
        let report = Report::of(&compiled, output::stderr_colour());
        output::findings(&report);
        if args.format == Format::Human {
            output::result(&lines(&location, &compiled))?;
        }
        ran += compiled.tests.passed + compiled.tests.failed;
        if !report.valid || !is_covered(&location, &compiled, args.require_coverage) {
            exit = Exit::Rejected;
        }
        documents.push(report.document);
    }
    if args.format == Format::Json {
        output::json(&merge(documents))?;
    }
    Ok(match exit {
        Exit::Done if ran == 0 => {
            output::error_text("error: no test ran: the policy has no [[test]] table\n");
            Exit::NoTest
        }
        other => other,
    })
}

fn lines(location: &Location, compiled: &Compiled) -> String {
    let tests = &compiled.tests;
    let mut text = String::new();
    for case in &tests.cases {
        let outcome = if case.failure.is_none() {
            "ok"
        } else {
            "FAILED"
        };
        let _ = writeln!(text, "test {} ... {outcome}", printable(&case.name));
    }
    let _ = writeln!(
        text,
        "{}: {} passed, {} failed, {} of {} reached",
        location.label(),
        tests.passed,
        tests.failed,
        tests.rules_reached,
        plural(tests.rules, "rule")
    );
    text
}

/// Whether the tests reach the required part of the rules; says which they miss.
fn is_covered(location: &Location, compiled: &Compiled, required: Option<u8>) -> bool {
    let tests = &compiled.tests;
    let Some(percent) = required else { return true };
    if tests.rules_reached * 100 >= tests.rules * usize::from(percent) {
        return true;
    }
    let reached = |index: &usize| tests.cases.iter().any(|case| case.rule == Some(*index));
    let names = compiled
        .policy
        .iter()
        .flat_map(|policy| &policy.rules)
        .enumerate();
    let missed: Vec<String> = names
        .filter(|(index, _)| !reached(index))
        .map(|(_, rule)| format!("`{}`", printable(&rule.name)))
        .collect();
    output::error_text(&format!(
        "error: {}: the tests reach {} of {}, less than {percent}%; not reached: {}\n",
        location.label(),
        tests.rules_reached,
        plural(tests.rules, "rule"),
        missed.join(", ")
    ));
    false
}
