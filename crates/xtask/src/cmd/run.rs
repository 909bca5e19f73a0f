//! `cargo xtask run`: the main job, start to end, on whatever machine this is.
//!
//! Requests and a batch job compete under the kernel's default scheduler and under twopool with
//! `policies/ads.toml`; then a rule is put first while threads run. On this host where its kernel can
//! do it and nothing else schedules it, else in a guest in instruction-counted time.

use crate::artifacts::Artifacts;
use crate::cmd::vm::collect;
use crate::host::{self, Host, progress};
use crate::kernel::{self, Spec};
use crate::measure::{self, Block};
use crate::table::Table;
use crate::vm::qemu::{Accel, Machine, Smp};
use crate::vm::{Boot, shell_line};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const GUEST_CPUS: u32 = 5;
const POLICY: &str = "policies/ads.toml";
/// What the live edit adds.
const RULE: &str = "[[rule]]\nname = \"live edit\"\npool = \"critical\"\nthread = \"batch-[01]\"\n";

/// Arguments of `cargo xtask run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// In a guest even if this host could do it
    #[arg(long)]
    vm: bool,
    /// Kernel of the guest: a series, `newest`, or an image's path
    #[arg(long, default_value = "newest")]
    kernel: Spec,
    /// Seconds of load a block
    #[arg(long, default_value_t = 6)]
    seconds: u32,
}

/// Where the job ran, for the report.
struct Place {
    sentence: String,
    cpus: u32,
}

/// Runs the job; the result is the exit code.
pub fn run(host: &Host, args: &Args) -> Result<i32> {
    if !host.workspace.join(POLICY).is_file() {
        bail!("{POLICY} is missing");
    }
    let obstacle = if args.vm {
        Some("a guest was asked for".to_owned())
    } else {
        obstacle_on_host()
    };
    let (place, output) = match obstacle {
        None => run_here(host, args)?,
        Some(why) => {
            progress(format!("in a guest: {why}"));
            match run_in_guest(host, args)? {
                Ok(done) => done,
                Err(code) => return Ok(code),
            }
        }
    };
    let lines = measure::json_lines(&output)?;
    report_blocks(&place, &lines)?;
    report_live(&lines)?;
    Ok(0)
}

/// Why the job cannot run on this host itself.
fn obstacle_on_host() -> Option<String> {
    let Ok(state) = std::fs::read_to_string("/sys/kernel/sched_ext/state") else {
        return Some("this host's kernel has no sched_ext".into());
    };
    if !host::is_root() {
        return Some("not root on this host".into());
    }
    (state.trim() != "disabled").then(|| "another scheduler is attached on this host".into())
}

/// The two commands of the job: blocks, then the live edit.
fn commands(args: &Args, cpus: u32, policy: &str, settle: u32) -> [Vec<String>; 2] {
    // As in a guest with 5 CPUs: 4 threads at 40 %, 8 that never have enough.
    let threads = (cpus * 4 / 5).max(1).to_string();
    let hogs = (cpus * 8 / 5).max(2).to_string();
    let (settle, seconds) = (settle.to_string(), args.seconds.to_string());
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    [
        words(&[
            "twopool-load",
            "blocks",
            "--plan",
            "alone,default,twopool",
            "--policy",
            policy,
            "--settle",
            &settle,
            "--hogs",
            &hogs,
            "--",
            "--threads",
            &threads,
            "--seconds",
            &seconds,
            "--name",
            "srv-N",
            "--process",
            "adserver",
            "--cgroup",
            "/ads.slice/adserver.service",
            "--hog-name",
            "batch-N",
            "--hog-arg=--process",
            "--hog-arg=batch",
            "--hog-arg=--cgroup",
            "--hog-arg=/batch.slice",
        ]),
        words(&[
            "twopool-load",
            "live",
            "--policy",
            policy,
            "--rule",
            RULE,
            "--",
            "--threads",
            "6",
            "--name",
            "batch-N",
            "--process",
            "batch",
            "--cgroup",
            "/batch.slice",
            "--burn-us",
            "1000",
            "--sleep-us",
            "3000",
        ]),
    ]
}

