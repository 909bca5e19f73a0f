//! `twopool-load`: threads to schedule, for tests and measurements.
//!
//! All randomness comes from a seed, so that two runs ask the scheduler for the same. Work is measured
//! in thread CPU time, never in loop counts: under emulation the same loop takes any time.
//! Results are one JSON object on standard output.

// A load generator acts on the machine: the pure crates' ban does not apply here.
#![allow(clippy::disallowed_methods)]

mod blocks;
mod clock;
mod cost;
mod daemon;
mod live;
mod pipe;
mod place;
mod reloads;
mod requests;
mod rng;
mod spin;
mod stats;
mod storm;

use anyhow::Result;
use clap::Parser;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(version, about = "Threads to schedule, for tests and measurements")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Requests at random times beside threads that never have enough; latency percentiles
    Requests(requests::Args),
    /// Threads that burn CPU time; how much each got
    Spin(spin::Args),
    /// Two threads that wake each other through pipes; round trips
    Pipe(pipe::Args),
    /// Everything at once that moves threads between queues: fork, rename, affinity, nice, yield
    Storm(storm::Args),
    /// Blocks of `requests` under one scheduler after the other; one JSON object a block
    Blocks(blocks::Args),
    /// Edits the running daemon's policy and reports which threads changed and how long it took
    Live(live::Args),
    /// Replaces the running daemon's policy again and again; how soon each acts
    Reloads(reloads::Args),
    /// What the callbacks of the scheduler cost, with and without a classification
    Cost(cost::Args),
    /// Ends at once; `storm` starts it
    #[command(hide = true)]
    Nothing,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("twopool-load: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Requests(args) => requests::run(&args),
        Command::Spin(args) => spin::run(&args),
        Command::Pipe(args) => pipe::run(&args),
        Command::Storm(args) => storm::run(&args),
        Command::Blocks(args) => blocks::run(&args),
        Command::Live(args) => live::run(&args),
        Command::Reloads(args) => reloads::run(&args),
        Command::Cost(args) => cost::run(&args),
        Command::Nothing => Ok(()),
    }
}

/// Prints a result: one JSON object on a line of its own.
fn print(result: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(result)?);
    Ok(())
}
