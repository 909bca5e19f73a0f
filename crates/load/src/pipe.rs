//! Two threads that wake each other through pipes: what a wake-up and a switch cost.

use crate::clock;
use crate::place::{self, Place};
use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{PipeReader, PipeWriter, Read, Write};

/// Arguments of `pipe`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Round trips
    #[arg(long, default_value_t = 20_000)]
    pub rounds: u64,
    /// Names of the two threads; the last N becomes the number
    #[arg(long, default_value = "pipe-N", value_name = "PATTERN")]
    pub name: String,
    #[command(flatten)]
    pub place: Place,
}

#[derive(Debug, Serialize)]
struct Report {
    rounds: u64,
    seconds: f64,
    round_ns: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    args.place.enter()?;
    let (mut here, mut to_there) = std::io::pipe().context("cannot make a pipe")?;
    let (mut there, mut to_here) = std::io::pipe().context("cannot make a pipe")?;
    let rounds = args.rounds;
    let echo = std::thread::Builder::new()
        .name(place::numbered(&args.name, 1))
        .spawn(move || (0..rounds).try_for_each(|_| pass(&mut here, &mut to_here)))
        .context("cannot start a thread")?;
    place::set_name(&place::numbered(&args.name, 0))?;
    let begin = clock::now_ns();
    for _ in 0..rounds {
        to_there.write_all(&[1])?;
        there.read_exact(&mut [0])?;
    }
    let took = clock::now_ns() - begin;
    echo.join().ok().context("the echo panicked")??;
    crate::print(&Report {
        rounds,
        seconds: took as f64 / 1e9,
        round_ns: took as f64 / rounds.max(1) as f64,
    })
}

fn pass(from: &mut PipeReader, to: &mut PipeWriter) -> std::io::Result<()> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    to.write_all(&byte)
}
