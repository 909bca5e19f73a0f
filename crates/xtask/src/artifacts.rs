//! Builds the programs that go into the guest, and finds them.

use crate::host::{self, Host, progress};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Stdio;

/// Where the guest's path begins.
const GUEST_BIN: &str = "/usr/local/bin";

/// Built programs. Those that were not built are absent.
#[derive(Debug, Default)]
pub struct Artifacts {
    programs: Vec<(String, PathBuf)>,
}

impl Artifacts {
    /// Builds the program, the load generator and the guest's tests, optimised: emulation is slow
    /// enough.
    pub fn build(host: &Host) -> Result<Self> {
        progress("building twopool, twopool-load and the guest's tests");
        let mut command = host.cargo();
        command.args([
            "build",
            "--release",
            "--message-format=json-render-diagnostics",
        ]);
        command.args([
            "-p",
            "twopool",
            "-p",
            "twopool-load",
            "--bins",
            "--test",
            "vm",
        ]);
        let out = command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        if !out.status.success() {
            bail!("the build failed");
        }
        parse_messages(&String::from_utf8_lossy(&out.stdout))
    }

    /// What an earlier build left, without building.
    pub fn find(host: &Host) -> Self {
        let dir = host.target.join("release");
        let programs = ["twopool", "twopool-load"]
            .map(|name| (name.to_owned(), dir.join(name)))
            .into_iter()
            .filter(|(name, path)| {
                let there = path.is_file();
                if !there {
                    host::loudly(format!("{name} is not built: the guest goes without it"));
                }
                there
            })
            .collect();
        Self { programs }
    }

    /// Host paths and guest paths of the programs and of the policies.
    pub fn guest_files(&self, host: &Host) -> Vec<(PathBuf, PathBuf)> {
        let mut files: Vec<(PathBuf, PathBuf)> = self
            .programs
            .iter()
            .map(|(name, path)| (path.clone(), PathBuf::from(GUEST_BIN).join(name)))
            .collect();
        let policies = host.workspace.join("policies");
        if policies.is_dir() {
            files.push((policies, "/policies".into()));
        }
        files
    }
}

/// Executables in cargo's messages. The test harness named `vm` is `twopool-vm-tests` in the guest.
fn parse_messages(text: &str) -> Result<Artifacts> {
    let mut programs = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let message: serde_json::Value =
            serde_json::from_str(line).context("cargo's message is not JSON")?;
        let (Some(path), Some(name)) = (
            message["executable"].as_str(),
            message["target"]["name"].as_str(),
        ) else {
            continue;
        };
        let name = if name == "vm" {
            "twopool-vm-tests"
        } else {
            name
        };
        programs.push((name.to_owned(), PathBuf::from(path)));
    }
    Ok(Artifacts { programs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_taken_from_cargo_messages() {
        let text = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"vm"},"executable":"/t/vm-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"lib"},"executable":null}"#,
            "\nnoise\n",
        );
        let artifacts = parse_messages(text).unwrap();
        assert_eq!(
            artifacts.programs,
            [("twopool-vm-tests".to_owned(), PathBuf::from("/t/vm-1"))]
        );
    }
}
