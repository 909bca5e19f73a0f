//! Whether one rule takes every thread of another, decided one pattern against one pattern.
//!
//! Sound, not complete: it says yes only if it is so; unions of patterns, regexes and several rules
//! together are beyond it.

use crate::naive::{NaiveRegexes, cgroup_matches, name_matches};
use crate::policy::{Conditions, NumberCondition, Pattern, PatternKind, Rule};

/// Pattern comparisons for one pair of rules; beyond that the pair is left alone.
const MAX_COMPARISONS: usize = 20_000;

/// Whether `earlier` takes every thread that `later` could take.
pub fn takes_all(earlier: &Rule, later: &Rule) -> bool {
    if earlier.not.is_some() {
        return false;
    }
    if earlier.any.is_empty() {
        return implies(&later.all, &earlier.all);
    }
    false
}

/// Whether every thread that meets `narrow` meets `wide`.
fn implies(narrow: &Conditions, wide: &Conditions) -> bool {
    let names = |n: Option<&Vec<Pattern>>, w: Option<&Vec<Pattern>>| covers(w, n, name_covers);
    names(
        narrow.thread.as_ref().map(|c| &c.patterns),
        wide.thread.as_ref().map(|c| &c.patterns),
    ) && names(
        narrow.process.as_ref().map(|c| &c.patterns),
        wide.process.as_ref().map(|c| &c.patterns),
    ) && covers(
        wide.cgroup.as_ref().map(|c| &c.patterns),
        narrow.cgroup.as_ref().map(|c| &c.patterns),
        cgroup_covers,
    ) && numbers(narrow.user.as_ref(), wide.user.as_ref())
        && numbers(narrow.group.as_ref(), wide.group.as_ref())
        && numbers(narrow.nice.as_ref(), wide.nice.as_ref())
        && numbers(narrow.hint.as_ref(), wide.hint.as_ref())
        && wide.kthread.is_none_or(|w| narrow.kthread == Some(w))
        && wide.leader.is_none_or(|w| narrow.leader == Some(w))
        && wide.sched.as_ref().is_none_or(|w| {
            narrow
                .sched
                .as_ref()
                .is_some_and(|n| n.iter().all(|s| w.contains(s)))
        })
}

fn covers(
    wide: Option<&Vec<Pattern>>,
    narrow: Option<&Vec<Pattern>>,
    one: fn(&Pattern, &Pattern) -> bool,
) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => {
            wide.len() * narrow.len() <= MAX_COMPARISONS
                && narrow.iter().all(|n| wide.iter().any(|w| one(w, n)))
        }
    }
}

fn name_covers(wide: &Pattern, narrow: &Pattern) -> bool {
    if wide == narrow || wide.regex == ".*" {
        return true;
    }
    match (wide.kind, narrow.kind) {
        (PatternKind::Regex, _) => false,
        (_, PatternKind::Exact) => name_matches(wide, &NaiveRegexes::default(), &narrow.bytes),
        (PatternKind::Prefix, PatternKind::Prefix) => narrow.bytes.starts_with(&wide.bytes),
        _ => false,
    }
}

fn cgroup_covers(wide: &Pattern, narrow: &Pattern) -> bool {
    if wide == narrow || wide.regex == "/.*" {
        return true;
    }
    match (wide.kind, narrow.kind) {
        (PatternKind::Regex, _) => false,
        (PatternKind::Under, PatternKind::Under) | (_, PatternKind::Exact) => {
            cgroup_matches(wide, &NaiveRegexes::default(), &narrow.bytes)
        }
        _ => false,
    }
}

fn numbers(narrow: Option<&NumberCondition>, wide: Option<&NumberCondition>) -> bool {
    match (narrow, wide) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(narrow), Some(wide)) => {
            let inside = |(min, max): &(u64, u64)| {
                wide.ranges
                    .iter()
                    .any(|(low, high)| low <= min && max <= high)
            };
            narrow.ranges.iter().all(inside)
        }
    }
}
