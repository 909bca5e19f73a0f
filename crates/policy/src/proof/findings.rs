//! What the proofs have to say about a policy, as diagnostics.

use twopool_diag::{Code, Diagnostic, Findings};

use super::reach::{Dead, Reach, Verdict, Why};
use crate::policy::{Conditions, Pattern, Policy, Rule};

/// Rules named in one label.
const NAMED: usize = 3;

const MOVE_UP: &str = "the first rule that matches wins: move this rule up, or delete it";
const NARROW: &str =
    "the first rule that matches wins: move this rule up, or delete this part of it";
const CONTRADICTION: &str =
    "all conditions of a rule must hold for one thread: use `any`, or two rules";

const FACTS: &str =
    "a leader has its process's name and a kernel thread leads itself, so no thread meets this";

/// One warning for every rule that takes no thread, and for every part of another rule that takes
/// none; patterns of one list with one reason share theirs.
pub(crate) fn findings(policy: &Policy, reach: &Reach) -> Findings {
    let mut found = Findings::new();
    for (index, verdict) in reach.rules.iter().enumerate() {
        if let Verdict::Unreachable(why) = verdict {
            found.push(whole_rule(policy, index, why));
        }
    }
    let mut dead: Vec<&Dead> = reach.dead.iter().collect();
    dead.sort_by_key(|dead| list_and_reason(dead));
    for group in dead.chunk_by(|a, b| list_and_reason(a) == list_and_reason(b)) {
        found.push(part(policy, group));
    }
    found
}

fn list_and_reason(dead: &Dead) -> (usize, Option<usize>, Option<&'static str>, &Why) {
    (
        dead.rule,
        dead.any,
        dead.pattern.map(|(key, _)| key),
        &dead.why,
    )
}

fn whole_rule(policy: &Policy, index: usize, why: &Why) -> Diagnostic {
    let rule = &policy.rules[index];
    if let Some(earlier) = policy.rules[..index]
        .iter()
        .find(|e| same_conditions(e, rule))
    {
        let label = match earlier.pool == rule.pool {
            true => "this one never takes a thread".to_owned(),
            false => format!(
                "never takes a thread: all go to `{}`",
                earlier.pool.as_str()
            ),
        };
        let summary = format!(
            "rules `{}` and `{}` have the same conditions",
            earlier.name, rule.name
        );
        let diagnostic = Diagnostic::new(Code::DuplicateRule, rule.at.0, summary)
            .label(label)
            .help(MOVE_UP);
        return related(diagnostic, &[earlier]);
    }
    let summary = format!("rule `{}` is unreachable", rule.name);
    let diagnostic = Diagnostic::new(Code::UnreachableRule, rule.at.0, summary);
    let (label, help) = match why {
        Why::TakenBy(_) => (taken_by(&rules(policy, why)), MOVE_UP),
        Why::Contradiction => (
            "no thread can meet all of its conditions".to_owned(),
            CONTRADICTION,
        ),
        Why::NoSuchThread => (FACTS.to_owned(), CONTRADICTION),
    };
    related(diagnostic.label(label).help(help), &rules(policy, why))
}

fn same_conditions(a: &Rule, b: &Rule) -> bool {
    a.all == b.all && a.any == b.any && a.not == b.not
}

/// Dead parts of one list, or one dead table.
fn part(policy: &Policy, dead: &[&Dead]) -> Diagnostic {
    let first = dead[0];
    let rule = &policy.rules[first.rule];
    let blockers = rules(policy, &first.why);
    let mut label = match first.why {
        Why::TakenBy(_) => taken_by(&blockers),
        Why::Contradiction => {
            "no thread meets it together with the rule's other conditions".to_owned()
        }
        Why::NoSuchThread => FACTS.to_owned(),
    };
    let table = first.any.map_or(&rule.all, |index| &rule.any[index]);
    let diagnostic = match first.pattern {
        None => {
            let number = first.any.map_or(0, |index| index + 1);
            let place = any_pattern(table).map_or(rule.at.0, |pattern| pattern.at.0);
            let summary = format!(
                "table {number} of `any` in rule `{}` is unreachable",
                rule.name
            );
            Diagnostic::new(Code::UnreachableAlternative, place, summary)
        }
        Some((key, index)) => {
            if dead.len() > 1 {
                label.push_str(&format!(
                    "; so it is with {} more in this list",
                    dead.len() - 1
                ));
            }
            let pattern = &table.patterns(key)[index];
            let summary = format!(
                "pattern `{}` of rule `{}` is unreachable",
                pattern.text, rule.name
            );
            Diagnostic::new(Code::UnreachablePattern, pattern.at.0, summary)
        }
    };
    let help = if blockers.is_empty() {
        CONTRADICTION
    } else {
        NARROW
    };
    related(diagnostic.label(label).help(help), &blockers)
}

/// A pattern of a table, for its place.
fn any_pattern(table: &Conditions) -> Option<&Pattern> {
    let mut keys = ["thread", "process", "cgroup"].into_iter();
    keys.find_map(|key| table.patterns(key).first())
}

fn rules<'a>(policy: &'a Policy, why: &Why) -> Vec<&'a Rule> {
    let indices = why.blockers();
    indices.iter().map(|index| &policy.rules[*index]).collect()
}

/// "`a`, `b` and 2 more take all of its threads first".
fn taken_by(blockers: &[&Rule]) -> String {
    let names: Vec<String> = blockers
        .iter()
        .map(|rule| format!("`{}`", rule.name))
        .collect();
    match names.as_slice() {
        [one] => format!("{one} takes all of its threads first"),
        [firsts @ .., last] if names.len() <= NAMED => {
            format!(
                "{} and {last} together take all of its threads first",
                firsts.join(", ")
            )
        }
        _ => format!(
            "{} and {} more rules together take all of its threads first",
            names[..NAMED].join(", "),
            names.len() - NAMED
        ),
    }
}

fn related(mut diagnostic: Diagnostic, blockers: &[&Rule]) -> Diagnostic {
    let text = match blockers.len() {
        1 => "the earlier rule",
        _ => "takes some of them",
    };
    for place in blockers.iter().take(NAMED).filter_map(|rule| rule.at.0) {
        diagnostic = diagnostic.related(place, text);
    }
    diagnostic
}
