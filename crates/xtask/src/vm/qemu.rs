//! QEMU 10 or newer: the system's, or one unpacked into the cache; and the machine it emulates.
//!
//! Older versions share instruction-counted time between CPUs so unevenly that nothing measured
//! under them means anything.

use crate::archive::{self, Archive};
use crate::host::{self, Host, progress};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const LEAST_MAJOR: u32 = 10;
const LIBRARY_DIRS: &[&str] = &["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
const DATA_DIRS: &[&str] = &["usr/share/qemu", "usr/share/seabios"];

/// A QEMU that can be started.
#[derive(Debug, Clone)]
pub struct Qemu {
    program: PathBuf,
    /// Where it was unpacked; `None` for the system's own.
    root: Option<PathBuf>,
}

impl Qemu {
    /// Finds or fetches one.
    pub fn find(host: &Host) -> Result<Self> {
        if let Some(program) = host::which("qemu-system-x86_64") {
            let system = Self {
                program,
                root: None,
            };
            if system.is_new_enough() {
                return Ok(system);
            }
        }
        let _lock = host.lock_cache()?;
        let root = host.cache.join("qemu");
        let private = Self {
            program: root.join("usr/bin/qemu-system-x86_64"),
            root: Some(root),
        };
        if !private.is_new_enough() {
            private.fetch(host)?;
        }
        Ok(private)
    }

    /// A command line without arguments.
    pub fn command(&self) -> Command {
        let mut command = match host::which("setpriv") {
            // A killed xtask takes its guest along.
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command
                    .args(["--pdeathsig", "KILL", "--"])
                    .arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        if let Some(root) = &self.root {
            let dirs =
                |list: &[&str]| -> Vec<PathBuf> { list.iter().map(|dir| root.join(dir)).collect() };
            let libraries = dirs(LIBRARY_DIRS);
            command.env("QEMU_MODULE_DIR", libraries[0].join("qemu"));
            command.env(
                "LD_LIBRARY_PATH",
                std::env::join_paths(libraries).expect("cache path without a colon"),
            );
            for dir in dirs(DATA_DIRS) {
                command.arg("-L").arg(dir);
            }
        }
        command
    }

    fn is_new_enough(&self) -> bool {
        self.program.is_file()
            && host::output(self.command().arg("--version"))
                .ok()
                .and_then(|text| major_version(&text))
                .is_some_and(|major| major >= LEAST_MAJOR)
    }

    fn fetch(&self, host: &Host) -> Result<()> {
        let codename = archive::codename()?;
        let root = self
            .root
            .as_deref()
            .context("the system's QEMU is not ours to fetch")?;
        progress(format!("fetching QEMU {LEAST_MAJOR} or newer"));
        if root.exists() {
            std::fs::remove_dir_all(root)?;
        }
        let backports = format!("{codename}-backports");
        let own = [codename.clone(), format!("{codename}-updates")];
        let (name, suites, release) = if codename == "bookworm" {
            let suites = [&own[..], std::slice::from_ref(&backports)].concat();
            ("qemu", suites, backports)
        } else {
            ("qemu", own.to_vec(), codename)
        };
        let archive = Archive::open(host, name, &suites)?;
        archive.unpack_with_dependencies("qemu-system-x86", &release, root)?;
        if !self.is_new_enough() {
            bail!("the QEMU of {release} does not run or is older than {LEAST_MAJOR}");
        }
        Ok(())
    }
}

/// A busybox without shared libraries: the system's, or one unpacked into the cache.
pub fn find_busybox(host: &Host) -> Result<PathBuf> {
    let is_static = |path: &Path| {
        Command::new("ldd")
            .arg(path)
            .output()
            .is_ok_and(|out| !out.status.success())
    };
    if let Some(system) = host::which("busybox").filter(|path| is_static(path)) {
        return Ok(system);
    }
    let _lock = host.lock_cache()?;
    let root = host.cache.join("busybox");
    let places = ["usr/bin/busybox", "bin/busybox"];
    let private = || places.iter().map(|p| root.join(p)).find(|p| p.is_file());
    if let Some(program) = private() {
        return Ok(program);
    }
    progress("fetching a static busybox");
    let codename = archive::codename()?;
    let archive = Archive::open(host, "base", std::slice::from_ref(&codename))?;
    archive.unpack("busybox-static", &root)?;
    private().context("busybox-static contains no busybox")
}

/// CPUs of the guest: `8`, or `2s2c2t` for sockets, cores per socket, threads per core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smp {
    sockets: u32,
    cores: u32,
    threads: u32,
}

impl Smp {
    /// One socket with one thread a core.
    pub const fn flat(cpus: u32) -> Self {
        Self {
            sockets: 1,
            cores: cpus,
            threads: 1,
        }
    }

    /// How many CPUs that makes.
    pub fn cpus(self) -> u32 {
        self.sockets * self.cores * self.threads
    }
}

impl std::str::FromStr for Smp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is neither a number of CPUs nor like 2s2c2t");
        if let Ok(cpus @ 1..=255) = text.parse() {
            return Ok(Self::flat(cpus));
        }
        let mut smp = Self::flat(1);
        let mut rest = text;
        for (letter, value) in [
            ('s', &mut smp.sockets),
            ('c', &mut smp.cores),
            ('t', &mut smp.threads),
        ] {
            if let Some((digits, after)) = rest.split_once(letter) {
                *value = digits.parse().map_err(|_| wrong())?;
                rest = after;
            }
        }
        if !rest.is_empty() || text.is_empty() || !(1..=255).contains(&smp.cpus()) {
            return Err(wrong());
        }
        Ok(smp)
    }
}

