//! `cargo xtask vm`: one command in a freshly booted guest.

use crate::artifacts::Artifacts;
use crate::host::{self, Host, progress};
use crate::kernel::{self, Kernel, Spec};
use crate::vm::console::Console;
use crate::vm::qemu::{Accel, Machine, Smp};
use crate::vm::{Boot, End, Outcome, Port, shell_line};
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// xtask's exit code when the guest ran out of time, as timeout(1) has it.
const EXIT_TIMED_OUT: i32 = 124;
/// xtask's exit code when the guest stopped without a report.
const EXIT_DIED: i32 = 125;
/// A KVM guest that does not come up in this time is given up for emulation.
const TRIAL_TIME: Duration = Duration::from_secs(15);

/// Arguments of `cargo xtask vm`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub guest: GuestArgs,
    /// Do not build: take what an earlier build left
    #[arg(long)]
    no_build: bool,
    /// Put a file or directory into the guest: PATH (at /PATH's last component) or PATH:GUEST_PATH
    #[arg(long, value_name = "PATH[:GUEST_PATH]")]
    add: Vec<String>,
    /// More kernel arguments
    #[arg(long, value_name = "ARGUMENTS")]
    append: Vec<String>,
    /// The command and its arguments; the guest has busybox, twopool, twopool-load and /policies
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// What kind of guest; shared by the commands that boot one.
#[derive(Debug, Clone, clap::Args)]
pub struct GuestArgs {
    /// A series (6.12, 6.16, 6.18, 6.19, 7.0, 7.1, 7.2, 7.3), `newest`, or an image's path
    #[arg(long, default_value = "newest")]
    pub kernel: Spec,
    /// CPUs: a number, or sockets, cores and threads as in 2s2c2t
    #[arg(long, default_value = "4")]
    pub smp: Smp,
    /// Memory in MiB
    #[arg(long, default_value_t = 2048)]
    pub mem: u32,
    /// Instruction-counted virtual time: 2^SHIFT ns an instruction, equal from run to run
    #[arg(long, value_name = "SHIFT", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    pub icount: Option<u8>,
    /// Seed of the guest's randomness with --icount
    #[arg(long, default_value_t = 1)]
    pub seed: u32,
    /// Use KVM if a guest boots under it
    #[arg(long, conflicts_with = "icount")]
    pub kvm: bool,
    /// Seconds of wall-clock time for the whole guest
    #[arg(long, default_value_t = 900)]
    pub timeout: u64,
}

impl GuestArgs {
    /// The hardware, after trying whether KVM works if that was asked for.
    pub fn machine(&self, host: &Host, kernel: &Kernel) -> Result<Machine> {
        let mut machine = Machine {
            smp: self.smp,
            memory_mib: self.mem,
            accel: match self.icount {
                Some(shift @ 0..=10) => Accel::Counted {
                    shift,
                    seed: self.seed,
                },
                Some(_) => bail!("--icount takes 0 to 10"),
                None => Accel::Emulated,
            },
        };
        if self.kvm {
            machine.accel = Accel::Kvm;
            if !boots(host, kernel, machine)? {
                progress("no guest boots under KVM here: emulating");
                machine.accel = Accel::Emulated;
            }
        }
        Ok(machine)
    }
}

/// Runs the command; the result is the exit code for xtask.
pub fn run(host: &Host, args: &Args) -> Result<i32> {
    let Some(kernel) = kernel::find(host, &args.guest.kernel)? else {
        bail!("no kernel to boot");
    };
    let artifacts = if args.no_build {
        Artifacts::find(host)
    } else {
        Artifacts::build(host)?
    };
    let mut files = artifacts.guest_files(host);
    for add in &args.add {
        files.push(parse_add(add)?);
    }
    let boot = Boot {
        kernel: &kernel,
        machine: args.guest.machine(host, &kernel)?,
        append: args.append.clone(),
        files,
        script: format!("exec {}\n", shell_line(&args.command)),
        timeout: Duration::from_secs(args.guest.timeout),
    };
    let outcome = boot.run(host, &mut pass_on)?;
    report_console(&outcome.console);
    Ok(exit_code(&outcome, boot.timeout))
}

/// Copies the guest's output to ours. A reader that went away is no reason to stop.
pub fn pass_on(port: Port, data: &[u8]) {
    let _ = match port {
        Port::Stdout => {
            let mut out = std::io::stdout().lock();
            out.write_all(data).and_then(|()| out.flush())
        }
        _ => std::io::stderr().lock().write_all(data),
    };
}

/// Boots, and collects what the guest writes to standard output. `Err` with an exit code when it failed,
/// which has been said.
pub fn collect(host: &Host, boot: &Boot) -> Result<Result<String, i32>> {
    let mut output = Vec::new();
    let outcome = boot.run(host, &mut |port, data| match port {
        Port::Stdout => output.extend_from_slice(data),
        _ => pass_on(port, data),
    })?;
    report_console(&outcome.console);
    let code = exit_code(&outcome, boot.timeout);
    Ok(match outcome.end {
        End::Exited(0) => Ok(String::from_utf8_lossy(&output).into_owned()),
        _ => Err(code),
    })
}

/// Says what the kernel said that matters.
pub fn report_console(console: &Console) {
    for finding in console.findings() {
        progress(format!("guest kernel: {}", finding.line));
    }
}

/// The exit code for an outcome, after explaining one that is not the command's own.
pub fn exit_code(outcome: &Outcome, timeout: Duration) -> i32 {
    let (code, why) = match outcome.end {
        End::Exited(code) => return code,
        End::TimedOut => (
            EXIT_TIMED_OUT,
            format!("the guest was not done after {} s", timeout.as_secs()),
        ),
        End::Died => (EXIT_DIED, "the guest stopped without a report".to_owned()),
    };
    host::loudly(format!(
        "{why}; its console ended with\n{}",
        host::tail(&outcome.console.tail(), 30)
    ));
    code
}

fn boots(host: &Host, kernel: &Kernel, machine: Machine) -> Result<bool> {
    if !Path::new("/dev/kvm").exists() {
        return Ok(false);
    }
    progress("trying whether a guest boots under KVM");
    let trial = Boot {
        kernel,
        machine,
        append: Vec::new(),
        files: Vec::new(),
        script: "true\n".into(),
        timeout: TRIAL_TIME,
    };
    let outcome = trial.run(host, &mut |_, _| {})?;
    Ok(outcome.end == End::Exited(0))
}

fn parse_add(text: &str) -> Result<(PathBuf, PathBuf)> {
    let (from, to) = match text.split_once(':') {
        Some((from, to)) => (PathBuf::from(from), PathBuf::from(to)),
        None => {
            let from = PathBuf::from(text);
            let name = from.file_name().context("--add needs a path with a name")?;
            let to = Path::new("/").join(name);
            (from, to)
        }
    };
    if !from.exists() {
        bail!("--add: no {}", from.display());
    }
    Ok((from, to))
}
