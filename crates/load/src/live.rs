//! A policy edited under load: which threads change pools, and how soon.
//!
//! The clock starts before rename(2) puts the new file in place and stops when the kernel program
//! holds every thread of the load under the new policy. It is looked at by asking the daemon, again
//! and again; the last look that still saw the old policy is reported too, because the truth lies
//! between the two.

use crate::clock;
use crate::daemon::{self, Class, Daemon};
use crate::spin::Spinner;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::path::PathBuf;

const LIMIT_NS: u64 = 60_000_000_000;

/// Arguments of `live`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Policy to begin with
    #[arg(long)]
    policy: PathBuf,
    /// Text of a rule to put before all others
    #[arg(long)]
    rule: String,
    /// Arguments of `spin` for the load
    #[arg(last = true)]
    spin: Vec<String>,
}

/// Result of `live`.
#[derive(Debug, Serialize)]
struct Report {
    /// From rename(2) until a look saw all threads under the new policy.
    effect_ms: f64,
    /// From rename(2) until the last look that did not.
    not_before_ms: f64,
    moved: Vec<Move>,
    stayed: usize,
}

#[derive(Debug, Serialize)]
struct Move {
    tid: u32,
    thread: String,
    from: String,
    to: String,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let text = std::fs::read_to_string(&args.policy)
        .with_context(|| format!("cannot read {}", args.policy.display()))?;
    let dir = std::env::temp_dir().join(format!("twopool-live-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let policy = dir.join("policy.toml");
    let text = without_tests(&text);
    std::fs::write(&policy, &text)?;
    let load = Spinner::start(&args.spin)?;
    let daemon = Daemon::start(&policy)?;
    let before = classes_when(&load, |_| true)?.classes;
    let epoch = before.iter().map(|class| class.epoch).max().unwrap_or(0);
    let next = dir.join("policy.toml.new");
    std::fs::write(&next, with_first_rule(&text, &args.rule)?)?;
    let begin = clock::now_ns();
    std::fs::rename(&next, &policy)?;
    let seen = classes_when(&load, |class| class.epoch > epoch)?;
    let report = report(&before, &seen, begin);
    daemon.stop()?;
    std::fs::remove_dir_all(&dir)?;
    crate::print(&report)
}

struct Seen {
    at_ns: u64,
    not_before_ns: u64,
    classes: Vec<Class>,
}

/// Waits until all threads of the load are classified and `holds` for each.
fn classes_when(load: &Spinner, holds: impl Fn(&Class) -> bool) -> Result<Seen> {
    let begin = clock::now_ns();
    let mut not_before_ns = begin;
    loop {
        let asked = clock::now_ns();
        let classes: Vec<Class> = daemon::classes(load.process())?
            .into_iter()
            .filter(|class| load.tids().contains(&class.tid))
            .collect();
        if classes.len() == load.tids().len() && classes.iter().all(&holds) {
            return Ok(Seen {
                at_ns: clock::now_ns(),
                not_before_ns,
                classes,
            });
        }
        not_before_ns = asked;
        if asked - begin > LIMIT_NS {
            bail!("the threads were not all classified in time");
        }
    }
}

fn report(before: &[Class], after: &Seen, begin: u64) -> Report {
    let pool_before = |tid: u32| before.iter().find(|class| class.tid == tid);
    let moved: Vec<Move> = after
        .classes
        .iter()
        .filter_map(|class| {
            let old = pool_before(class.tid)?;
            (old.pool != class.pool).then(|| Move {
                tid: class.tid,
                thread: class.thread.clone(),
                from: old.pool.clone(),
                to: class.pool.clone(),
            })
        })
        .collect();
    Report {
        effect_ms: (after.at_ns - begin) as f64 / 1e6,
        not_before_ms: after.not_before_ns.saturating_sub(begin) as f64 / 1e6,
        stayed: after.classes.len() - moved.len(),
        moved,
    }
}

/// Leaves out the `[[test]]` tables: a policy's own tests would rightly reject the edit.
fn without_tests(policy: &str) -> String {
    let mut inside = false;
    policy
        .lines()
        .filter(|line| {
            if line.starts_with('[') {
                inside = line.starts_with("[[test]]");
            }
            !inside
        })
        .fold(String::new(), |text, line| text + line + "\n")
}

fn with_first_rule(policy: &str, rule: &str) -> Result<String> {
    let at = policy
        .find("[[rule]]")
        .with_context(|| "the policy has no rule to go before")?;
    Ok(format!(
        "{}{}\n\n{}",
        &policy[..at],
        rule.trim(),
        &policy[at..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_left_out_and_rules_put_first() {
        let policy = "version = 1\n[[rule]]\na = 1\n[[test]]\nx = 2\n[pool.critical]\nweight = 3\n";
        let text = without_tests(policy);
        assert_eq!(
            text,
            "version = 1\n[[rule]]\na = 1\n[pool.critical]\nweight = 3\n"
        );
        let text = with_first_rule(&text, "[[rule]]\nb = 2").unwrap();
        assert_eq!(
            text,
            "version = 1\n[[rule]]\nb = 2\n\n[[rule]]\na = 1\n[pool.critical]\nweight = 3\n"
        );
        assert!(with_first_rule("version = 1\n", "[[rule]]").is_err());
    }
}
