//! What loads but looks wrong.
//!
//! Lints run on a policy without errors. Each says what it saw and how to silence it; none may
//! cost more than the compiler itself, so pairs that are too many are not compared.

mod patterns;

use std::collections::HashMap;

use twopool_diag::{Code, Diagnostic, Findings, Span};

use crate::options::{ConditionOptions, Options, PatternOptions};
use crate::policy::Policy;

/// All lints over a policy and the files that it came from.
pub fn lint(files: &[Options], policy: &Policy) -> Findings {
    let mut found = Findings::new();
    if policy.rules.is_empty() {
        let place = files
            .iter()
            .find_map(|f| f.settings.get("default"))
            .map(|s| s.span);
        let pool = policy.default.as_str();
        found.push(
            Diagnostic::new(Code::NoRules, place, "the policy has no rules")
                .label(format!("every thread takes `{pool}`")),
        );
    }
    for options in files.iter().flat_map(|f| &f.rules) {
        for conditions in tables(options) {
            patterns::lint(conditions, &mut found);
        }
    }
    truncation_clashes(files, &mut found);
    found
}

fn tables(rule: &crate::options::RuleOptions) -> impl Iterator<Item = &ConditionOptions> {
    let any = rule.any.iter().flat_map(|(tables, _)| tables);
    std::iter::once(&rule.all).chain(any).chain(&rule.not)
}

/// Exact names that differ as written and are one once cut: the first rule takes both.
fn truncation_clashes(files: &[Options], found: &mut Findings) {
    let mut threads: HashMap<&[u8], (&str, Span)> = HashMap::new();
    let mut processes = HashMap::new();
    for rule in files.iter().flat_map(|f| &f.rules) {
        for name in exact(rule.all.thread.as_deref()) {
            clash(name, &mut threads, found);
        }
        for name in exact(rule.all.process.as_deref()) {
            clash(name, &mut processes, found);
        }
    }
}

fn exact(patterns: Option<&[PatternOptions]>) -> impl Iterator<Item = &PatternOptions> {
    patterns
        .into_iter()
        .flatten()
        .filter(|p| patterns::is_exact(p))
}

fn clash<'a>(
    name: &'a PatternOptions,
    seen: &mut HashMap<&'a [u8], (&'a str, Span)>,
    found: &mut Findings,
) {
    let text = name.text.value.as_str();
    let kept = crate::thread::cut(text.as_bytes());
    match seen.get(kept) {
        Some((other, place)) if *other != text => {
            let kept = crate::text::escape(kept);
            found.push(
                Diagnostic::new(
                    Code::TruncationClash,
                    name.text.span,
                    "two names are one to the kernel",
                )
                .label(format!(
                    "both are kept as `{kept}`; the first rule takes both"
                ))
                .related(*place, "the other name"),
            );
        }
        Some(_) => {}
        None => {
            seen.insert(kept, (text, name.text.span));
        }
    }
}
