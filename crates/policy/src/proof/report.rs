//! The proofs as `check --explain-overlaps` shows them: an example thread for every rule that takes
//! one, and one for every two rules of different pools that claim one thread.

use std::fmt::Write;

use serde::Serialize;

use super::overlaps::{Overlaps, overlaps};
use super::reach::{Reach, Verdict};
use crate::explain::{RuleView, ThreadView};
use crate::image::Image;
use crate::policy::{Policy, UNKNOWN_ID_BASE};
use crate::text::escape;
use crate::thread::Thread;

/// All proofs about a policy, in the shape of the public JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Every rule in effective order.
    pub rules: Vec<RuleReport>,
    /// Two rules of different pools that one thread meets, in rule order.
    pub overlaps: Vec<OverlapView>,
    /// Rules, `any` tables and patterns left undecided.
    pub undecided: usize,
    /// Pairs of rules left undecided.
    pub undecided_overlaps: usize,
}

/// Whether a rule takes some thread.
#[derive(Debug, Clone, Serialize)]
pub struct RuleReport {
    /// From 1, in effective order.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// `reachable`, `unreachable` or `undecided`.
    pub verdict: &'static str,
    /// A thread that the rule takes, if it is reachable.
    pub witness: Option<ThreadView>,
    /// The rules that take all of its threads first, if it is unreachable for their sake.
    pub blocked_by: Vec<RuleView>,
    #[serde(skip)]
    text: Option<String>,
}

/// Two rules and a thread.
#[derive(Debug, Clone, Serialize)]
pub struct OverlapView {
    /// The earlier rule, which takes the thread.
    pub winner: RuleView,
    /// The rule that would take it too.
    pub loser: RuleView,
    /// The thread.
    pub witness: ThreadView,
    #[serde(skip)]
    text: String,
}

impl Report {
    /// Of a compiled policy and what was found out about its rules.
    pub fn new(policy: &Policy, image: &Image, reach: &Reach) -> Self {
        let Overlaps { found, undecided } = overlaps(policy, image, reach);
        Self {
            rules: reach
                .rules
                .iter()
                .enumerate()
                .map(|(index, verdict)| rule(policy, index, verdict))
                .collect(),
            overlaps: found
                .iter()
                .map(|overlap| OverlapView {
                    winner: view(policy, overlap.winner),
                    loser: view(policy, overlap.loser),
                    witness: ThreadView::of(&overlap.witness),
                    text: thread_text(policy, &overlap.witness),
                })
                .collect(),
            undecided: reach.undecided,
            undecided_overlaps: undecided,
        }
    }

