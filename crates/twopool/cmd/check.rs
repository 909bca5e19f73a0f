//! `check`: is this policy valid? Needs nothing but the files.

use serde_json::{Value, json};
use twopool_diag::render::summary_line;
use twopool_policy::compile::Compiled;
use twopool_policy::proof;

use super::{locations, read_and_compile};
use crate::cli::{Check, Format, Global};
use crate::exit::{Exit, Failure};
use crate::host::input::Location;
use crate::output;
use crate::report::Report;

/// Checks each policy; the worst outcome decides.
pub fn run(args: &Check, global: &Global) -> Result<Exit, Failure> {
    let mut documents = Vec::new();
    let mut failure = None;
    let mut exit = Exit::Done;
    for location in locations(&args.paths, global) {
        let compiled = match read_and_compile(&location) {
            Ok(compiled) => compiled,
            Err(missing) => {
                output::error_text(&format!("error: {}\n", missing.message));
                failure = Some(missing);
                continue;
            }
        };
        let mut report = Report::of(&compiled, output::stderr_colour());
        output::findings(&report);
        if args.format == Format::Human {
            output::result(&line(&location, &compiled))?;
        }
        if args.explain_overlaps {
            explain(&location, &compiled, args.format, &mut report)?;
        }
        exit = worse(exit, &report, args.deny_warnings);
        documents.push(report.document);
    }
    if args.format == Format::Json {
        let document = match &failure {
            Some(missing) => json!({
                "format_version": "1",
                "error": { "code": missing.code, "message": missing.message },
            }),
            None => merge(documents),
        };
        output::json(&document)?;
    }
    Ok(failure.map_or(exit, |missing| missing.exit))
}

/// The proofs about a valid policy: as text, or as one more item of the document's `proofs`.
fn explain(
    location: &Location,
    compiled: &Compiled,
    format: Format,
    report: &mut Report,
) -> Result<(), Failure> {
    let (Some(policy), Some(image)) = (&compiled.policy, &compiled.image) else {
        return Ok(());
    };
    let proofs = proof::Report::new(policy, image, &compiled.reach);
    if format == Format::Human {
        return output::result(&proofs.human(policy));
    }
    let mut proofs = serde_json::to_value(proofs).expect("our documents have string keys");
    proofs["policy"] = json!(location.label());
    report.document["proofs"] = json!([proofs]);
    Ok(())
}

fn worse(exit: Exit, report: &Report, deny_warnings: bool) -> Exit {
    if !report.valid || exit == Exit::Rejected {
        Exit::Rejected
    } else if deny_warnings && report.warnings > 0 {
        Exit::Warnings
    } else {
        exit
    }
}

/// One line of good or bad news about a policy.
fn line(location: &Location, compiled: &Compiled) -> String {
    let found = summary_line(&compiled.diagnostics);
    let Some(policy) = &compiled.policy else {
        return format!(
            "{}: not valid: {}\n",
            location.label(),
            found.unwrap_or_default()
        );
    };
    let mut facts = vec![plural(policy.rules.len(), "rule")];
    if compiled.tests.passed > 0 {
        facts.push(format!("{} passed", plural(compiled.tests.passed, "test")));
    }
    if compiled.reach.undecided > 0 {
        let parts = plural(compiled.reach.undecided, "question");
        facts.push(format!("{parts} of reachability left undecided"));
    }
    facts.extend(found);
    format!("{}: ok, {}\n", location.label(), facts.join(", "))
}

/// `1 rule`, `2 rules`.
pub fn plural(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// One document for several policies: all findings, sums of the counts.
pub fn merge(documents: Vec<Value>) -> Value {
    let mut documents = documents.into_iter();
    let Some(mut all) = documents.next() else {
        return Value::Null;
    };
    for document in documents {
        for count in ["error_count", "warning_count"] {
            all[count] = sum(&all[count], &document[count]);
        }
        // There only where something is left out.
        if let Some(omitted) = document.get("omitted") {
            all["omitted"] = sum(&all["omitted"], omitted);
        }
        for count in ["passed", "failed", "rules_reached", "rules"] {
            all["tests"][count] = sum(&all["tests"][count], &document["tests"][count]);
        }
        all["valid"] = json!(all["valid"] == json!(true) && document["valid"] == json!(true));
        for list in ["diagnostics", "proofs"] {
            if let Some(more) = document.get(list) {
                append(&mut all[list], more);
            }
        }
    }
    all
}

/// Lists end to end; a list that only the second has is taken whole.
fn append(all: &mut Value, more: &Value) {
    match (all.as_array_mut(), more.as_array()) {
        (Some(all), Some(more)) => all.extend(more.iter().cloned()),
        (None, Some(_)) => *all = more.clone(),
        _ => {}
    }
}

fn sum(a: &Value, b: &Value) -> Value {
    json!(a.as_u64().unwrap_or(0) + b.as_u64().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_for_several_policies() {
        let document = |valid: bool, errors: u64| {
            json!({ "format_version": "1", "valid": valid, "error_count": errors, "warning_count": 1,
                "diagnostics": vec![json!({ "code": "x" }); errors as usize],
                "tests": { "passed": 1, "failed": 0, "rules_reached": 2, "rules": 3 } })
        };
        let all = merge(vec![
            document(true, 0),
            document(false, 2),
            document(true, 0),
        ]);
        assert_eq!(
            all,
            json!({ "format_version": "1", "valid": false, "error_count": 2, "warning_count": 3,
                "diagnostics": [{ "code": "x" }, { "code": "x" }],
                "tests": { "passed": 3, "failed": 0, "rules_reached": 6, "rules": 9 } })
        );
    }
}
