//! Requests beside threads that never have enough: what a scheduler does to both.

use super::{Args, GuestFile, Scenario};
use crate::measure::{self, Block};
use crate::table::Table;
use anyhow::{Context, Result};
use serde_json::Value;

pub const S1: Scenario = Scenario {
    name: "s1",
    about: "4 request threads (Poisson, 80/s each, exponential service of 5 ms) beside 8 threads \
            that never have enough, on 5 CPUs",
    columns: "D: request p99 over that of the requests alone. Request CPUs: what their threads were \
              charged; the work is the same in every row, so what is more is overhead. Background: CPUs \
              that the batch threads used while requests arrived; over what the requests left of the \
              machine, and over what the same threads got in SCHED_IDLE. Two figures are two passes.",
    cpus: CPUS,
    shift: 1,
    files,
    command,
    summary,
};

const CPUS: u32 = 5;
/// Where the guest finds the policy.
const POLICY: &str = "/bench.toml";
const PLAN: &str = "alone,default,idle,twopool,twopool,idle,default,alone";
const QUICK_PLAN: &str = "alone,idle,twopool";
const REQUESTS: [&str; 6] = ["--threads", "4", "--rate", "80", "--service-us", "5000"];

fn files(args: &Args) -> Result<Vec<GuestFile>> {
    let text = match &args.policy {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?,
        None => include_str!("s1.toml").to_owned(),
    };
    Ok(vec![(POLICY, text)])
}

fn command(args: &Args) -> Vec<String> {
    let (plan, seconds) = match args.quick {
        true => (QUICK_PLAN, "3"),
        false => (PLAN, "12"),
    };
    let seed = args.seed.to_string();
    [
        "twopool-load",
        "blocks",
        "--plan",
        plan,
        "--policy",
        POLICY,
        "--hogs",
        "8",
        "--",
    ]
    .iter()
    .chain(&REQUESTS)
    .chain(&["--seconds", seconds, "--seed", &seed])
    .map(|word| (*word).to_owned())
    .collect()
}

fn summary(_: &Args, lines: &[Value]) -> Result<Table> {
    let mut blocks = Vec::new();
    for line in lines {
        blocks.extend(Block::parse(line)?);
    }
    let alone = measure::kind(&blocks, "alone")?.mean(|b| b.p99_ms);
    let idle = measure::kind(&blocks, "idle")?.mean(|b| b.background_cpus);
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
        let Ok(kind) = measure::kind(&blocks, name) else {
            continue;
        };
        let left = kind.mean(|b| f64::from(CPUS) - b.request_cpus);
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
