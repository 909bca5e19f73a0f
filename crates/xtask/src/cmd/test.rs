//! `cargo xtask test`: formatting, lints, the host's tests, and the guest's on several kernels.
//!
//! The last line is the count of all of it, alone on its line, for whatever reads it.

use crate::artifacts::Artifacts;
use crate::cmd::vm::{exit_code, report_console};
use crate::host::{self, Host, progress};
use crate::kernel::{self, Kernel, SERIES, Spec};
use crate::progress as status;
use crate::tally::{GuestTally, Lines, Tally, cargo_summary};
use crate::vm::console::Severity;
use crate::vm::qemu::{Accel, Machine, Smp};
use crate::vm::{Boot, End, Port, shell_line};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// On all kernels instead of the oldest and the newest at hand
    #[arg(long, conflicts_with = "kernel")]
    all_kernels: bool,
    /// On this kernel only; may be given more than once
    #[arg(long)]
    kernel: Vec<Spec>,
    /// Without guests
    #[arg(long, conflicts_with_all = ["all_kernels", "kernel", "guest_only"])]
    host_only: bool,
    /// Without what runs on the host
    #[arg(long)]
    guest_only: bool,
    /// CPUs of the guests
    #[arg(long, default_value = "4")]
    smp: Smp,
    /// Memory of the guests in MiB
    #[arg(long, default_value_t = 2048)]
    mem: u32,
    /// Seconds of wall-clock time for each guest
    #[arg(long, default_value_t = 2400)]
    timeout: u64,
    /// Only tests whose names contain this
    filter: Option<String>,
}

/// Runs all of it; the result is the exit code.
pub fn run(host: &Host, args: &Args) -> Result<i32> {
    let mut tally = Tally::default();
    if !args.guest_only {
        if args.filter.is_none() {
            run_checks(host, &mut tally)?;
        }
        tally.add(run_host_tests(host, args.filter.as_deref())?);
    }
    if !args.host_only {
        tally.add(run_guests(host, args)?);
    }
    println!("\n{tally}");
    if tally.passed + tally.failed == 0 {
        eprintln!("xtask: no test ran");
        return Ok(1);
    }
    Ok(i32::from(tally.failed > 0))
}

fn run_checks(host: &Host, tally: &mut Tally) -> Result<()> {
    progress("checking the format");
    let format = host::succeeds(host.cargo().args(["fmt", "--all", "--", "--check"]))?;
    progress("running clippy");
    let lint = host::succeeds(host.cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    tally.check("format", format);
    tally.check("clippy", lint);
    Ok(())
}

/// `cargo test`, passed through while it is counted.
fn run_host_tests(host: &Host, filter: Option<&str>) -> Result<Tally> {
    progress("running the host's tests");
    let mut command = host.cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast", "--"])
        .args(filter)
        .env("TWOPOOL_GUEST_TESTS", "elsewhere");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo test")?;
    let stdout = child.stdout.take().context("no pipe from cargo test")?;
    let mut tally = Tally::default();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        tally.add(cargo_summary(&line).unwrap_or_default());
    }
    // What does not compile counts no test.
    if !child.wait()?.success() && tally.failed == 0 {
        tally.check("cargo test", false);
    }
    Ok(tally)
}

fn run_guests(host: &Host, args: &Args) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut kernels = Vec::new();
    for found in choose_kernels(host, args)? {
        match found {
            Some(kernel) => kernels.push(kernel),
            None => tally.skipped += 1,
        }
    }
    if kernels.is_empty() {
        host::loudly("no kernel at hand: the guest's tests are skipped");
        return Ok(tally);
    }
    let artifacts = match Artifacts::build(host) {
        Ok(artifacts) => artifacts,
        Err(error) => {
            eprintln!("{error:#}");
            tally.check("build for guests", false);
            return Ok(tally);
        }
    };
    for kernel in &kernels {
        let (mut counted, by_emulator) = run_guest(host, args, kernel, &artifacts)?;
        if by_emulator {
            host::loudly("the emulator's fault, not the kernel's (see EMULATOR_FAULT): once more");
            (counted, _) = run_guest(host, args, kernel, &artifacts)?;
        }
        tally.add(counted);
    }
    Ok(tally)
}

/// The kernels to test on; `None` for one that is not at hand, which has been said.
fn choose_kernels(host: &Host, args: &Args) -> Result<Vec<Option<Kernel>>> {
    if !args.kernel.is_empty() {
        return args
            .kernel
            .iter()
            .map(|spec| kernel::find(host, spec))
            .collect();
    }
    if args.all_kernels {
        let all = SERIES
            .iter()
            .map(|series| Spec::Series((*series).to_owned()));
        return all.map(|spec| kernel::find(host, &spec)).collect();
    }
    let oldest = kernel::find_oldest(host)?;
    let newest = kernel::find(host, &Spec::Newest)?;
    if oldest.as_ref().map(|k| &k.image) == newest.as_ref().map(|k| &k.image) {
        return Ok(vec![newest]);
    }
    Ok(vec![oldest, newest])
}

/// The kernel patches its code while it runs, by way of a breakpoint. An emulator with a thread for each
/// CPU may execute the breakpoint after the kernel has done with it: seen once in some tens of boots, in
/// `__schedule`, when a scheduler comes or goes. No hardware does that.
const EMULATOR_FAULT: &str = "Oops: int3";

/// All guest tests in one boot; also whether the emulator ended it.
fn run_guest(
    host: &Host,
    args: &Args,
    kernel: &Kernel,
    artifacts: &Artifacts,
) -> Result<(Tally, bool)> {
    println!("\n== kernel {} ==", kernel.version);
    let mut words = vec!["twopool-vm-tests".to_owned()];
    words.extend(args.filter.clone());
    let boot = Boot {
        kernel,
        machine: Machine {
            smp: args.smp,
            memory_mib: args.mem,
            accel: Accel::Emulated,
        },
        append: Vec::new(),
        files: artifacts.guest_files(host),
        // The harness takes the shell's place: it kills everything but itself between tests.
        script: format!("export TWOPOOL_GUEST=1\nexec {}\n", shell_line(&words)),
        timeout: Duration::from_secs(args.timeout),
    };
    let mut counted = GuestTally::default();
    let mut lines = Lines::default();
    let outcome = boot.run(host, &mut |port, data| match port {
        Port::Stdout => {
            for line in lines.push(data) {
                match line.strip_prefix("begin ") {
                    Some(name) => status::detail(name),
                    None => println!("{line}"),
                }
                counted.line(&line);
            }
        }
        _ => {
            // A reader of our standard error that went away is no reason to stop.
            let _ = std::io::stderr().lock().write_all(data);
        }
    })?;
    let mut tally = counted.finish();
    report_console(&outcome.console);
    if !matches!(outcome.end, End::Exited(_)) {
        exit_code(&outcome, boot.timeout);
    }
    let faults = outcome.console.findings();
    let by_emulator =
        matches!(outcome.end, End::Died) && faults.iter().any(|f| f.line.contains(EMULATOR_FAULT));
    let quiet = !faults.iter().any(|f| f.severity == Severity::Fault);
    tally.check(
        &format!("kernel {} reports no fault", kernel.series()),
        quiet,
    );
    Ok((tally, by_emulator))
}