/// How the guest's instructions are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// Emulation, one host thread a CPU.
    Emulated,
    /// Emulation in instruction-counted virtual time, 2^shift ns an instruction: equal from run
    /// to run, on one host thread.
    Counted {
        /// 0..=10.
        shift: u8,
        /// Seeds what the guest sees as random.
        seed: u32,
    },
    /// The host's own virtualisation.
    Kvm,
}

/// The guest's hardware.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// CPUs.
    pub smp: Smp,
    /// MiB of memory.
    pub memory_mib: u32,
    /// Execution.
    pub accel: Accel,
}

impl Machine {
    /// QEMU's arguments for this hardware, without console ports. `metronome` is the file of the table
    /// that counted time wants.
    pub fn arguments(&self, metronome: &Path) -> Vec<String> {
        let Smp {
            sockets,
            cores,
            threads,
        } = self.smp;
        let smp = format!(
            "{},sockets={sockets},cores={cores},threads={threads}",
            self.smp.cpus()
        );
        let memory = self.memory_mib.to_string();
        let mut args = strings(&["-nodefaults", "-no-user-config", "-display", "none"]);
        args.extend(strings(&["-no-reboot", "-smp", &smp, "-m", &memory]));
        args.extend(match self.accel {
            // This model shows its topology as caches and SMT siblings in sysfs.
            Accel::Emulated => strings(&[
                "-machine",
                "q35",
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "Haswell-v4",
            ]),
            Accel::Counted { shift, seed } => {
                let icount = format!("shift={shift},sleep=off");
                let seed = seed.to_string();
                let mut args = strings(&[
                    "-machine",
                    "q35,hpet=off",
                    "-accel",
                    "tcg,thread=single",
                    "-cpu",
                    "Haswell-v4",
                ]);
                args.extend(strings(&["-icount", &icount, "-seed", &seed]));
                args.extend(strings(&["-rtc", "base=2026-01-01,clock=vm"]));
                let table = format!("sig=SSDT,rev=2,data={}", metronome.display());
                args.extend(strings(&["-acpitable", &table]));
                args
            }
            Accel::Kvm => strings(&["-machine", "q35", "-accel", "kvm", "-cpu", "host"]),
        });
        args
    }
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// `QEMU emulator version 10.0.2 (Debian ...)` → 10.
fn major_version(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("version ")?;
    after.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read() {
        assert_eq!(
            major_version("QEMU emulator version 10.0.2 (Debian 1)"),
            Some(10)
        );
        assert_eq!(major_version("something else"), None);
    }

    #[test]
    fn topologies_parse() {
        let smp = |sockets, cores, threads| Smp {
            sockets,
            cores,
            threads,
        };
        assert_eq!("8".parse(), Ok(smp(1, 8, 1)));
        assert_eq!("2s2c2t".parse(), Ok(smp(2, 2, 2)));
        assert_eq!("2c2t".parse(), Ok(smp(1, 2, 2)));
        for wrong in ["", "0", "2x", "s", "2s2", "0s2c", "16s16c16t"] {
            assert!(wrong.parse::<Smp>().is_err(), "{wrong}");
        }
    }
}
