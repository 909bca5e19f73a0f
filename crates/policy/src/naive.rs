//! The naive evaluator: one thread against the rules as the reference describes them.
//!
//! It is the oracle that the compiled image is tested against, so it shares nothing with the
//! compiler: globs are matched as text, prefixes and paths by hand, and only regexes go to the
//! `regex` crate. Slow and obviously right.

use std::collections::HashMap;

use regex::bytes::{Regex, RegexBuilder};

use crate::policy::{Conditions, NumberCondition, Pattern, PatternKind, Policy, Rule};
use crate::thread::Thread;

/// The regexes of a policy, compiled once.
#[derive(Debug, Clone, Default)]
pub struct NaiveRegexes {
    by_text: HashMap<String, Regex>,
}

impl NaiveRegexes {
    /// Compiles every regex of a policy. Panics on one that `resolve` would have refused.
    pub fn new(policy: &Policy) -> Self {
        let mut by_text = HashMap::new();
        let tables = policy.rules.iter().flat_map(Rule::tables);
        for pattern in tables
            .flat_map(|table| table.names().chain(table.patterns("cgroup")))
            .filter(|p| p.kind == PatternKind::Regex)
        {
            by_text
                .entry(pattern.text.clone())
                .or_insert_with(|| whole(&pattern.text));
        }
        Self { by_text }
    }
}

/// The newline ends a comment that `(?x)` may have left open; it is whitespace there. Where it is
/// not, the pattern compiles without it.
fn whole(text: &str) -> Regex {
    let build = |text: String| {
        RegexBuilder::new(&text)
            .unicode(false)
            .dot_matches_new_line(true)
            .build()
    };
    build(format!("^(?:{text})$"))
        .or_else(|_| build(format!("^(?:{text}\n)$")))
        .expect("regexes of a resolved policy compile")
}

/// Index of the rule that takes a thread, `None` for the default pool.
pub fn classify(policy: &Policy, regexes: &NaiveRegexes, t: &Thread) -> Option<usize> {
    policy
        .rules
        .iter()
        .position(|rule| rule_matches(rule, regexes, t))
}

/// Whether one rule alone would take a thread.
pub fn rule_matches(rule: &Rule, regexes: &NaiveRegexes, t: &Thread) -> bool {
    conditions_match(&rule.all, regexes, t)
        && (rule.any.is_empty() || rule.any.iter().any(|c| conditions_match(c, regexes, t)))
        && !rule
            .not
            .as_ref()
            .is_some_and(|c| conditions_match(c, regexes, t))
}

fn conditions_match(c: &Conditions, regexes: &NaiveRegexes, t: &Thread) -> bool {
    let name = |patterns: &[Pattern], value: &[u8]| {
        patterns.iter().any(|p| name_matches(p, regexes, value))
    };
    c.thread
        .as_ref()
        .is_none_or(|x| name(&x.patterns, &t.thread))
        && c.process
            .as_ref()
            .is_none_or(|x| name(&x.patterns, &t.process))
        && c.cgroup.as_ref().is_none_or(|x| {
            x.patterns
                .iter()
                .any(|p| cgroup_matches(p, regexes, &t.cgroup))
        })
        && c.user.as_ref().is_none_or(|x| number_matches(x, t.user))
        && c.group.as_ref().is_none_or(|x| number_matches(x, t.group))
        && c.nice
            .as_ref()
            .is_none_or(|x| number_matches(x, (i64::from(t.nice) + 20) as u64))
        && c.kthread.is_none_or(|x| x == t.kthread)
        && c.leader.is_none_or(|x| x == t.leader)
        && c.sched.as_ref().is_none_or(|x| x.contains(&t.sched))
        && c.hint
            .as_ref()
            .is_none_or(|x| number_matches(x, u64::from(t.hint)))
}

fn number_matches(condition: &NumberCondition, value: u64) -> bool {
    condition
        .ranges
        .iter()
        .any(|(min, max)| (*min..=*max).contains(&value))
}

