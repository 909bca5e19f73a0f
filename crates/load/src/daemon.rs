//! The `twopool` program as seen by a measurement: started, attached, asked, stopped.

use crate::clock;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Loading may wait for a verifier under emulation.
const ATTACH_LIMIT_NS: u64 = 120_000_000_000;
const POLL_NS: u64 = 20_000_000;
const SYSFS: &str = "/sys/kernel/sched_ext";

/// A running daemon; dropping it kills it, and the kernel takes its own scheduler back.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
}

impl Daemon {
    /// Starts the program with that policy and waits until the kernel runs it.
    pub fn start(policy: &Path) -> Result<Self> {
        let child = Command::new("twopool")
            .arg("--policy")
            .arg(policy)
            .arg("run")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start twopool")?;
        let mut daemon = Self { child };
        daemon.wait_for("attach", |daemon| {
            if let Some(status) = daemon.child.try_wait()? {
                bail!("twopool ended: {status}");
            }
            Ok(sysfs("state") == "enabled" && sysfs("root/ops") == "twopool")
        })?;
        Ok(daemon)
    }

    /// Ends it and waits until the kernel runs its own scheduler again.
    pub fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("the daemon has no process id")?, Signal::TERM)?;
        self.wait_for("detach", |daemon| {
            Ok(daemon.child.try_wait()?.is_some() && sysfs("state") == "disabled")
        })
    }

    fn wait_for(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let deadline = clock::now_ns() + ATTACH_LIMIT_NS;
        while !holds(self)? {
            if clock::now_ns() > deadline {
                bail!("twopool did not {what} in time");
            }
            clock::sleep_until_ns(clock::now_ns() + POLL_NS);
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file below /sys/kernel/sched_ext; empty where there is none.
pub fn sysfs(file: &str) -> String {
    std::fs::read_to_string(Path::new(SYSFS).join(file))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// What the kernel program holds of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Class {
    /// Thread id.
    pub tid: u32,
    /// Its name.
    pub thread: String,
    /// `critical` or `background`.
    pub pool: String,
    /// Epoch of the policy that classified it.
    pub epoch: u64,
}

/// All classified threads of one process.
pub fn classes(process: u32) -> Result<Vec<Class>> {
    #[derive(Deserialize)]
    struct Document {
        threads: Vec<Class>,
    }
    let document: Document =
        serde_json::from_value(ask("threads")?).context("twopool threads: not as expected")?;
    Ok(document
        .threads
        .into_iter()
        .filter(|class| Path::new(&format!("/proc/{process}/task/{}", class.tid)).exists())
        .collect())
}

/// The document of `twopool status`.
pub fn status() -> Result<Value> {
    ask("status")
}

/// What a command of the program says in JSON.
fn ask(command: &str) -> Result<Value> {
    let out = Command::new("twopool")
        .args([command, "--format", "json"])
        .stdin(Stdio::null())
        .output()
        .context("cannot start twopool")?;
    if !out.status.success() {
        let complaint = String::from_utf8_lossy(&out.stderr);
        bail!("twopool {command}: {}", complaint.trim());
    }
    serde_json::from_slice(&out.stdout)
        .with_context(|| format!("twopool {command}: not as expected"))
}
