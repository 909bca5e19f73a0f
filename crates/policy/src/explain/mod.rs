//! Why a thread gets what it gets: every rule, every condition, the pattern that decided.
//!
//! The verdict is the image's; the reasons are the naive evaluator's, which knows patterns. Should
//! the two ever disagree the report says so instead of hiding it.
//!
//! Of a thread in a namespace that hides some of it, not everything is known. A condition on what is
//! unknown is neither met nor not, and so may be the whole verdict: never is one guessed.

mod human;

use serde::Serialize;

use crate::eval::Class;
use crate::naive::{self, NaiveRegexes};
use crate::policy::{
    Conditions, NEUTRAL_WEIGHT, NameCondition, NumberCondition, Pattern, PatternKind, Policy, Rule,
};
use crate::text::escape;
use crate::thread::Thread;

/// How paths of the conditions of `not` begin.
const EXCEPTION: &str = "not.";

/// What is not known of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Its cgroup.
    pub cgroup: bool,
    /// Its user and its group.
    pub ids: bool,
}

impl Unknown {
    /// The conditions that cannot be judged.
    pub fn keys(self) -> Vec<&'static str> {
        let cgroup = self.cgroup.then_some("cgroup");
        let ids = self.ids.then_some(["user", "group"]);
        cgroup
            .into_iter()
            .chain(ids.into_iter().flatten())
            .collect()
    }
}

/// Patterns of one condition named in a report; a list may have thousands.
const MAX_SHOWN: usize = 4;

/// The report of one thread, in the shape of the public JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Of this shape.
    pub format_version: &'static str,
    /// The thread that was judged.
    pub thread: ThreadView,
    /// `critical` or `background`; `None`: something unknown decides.
    pub pool: Option<&'static str>,
    /// The rule that took it; `None`: the default pool, or unknown.
    pub rule: Option<RuleView>,
    /// Its slice; `None`: unknown.
    pub slice_us: Option<u64>,
    /// Its weight inside the pool; `None`: unknown.
    pub weight: Option<u32>,
    /// Every rule in effective order.
    pub rules: Vec<RuleTrace>,
    /// Keys of conditions that cannot be judged for this thread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<&'static str>,
}

/// A thread as JSON shows it.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadView {
    /// Its id, if it is a real thread.
    pub tid: Option<i32>,
    /// Its name, escaped.
    pub thread: String,
    /// Its group leader's name, escaped.
    pub process: String,
    /// Its cgroup path, escaped; `None`: unknown.
    pub cgroup: Option<String>,
    /// `None` for a user that this host does not know, or if unknown.
    pub uid: Option<u32>,
    /// `None` for a group that this host does not know, or if unknown.
    pub gid: Option<u32>,
    /// -20..=19.
    pub nice: i8,
    /// Kernel thread.
    pub kthread: bool,
    /// Group leader.
    pub leader: bool,
    /// `normal`, `batch` or `idle`.
    pub sched: &'static str,
    /// 0..=1023.
    pub hint: u16,
}

impl ThreadView {
    /// The view of a thread.
    pub fn of(t: &Thread) -> Self {
        Self {
            tid: t.tid,
            thread: escape(&t.thread),
            process: escape(&t.process),
            cgroup: Some(escape(&t.cgroup)),
            uid: u32::try_from(t.user).ok(),
            gid: u32::try_from(t.group).ok(),
            nice: t.nice,
            kthread: t.kthread,
            leader: t.leader,
            sched: t.sched.as_str(),
            hint: t.hint,
        }
    }
}

/// A rule by number and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleView {
    /// From 1, in effective order.
    pub index: usize,
    /// Its name.
    pub name: String,
}

/// One rule and its conditions.
#[derive(Debug, Clone, Serialize)]
pub struct RuleTrace {
    /// From 1, in effective order.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Whether it would take the thread if it stood alone; `None`: something unknown decides.
    pub matched: Option<bool>,
    /// Every condition with its own truth; those of `not` too.
    pub conditions: Vec<ConditionTrace>,
}

