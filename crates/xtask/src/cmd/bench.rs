//! `cargo xtask bench`: measurements under instruction-counted time, equal from run to run.
//!
//! Figures are ratios within one boot. A scenario is a row of `SCENARIOS`: a load, a plan of blocks
//! and a policy.

use crate::artifacts::Artifacts;
use crate::cmd::vm::{exit_code, report_console};
use crate::host::{self, Host, progress};
use crate::kernel::{self, Kernel, Spec};
use crate::measure::{self, Block};
use crate::table::Table;
use crate::vm::qemu::{Accel, Machine, Smp};
use crate::vm::{Boot, End, Port, shell_line};
use anyhow::{Result, bail};
use std::time::Duration;

/// Where the guest finds the scenario's policy.
const POLICY: &str = "/bench.toml";

struct Scenario {
    name: &'static str,
    about: &'static str,
    cpus: u32,
    policy: &'static str,
    plan: &'static str,
    quick_plan: &'static str,
    hogs: u32,
    requests: &'static [&'static str],
    seconds: u32,
    quick_seconds: u32,
}

const SCENARIOS: &[Scenario] = &[Scenario {
    name: "s1",
    about: "4 request threads (Poisson, 80/s each, exponential service of 5 ms) beside 8 threads \
            that never have enough, on 5 CPUs",
    cpus: 5,
    policy: include_str!("bench_s1.toml"),
    plan: "alone,default,idle,twopool,twopool,idle,default,alone",
    quick_plan: "alone,idle,twopool",
    hogs: 8,
    requests: &["--threads", "4", "--rate", "80", "--service-us", "5000"],
    seconds: 12,
    quick_seconds: 3,
}];

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which scenario: s1
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(SCENARIOS.iter().map(|s| s.name)))]
    scenario: String,
    /// A series, `newest`, or an image's path
    #[arg(long, default_value = "newest")]
    kernel: Spec,
    /// One pass over fewer blocks
    #[arg(long)]
    quick: bool,
    /// Seed of the arrivals and of the guest
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Nanoseconds of virtual time an instruction, as a power of two
    #[arg(long, default_value_t = 1)]
    shift: u8,
    /// A policy in place of the scenario's
    #[arg(long, value_name = "PATH")]
    policy: Option<std::path::PathBuf>,
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
    let policy = tempfile::NamedTempFile::new()?;
    match &args.policy {
        Some(path) => std::fs::copy(path, policy.path()).map(|_| ())?,
        None => std::fs::write(policy.path(), scenario.policy)?,
    }
    let mut files = artifacts.guest_files(host);
    files.push((policy.path().to_owned(), POLICY.into()));
    let boot = Boot {
        kernel: &kernel,
        machine: Machine {
            smp: Smp::flat(scenario.cpus),
            memory_mib: 2048,
            accel: Accel::Counted {
                shift: args.shift,
                seed: args.seed,
            },
        },
        append: Vec::new(),
        files,
        script: format!("exec {}\n", shell_line(&scenario.command(args))),
        timeout: Duration::from_secs(args.timeout),
    };
    progress(format!("measuring {}: {}", scenario.name, scenario.about));
    let mut output = Vec::new();
    let outcome = boot.run(host, &mut |port, data| match port {
        Port::Stdout => output.extend_from_slice(data),
        _ => crate::cmd::vm::pass_on(port, data),
    })?;
    report_console(&outcome.console);
    let code = exit_code(&outcome, boot.timeout);
    if outcome.end != End::Exited(0) {
        return Ok(code);
    }
    let blocks = parse(&String::from_utf8_lossy(&output))?;
    report(host, args, scenario, &kernel, &blocks)?;
    Ok(0)
}

impl Scenario {
    fn command(&self, args: &Args) -> Vec<String> {
        let (plan, seconds) = if args.quick {
            (self.quick_plan, self.quick_seconds)
        } else {
            (self.plan, self.seconds)
        };
        let hogs = self.hogs.to_string();
        let mut words: Vec<String> = ["twopool-load", "blocks", "--plan", plan, "--policy", POLICY]
            .iter()
            .chain(&["--hogs", &hogs, "--"])
            .chain(self.requests)
            .map(|word| (*word).to_owned())
            .collect();
        words.extend(["--seconds".to_owned(), seconds.to_string()]);
        words.extend(["--seed".to_owned(), args.seed.to_string()]);
        words
    }
}

fn parse(output: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    for line in measure::json_lines(output)? {
        blocks.extend(Block::parse(&line)?);
    }
    Ok(blocks)
}

/// Prints the table and, if asked, writes it.
fn report(
    host: &Host,
    args: &Args,
    scenario: &Scenario,
    kernel: &Kernel,
    blocks: &[Block],
) -> Result<()> {
    let table = summary(scenario, blocks)?;
    let about = format!(
        "{}: {}. Kernel {}, emulated in instruction-counted time (shift {}, seed {}), one boot.",
        scenario.name, scenario.about, kernel.version, args.shift, args.seed
    );
    println!("{about}\n\n{}", table.text());
    if args.write {
        let dir = host.workspace.join("docs/bench");
        host::make_dir(&dir)?;
        let path = dir.join(format!("{}-{}.md", scenario.name, kernel.series()));
        let title = format!("# {} on {}", scenario.name, kernel.series());
        let how = format!(
            "`cargo xtask bench {} --kernel {}`",
            scenario.name,
            kernel.series()
        );
        let text = format!(
            "{title}\n\n{about} {how}\n\n{COLUMNS}\n\n{}",
            table.markdown()
        );
        std::fs::write(&path, text)?;
        progress(format!("wrote {}", path.display()));
    }
    Ok(())
}

/// What the columns of a written report mean.
const COLUMNS: &str = "D: request p99 over that of the requests alone. Request CPUs: what their \
threads were charged; the work is the same in every row, so what is more is overhead. Background: \
CPUs that the batch threads used while requests arrived; over what the requests left of the \
machine, and over what the same threads got in SCHED_IDLE. Two figures are two passes.";

fn summary(scenario: &Scenario, blocks: &[Block]) -> Result<Table> {
    let alone = measure::kind(blocks, "alone")?.mean(|b| b.p99_ms);
    let idle = measure::kind(blocks, "idle")?.mean(|b| b.background_cpus);
    let mut table = Table::new(&[
        "scheduler",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "D",
        "request CPUs",
        "background CPUs",
        "of what is left",
        "of SCHED_IDLE's",
    ]);
    for (name, label) in [
        ("alone", "requests alone"),
        ("default", "kernel default"),
        ("idle", "default, background SCHED_IDLE"),
        ("twopool", "twopool"),
    ] {
        let Ok(kind) = measure::kind(blocks, name) else {
            continue;
        };
        let left = kind.mean(|b| f64::from(scenario.cpus) - b.request_cpus);
        let background = kind.mean(|b| b.background_cpus);
        let ratio = |over: f64| match background {
            0.0 => "-".to_owned(),
            _ => format!("{:.3}", background / over),
        };
        table.row(vec![
            label.to_owned(),
            kind.each(|b| b.p50_ms, 2),
            kind.each(|b| b.p99_ms, 1),
            kind.each(|b| b.p999_ms, 1),
            format!("{:.3}", kind.mean(|b| b.p99_ms) / alone),
            kind.each(|b| b.request_cpus, 3),
            kind.each(|b| b.background_cpus, 3),
            ratio(left),
            ratio(idle),
        ]);
    }
    Ok(table)
}
