//! `cargo xtask fuzz`: runs the targets of `fuzz/` for a while each, starting from the kept inputs.
//!
//! The targets are laid out as cargo-fuzz wants them; who has it may use it. Here they are built with
//! the same instrumentation by plain cargo, so that a machine with a stable Rust can run them.

use crate::host::{self, Host, progress};
use crate::setup;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Targets, as `fuzz/Cargo.toml` has them.
const TARGETS: [&str; 4] = ["policy", "pattern", "tsv", "differential"];

/// What libFuzzer needs the compiler to put in: counters of edges, a table of them, and compared values.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// The flags must not reach build scripts: with a target named, cargo keeps them apart.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Longest input in bytes. Faults are found in short ones, and long ones are slow.
const MAX_LEN: u32 = 4096;
/// Seconds for one input, and MiB of memory: more is a fault.
const PATIENCE: u32 = 20;
const MEMORY: u32 = 2048;

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Targets to run; all without any
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(TARGETS))]
    targets: Vec<String>,
    /// Seconds for each
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Put what was found into the kept inputs, as few as reach the same code
    #[arg(long)]
    keep: bool,
    /// Run this input alone, as after a fault
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "keep"])]
    input: Option<PathBuf>,
}

/// Runs them; the result is the exit code.
pub fn run(host: &Host, args: &Args) -> Result<i32> {
    setup::ensure_fuzzing()?;
    let all = TARGETS.map(str::to_owned).to_vec();
    let targets = if args.targets.is_empty() {
        &all
    } else {
        &args.targets
    };
    let built = build(host)?;
    for target in targets {
        let program = built.join(target);
        let ends_well = match &args.input {
            Some(input) => host::succeeds(host.command(&program).arg(input))?,
            None => fuzz(host, &program, target, args)?,
        };
        if !ends_well {
            eprintln!(
                "xtask: {target} found a fault; with the file that is named above, repeat it by\n  \
                 cargo xtask fuzz {target} --input FILE"
            );
            return Ok(1);
        }
    }
    Ok(0)
}

/// Builds all targets, and says where they are.
fn build(host: &Host) -> Result<PathBuf> {
    progress("building the fuzz targets");
    let target_dir = host.target.join("fuzz");
    let mut cargo = host.cargo();
    cargo
        .args(["build", "--release", "--bins", "--target", TRIPLE])
        .arg("--manifest-path")
        .arg(host.workspace.join("fuzz/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", FLAGS);
    if !host::succeeds(&mut cargo)? {
        bail!("the fuzz targets do not build");
    }
    Ok(target_dir.join(TRIPLE).join("release"))
}

fn fuzz(host: &Host, program: &Path, target: &str, args: &Args) -> Result<bool> {
    progress(format!("fuzzing {target} for {} s", args.seconds));
    let kept = host.workspace.join("fuzz/corpus").join(target);
    let found = host.target.join("fuzz/corpus").join(target);
    let artifacts = host.workspace.join("fuzz/artifacts").join(target);
    for directory in [&kept, &found, &artifacts] {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let limits = [
        format!("-max_len={MAX_LEN}"),
        format!("-timeout={PATIENCE}"),
        format!("-rss_limit_mb={MEMORY}"),
        format!("-artifact_prefix={}/", artifacts.display()),
    ];
    // It reports each discovery; the last of it is enough unless something is wrong.
    let out = host
        .command(program)
        .args(&limits)
        .arg(format!("-max_total_time={}", args.seconds))
        .arg("-print_final_stats=1")
        .args([&found, &kept])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let report = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        eprintln!("{report}");
        return Ok(false);
    }
    println!("{target}: {}", summary(&report));
    if args.keep {
        let mut merge = host.command(program);
        merge
            .args(&limits)
            .args(["-set_cover_merge=1", "-use_counters=0"])
            .args([&kept, &found]);
        return host::succeeds(&mut merge);
    }
    Ok(true)
}

/// The figures of libFuzzer's report.
fn summary(report: &str) -> String {
    let stat = |name: &str| {
        let line = report
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(name));
        line.map_or("?", str::trim).to_owned()
    };
    let last = report.lines().rev().find(|line| line.contains(" cov: "));
    let covered = last
        .and_then(|line| line.split(" cov: ").nth(1)?.split(' ').next())
        .unwrap_or("?");
    format!(
        "{} inputs, {} a second, {covered} edges reached",
        stat("stat::number_of_executed_units:"),
        stat("stat::average_exec_per_sec:"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_manifest_and_flags_stay_apart() {
        let manifest = include_str!("../../../../fuzz/Cargo.toml");
        for target in TARGETS {
            assert!(
                manifest.contains(&format!("name = \"{target}\"")),
                "{target}"
            );
        }
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    }

    #[test]
    fn a_report_gives_its_figures() {
        let report = "#8\tNEW    cov: 120 ft: 9\n#999\tDONE   cov: 2345 ft: 88 corp: 1/2b\n\
            stat::number_of_executed_units: 999\nstat::average_exec_per_sec:     33\n";
        assert_eq!(
            summary(report),
            "999 inputs, 33 a second, 2345 edges reached"
        );
        assert_eq!(summary(""), "? inputs, ? a second, ? edges reached");
    }
}
