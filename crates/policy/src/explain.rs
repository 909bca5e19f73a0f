//! Why a thread gets what it gets: every rule, every condition, the pattern that decided.
//!
//! The verdict is the image's; the reasons are the naive evaluator's, which knows patterns. Should
//! the two ever disagree the report says so instead of hiding it.

use std::fmt::Write;

use serde::Serialize;
use twopool_diag::printable;

use crate::eval::Class;
use crate::naive::{self, NaiveRegexes};
use crate::policy::{Conditions, NumberCondition, Pattern, PatternKind, Policy, Rule};
use crate::text::escape;
use crate::thread::Thread;

/// How paths of the conditions of `not` begin.
const EXCEPTION: &str = "not.";

/// Patterns of one condition named in a report; a list may have thousands.
const MAX_SHOWN: usize = 4;

/// The report of one thread, in the shape of the public JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Of this shape.
    pub format_version: &'static str,
    /// The thread that was judged.
    pub thread: ThreadView,
    /// `critical` or `background`.
    pub pool: &'static str,
    /// The rule that took it; `None`: the default pool.
    pub rule: Option<RuleView>,
    /// Its slice.
    pub slice_us: u64,
    /// Its weight inside the pool.
    pub weight: u32,
    /// Every rule in effective order.
    pub rules: Vec<RuleTrace>,
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
    /// Its cgroup path, escaped.
    pub cgroup: String,
    /// `None` for a user that this host does not know.
    pub uid: Option<u32>,
    /// `None` for a group that this host does not know.
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
            cgroup: escape(&t.cgroup),
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
    /// Whether it would take the thread if it stood alone.
    pub matched: bool,
    /// Every condition with its own truth; those of `not` too.
    pub conditions: Vec<ConditionTrace>,
}

/// One condition.
#[derive(Debug, Clone, Serialize)]
pub struct ConditionTrace {
    /// `thread`, `not.thread`, `any[0].nice`.
    pub path: String,
    /// Whether the thread meets it.
    pub matched: bool,
    /// The pattern that matched, or those that did not.
    pub pattern: String,
}

/// A slice as people write it: `1ms`.
pub fn slice_text(slice_us: u64) -> String {
    crate::options::show_us(slice_us)
}

/// Explains a verdict of the image.
pub fn explain(
    policy: &Policy,
    regexes: &NaiveRegexes,
    thread: &Thread,
    class: Class,
) -> Explanation {
    let rule = usize::from(class.rule)
        .checked_sub(1)
        .and_then(|i| Some((i, policy.rules.get(i)?)));
    Explanation {
        format_version: "1",
        thread: ThreadView::of(thread),
        pool: class.pool.as_str(),
        rule: rule.map(|(i, r)| RuleView {
            index: i + 1,
            name: r.name.clone(),
        }),
        slice_us: class.slice_us,
        weight: class.weight,
        rules: policy
            .rules
            .iter()
            .enumerate()
            .map(|(i, r)| trace(i, r, regexes, thread))
            .collect(),
    }
}

fn trace(i: usize, rule: &Rule, regexes: &NaiveRegexes, t: &Thread) -> RuleTrace {
    let mut conditions = Vec::new();
    table("", &rule.all, regexes, t, &mut conditions);
    for (n, any) in rule.any.iter().enumerate() {
        table(&format!("any[{n}]."), any, regexes, t, &mut conditions);
    }
    if let Some(not) = &rule.not {
        table(EXCEPTION, not, regexes, t, &mut conditions);
    }
    RuleTrace {
        index: i + 1,
        name: rule.name.clone(),
        matched: naive::rule_matches(rule, regexes, t),
        conditions,
    }
}

