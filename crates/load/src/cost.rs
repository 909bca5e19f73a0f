//! What the callbacks of the kernel program cost under one policy after the other, as the kernel counts.
//!
//! Two threads on one CPU wake each other, so that each wake is an enqueue. First nothing changes; then
//! each renames itself before it sleeps, so that it is classified anew.

use crate::clock;
use crate::daemon::Daemon;
use crate::place;
use anyhow::{Context, Result, anyhow};
use libbpf_rs::query::ProgInfoIter;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Switches the kernel's accounts of BPF programs on and off.
const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// Rounds before anything is counted: caches of the program and of the emulator fill.
const WARM_UP: u64 = 500;

/// Arguments of `cost`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Policies, each with a daemon of its own
    #[arg(long, required = true)]
    policy: Vec<PathBuf>,
    /// Round trips of a measurement: two wakes each
    #[arg(long, default_value_t = 10_000)]
    rounds: u64,
    /// Names that the threads take in turn; the last N becomes a number
    #[arg(long, value_delimiter = ',', default_value = "one-N,other-N")]
    names: Vec<String>,
    /// Seconds to wait first: a freshly booted kernel has work of its own
    #[arg(long, default_value_t = 8.0)]
    settle: f64,
}

/// One line of the result.
#[derive(Debug, Serialize)]
struct Line {
    policy: PathBuf,
    /// Whether the threads renamed themselves between wakes.
    renames: bool,
    callbacks: BTreeMap<String, Cost>,
}

/// What a callback cost between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Cost {
    calls: u64,
    /// A call.
    mean_ns: f64,
}

/// Calls and time of each program of the scheduler since it was loaded.
type Accounts = BTreeMap<String, (u64, u64)>;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    std::thread::sleep(Duration::from_secs_f64(args.settle));
    for policy in &args.policy {
        let daemon = Daemon::start(policy)?;
        // It proves what it attached, and the kernel settles under the new scheduler.
        clock::sleep_until_ns(clock::now_ns() + 2_000_000_000);
        for renames in [false, true] {
            let names: &[String] = if renames { &args.names } else { &[] };
            wake_each_other(WARM_UP, names)?;
            std::fs::write(STATS, "1").context("cannot have BPF programs accounted")?;
            let before = accounts();
            wake_each_other(args.rounds, names)?;
            let after = accounts();
            std::fs::write(STATS, "0")?;
            crate::print(&Line {
                policy: policy.clone(),
                renames,
                callbacks: costs(&before, &after, args.rounds),
            })?;
        }
        daemon.stop()?;
    }
    Ok(())
}

fn accounts() -> Accounts {
    ProgInfoIter::default()
        .map(|program| {
            let name = program.name.to_string_lossy().into_owned();
            (name, (program.run_cnt, program.run_time_ns))
        })
        .filter(|(name, _)| name.starts_with("on_"))
        .collect()
}

/// Of what was called once a round at least: the rest is what the kernel does beside.
fn costs(before: &Accounts, after: &Accounts, rounds: u64) -> BTreeMap<String, Cost> {
    let cost = |(name, (calls, ns)): (&String, &(u64, u64))| {
        let (calls_before, ns_before) = before.get(name).copied().unwrap_or_default();
        let calls = calls - calls_before;
        let mean_ns = (ns - ns_before) as f64 / calls.max(1) as f64;
        (calls >= rounds).then(|| (name.clone(), Cost { calls, mean_ns }))
    };
    after.iter().filter_map(cost).collect()
}

/// So many round trips of a byte; each side takes the next of the names before it sleeps.
fn wake_each_other(rounds: u64, names: &[String]) -> Result<()> {
    // In a thread of its own: the daemon, a child of this one, may run anywhere.
    let all = || {
        place::pin(&[0])?;
        ping_pong(rounds, names)
    };
    std::thread::scope(|scope| scope.spawn(all).join()).map_err(|_| anyhow!("a thread panicked"))?
}

fn ping_pong(rounds: u64, names: &[String]) -> Result<()> {
    let (mut here, mut to_there) = std::io::pipe().context("cannot make a pipe")?;
    let (mut there, mut to_here) = std::io::pipe().context("cannot make a pipe")?;
    let echoed = names.to_vec();
    let echo = std::thread::Builder::new()
        .name("echo".to_owned())
        .spawn(move || {
            (0..rounds).try_for_each(|round| -> Result<()> {
                here.read_exact(&mut [0])?;
                rename(&echoed, round)?;
                Ok(to_here.write_all(&[1])?)
            })
        })
        .context("cannot start a thread")?;
    play(rounds, names, &mut to_there, &mut there)?;
    echo.join().ok().context("the echo panicked")?
}

fn play(rounds: u64, names: &[String], to: &mut PipeWriter, from: &mut PipeReader) -> Result<()> {
    for round in 0..rounds {
        rename(names, round)?;
        to.write_all(&[1])?;
        from.read_exact(&mut [0])?;
    }
    Ok(())
}

fn rename(names: &[String], round: u64) -> Result<()> {
    match names.len() as u64 {
        0 => Ok(()),
        count => {
            let name = &names[(round % count) as usize];
            place::set_name(&place::numbered(name, (round / count % 100) as usize))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_of_what_happened_meanwhile() {
        let accounts = |calls, ns| Accounts::from([("on_enqueue".to_owned(), (calls, ns))]);
        let found = costs(&accounts(100, 50_000), &accounts(300, 90_000), 100);
        assert_eq!(
            found["on_enqueue"],
            Cost {
                calls: 200,
                mean_ns: 200.0
            }
        );
        assert!(costs(&accounts(1, 1), &accounts(9, 9), 100).is_empty());
    }
}
