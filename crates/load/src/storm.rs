//! Everything at once that moves threads between queues and classes.
//!
//! Finds races, not numbers: threads fork, rename themselves, change affinity, niceness and policy,
//! yield, sleep and burn, all by a seed. What each did is counted, so that a test can see that it
//! happened.

use crate::clock;
use crate::place::{self, Place, Policy};
use crate::rng::Rng;
use anyhow::{Context, Result};
use serde::Serialize;
use std::process::{Command, Stdio};

/// Arguments of `storm`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Threads
    #[arg(long, default_value_t = 24)]
    pub threads: usize,
    /// Seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// What every thread does follows from it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Names that threads take, in turn; the last N becomes a number
    #[arg(long, value_delimiter = ',', default_value = "req-N,batch-N,storm-N")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub place: Place,
}

/// How often each thing happened.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
struct Counts {
    forks: u64,
    renames: u64,
    affinities: u64,
    nices: u64,
    policies: u64,
    yields: u64,
    sleeps: u64,
    burns: u64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    args.place.enter()?;
    let end = clock::now_ns() + (args.seconds * 1e9) as u64;
    let handles: Vec<_> = (0..args.threads as u64)
        .map(|thread| {
            let (names, seed) = (args.names.clone(), args.seed);
            std::thread::spawn(move || churn(&names, Rng::new(seed, thread), end))
        })
        .collect();
    let mut total = Counts::default();
    for handle in handles {
        let counts = handle.join().ok().context("a thread panicked")??;
        total.add(&counts);
    }
    crate::print(&total)
}

fn churn(names: &[String], mut rng: Rng, end: u64) -> Result<Counts> {
    let cpus = online_cpus()?;
    let mut counts = Counts::default();
    while clock::now_ns() < end {
        match rng.below(16) {
            0 => {
                spawn_nothing()?;
                counts.forks += 1;
            }
            1 | 2 => {
                let pattern = &names[rng.below(names.len() as u64) as usize];
                place::set_name(&place::numbered(pattern, rng.below(100) as usize))?;
                counts.renames += 1;
            }
            3 | 4 => {
                place::pin(&random_cpus(&mut rng, &cpus))?;
                counts.affinities += 1;
            }
            5 => {
                // Only upwards is everybody's right; 0 to 19 works for all from 0 on as root.
                let nice = rng.below(20) as i32;
                if rustix::process::setpriority_process(None, nice).is_ok() {
                    counts.nices += 1;
                }
            }
            6 => {
                let policy = [Policy::Normal, Policy::Batch, Policy::Idle][rng.below(3) as usize];
                // Leaving SCHED_IDLE needs a privilege.
                counts.policies += u64::from(place::set_policy(policy).is_ok());
            }
            7 | 8 => {
                std::thread::yield_now();
                counts.yields += 1;
            }
            9..=11 => {
                clock::sleep_until_ns(clock::now_ns() + rng.below(3_000_000));
                counts.sleeps += 1;
            }
            _ => {
                clock::burn_ns(rng.below(2_000_000));
                counts.burns += 1;
            }
        }
    }
    Ok(counts)
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.forks += other.forks;
        self.renames += other.renames;
        self.affinities += other.affinities;
        self.nices += other.nices;
        self.policies += other.policies;
        self.yields += other.yields;
        self.sleeps += other.sleeps;
        self.burns += other.burns;
    }
}

fn spawn_nothing() -> Result<()> {
    Command::new(std::env::current_exe()?)
        .arg("nothing")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot start a process")?;
    Ok(())
}

fn online_cpus() -> Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).context("cannot read the affinity")?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// One CPU in a quarter of the cases, otherwise each with even odds, but at least one.
fn random_cpus(rng: &mut Rng, cpus: &[usize]) -> Vec<usize> {
    let one = cpus[rng.below(cpus.len() as u64) as usize];
    if rng.below(4) == 0 {
        return vec![one];
    }
    cpus.iter()
        .copied()
        .filter(|cpu| *cpu == one || rng.below(2) == 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_affinity_is_never_empty() {
        let mut rng = Rng::new(1, 0);
        for _ in 0..100 {
            let cpus = random_cpus(&mut rng, &[0, 3, 5]);
            assert!(!cpus.is_empty() && cpus.iter().all(|cpu| [0, 3, 5].contains(cpu)));
        }
    }
}
