//! `cargo xtask`: everything that a developer or CI does with this repository, as one program.
//!
//! It depends on no C library and on no crate of the product, so that it builds on a machine that has
//! only Rust; its first act is to install what the rest needs.

// Tests and builds are done by acting on the machine: the pure crates' ban does not apply here.
#![allow(clippy::disallowed_methods)]

mod archive;
mod artifacts;
mod cmd;
mod host;
mod kernel;
mod measure;
mod progress;
mod setup;
mod table;
mod tally;
mod vm;

use anyhow::Result;
use clap::Parser;
use std::process::ExitCode;

/// Developer commands of twopool.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Install what building needs
    Setup,
    /// Do the main job: requests and a batch job under twopool, and a live edit
    Run(cmd::run::Args),
    /// Check format and lints, run all tests on the host and in guests
    Test(cmd::test::Args),
    /// Measure a scenario in instruction-counted time
    Bench(cmd::bench::Args),
    /// Feed random input to what reads policies, patterns and lists of threads
    Fuzz(cmd::fuzz::Args),
    /// Run one command in a VM, with twopool and twopool-load on its path
    Vm(cmd::vm::Args),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn run(cli: &Cli) -> Result<i32> {
    setup::ensure()?;
    let host = host::Host::find()?;
    match &cli.command {
        Command::Setup => {
            host::progress("everything that building needs is there");
            Ok(0)
        }
        Command::Run(args) => cmd::run::run(&host, args),
        Command::Test(args) => cmd::test::run(&host, args),
        Command::Bench(args) => cmd::bench::run(&host, args),
        Command::Fuzz(args) => cmd::fuzz::run(&host, args),
        Command::Vm(args) => cmd::vm::run(&host, args),
    }
}
