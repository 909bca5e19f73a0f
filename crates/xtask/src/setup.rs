//! Installs what building needs and is missing, through apt, and says what and why.
//!
//! What only the guest needs (QEMU, kernels, a static busybox) is not installed: it is unpacked into
//! the cache, see `vm::qemu` and `kernel`.

use crate::host::{self, loudly, progress};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

/// How to tell that a need is met.
enum Probe {
    /// One of these programs is on the path.
    Program(&'static [&'static str]),
    /// One of these files exists.
    File(&'static [&'static str]),
}

struct Need {
    /// Packages that meet the need; the first that the archive has is installed.
    packages: &'static [&'static str],
    probe: Probe,
    why: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        packages: &["clang-19", "clang-20", "clang-21", "clang"],
        probe: Probe::Program(&["clang-19", "clang-20", "clang-21", "clang-22"]),
        why: "compiles the kernel program",
    },
    Need {
        packages: &["gcc"],
        probe: Probe::Program(&["cc"]),
        why: "compiles libbpf and links",
    },
    Need {
        packages: &["libc6-dev"],
        probe: Probe::File(&["/usr/include/stdint.h"]),
        why: "headers for libbpf and for the native build of the kernel program",
    },
    Need {
        packages: &["make"],
        probe: Probe::Program(&["make"]),
        why: "builds libbpf",
    },
    Need {
        packages: &["pkg-config"],
        probe: Probe::Program(&["pkg-config", "pkgconf"]),
        why: "finds libelf and zlib",
    },
    Need {
        packages: &["libelf-dev"],
        probe: Probe::File(&["/usr/include/libelf.h"]),
        why: "libbpf reads object files with it",
    },
    Need {
        packages: &["zlib1g-dev"],
        probe: Probe::File(&["/usr/include/zlib.h"]),
        why: "libelf needs it",
    },
    Need {
        packages: &["binutils"],
        probe: Probe::Program(&["objcopy"]),
        why: "makes the guest's programs small",
    },
];

/// What fuzzing needs beside all that.
const FUZZING: &[Need] = &[Need {
    packages: &["g++"],
    probe: Probe::Program(&["c++"]),
    why: "compiles libFuzzer",
}];

/// Makes sure that everything is there. Does nothing, quickly, when it is.
pub fn ensure() -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        bail!("the VM and its kernels are x86-64 Linux only");
    }
    install(NEEDS)
}

/// The same for fuzzing.
pub fn ensure_fuzzing() -> Result<()> {
    install(FUZZING)
}

fn install(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !need.probe.is_met()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        progress(format!("missing: {} ({})", need.packages[0], need.why));
    }
    let names: Vec<&str> = missing.iter().map(|need| need.packages[0]).collect();
    if host::which("apt-get").is_none() {
        bail!(
            "there is no apt here: install {} by other means",
            names.join(" ")
        );
    }
    if !host::is_root() {
        bail!(
            "not root: run `apt-get install {}` as root, then again",
            names.join(" ")
        );
    }
    progress("reading the package lists (apt-get update)");
    // A third-party source that is down must not stop us: what matters is what can be installed.
    if !host::succeeds(&mut apt("update"))? {
        loudly("apt-get update reported errors; going on with what it got");
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.choose()).collect();
    progress(format!("installing {}", packages.join(" ")));
    host::output(
        apt("install")
            .args(["--yes", "--no-install-recommends"])
            .args(&packages),
    )?;
    match missing.iter().find(|need| !need.probe.is_met()) {
        Some(need) => bail!(
            "{} is installed, but what it is for is not there",
            need.packages[0]
        ),
        None => Ok(()),
    }
}

impl Need {
    fn choose(&self) -> &'static str {
        let known = |package: &&&str| {
            Command::new("apt-cache")
                .args(["show", package])
                .output()
                .is_ok_and(|out| out.status.success() && !out.stdout.is_empty())
        };
        self.packages
            .iter()
            .find(known)
            .unwrap_or(&self.packages[0])
    }
}

impl Probe {
    fn is_met(&self) -> bool {
        match self {
            Probe::Program(names) => names.iter().any(|name| host::which(name).is_some()),
            Probe::File(paths) => paths.iter().any(|path| Path::new(path).exists()),
        }
    }
}

fn apt(action: &str) -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .arg("--quiet")
        .arg(action);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_tell_present_from_absent() {
        assert!(Probe::Program(&["no-such-program", "sh"]).is_met());
        assert!(!Probe::Program(&["no-such-program"]).is_met());
        assert!(!Probe::File(&["/no/such/file"]).is_met());
    }
}