/// Whether a pattern on names matches one.
pub fn name_matches(pattern: &Pattern, regexes: &NaiveRegexes, name: &[u8]) -> bool {
    match pattern.kind {
        PatternKind::Exact => name == pattern.bytes,
        PatternKind::Prefix => name.starts_with(&pattern.bytes),
        PatternKind::Glob => expand(&pattern.bytes)
            .iter()
            .any(|glob| glob_matches(glob, name, None)),
        PatternKind::Regex => regexes.by_text[&pattern.text].is_match(name),
        PatternKind::Under => unreachable!("names have no `under`"),
    }
}

/// Whether a pattern on cgroups matches a well-formed path.
pub fn cgroup_matches(pattern: &Pattern, regexes: &NaiveRegexes, path: &[u8]) -> bool {
    match pattern.kind {
        PatternKind::Exact => components(path) == components(&pattern.bytes),
        PatternKind::Under => components(path).starts_with(&components(&pattern.bytes)),
        PatternKind::Glob => expand(&pattern.bytes)
            .iter()
            .any(|glob| path_glob_matches(glob, path)),
        PatternKind::Regex => regexes.by_text[&pattern.text].is_match(path),
        PatternKind::Prefix => unreachable!("cgroups have no `prefix`"),
    }
}

/// The components of a path; the root has none.
fn components(path: &[u8]) -> Vec<&[u8]> {
    let inner: &[u8] = path.strip_prefix(b"/").unwrap_or(path);
    if inner.is_empty() {
        Vec::new()
    } else {
        inner.split(|b| *b == b'/').collect()
    }
}

/// Stands where braces were, so that a star before and a star inside them do not read as `**`.
/// Patterns hold no NUL themselves.
const JOINT: &[u8] = &[0];

/// A glob without braces for each combination of alternatives.
fn expand(glob: &[u8]) -> Vec<Vec<u8>> {
    let Some((open, close)) = first_braces(glob) else {
        return vec![glob.to_vec()];
    };
    let tails = expand(&glob[close + 1..]);
    let mut out = Vec::new();
    for alternative in split_alternatives(&glob[open + 1..close]) {
        for tail in &tails {
            out.push([&glob[..open], JOINT, alternative, JOINT, tail].concat());
        }
    }
    out
}

/// The first pair of braces outside brackets.
fn first_braces(glob: &[u8]) -> Option<(usize, usize)> {
    let open = next_outside_brackets(glob, 0, b'{')?;
    let close = next_outside_brackets(glob, open + 1, b'}')?;
    Some((open, close))
}

fn next_outside_brackets(glob: &[u8], from: usize, wanted: u8) -> Option<usize> {
    let mut i = from;
    while i < glob.len() {
        if glob[i] == wanted {
            return Some(i);
        }
        i = if glob[i] == b'[' {
            class_end(glob, i) + 1
        } else {
            i + 1
        };
    }
    None
}

fn split_alternatives(inside: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut start = 0;
    while let Some(comma) = next_outside_brackets(inside, start, b',') {
        out.push(&inside[start..comma]);
        start = comma + 1;
    }
    out.push(&inside[start..]);
    out
}

/// Index of the `]` that closes the class opened at `open`; a `]` in first place is a member.
fn class_end(glob: &[u8], open: usize) -> usize {
    let first = open + 1 + usize::from(glob.get(open + 1) == Some(&b'!'));
    (first + 1..glob.len())
        .find(|i| glob[*i] == b']')
        .expect("globs of a resolved policy are closed")
}

/// A glob without braces against a whole value. A wildcard never matches the separator, if any.
fn glob_matches(glob: &[u8], value: &[u8], separator: Option<u8>) -> bool {
    let is_separator = |byte: &u8| Some(*byte) == separator;
    match glob.first() {
        None => value.is_empty(),
        Some(0) => glob_matches(&glob[1..], value, separator),
        Some(b'*') => {
            let most = value.iter().position(is_separator).unwrap_or(value.len());
            (0..=most).any(|taken| glob_matches(&glob[1..], &value[taken..], separator))
        }
        Some(b'?') => match value.split_first() {
            Some((byte, rest)) => !is_separator(byte) && glob_matches(&glob[1..], rest, separator),
            None => false,
        },
        Some(b'[') => match value.split_first() {
            Some((byte, rest)) => {
                let end = class_end(glob, 0);
                !is_separator(byte)
                    && class_has(&glob[1..end], *byte)
                    && glob_matches(&glob[end + 1..], rest, separator)
            }
            None => false,
        },
        Some(literal) => match value.split_first() {
            Some((byte, rest)) => byte == literal && glob_matches(&glob[1..], rest, separator),
            None => false,
        },
    }
}

