//! `check`: is this policy valid? Needs nothing but the files.

use std::path::Path;

use serde_json::{Value, json};
use twopool_diag::render::{Checked, diagnostics, github, sarif, summary_line};
use twopool_policy::compile::{Compiled, compile};
use twopool_policy::proof;

use super::{locations, read_and_compile};
use crate::cli::{Check, CheckFormat, Global};
use crate::exit::{Exit, Failure};
use crate::host::facts::Facts;
use crate::host::input::Location;
use crate::host::names::HostNames;
use crate::host::stand_in::StandIn;
use crate::kernel::preflight::Host;
use crate::kernel::rehearsal::rehearse;
use crate::output;
use crate::report::Report;

/// What is checked: a policy as it is, or as it would be.
enum Subject {
    Policy(Location),
    Candidate(StandIn),
}

impl Subject {
    fn label(&self) -> String {
        match self {
            Subject::Policy(location) => location.label(),
            Subject::Candidate(stand_in) => stand_in.label(),
        }
    }

    /// The file that findings without a place are about.
    fn file(&self) -> String {
        match self {
            Subject::Policy(location) => location.label(),
            Subject::Candidate(stand_in) => stand_in.destination(),
        }
    }

    fn compile(&self) -> Result<Compiled, Failure> {
        match self {
            Subject::Policy(location) => read_and_compile(location),
            Subject::Candidate(stand_in) => Ok(compile(&stand_in.read()?.inputs, &HostNames)),
        }
    }
}

fn subjects(args: &Check, global: &Global) -> Result<Vec<Subject>, Failure> {
    let Some(destination) = &args.destination else {
        let locations = locations(&args.paths, global);
        return Ok(locations.into_iter().map(Subject::Policy).collect());
    };
    let [candidate] = args.paths.as_slice() else {
        return Err(Failure::new(
            Exit::Usage,
            "usage",
            "--as DEST takes exactly one FILE, the one to stand in for DEST",
        ));
    };
    let (policy, policy_dir) = (&global.policy, global.policy_dir.as_deref());
    let stand_in = StandIn::new(destination, candidate, policy, policy_dir)?;
    Ok(vec![Subject::Candidate(stand_in)])
}

/// What the policies have to say, for the end of the run.
#[derive(Default)]
struct Outcome {
    documents: Vec<Value>,
    checked: Vec<Checked>,
    /// Inputs that could not be read, then what the host lacks.
    missing: Vec<Failure>,
}

/// Checks each policy; the worst outcome decides: a missing input, then an error, then a warning.
pub fn run(args: &Check, global: &Global) -> Result<Exit, Failure> {
    let proofs_fit = matches!(args.format, CheckFormat::Human | CheckFormat::Json);
    if args.explain_overlaps && !proofs_fit {
        let message = "--explain-overlaps has something to say in the formats human and json alone";
        return Err(Failure::new(Exit::Usage, "usage", message));
    }
    let mut outcome = Outcome::default();
    let mut exit = Exit::Done;
    for subject in subjects(args, global)? {
        let mut compiled = match subject.compile() {
            Ok(compiled) => compiled,
            Err(missing) => {
                output::error_text(&format!("error: {}\n", missing.message));
                outcome.missing.push(missing);
                continue;
            }
        };
        if args.host {
            Facts::read(Path::new("/")).judge(&mut compiled);
        }
        let mut report = Report::of(&compiled, output::stderr_colour());
        output::findings(&report);
        if args.format == CheckFormat::Human {
            output::result(&line(&subject.label(), &compiled))?;
        }
        if args.explain_overlaps {
            explain(&subject.label(), &compiled, args.format, &mut report)?;
        }
        exit = worse(exit, &report, args.deny_warnings);
        outcome.documents.push(report.document);
        outcome.checked.push(Checked {
            name: subject.file(),
            found: diagnostics(&compiled.sources, compiled.diagnostics.kept()),
            omitted: compiled.diagnostics.omitted(),
        });
    }
    // An invalid policy comes before a host that could not run it.
    if exit != Exit::Rejected
        && let Some(failure) = refusal(args, global)
    {
        output::error_text(&format!("error: {}\n", failure.message));
        outcome.missing.push(failure);
    }
    let missing = outcome.missing.first().map(|missing| missing.exit);
    outcome.show(args.format)?;
    Ok(missing.unwrap_or(exit))
}

