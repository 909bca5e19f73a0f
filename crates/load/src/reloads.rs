//! How soon a saved policy acts: from rename(2) to every thread of a load, again and again.
//!
//! The load never sleeps, and wants more CPUs than there are: a thread that waits for its turn is under
//! the new policy when the kernel program has classified it anew, not when the daemon has published it.

use crate::clock;
use crate::daemon::Daemon;
use crate::live::{Seen, classes_when};
use crate::spin::Spinner;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments of `reloads`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Policies that replace each other
    #[arg(long, num_args = 1, required = true)]
    policy: Vec<PathBuf>,
    /// Reloads
    #[arg(long, default_value_t = 10)]
    rounds: u64,
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

/// A line of the result: one reload.
#[derive(Debug, Serialize)]
struct Reload {
    /// From rename(2) until a look saw all threads under the new policy.
    effect_ms: f64,
    /// From rename(2) until the last look that did not.
    not_before_ms: f64,
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
    // Each twice: the first reads the program from its file system.
    for policy in args.check.iter().flat_map(|policy| [policy, policy]) {
        crate::print(&check(policy)?)?;
    }
    let dir = std::env::temp_dir().join(format!("twopool-reloads-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let in_force = dir.join("policy.toml");
    std::fs::copy(&args.policy[0], &in_force)?;
    let load = Spinner::start(&args.spin)?;
    let daemon = Daemon::start(&in_force)?;
    let mut epoch = newest(&classes_when(&load, |class| class.epoch > 0)?);
    for policy in args
        .policy
        .iter()
        .cycle()
        .skip(1)
        .take(args.rounds as usize)
    {
        // The daemon proves what it put in force, and the pools pay what they owe.
        clock::sleep_until_ns(clock::now_ns() + 2_000_000_000);
        let next = dir.join("policy.toml.new");
        std::fs::copy(policy, &next)?;
        let begin = clock::now_ns();
        std::fs::rename(&next, &in_force)?;
        let seen = classes_when(&load, |class| class.epoch > epoch)?;
        epoch = newest(&seen);
        crate::print(&Reload {
            effect_ms: (seen.at_ns - begin) as f64 / 1e6,
            not_before_ms: seen.not_before_ns.saturating_sub(begin) as f64 / 1e6,
        })?;
    }
    daemon.stop()?;
    Ok(std::fs::remove_dir_all(&dir)?)
}

fn newest(seen: &Seen) -> u64 {
    seen.classes
        .iter()
        .map(|class| class.epoch)
        .max()
        .unwrap_or(0)
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
