//! The same requests under one scheduler after the other, in one boot.
//!
//! Figures of different boots do not compare; those of one boot do. Every block is the same
//! `requests` command with the same seed, so that all see the same arrivals; each in a process of its
//! own. A plan that reads the same backwards (ABBA) cancels a drift.

use crate::clock;
use crate::daemon::{self, Daemon};
use crate::requests::Report;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A kind of block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// The requests alone under the kernel's default scheduler: the ideal
    Alone,
    /// The kernel's default scheduler
    Default,
    /// The kernel's default scheduler with the background in SCHED_IDLE
    Idle,
    /// twopool with the policy
    Twopool,
}

/// Arguments of `blocks`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Blocks in order
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    plan: Vec<Block>,
    /// Policy for twopool blocks
    #[arg(long)]
    policy: PathBuf,
    /// Seconds to wait first: a freshly booted kernel has work of its own
    #[arg(long, default_value_t = 10.0)]
    settle: f64,
    /// Background threads, except in blocks without any
    #[arg(long, default_value_t = 8)]
    hogs: usize,
    /// Arguments of `requests`, without --hogs
    #[arg(last = true)]
    requests: Vec<String>,
}

/// One line of the result.
#[derive(Debug, Serialize)]
struct Line {
    block: Block,
    ops: String,
    #[serde(flatten)]
    report: Report,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    clock::sleep_until_ns(clock::now_ns() + (args.settle * 1e9) as u64);
    for (index, block) in args.plan.iter().enumerate() {
        eprintln!("block {} of {}: {block:?}", index + 1, args.plan.len());
        let daemon = match block {
            Block::Twopool => Some(Daemon::start(&args.policy)?),
            _ => None,
        };
        let ops = daemon::sysfs("root/ops");
        let report = measure(args, *block)?;
        crate::print(&Line {
            block: *block,
            ops: ops.clone(),
            report,
        })?;
        if ops != daemon::sysfs("root/ops") {
            bail!("the scheduler changed during the block");
        }
        if let Some(daemon) = daemon {
            daemon.stop()?;
        }
    }
    Ok(())
}

fn measure(args: &Args, block: Block) -> Result<Report> {
    let hogs = match block {
        Block::Alone => 0,
        _ => args.hogs,
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("requests").args(&args.requests);
    command.args(["--hogs", &hogs.to_string()]);
    if block == Block::Idle {
        command.args(["--hog-arg", "--sched", "--hog-arg", "idle"]);
    }
    let out = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the requests")?;
    if !out.status.success() {
        bail!("the requests failed: {}", out.status);
    }
    serde_json::from_slice(&out.stdout).context("the requests' report is not as expected")
}
