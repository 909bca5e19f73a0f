//! The machine that the commands run on: where things are, how to call a program, how to say so.
//!
//! Every other file of this crate reaches the file system layout through `Host`, so that a different
//! target directory moves everything that is built and everything that is cached.

use crate::progress;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directories of this checkout and of its build products.
#[derive(Debug, Clone)]
pub struct Host {
    /// The root of the checkout.
    pub workspace: PathBuf,
    /// Where cargo builds, `CARGO_TARGET_DIR` or `target`.
    pub target: PathBuf,
    /// Downloaded kernels and tools.
    pub cache: PathBuf,
}

impl Host {
    /// Finds the checkout from this crate's own place in it.
    pub fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let workspace = manifest
            .ancestors()
            .nth(2)
            .context("crates/xtask is not two levels below a workspace")?
            .to_path_buf();
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| workspace.join("target"), |dir| workspace.join(dir));
        let cache = target.join("vm");
        std::fs::create_dir_all(&cache)
            .with_context(|| format!("cannot create {}", cache.display()))?;
        Ok(Self {
            workspace,
            target,
            cache,
        })
    }

    /// A command that runs in the checkout's root.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.workspace);
        command
    }

    /// The cargo that started us, or the one on the path.
    pub fn cargo(&self) -> Command {
        self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }

    /// Holds other xtask processes off the cache until the guard is dropped.
    pub fn lock_cache(&self) -> Result<CacheLock> {
        let path = self.cache.join("lock");
        let file =
            std::fs::File::create(&path).with_context(|| format!("cannot create {path:?}"))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .with_context(|| format!("cannot lock {path:?}"))?;
        Ok(CacheLock { _file: file })
    }
}

/// The cache's lock; closing the file releases it.
#[derive(Debug)]
pub struct CacheLock {
    _file: std::fs::File,
}

/// A progress line. They go to standard error: standard output is for results.
pub fn progress(message: impl AsRef<str>) {
    progress::step(message.as_ref());
}

/// Something that the user should not overlook.
pub fn loudly(message: impl AsRef<str>) {
    progress::clear();
    eprintln!("\n!!! {}\n", message.as_ref());
}

/// Runs a command to its end and returns its standard output; a failure quotes what it said.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let out = progress::ticking(|| command.stdin(Stdio::null()).output())
        .with_context(|| format!("cannot run {shown}"))?;
    if !out.status.success() {
        let said = [out.stdout, out.stderr].concat();
        bail!(
            "{shown} failed ({})\n{}",
            out.status,
            tail(&String::from_utf8_lossy(&said), 20)
        );
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Runs a command with our own output streams; true if it succeeded.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let shown = shown(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {shown}"))?;
    Ok(status.success())
}

/// The program on the path, if there is one.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// The last `lines` lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// True when we may change the system.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The value of one key of /etc/os-release, without its quotes.
pub fn os_release(key: &str) -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    text.lines().find_map(|line| {
        let value = line.strip_prefix(key)?.strip_prefix('=')?;
        Some(value.trim_matches('"').to_owned())
    })
}

/// Makes `dir` and its parents.
pub fn make_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args().take(6) {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_keeps_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
    }

    #[test]
    fn a_failing_command_quotes_what_it_said() {
        let error =
            output(Command::new("sh").args(["-c", "echo no such thing >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("no such thing"), "{error}");
    }
}
