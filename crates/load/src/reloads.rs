//! How soon a saved policy acts: from rename(2) to every thread of a load, again and again.
//!
//! The load never sleeps, and wants more CPUs than there are: a thread that waits for its turn is under
//! the new policy when the kernel program has classified it anew, not when the daemon has published it.
//! When that was, the program has written down itself for the rule that takes the load, so that nobody
//! has to look while it happens.

use crate::clock;
use crate::daemon::{self, Daemon};
use crate::spin::Spinner;
use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// From a save to the look at what came of it, and from that to the next save.
const PAUSE_NS: u64 = 2_000_000_000;

/// Arguments of `reloads`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Policies that replace each other
    #[arg(long, num_args = 1, required = true)]
    policy: Vec<PathBuf>,
    /// Name of the rule that takes the load
    #[arg(long)]
    rule: String,
    /// Reloads
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Policies of which only the checking is timed
    #[arg(long, num_args = 1)]
    check: Vec<PathBuf>,
    /// Seconds to wait first: a freshly booted kernel has work of its own
    #[arg(long, default_value_t = 8.0)]
    settle: f64,
    /// Arguments of `spin` for the load
    #[arg(last = true)]
    spin: Vec<String>,
}

/// A line of the result: one reload, in milliseconds from rename(2) on.
#[derive(Debug, Serialize)]
struct Reload {
    /// The daemon had published the policy, and said so.
    published_ms: f64,
    /// The last thread of the load was classified anew.
    effect_ms: f64,
}

/// A line of the result: one policy, checked.
#[derive(Debug, Serialize)]
struct Check {
    check: PathBuf,
    /// From starting the program to its end.
    wall_ms: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    clock::sleep_until_ns(clock::now_ns() + (args.settle * 1e9) as u64);
    for policy in &args.check {
        crate::print(&check(policy)?)?;
    }
    let dir = std::env::temp_dir().join(format!("twopool-reloads-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let in_force = dir.join("policy.toml");
    std::fs::copy(&args.policy[0], &in_force)?;
    let load = Spinner::start(&args.spin)?;
    let daemon = Daemon::start(&in_force)?;
    for (round, policy) in args
        .policy
        .iter()
        .cycle()
        .skip(1)
        .take(args.rounds)
        .enumerate()
    {
        clock::sleep_until_ns(clock::now_ns() + PAUSE_NS);
        let next = dir.join("policy.toml.new");
        std::fs::copy(policy, &next)?;
        let begin = Timestamp::now();
        std::fs::rename(&next, &in_force)?;
        clock::sleep_until_ns(clock::now_ns() + PAUSE_NS);
        // The policy of the start is the first.
        crate::print(&reload(begin, round as u64 + 2, &args.rule, &load)?)?;
    }
    daemon.stop()?;
    Ok(std::fs::remove_dir_all(&dir)?)
}

/// What came of a save.
fn reload(begin: Timestamp, epoch: u64, rule: &str, load: &Spinner) -> Result<Reload> {
    let classes = daemon::classes(load.process())?;
    let spinning = || {
        classes
            .iter()
            .filter(|class| load.tids().contains(&class.tid))
    };
    ensure!(
        spinning().count() == load.tids().len() && spinning().all(|class| class.epoch == epoch),
        "not every thread is under policy {epoch}: {classes:?}"
    );
    let status = daemon::status()?;
    let rules = status["rules"]
        .as_array()
        .context("the status has no rules")?;
    let rule = rules.iter().find(|found| found["name"] == rule);
    let rule = rule.context("the status lacks the load's rule")?;
    let since = |moment: &Value| -> Result<f64> {
        let moment = moment
            .as_str()
            .with_context(|| format!("a time is missing: {status}"))?;
        let moment: Timestamp = moment.parse()?;
        Ok(moment.duration_since(begin).as_secs_f64() * 1e3)
    };
    Ok(Reload {
        published_ms: since(&status["policy"]["loaded_at"])?,
        effect_ms: since(&rule["last_match_at"])?,
    })
}

fn check(policy: &Path) -> Result<Check> {
    let begin = clock::now_ns();
    let status = Command::new("twopool")
        .arg("check")
        .arg(policy)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot start twopool")?;
    if !status.success() {
        bail!("twopool check {}: {status}", policy.display());
    }
    Ok(Check {
        check: policy.to_owned(),
        wall_ms: (clock::now_ns() - begin) as f64 / 1e6,
    })
}