fn table(
    prefix: &str,
    c: &Conditions,
    regexes: &NaiveRegexes,
    t: &Thread,
    out: &mut Vec<ConditionTrace>,
) {
    let mut push = |key: &str, (matched, pattern): (bool, String)| {
        out.push(ConditionTrace {
            path: format!("{prefix}{key}"),
            matched,
            pattern,
        });
    };
    if let Some(x) = &c.thread {
        push(
            "thread",
            patterns(&x.patterns, |p| naive::name_matches(p, regexes, &t.thread)),
        );
    }
    if let Some(x) = &c.process {
        push(
            "process",
            patterns(&x.patterns, |p| naive::name_matches(p, regexes, &t.process)),
        );
    }
    if let Some(x) = &c.cgroup {
        push(
            "cgroup",
            patterns(&x.patterns, |p| {
                naive::cgroup_matches(p, regexes, &t.cgroup)
            }),
        );
    }
    if let Some(x) = &c.user {
        push("user", numbers(x, t.user));
    }
    if let Some(x) = &c.group {
        push("group", numbers(x, t.group));
    }
    if let Some(x) = &c.nice {
        push("nice", numbers(x, (i64::from(t.nice) + 20) as u64));
    }
    if let Some(x) = c.kthread {
        push("kthread", (x == t.kthread, x.to_string()));
    }
    if let Some(x) = c.leader {
        push("leader", (x == t.leader, x.to_string()));
    }
    if let Some(x) = &c.sched {
        let all: Vec<&str> = x.iter().map(|s| s.as_str()).collect();
        push("sched", (x.contains(&t.sched), all.join(", ")));
    }
    if let Some(x) = &c.hint {
        push("hint", numbers(x, u64::from(t.hint)));
    }
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

// ---- for people ------------------------------------------------------------------------------

impl Explanation {
    /// The report as text: the verdict, then why, then what else would have matched.
    pub fn human(&self) -> String {
        let mut out = String::new();
        self.verdict(&mut out);
        let winner = self.rule.as_ref().map_or(usize::MAX, |r| r.index);
        for rule in self.rules.iter().filter(|r| r.index <= winner) {
            rule.human(rule.index == winner, &mut out);
        }
        let later: Vec<&RuleTrace> = self
            .rules
            .iter()
            .filter(|r| r.index > winner && r.matched)
            .collect();
        if !later.is_empty() {
            out.push_str("\nlater rules that match too, and never see the thread:\n");
            for rule in later {
                writeln!(out, "  {:>3}  {}", rule.index, printable(&rule.name))
                    .expect("a string takes every write");
            }
        }
        if self.disagrees() {
            out.push_str(
                "\nwarning: the reasons do not add up to the verdict; this is a fault of twopool\n",
            );
        }
        out
    }

    fn verdict(&self, out: &mut String) {
        let t = &self.thread;
        let name = if t.thread == t.process {
            t.thread.clone()
        } else {
            format!("{} of {}", t.thread, t.process)
        };
        let tid = t.tid.map_or(String::new(), |tid| format!(" (tid {tid})"));
        let slice = slice_text(self.slice_us);
        let by = match &self.rule {
            Some(rule) => format!("rule {} `{}`", rule.index, printable(&rule.name)),
            None => "the default, no rule takes it".to_owned(),
        };
        writeln!(
            out,
            "{name}{tid} -> {} by {by}; slice {slice}, weight {}",
            self.pool, self.weight
        )
        .expect("a string takes every write");
        let id = |id: Option<u32>| id.map_or("unknown".to_owned(), |id| id.to_string());
        let mut facts = vec![
            format!("cgroup {}", t.cgroup),
            format!("uid {}", id(t.uid)),
            format!("gid {}", id(t.gid)),
        ];
        facts.push(format!("nice {}", t.nice));
        facts.push(
            if t.kthread {
                "kernel thread"
            } else if t.leader {
                "leader"
            } else {
                "not leader"
            }
            .to_owned(),
        );
        facts.push(t.sched.to_owned());
        if t.hint > 0 {
            facts.push(format!("hint {}", t.hint));
        }
        writeln!(out, "  {}\n", facts.join(", ")).expect("a string takes every write");
    }

    fn disagrees(&self) -> bool {
        let first = self.rules.iter().find(|r| r.matched).map(|r| r.index);
        first != self.rule.as_ref().map(|r| r.index)
    }
}

impl RuleTrace {
    fn human(&self, wins: bool, out: &mut String) {
        let mark = if wins { "takes it" } else { "does not match" };
        writeln!(
            out,
            "  {:>3}  {}: {mark}",
            self.index,
            printable(&self.name)
        )
        .expect("a string takes every write");
        let (excepted, asked): (Vec<_>, Vec<_>) = self
            .conditions
            .iter()
            .partition(|c| c.path.starts_with(EXCEPTION));
        let width = asked.iter().map(|c| c.path.len()).max().unwrap_or(0);
        for c in asked {
            let sign = if c.matched { '+' } else { '-' };
            let pattern = printable(&c.pattern);
            writeln!(out, "       {sign} {:width$}  {pattern}", c.path)
                .expect("a string takes every write");
        }
        exception(&excepted, out);
        if self.conditions.is_empty() {
            out.push_str("       + no condition\n");
        }
    }
}

/// The conditions of `not`: a sign for the whole, which speaks for or against the rule as those of
/// the other conditions do, and words for each, whose truth means the contrary.
fn exception(conditions: &[&ConditionTrace], out: &mut String) {
    if conditions.is_empty() {
        return;
    }
    out.push_str(match conditions.iter().all(|c| c.matched) {
        true => "       - not: keeps the thread out, since all of this holds\n",
        false => "       + not: does not keep the thread out, since not all of this holds\n",
    });
    let key = |c: &ConditionTrace| c.path[EXCEPTION.len()..].to_owned();
    let width = conditions.iter().map(|c| key(c).len()).max().unwrap_or(0);
    for c in conditions {
        let holds = if c.matched { "holds" } else { "does not hold" };
        let (key, pattern) = (key(c), printable(&c.pattern));
        writeln!(out, "           {key:width$}  {pattern}  {holds}")
            .expect("a string takes every write");
    }
}