/// One condition.
#[derive(Debug, Clone, Serialize)]
pub struct ConditionTrace {
    /// `thread`, `not.thread`, `any[0].nice`.
    pub path: String,
    /// Whether the thread meets it; `None`: what it asks for is unknown.
    pub matched: Option<bool>,
    /// The pattern that matched, or those that did not.
    pub pattern: String,
}

/// A slice as people write it: `1ms`.
pub fn slice_text(slice_us: u64) -> String {
    crate::options::show_us(slice_us)
}

/// Explains a verdict of the image, about a thread of which everything is known.
pub fn explain(
    policy: &Policy,
    regexes: &NaiveRegexes,
    thread: &Thread,
    class: Class,
) -> Explanation {
    let rule = usize::from(class.rule).checked_sub(1);
    Explanation {
        format_version: "1",
        thread: ThreadView::of(thread),
        pool: Some(class.pool.as_str()),
        rule: rule.and_then(|index| rule_view(policy, index)),
        slice_us: Some(class.slice_us),
        weight: Some(class.weight),
        rules: traces(policy, regexes, thread, Unknown::default()),
        unknown: Vec::new(),
    }
}

/// Explains what can be said of a thread of which something is unknown; there the image, which
/// always has a verdict, is not asked.
pub fn explain_partly(
    policy: &Policy,
    regexes: &NaiveRegexes,
    thread: &Thread,
    unknown: Unknown,
) -> Explanation {
    let rules = traces(policy, regexes, thread, unknown);
    let first = rules.iter().find(|rule| rule.matched != Some(false));
    let taker = first.and_then(|rule| policy.rules.get(rule.index - 1));
    let is_known = first.is_none_or(|rule| rule.matched.is_some());
    let pool = taker.map_or(policy.default, |rule| rule.pool);
    let slice_us = taker.and_then(|rule| rule.slice_us);
    let slice_us = slice_us.unwrap_or(policy.pools[pool as usize].slice_us);
    let mut view = ThreadView::of(thread);
    view.cgroup = view.cgroup.filter(|_| !unknown.cgroup);
    view.uid = view.uid.filter(|_| !unknown.ids);
    view.gid = view.gid.filter(|_| !unknown.ids);
    Explanation {
        format_version: "1",
        thread: view,
        pool: is_known.then_some(pool.as_str()),
        rule: first
            .filter(|_| is_known)
            .and_then(|rule| rule_view(policy, rule.index - 1)),
        slice_us: is_known.then_some(slice_us),
        weight: is_known.then_some(taker.map_or(NEUTRAL_WEIGHT, |rule| rule.weight)),
        rules,
        unknown: unknown.keys(),
    }
}

fn rule_view(policy: &Policy, index: usize) -> Option<RuleView> {
    policy.rules.get(index).map(|rule| RuleView {
        index: index + 1,
        name: rule.name.clone(),
    })
}

fn traces(policy: &Policy, regexes: &NaiveRegexes, t: &Thread, unknown: Unknown) -> Vec<RuleTrace> {
    let rules = policy.rules.iter().enumerate();
    rules
        .map(|(i, rule)| trace(i, rule, regexes, t, unknown))
        .collect()
}

fn trace(i: usize, rule: &Rule, regexes: &NaiveRegexes, t: &Thread, unknown: Unknown) -> RuleTrace {
    let all = table("", &rule.all, regexes, t, unknown);
    let any = rule.any.iter().enumerate();
    let any: Vec<_> = any
        .map(|(n, any)| table(&format!("any[{n}]."), any, regexes, t, unknown))
        .collect();
    let not = rule
        .not
        .as_ref()
        .map(|not| table(EXCEPTION, not, regexes, t, unknown));
    let one_of_any = match any.is_empty() {
        true => Some(true),
        false => negated(conjunction(any.iter().map(|table| negated(truth(table))))),
    };
    let excepted = not.as_ref().map_or(Some(false), |table| truth(table));
    let parts = [truth(&all), one_of_any, negated(excepted)];
    RuleTrace {
        index: i + 1,
        name: rule.name.clone(),
        matched: conjunction(parts.into_iter()),
        conditions: [all, any.concat(), not.unwrap_or_default()].concat(),
    }
}