/// Why this host could not run the scheduler, as far as was asked.
fn refusal(args: &Check, global: &Global) -> Option<Failure> {
    let host = Host::new("/");
    if args.kernel {
        return rehearse(&host, &global.state_dir).err();
    }
    let obstacle = args.host.then(|| host.kernel_obstacle()).flatten()?;
    Some(obstacle.failure())
}

impl Outcome {
    /// The one document of a format for programs.
    fn show(self, format: CheckFormat) -> Result<(), Failure> {
        let missing: Vec<String> = self.missing.iter().map(|m| m.message.clone()).collect();
        match format {
            CheckFormat::Human => Ok(()),
            CheckFormat::Json => output::json(&with_error(merge(self.documents), &self.missing)),
            CheckFormat::Sarif => {
                output::json(&sarif(&self.checked, &missing, env!("CARGO_PKG_VERSION")))
            }
            CheckFormat::Github => output::result(&github(&self.checked, &missing)),
        }
    }
}

/// The findings of what could be checked, if anything could, and the first reason why that is not all.
fn with_error(mut document: Value, missing: &[Failure]) -> Value {
    let Some(first) = missing.first() else {
        return document;
    };
    if document.is_null() {
        document = json!({ "format_version": "1" });
    } else if first.exit == Exit::NoInput {
        document["valid"] = json!(false); // nobody knows
    }
    document["error"] = json!({ "code": first.code, "message": first.message });
    document
}

/// The proofs about a valid policy: as text, or as one more item of the document's `proofs`.
fn explain(
    label: &str,
    compiled: &Compiled,
    format: CheckFormat,
    report: &mut Report,
) -> Result<(), Failure> {
    let (Some(policy), Some(image)) = (&compiled.policy, &compiled.image) else {
        return Ok(());
    };
    let proofs = proof::Report::new(policy, image, &compiled.reach);
    if format == CheckFormat::Human {
        return output::result(&proofs.human(policy));
    }
    let mut proofs = serde_json::to_value(proofs).expect("our documents have string keys");
    proofs["policy"] = json!(label);
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
fn line(label: &str, compiled: &Compiled) -> String {
    let found = summary_line(&compiled.diagnostics);
    let Some(policy) = &compiled.policy else {
        return format!("{label}: not valid: {}\n", found.unwrap_or_default());
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
    format!("{label}: ok, {}\n", facts.join(", "))
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

    /// A program that reads the document alone must neither lose findings nor take what it could not see
    /// for valid.
    #[test]
    fn what_is_missing_stands_beside_what_was_found() {
        let found =
            || json!({ "format_version": "1", "valid": true, "diagnostics": [{ "code": "x" }] });
        let failure = |exit| [Failure::new(exit, "c", "m")];
        let error = json!({ "code": "c", "message": "m" });
        let document = with_error(found(), &failure(Exit::NoInput));
        assert_eq!(document["diagnostics"][0]["code"], "x");
        assert_eq!(
            (&document["valid"], &document["error"]),
            (&json!(false), &error)
        );
        let document = with_error(found(), &failure(Exit::Unavailable));
        assert_eq!(
            (&document["valid"], &document["error"]),
            (&json!(true), &error)
        );
        assert_eq!(with_error(found(), &[]), found());
        let alone = with_error(Value::Null, &failure(Exit::NoInput));
        assert_eq!(alone, json!({ "format_version": "1", "error": error }));
    }

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
