//! What `plan` found, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use twopool_diag::printable;
use twopool_policy::explain::{ThreadView, slice_text};
use twopool_policy::policy::Policy;
use twopool_policy::proof::{Differences, Outcome, difference_text};
use twopool_policy::text::escape;
use twopool_policy::thread::Thread;

use super::check::plural;

/// What a policy makes of a thread.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ClassView<'a> {
    pool: &'static str,
    rule: Option<RuleRef<'a>>,
    slice_us: u64,
    weight: u32,
}

/// A rule by number (from 1) and name.
#[derive(Debug, Clone, Serialize)]
struct RuleRef<'a> {
    index: usize,
    name: &'a str,
}

impl<'a> ClassView<'a> {
    /// `rule` counts from 0; `None`: the default pool.
    pub fn new(policy: &'a Policy, outcome: Outcome, rule: Option<usize>) -> Self {
        let rule = rule.and_then(|index| Some((index + 1, policy.rules.get(index)?)));
        Self {
            pool: outcome.pool.as_str(),
            rule: rule.map(|(index, rule)| RuleRef {
                index,
                name: &rule.name,
            }),
            slice_us: outcome.slice_us,
            weight: outcome.weight,
        }
    }

    fn by(&self) -> String {
        self.rule.as_ref().map_or("the default".to_owned(), |rule| {
            format!("rule {} `{}`", rule.index, printable(rule.name))
        })
    }
}

/// One item of `moves`.
#[derive(Debug, Serialize)]
pub(super) struct Move<'a> {
    thread: ThreadView,
    from: ClassView<'a>,
    to: ClassView<'a>,
}

impl<'a> Move<'a> {
    /// Of a thread and what both policies make of it.
    pub fn new(thread: &Thread, from: ClassView<'a>, to: ClassView<'a>) -> Self {
        Self {
            thread: ThreadView::of(thread),
            from,
            to,
        }
    }
}

/// Threads that one rule gives up and another takes.
pub(super) struct Change<'a> {
    from: ClassView<'a>,
    to: ClassView<'a>,
    /// How many threads.
    pub count: usize,
    /// The first of them.
    pub examples: Vec<Thread>,
}

impl<'a> Change<'a> {
    /// Without a thread yet.
    pub fn new(from: ClassView<'a>, to: ClassView<'a>) -> Self {
        Self {
            from,
            to,
            count: 0,
            examples: Vec::new(),
        }
    }
}

/// All changes, by the rules of both policies.
pub(super) fn human(threads: usize, changes: &BTreeMap<(u16, u16), Change<'_>>) -> String {
    let moved: usize = changes.values().map(|change| change.count).sum();
    let of = plural(threads, "thread");
    let mut out = match moved {
        0 => format!("nothing changes for {of}\n"),
        _ => format!("{moved} of {of} would change\n"),
    };
    for change in changes.values() {
        let heading = heading(&change.from, &change.to);
        let count = plural(change.count, "thread");
        writeln!(out, "\n{heading}: {count}").expect("a string takes every write");
        for thread in &change.examples {
            writeln!(out, "  {}", example(thread)).expect("a string takes every write");
        }
        let more = change.count - change.examples.len();
        if more > 0 {
            writeln!(out, "  and {more} more").expect("a string takes every write");
        }
    }
    out
}

/// `critical -> background, weight 200 -> 100 (rule 1 `a` -> the default)`: only what differs.
fn heading(from: &ClassView<'_>, to: &ClassView<'_>) -> String {
    let mut parts = vec![match from.pool == to.pool {
        true => format!("still {}", from.pool),
        false => format!("{} -> {}", from.pool, to.pool),
    }];
    if from.slice_us != to.slice_us {
        let (from, to) = (slice_text(from.slice_us), slice_text(to.slice_us));
        parts.push(format!("slice {from} -> {to}"));
    }
    if from.weight != to.weight {
        parts.push(format!("weight {} -> {}", from.weight, to.weight));
    }
    format!("{} ({} -> {})", parts.join(", "), from.by(), to.by())
}

fn example(thread: &Thread) -> String {
    let (name, process) = (escape(&thread.thread), escape(&thread.process));
    let tid = thread
        .tid
        .map_or(String::new(), |tid| format!(" (tid {tid})"));
    let of = match thread.thread == thread.process {
        true => String::new(),
        false => format!(" of {}", printable(&process)),
    };
    format!(
        "{}{of}{tid} in {}",
        printable(&name),
        printable(&escape(&thread.cgroup))
    )
}

/// Threads that distinguish two policies.
#[derive(Debug, Serialize)]
pub(super) struct Witnesses<'a> {
    format_version: &'static str,
    moves: Vec<Witness<'a>>,
    undecided: usize,
}

#[derive(Debug, Serialize)]
struct Witness<'a> {
    thread: ThreadView,
    from: ClassView<'a>,
    to: ClassView<'a>,
    /// The thread as options of `explain`, with users and groups that this host does not know.
    explain: String,
}

/// What a comparison found.
pub(super) fn witnesses<'a>(
    old: &'a Policy,
    new: &'a Policy,
    found: &Differences,
) -> Witnesses<'a> {
    let moves = found.found.iter().map(|difference| Witness {
        thread: ThreadView::of(&difference.witness),
        from: ClassView::new(old, difference.from, difference.from_rule),
        to: ClassView::new(new, difference.to, difference.to_rule),
        explain: difference_text(old, new, &difference.witness),
    });
    Witnesses {
        format_version: "1",
        moves: moves.collect(),
        undecided: found.undecided,
    }
}

impl Witnesses<'_> {
    /// For people.
    pub fn human(&self) -> String {
        let mut out = String::new();
        if self.moves.is_empty() && self.undecided == 0 {
            return "no thread tells the policies apart\n".to_owned();
        }
        for witness in &self.moves {
            let heading = heading(&witness.from, &witness.to);
            writeln!(out, "{heading}, for example\n  {}", witness.explain)
                .expect("a string takes every write");
        }
        if self.undecided > 0 {
            let pairs = plural(self.undecided, "pair");
            writeln!(out, "{pairs} of outcomes not decided; they may be changes")
                .expect("a string takes every write");
        }
        out
    }
}
