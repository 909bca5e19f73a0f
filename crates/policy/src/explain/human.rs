//! The report of `explain` as text: the verdict, then why, then what else would have matched.

use std::fmt::Write;

use twopool_diag::printable;

use super::{ConditionTrace, EXCEPTION, Explanation, RuleTrace, conjunction, slice_text};

impl Explanation {
    /// The report.
    pub fn human(&self) -> String {
        let mut out = String::new();
        self.verdict(&mut out);
        // Without a verdict, and for the default pool, all rules have been asked.
        let winner = self.rule.as_ref().map_or(usize::MAX, |r| r.index);
        for rule in self.rules.iter().filter(|r| r.index <= winner) {
            rule.human(rule.index == winner, &mut out);
        }
        let later: Vec<&RuleTrace> = self
            .rules
            .iter()
            .filter(|r| r.index > winner && r.matched == Some(true))
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
        let by = match &self.rule {
            Some(rule) => format!("rule {} `{}`", rule.index, printable(&rule.name)),
            None => "the default, no rule takes it".to_owned(),
        };
        let verdict = match (self.pool, self.slice_us, self.weight) {
            (Some(pool), Some(slice_us), Some(weight)) => {
                let slice = slice_text(slice_us);
                format!("{pool} by {by}; slice {slice}, weight {weight}")
            }
            _ => format!("unknown, which depends on its {}", self.unknown.join(", ")),
        };
        writeln!(out, "{name}{tid} -> {verdict}").expect("a string takes every write");
        let id = |id: Option<u32>| id.map_or("unknown".to_owned(), |id| id.to_string());
        let mut facts = vec![
            format!("cgroup {}", t.cgroup.as_deref().unwrap_or("unknown")),
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
        let first = self.rules.iter().find(|r| r.matched == Some(true));
        self.unknown.is_empty() && first.map(|r| r.index) != self.rule.as_ref().map(|r| r.index)
    }
}

impl RuleTrace {
    fn human(&self, wins: bool, out: &mut String) {
        let mark = match self.matched {
            _ if wins => "takes it",
            Some(_) => "does not match",
            None => "may match",
        };
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
            let sign = match c.matched {
                Some(true) => '+',
                Some(false) => '-',
                None => '?',
            };
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
    let excepted = conjunction(conditions.iter().map(|c| c.matched));
    out.push_str(match excepted {
        Some(true) => "       - not: keeps the thread out, since all of this holds\n",
        Some(false) => "       + not: does not keep the thread out, since not all of this holds\n",
        None => "       ? not: keeps the thread out if all of this holds\n",
    });
    let key = |c: &ConditionTrace| c.path[EXCEPTION.len()..].to_owned();
    let width = conditions.iter().map(|c| key(c).len()).max().unwrap_or(0);
    for c in conditions {
        let holds = match c.matched {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "unknown",
        };
        let (key, pattern) = (key(c), printable(&c.pattern));
        writeln!(out, "           {key:width$}  {pattern}  {holds}")
            .expect("a string takes every write");
    }
}