    /// For people.
    pub fn human(&self, policy: &Policy) -> String {
        let mut out = String::from("rules, each with a thread that it takes:\n");
        for rule in &self.rules {
            let example = match (&rule.text, rule.blocked_by.as_slice()) {
                (Some(text), _) => text.clone(),
                (None, []) => rule.verdict.to_owned(),
                (None, by) => format!("unreachable behind {}", names(by)),
            };
            line(
                &mut out,
                &format!("  {:>3}  {}: {example}", rule.index, rule.name),
            );
        }
        if self.overlaps.is_empty() && self.undecided_overlaps == 0 {
            out.push_str("no thread is claimed by rules of both pools\n");
            return out;
        }
        out.push_str("threads that rules of both pools claim; the earlier rule wins:\n");
        for overlap in &self.overlaps {
            let pool = |rule: &RuleView| policy.rules[rule.index - 1].pool.as_str();
            let pair = format!(
                "  {:>3}  {} ({}) before {} {} ({}): {}",
                overlap.winner.index,
                overlap.winner.name,
                pool(&overlap.winner),
                overlap.loser.index,
                overlap.loser.name,
                pool(&overlap.loser),
                overlap.text,
            );
            line(&mut out, &pair);
        }
        if self.undecided_overlaps > 0 {
            line(
                &mut out,
                &format!(
                    "  {} more pairs of rules were not decided",
                    self.undecided_overlaps
                ),
            );
        }
        out
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes every write");
}

fn names(rules: &[RuleView]) -> String {
    let quoted: Vec<String> = rules
        .iter()
        .map(|rule| format!("`{}`", rule.name))
        .collect();
    quoted.join(", ")
}

fn view(policy: &Policy, index: usize) -> RuleView {
    RuleView {
        index: index + 1,
        name: policy.rules[index].name.clone(),
    }
}

fn rule(policy: &Policy, index: usize, verdict: &Verdict) -> RuleReport {
    let RuleView {
        index: number,
        name,
    } = view(policy, index);
    let mut report = RuleReport {
        index: number,
        name,
        verdict: "undecided",
        witness: None,
        blocked_by: Vec::new(),
        text: None,
    };
    match verdict {
        Verdict::Reachable(thread) => {
            report.verdict = "reachable";
            report.witness = Some(ThreadView::of(thread));
            report.text = Some(thread_text(policy, thread));
        }
        Verdict::Unreachable(why) => {
            report.verdict = "unreachable";
            report.blocked_by = why.blockers().iter().map(|i| view(policy, *i)).collect();
        }
        Verdict::Undecided => {}
    }
    report
}

/// A thread as the options of `explain` that describe it, without those that have their defaults.
/// Users and groups that this host does not know are given by name.
pub fn thread_text(policy: &Policy, thread: &Thread) -> String {
    words(&policy.unknown_users, &policy.unknown_groups, thread)
}

/// The same for a thread that distinguishes two policies, see `diff`.
pub fn difference_text(old: &Policy, new: &Policy, thread: &Thread) -> String {
    let users = common_names(&old.unknown_users, &new.unknown_users);
    let groups = common_names(&old.unknown_groups, &new.unknown_groups);
    words(&users, &groups, thread)
}

/// Names by the numbers that they have over both policies.
fn common_names(old: &[String], new: &[String]) -> Vec<String> {
    let added = new.iter().filter(|name| !old.contains(name));
    old.iter().chain(added).cloned().collect()
}

fn words(users: &[String], groups: &[String], thread: &Thread) -> String {
    let view = ThreadView::of(thread);
    let plain = Thread::named(&thread.thread);
    let mut words = vec![format!("--thread {}", bytes(&thread.thread))];
    if thread.process != thread.thread {
        words.push(format!("--process {}", bytes(&thread.process)));
    }
    if thread.cgroup != plain.cgroup {
        words.push(format!("--cgroup {}", bytes(&thread.cgroup)));
    }
    for (option, id, names) in [
        ("--user", thread.user, users),
        ("--group", thread.group, groups),
    ] {
        let unknown = id.checked_sub(UNKNOWN_ID_BASE).map(|index| index as usize);
        match unknown.and_then(|index| names.get(index)) {
            Some(name) => words.push(format!("{option} {}", quoted(name))),
            None if id != 0 => words.push(format!("{option} {id}")),
            None => {}
        }
    }
    if thread.nice != 0 {
        words.push(format!("--nice={}", thread.nice));
    }
    if thread.kthread {
        words.push("--kthread".to_owned());
    }
    if thread.leader != (thread.thread == thread.process) {
        words.push(format!("--leader={}", thread.leader));
    }
    if thread.sched != plain.sched {
        words.push(format!("--sched {}", view.sched));
    }
    if thread.hint != 0 {
        words.push(format!("--hint {}", thread.hint));
    }
    words.join(" ")
}

/// Bytes as a shell takes them; escaped for reading where they are no text.
fn bytes(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) if !text.contains(char::is_control) => quoted(text),
        _ => quoted(&escape(value)),
    }
}

/// In quotes where a shell would read something into it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,+@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_is_shown() {
        assert_eq!(bytes(b"srv-1"), "srv-1");
        assert_eq!(bytes(b""), "''");
        assert_eq!(bytes(b"a b's"), r"'a b'\''s'");
        assert_eq!(bytes(br"/app\x2db.scope"), r"'/app\x2db.scope'");
        assert_eq!(bytes(b"a\n\xff"), r"'a\x0a\xff'");
    }
}
