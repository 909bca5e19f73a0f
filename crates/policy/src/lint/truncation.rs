//! Names that the kernel's cut to 15 bytes makes equal to something they are not.
//!
//! Two kinds: exact names that differ as written and are one once cut, and an exact name that an
//! earlier rule's pattern matches only because it was cut.

use std::collections::HashMap;

use twopool_diag::{Code, Diagnostic, Findings, Span};

use super::patterns::is_exact;
use crate::naive::{NaiveRegexes, name_matches};
use crate::options::{ConditionOptions, Options, PatternOptions};
use crate::policy::{Conditions, Pattern, PatternKind, Policy, Rule};
use crate::text::escape;
use crate::thread::{NAME_BYTES, cut};

/// Comparisons of a long name with a pattern, in all; the pairs beyond that are not compared.
const MAX_COMPARISONS: usize = 200_000;

/// The two name conditions of a table, as written and as resolved.
type Key = (
    fn(&ConditionOptions) -> Option<&[PatternOptions]>,
    fn(&Conditions) -> &[Pattern],
);
const KEYS: [Key; 2] = [
    (
        |table| table.thread.as_deref(),
        |table| table.patterns("thread"),
    ),
    (
        |table| table.process.as_deref(),
        |table| table.patterns("process"),
    ),
];

/// Both kinds, for thread names and for process names.
pub fn lint(files: &[Options], policy: &Policy, found: &mut Findings) {
    let rules = || files.iter().flat_map(|file| &file.rules).zip(&policy.rules);
    let long = |name: &&PatternOptions| is_exact(name) && name.text.value.len() > NAME_BYTES;
    for (written, resolved) in KEYS {
        let mut names = Names::default();
        let mut earlier: Vec<&Pattern> = Vec::new();
        let mut regexes = None;
        let mut left = MAX_COMPARISONS;
        for (options, rule) in rules() {
            let tables = super::tables_to_meet(options);
            for name in tables.filter_map(written).flatten().filter(|n| is_exact(n)) {
                if names.clash(name, found) || !long(&name) {
                    continue;
                }
                left = left.saturating_sub(earlier.len());
                if left == 0 {
                    continue;
                }
                let regexes = regexes.get_or_insert_with(|| NaiveRegexes::new(policy));
                if let Some(pattern) = earlier.iter().find(|p| only_cut(p, regexes, name)) {
                    found.push(taken(name, pattern));
                }
            }
            earlier.extend(patterns_of(rule, resolved));
        }
    }
}

fn patterns_of(
    rule: &Rule,
    resolved: fn(&Conditions) -> &[Pattern],
) -> impl Iterator<Item = &Pattern> {
    let patterns = rule.tables_to_meet().flat_map(resolved);
    patterns.filter(|pattern| pattern.kind != PatternKind::Exact)
}

/// Whether a pattern matches a name once cut, but not as it is written.
fn only_cut(pattern: &Pattern, regexes: &NaiveRegexes, name: &PatternOptions) -> bool {
    let whole = name.text.value.as_bytes();
    name_matches(pattern, regexes, cut(whole)) && !name_matches(pattern, regexes, whole)
}

fn taken(name: &PatternOptions, pattern: &Pattern) -> Diagnostic {
    let kept = escape(cut(name.text.value.as_bytes()));
    let label = format!(
        "kept as `{kept}`, which `{}` matches; the whole name it does not",
        pattern.text
    );
    let summary = "a name that an earlier pattern matches once cut";
    let diagnostic = Diagnostic::new(Code::TruncationClash, name.text.span, summary).label(label);
    match pattern.at.0 {
        Some(place) => diagnostic.related(place, "the earlier pattern"),
        None => diagnostic,
    }
}

/// Exact names by what the kernel keeps.
#[derive(Default)]
struct Names<'a> {
    seen: HashMap<&'a [u8], (&'a str, Span)>,
}

impl<'a> Names<'a> {
    /// Notes a name, and says if another one is kept alike.
    fn clash(&mut self, name: &'a PatternOptions, found: &mut Findings) -> bool {
        let text = name.text.value.as_str();
        let kept = cut(text.as_bytes());
        let Some((other, place)) = self.seen.get(kept) else {
            self.seen.insert(kept, (text, name.text.span));
            return false;
        };
        if *other == text {
            return false;
        }
        let label = format!(
            "both are kept as `{}`; the first rule takes both",
            escape(kept)
        );
        let summary = "two names are one to the kernel";
        found.push(
            Diagnostic::new(Code::TruncationClash, name.text.span, summary)
                .label(label)
                .related(*place, "the other name"),
        );
        true
    }
}
