//! What the running kernel program has for the threads of this host, beside what `explain` finds.

use std::collections::BTreeMap;

use serde::Serialize;
use twopool_diag::printable;
use twopool_policy::explain::Explanation;
use twopool_telemetry::Status;

use super::client::{self, PATIENCE};
use crate::cli::Global;
use crate::daemon::protocol::{Kind, Request, ThreadRow};

/// All threads of the running scheduler, and the policy in force.
pub(super) struct InKernel {
    hash: String,
    rows: BTreeMap<i32, ThreadRow>,
}

/// What the kernel program has for one thread.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Found<'a> {
    /// The pool that it acts on.
    pool: &'a str,
    /// The rule that gave it, from 1; null: the default pool.
    rule: Option<u32>,
    /// Its name.
    rule_name: Option<&'a str>,
    /// Of the policy that gave it; 0: not classified yet.
    epoch: u32,
    /// What its classification gives for the thread as it is now.
    next_pool: &'a str,
    /// Whether that is what was found here; null where the policy in force is another one, or what was
    /// found is unknown.
    agrees: Option<bool>,
}

impl InKernel {
    /// Asks the daemon. `None` without one, or with one that is not attached.
    pub(super) fn ask(global: &Global) -> Option<Self> {
        let ask = |kind| Request::new(kind);
        let directory = &global.runtime_dir;
        let status: Status = client::ask(directory, &ask(Kind::Status), PATIENCE).ok()?;
        let rows: Vec<ThreadRow> = client::ask(directory, &ask(Kind::Threads), PATIENCE).ok()?;
        Some(Self {
            hash: status.policy.hash,
            rows: rows.into_iter().map(|row| (row.tid, row)).collect(),
        })
    }

    /// What it has for the thread that was explained by the policy with this hash.
    pub(super) fn find(&self, hash: &str, explanation: &Explanation) -> Option<Found<'_>> {
        let row = self.rows.get(&explanation.thread.tid?)?;
        let is_in_force = self.hash == hash;
        Some(Found {
            pool: &row.pool,
            rule: row.rule,
            rule_name: row.rule_name.as_deref(),
            epoch: row.epoch,
            next_pool: &row.next_pool,
            agrees: explanation
                .pool
                .filter(|_| is_in_force)
                .map(|pool| pool == row.next_pool),
        })
    }
}

impl Found<'_> {
    /// A line for people; two if something is wrong. `knows`: whether something was found here.
    pub(super) fn human(&self, knows: bool) -> String {
        let rule = match (self.rule, self.rule_name) {
            (None, _) => "default pool".to_owned(),
            (Some(index), None) => format!("rule {index}"),
            (Some(index), Some(name)) => format!("rule {index} `{}`", printable(name)),
        };
        let mut text = match self.epoch {
            0 => format!(
                "\nrunning kernel program: not classified yet, wakes in {}",
                self.pool
            ),
            epoch => format!(
                "\nrunning kernel program: {}, {rule} (epoch {epoch})",
                self.pool
            ),
        };
        if self.pool != self.next_pool {
            text += &format!(", {} from its next wake or tick on", self.next_pool);
        }
        match self.agrees {
            Some(true) => text.push('\n'),
            None if !knows => text.push('\n'),
            None => text += "; the policy in force is not this one\n",
            Some(false) => {
                text += &format!(
                    "\nTHE KERNEL PROGRAM DISAGREES: by the same policy it makes the thread {}. Unless the \
                     thread has just changed, that is a fault of twopool: please report it.\n",
                    self.next_pool
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(next_pool: &'static str, agrees: Option<bool>) -> String {
        let found = Found {
            pool: "critical",
            rule: Some(2),
            rule_name: Some("request path"),
            epoch: 3,
            next_pool,
            agrees,
        };
        found.human(true)
    }

    #[test]
    fn only_a_contradiction_is_loud() {
        assert_eq!(
            found("critical", Some(true)),
            "\nrunning kernel program: critical, rule 2 `request path` (epoch 3)\n"
        );
        let other = found("critical", None);
        assert!(
            other.ends_with("the policy in force is not this one\n"),
            "{other}"
        );
        let renamed = found("background", Some(true));
        assert!(
            renamed.contains("background from its next wake"),
            "{renamed}"
        );
        assert!(!renamed.contains("DISAGREES"), "{renamed}");
        assert!(found("background", Some(false)).contains("DISAGREES"));
    }
}
