//! Near misses: rules that would take a thread if its name or cgroup were what people think it is.
//!
//! Rules see the 15 bytes that the kernel keeps, letter by letter, and paths with systemd's escapes.
//! People see the command line, names in full, and the names of units. Each of these is put in the
//! place of the name or path, and the whole rule is asked again: what is told is a rule that would have
//! matched, never a pattern that merely looks alike.

use std::fmt::Write;

use serde::Serialize;
use twopool_diag::printable;
use twopool_policy::explain::RuleView;
use twopool_policy::naive::{NaiveRegexes, rule_matches};
use twopool_policy::policy::{Policy, Rule};
use twopool_policy::text::escape;
use twopool_policy::thread::{Thread, cut};

/// A rule, and the name that would have made it match.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct NearMiss {
    rule: RuleView,
    /// `thread`, `process` or `cgroup`.
    condition: &'static str,
    reason: Reason,
    /// The name or path that the rule would take, escaped.
    name: String,
}

/// How that name differs from the thread's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Reason {
    /// In the case of letters alone.
    Case,
    /// It is longer than what the kernel keeps.
    Cut,
    /// It is the command line's.
    CommandLine,
    /// It is the path without systemd's escapes.
    SystemdEscape,
    /// It is a cgroup above the thread's.
    Above,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Reason::Case => "upper and lower case count",
            Reason::Cut => "the kernel keeps 15 bytes of a name",
            Reason::CommandLine => "rules see the name, not the command line",
            Reason::SystemdEscape => {
                "systemd writes some characters of a unit's name as `\\x2d`, and so must the rule"
            }
            Reason::Above => "that is not this cgroup; `under` takes what is below too",
        }
    }
}

/// Looks at the rules before the one that takes the thread; `taken` counts from 0. `title` is the
/// whole name of a simulated thread, or the command line of a real one with blanks for NULs.
pub(super) fn near_misses(
    policy: &Policy,
    regexes: &NaiveRegexes,
    thread: &Thread,
    taken: Option<usize>,
    title: &[u8],
) -> Vec<NearMiss> {
    let earlier = policy.rules.iter().enumerate();
    let earlier = earlier.take(taken.unwrap_or(policy.rules.len()));
    let missed = earlier.filter_map(|(index, rule)| {
        let (condition, reason, name) =
            near(rule, regexes, thread, title).or_else(|| near_cgroup(rule, regexes, thread))?;
        Some(NearMiss {
            rule: RuleView {
                index: index + 1,
                name: rule.name.clone(),
            },
            condition,
            reason,
            name: escape(&name),
        })
    });
    missed.collect()
}

type Near = (&'static str, Reason, Vec<u8>);

fn near(rule: &Rule, regexes: &NaiveRegexes, thread: &Thread, title: &[u8]) -> Option<Near> {
    let conditions = [
        ("thread", &rule.all.thread, &thread.thread),
        ("process", &rule.all.process, &thread.process),
    ];
    conditions.into_iter().find_map(|(key, condition, name)| {
        let patterns = condition.as_ref()?.patterns.iter();
        let spelt = patterns.map(|pattern| pattern.bytes.clone());
        let spelt = spelt.filter(|bytes| bytes.eq_ignore_ascii_case(name));
        let cases = spelt.chain([name.to_ascii_lowercase(), name.to_ascii_uppercase()]);
        let cases = cases.map(|name| (Reason::Case, name));
        let mut all = cases.chain(titles(name, title));
        all.find_map(|(reason, other)| {
            let mut altered = thread.clone();
            match key {
                "thread" => altered.thread.clone_from(&other),
                _ => altered.process.clone_from(&other),
            }
            let matches = other != *name && rule_matches(rule, regexes, &altered);
            matches.then_some((key, reason, other))
        })
    })
}

fn near_cgroup(rule: &Rule, regexes: &NaiveRegexes, thread: &Thread) -> Option<Near> {
    rule.all.cgroup.as_ref()?;
    let unescaped = (Reason::SystemdEscape, unescape(&thread.cgroup));
    let slashes = thread.cgroup.iter().enumerate().skip(1).rev();
    let above = slashes
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| (Reason::Above, thread.cgroup[..at].to_vec()));
    std::iter::once(unescaped)
        .chain(above)
        .find_map(|(reason, path)| {
            let altered = Thread {
                cgroup: path.clone(),
                ..thread.clone()
            };
            let matches = path != thread.cgroup && rule_matches(rule, regexes, &altered);
            matches.then_some(("cgroup", reason, path))
        })
}

/// `app-a\x2db` is `app-a-b` to people.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        let code = rest.strip_prefix(b"\\x").and_then(|hex| hex.get(..2));
        let code = code.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match code {
            // A slash in a unit's name is none that parts cgroups.
            Some(byte) if byte != b'/' => {
                out.push(byte);
                rest = &rest[4..];
            }
            _ => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    out
}

/// What people may take for the name: the program's file name, the title; each as it is and cut.
fn titles(name: &[u8], title: &[u8]) -> Vec<(Reason, Vec<u8>)> {
    let program = title.split(|byte| *byte == b' ').next().unwrap_or_default();
    let file = program
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    let known = [file, title].into_iter().filter(|text| !text.is_empty());
    let both = known.flat_map(|text| {
        let reason = match cut(text) == name {
            true => Reason::Cut,
            false => Reason::CommandLine,
        };
        [(reason, cut(text).to_vec()), (reason, text.to_vec())]
    });
    both.collect()
}

/// For people; nothing if there is none.
pub(super) fn human(found: &[NearMiss]) -> String {
    let mut out = String::new();
    if !found.is_empty() {
        out.push_str("\nnear misses:\n");
    }
    for miss in found {
        let (rule, name) = (printable(&miss.rule.name), printable(&miss.name));
        let (index, condition, why) = (miss.rule.index, miss.condition, miss.reason.text());
        writeln!(
            out,
            "  {index:>3}  {rule}: would match if {condition} were `{name}`; {why}"
        )
        .expect("a string takes every write");
    }
    out
}