fn run_here(host: &Host, args: &Args) -> Result<(Place, String)> {
    Artifacts::build(host)?;
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let policy = host.workspace.join(POLICY);
    let path = std::env::join_paths(std::iter::once(host.target.join("release")).chain(
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()),
    ))?;
    let mut output = String::new();
    for words in commands(args, cpus, &policy.to_string_lossy(), 1) {
        progress(format!("running {} {}", words[0], words[1]));
        let out = Command::new(&words[0])
            .args(&words[1..])
            .env("PATH", &path)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", words[0]))?;
        if !out.status.success() {
            bail!("{} {} failed: {}", words[0], words[1], out.status);
        }
        output.push_str(&String::from_utf8_lossy(&out.stdout));
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let sentence = format!("on this host, kernel {}, {cpus} CPUs", release.trim());
    Ok((Place { sentence, cpus }, output))
}

/// `Err` with an exit code when the guest failed, which has been said.
fn run_in_guest(host: &Host, args: &Args) -> Result<Result<(Place, String), i32>> {
    let Some(kernel) = kernel::find(host, &args.kernel)? else {
        bail!("no kernel to boot");
    };
    let artifacts = Artifacts::build(host)?;
    let policy = PathBuf::from("/").join(POLICY);
    let script: Vec<String> = commands(args, GUEST_CPUS, &policy.to_string_lossy(), 10)
        .iter()
        .map(|words| shell_line(words))
        .collect();
    let boot = Boot {
        kernel: &kernel,
        machine: Machine {
            smp: Smp::flat(GUEST_CPUS),
            memory_mib: 2048,
            accel: Accel::Counted { shift: 1, seed: 1 },
        },
        append: Vec::new(),
        files: artifacts.guest_files(host),
        script: format!("{}\n", script.join(" && ")),
        timeout: Duration::from_secs(1800),
    };
    progress("the guest's time is slow; this takes a few minutes");
    let output = match collect(host, &boot)? {
        Ok(output) => output,
        Err(code) => return Ok(Err(code)),
    };
    let sentence = format!(
        "kernel {}, {GUEST_CPUS} CPUs, emulated in instruction-counted time: compare the ratios, \
         not the milliseconds",
        kernel.version
    );
    let place = Place {
        sentence,
        cpus: GUEST_CPUS,
    };
    Ok(Ok((place, output)))
}

fn report_blocks(place: &Place, lines: &[Value]) -> Result<()> {
    let mut blocks = Vec::new();
    for line in lines {
        blocks.extend(Block::parse(line)?);
    }
    let alone = measure::kind(&blocks, "alone")?.mean(|b| b.p99_ms);
    let default = measure::kind(&blocks, "default")?;
    let mut table = Table::new(&[
        "scheduler",
        "request p99 ms",
        "over alone",
        "background CPUs",
        "of the default's",
    ]);
    for (name, label) in [
        ("alone", "requests alone"),
        ("default", "kernel default"),
        ("twopool", "twopool"),
    ] {
        let kind = measure::kind(&blocks, name)?;
        let background = kind.mean(|b| b.background_cpus);
        let ratio = background / default.mean(|b| b.background_cpus);
        table.row(vec![
            label.to_owned(),
            kind.each(|b| b.p99_ms, 1),
            format!("{:.2}", kind.mean(|b| b.p99_ms) / alone),
            format!("{background:.2}"),
            if name == "alone" {
                "-".into()
            } else {
                format!("{ratio:.2}")
            },
        ]);
    }
    println!("\n{POLICY}: {}\n\n{}", place.sentence, table.text());
    let twopool = measure::kind(&blocks, "twopool")?.mean(|b| b.p99_ms);
    println!(
        "request p99 under twopool is {:.2} of the kernel default's; the machine has {} CPUs.",
        twopool / default.mean(|b| b.p99_ms),
        place.cpus
    );
    Ok(())
}

fn report_live(lines: &[Value]) -> Result<()> {
    let live = lines
        .iter()
        .find(|line| line["effect_ms"].is_number())
        .context("the live edit reported nothing")?;
    println!("\nA rule put first while the threads run:\n\n{RULE}");
    for moved in live["moved"].as_array().into_iter().flatten() {
        println!(
            "  {:<15} {} -> {}",
            moved["thread"].as_str().unwrap_or("?"),
            moved["from"].as_str().unwrap_or("?"),
            moved["to"].as_str().unwrap_or("?"),
        );
    }
    println!(
        "  {} other threads stayed where they were\n\nFrom rename(2) to all threads under the new \
         policy: between {:.0} and {:.0} ms, of which the daemon waits 200 ms for the file to settle.",
        live["stayed"],
        live["not_before_ms"].as_f64().unwrap_or(0.0),
        live["effect_ms"].as_f64().unwrap_or(0.0),
    );
    Ok(())
}