/// Kleene's three values: one that is false decides, else one that is unknown.
fn conjunction(mut parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    parts
        .try_fold(Some(true), |so_far, part| match part {
            Some(false) => Err(()),
            part => Ok(so_far.and(part)),
        })
        .unwrap_or(Some(false))
}

fn negated(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

/// Of a table of conditions, all of which must hold.
fn truth(table: &[ConditionTrace]) -> Option<bool> {
    conjunction(table.iter().map(|condition| condition.matched))
}

fn table(
    prefix: &str,
    c: &Conditions,
    regexes: &NaiveRegexes,
    t: &Thread,
    unknown: Unknown,
) -> Vec<ConditionTrace> {
    let mut out = Vec::new();
    let mut push = |key: &str, is_known: bool, (matched, pattern): (bool, String)| {
        out.push(ConditionTrace {
            path: format!("{prefix}{key}"),
            matched: is_known.then_some(matched),
            pattern,
        });
    };
    let name = |x: &NameCondition, name: &[u8]| {
        patterns(&x.patterns, |p| naive::name_matches(p, regexes, name))
    };
    if let Some(x) = &c.thread {
        push("thread", true, name(x, &t.thread));
    }
    if let Some(x) = &c.process {
        push("process", true, name(x, &t.process));
    }
    if let Some(x) = &c.cgroup {
        // The pattern that would match a path which is none is no news.
        let matches = |p: &Pattern| !unknown.cgroup && naive::cgroup_matches(p, regexes, &t.cgroup);
        push("cgroup", !unknown.cgroup, patterns(&x.patterns, matches));
    }
    let id = |x: &NumberCondition, id: u64| match unknown.ids {
        true => (false, several(x.texts.iter().cloned(), x.texts.len())),
        false => numbers(x, id),
    };
    if let Some(x) = &c.user {
        push("user", !unknown.ids, id(x, t.user));
    }
    if let Some(x) = &c.group {
        push("group", !unknown.ids, id(x, t.group));
    }
    if let Some(x) = &c.nice {
        push("nice", true, numbers(x, (i64::from(t.nice) + 20) as u64));
    }
    if let Some(x) = c.kthread {
        push("kthread", true, (x == t.kthread, x.to_string()));
    }
    if let Some(x) = c.leader {
        push("leader", true, (x == t.leader, x.to_string()));
    }
    if let Some(x) = &c.sched {
        let all: Vec<&str> = x.iter().map(|s| s.as_str()).collect();
        push("sched", true, (x.contains(&t.sched), all.join(", ")));
    }
    if let Some(x) = &c.hint {
        push("hint", true, numbers(x, u64::from(t.hint)));
    }
    out
}

fn patterns(all: &[Pattern], matches: impl Fn(&Pattern) -> bool) -> (bool, String) {
    match all.iter().find(|p| matches(p)) {
        Some(pattern) => (true, pattern_text(pattern)),
        None => (false, several(all.iter().map(pattern_text), all.len())),
    }
}

/// A pattern as JSON shows it: exact names and globs as they are, other forms with their form.
fn pattern_text(pattern: &Pattern) -> String {
    let text = match pattern.kind {
        PatternKind::Exact => escape(&pattern.bytes),
        _ => pattern.text.clone(),
    };
    match pattern.kind {
        PatternKind::Exact | PatternKind::Glob => text,
        PatternKind::Prefix => format!("prefix {text}"),
        PatternKind::Under => format!("under {text}"),
        PatternKind::Regex => format!("regex {text}"),
    }
}

fn numbers(condition: &NumberCondition, value: u64) -> (bool, String) {
    let hit = condition
        .ranges
        .iter()
        .position(|(min, max)| (*min..=*max).contains(&value));
    match hit {
        Some(i) => (true, condition.texts[i].clone()),
        None => (
            false,
            several(condition.texts.iter().cloned(), condition.texts.len()),
        ),
    }
}

fn several(texts: impl Iterator<Item = String>, count: usize) -> String {
    let mut shown: Vec<String> = texts.take(MAX_SHOWN).collect();
    if count > MAX_SHOWN {
        shown.push(format!("{} more", count - MAX_SHOWN));
    }
    shown.join(", ")
}