/// Whether a byte is in the class with this text between its brackets.
fn class_has(class: &[u8], byte: u8) -> bool {
    if let Some(rest) = class.strip_prefix(b"!") {
        return !class_has_member(rest, byte);
    }
    class_has_member(class, byte)
}

fn class_has_member(mut members: &[u8], byte: u8) -> bool {
    while let Some((first, rest)) = members.split_first() {
        if rest.len() >= 2 && rest[0] == b'-' {
            if (*first..=rest[1]).contains(&byte) {
                return true;
            }
            members = &rest[2..];
        } else {
            if *first == byte {
                return true;
            }
            members = rest;
        }
    }
    false
}

/// A path glob without braces, component by component.
fn path_glob_matches(glob: &[u8], path: &[u8]) -> bool {
    let mut parts = split_components(glob);
    while parts.first().is_some_and(|p| p.is_empty()) {
        parts.remove(0);
    }
    while parts.last().is_some_and(|p| p.is_empty()) {
        parts.pop();
    }
    // Components are never empty, so a glob with an empty one matches nothing.
    !parts.iter().any(|p| p.is_empty()) && parts_match(&parts, &components(path))
}

/// Splits at slashes outside brackets.
fn split_components(glob: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut start = 0;
    while let Some(slash) = next_outside_brackets(glob, start, b'/') {
        out.push(without_joints(&glob[start..slash]));
        start = slash + 1;
    }
    out.push(without_joints(&glob[start..]));
    out
}

/// A component without the joints at its ends.
fn without_joints(mut part: &[u8]) -> &[u8] {
    while let Some(rest) = part.strip_prefix(JOINT) {
        part = rest;
    }
    while let Some(rest) = part.strip_suffix(JOINT) {
        part = rest;
    }
    part
}

fn parts_match(parts: &[&[u8]], path: &[&[u8]]) -> bool {
    match parts.split_first() {
        None => path.is_empty(),
        Some((part, rest)) if *part == b"**" => {
            (0..=path.len()).any(|skipped| parts_match(rest, &path[skipped..]))
        }
        Some((part, rest)) => match path.split_first() {
            Some((component, deeper)) => {
                glob_matches(part, component, Some(b'/')) && parts_match(rest, deeper)
            }
            None => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_expand_to_every_combination() {
        let expanded = |glob: &str| -> Vec<String> {
            let text = |g: Vec<u8>| String::from_utf8(g).unwrap().replace('\0', "");
            expand(glob.as_bytes()).into_iter().map(text).collect()
        };
        assert_eq!(expanded("a{b,c}{,d}"), ["ab", "abd", "ac", "acd"]);
        assert_eq!(expanded("a[{]b"), ["a[{]b"]);
        assert_eq!(expanded("{a[,]b,c}"), ["a[,]b", "c"]);
    }

    #[test]
    fn classes_read_as_the_reference_says() {
        assert!(class_has(b"a-c", b'b') && !class_has(b"a-c", b'd') && !class_has(b"a-c", b'-'));
        assert!(class_has(b"!a", b'b') && !class_has(b"!a", b'a'));
        assert!(class_has(b"a-", b'-') && class_has(b"-a", b'-') && class_has(b"]", b']'));
    }

    #[test]
    fn paths_match_by_components() {
        assert!(path_glob_matches(b"/a/**", b"/a") && path_glob_matches(b"/a/**", b"/a/b/c"));
        assert!(!path_glob_matches(b"/*", b"/") && path_glob_matches(b"/**", b"/"));
        assert!(path_glob_matches(b"/**/x", b"/x") && !path_glob_matches(b"/**/x", b"/ax"));
        let braces =
            |glob: &[u8], path: &[u8]| expand(glob).iter().any(|g| path_glob_matches(g, path));
        assert!(braces(b"/{*,b}*", b"/a") && !braces(b"/{*,b}*", b"/a/b"));
        assert!(braces(b"{/a,/b}/**", b"/b/c") && braces(b"/{**,a}/x", b"/q/x"));
    }
}
