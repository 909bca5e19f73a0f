//! `cargo xtask bench`: measurements under instruction-counted time, equal from run to run.
//!
//! Figures are ratios within one boot. A scenario is a row of `SCENARIOS`; a file has each.

mod enqueue;
mod reload;
mod requests;

use crate::artifacts::Artifacts;
use crate::cmd::vm::collect;
use crate::host::{self, Host, progress};
use crate::kernel::{self, Kernel, Spec};
use crate::measure;
use crate::table::Table;
use crate::vm::qemu::{Accel, Machine, Smp};
use crate::vm::{Boot, shell_line};
use anyhow::{Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that the guest needs: its path and its content.
type GuestFile = (&'static str, String);

/// What is measured, and how it is shown.
struct Scenario {
    name: &'static str,
    about: &'static str,
    /// What the columns of a written report mean.
    columns: &'static str,
    cpus: u32,
    /// Of the scenario, unless the command line has another.
    shift: u8,
    files: fn(&Args) -> Result<Vec<GuestFile>>,
    /// What the guest runs; prints a JSON object a line.
    command: fn(&Args) -> Vec<String>,
    /// Those lines as a table.
    summary: fn(&Args, &[Value]) -> Result<Table>,
}

const SCENARIOS: &[Scenario] = &[requests::S1, enqueue::SCENARIO, reload::SCENARIO];

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(value_parser = scenarios())]
    scenario: String,
    /// A series, `newest`, or an image's path
    #[arg(long, default_value = "newest")]
    kernel: Spec,
    /// Fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Seed of the arrivals and of the guest
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Nanoseconds of virtual time an instruction, as a power of two [default: the scenario's]
    #[arg(long)]
    shift: Option<u8>,
    /// s1: a policy in place of the scenario's
    #[arg(long, value_name = "PATH")]
    policy: Option<PathBuf>,
    /// Write the result to docs/bench
    #[arg(long)]
    write: bool,
    /// Do not build: take what an earlier build left
    #[arg(long)]
    no_build: bool,
    /// Seconds of wall-clock time for the guest
    #[arg(long, default_value_t = 3600)]
    timeout: u64,
}

fn scenarios() -> PossibleValuesParser {
    let value = |scenario: &Scenario| PossibleValue::new(scenario.name).help(scenario.about);
    PossibleValuesParser::new(SCENARIOS.iter().map(value))
}

/// Runs the scenario; the result is the exit code.
pub fn run(host: &Host, args: &Args) -> Result<i32> {
    let Some(scenario) = SCENARIOS.iter().find(|s| s.name == args.scenario) else {
        bail!("no scenario `{}`", args.scenario);
    };
    let Some(kernel) = kernel::find(host, &args.kernel)? else {
        bail!("no kernel to boot");
    };
    let artifacts = if args.no_build {
        Artifacts::find(host)
    } else {
        Artifacts::build(host)?
    };
    let scratch = tempfile::tempdir()?;
    let mut files = artifacts.guest_files(host);
    files.extend(scenario.write_files(args, scratch.path())?);
    let boot = Boot {
        kernel: &kernel,
        machine: Machine {
            smp: Smp::flat(scenario.cpus),
            memory_mib: 2048,
            accel: Accel::Counted {
                shift: args.shift.unwrap_or(scenario.shift),
                seed: args.seed,
            },
        },
        append: Vec::new(),
        files,
        script: format!("exec {}\n", shell_line(&(scenario.command)(args))),
        timeout: Duration::from_secs(args.timeout),
    };
    progress(format!("measuring {}: {}", scenario.name, scenario.about));
    let output = match collect(host, &boot)? {
        Ok(output) => output,
        Err(code) => return Ok(code),
    };
    let lines = measure::json_lines(&output)?;
    scenario.report(host, args, &kernel, &lines)?;
    Ok(0)
}

impl Scenario {
    /// Writes its files to a directory of the host; where each is, and where the guest has it.
    fn write_files(&self, args: &Args, scratch: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
        let mut places = Vec::new();
        for (path, content) in (self.files)(args)? {
            let here = scratch.join(path.trim_start_matches('/'));
            std::fs::write(&here, content)?;
            places.push((here, PathBuf::from(path)));
        }
        Ok(places)
    }

    /// Prints the table and, if asked, writes it.
    fn report(&self, host: &Host, args: &Args, kernel: &Kernel, lines: &[Value]) -> Result<()> {
        let table = (self.summary)(args, lines)?;
        let (name, series) = (self.name, kernel.series());
        let about = format!(
            "{name}: {}. Kernel {}, emulated in instruction-counted time (shift {}, seed {}), one boot.",
            self.about,
            kernel.version,
            args.shift.unwrap_or(self.shift),
            args.seed
        );
        println!("{about}\n\n{}", table.text());
        if args.write {
            let dir = host.workspace.join("docs/bench");
            host::make_dir(&dir)?;
            let path = dir.join(format!("{name}-{series}.md"));
            let how = format!("`cargo xtask bench {name} --kernel {series}`");
            let text = format!(
                "# {name} on {series}\n\n{about} {how}\n\n{}\n\n{}",
                self.columns,
                table.markdown()
            );
            std::fs::write(&path, text)?;
            progress(format!("wrote {}", path.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Args {
    /// What the command line without options means.
    fn of(scenario: &str) -> Self {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        <Line as clap::Parser>::parse_from(["bench", scenario]).args
    }
}
