//! Can this host run the scheduler? Each obstacle has a name, found before anything is loaded.
//!
//! All facts are files below a root, so that tests can lay out a host that we do not have.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::exit::{Exit, Failure};

/// Bits of the kernel's capability sets.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// What stands in the way. In the order in which they are looked for: the first one found is the
/// one whose removal lets the next be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The process may not load BPF programs.
    NotPermitted,
    /// The kernel has no sched_ext.
    NoSchedExt,
    /// The kernel does not describe its types.
    NoBtf,
    /// The kernel is locked down against programs that read its memory.
    Lockdown,
    /// BPF programs would be interpreted, which struct_ops cannot be.
    JitOff,
    /// A scheduler is on its way out.
    Detaching,
    /// Some scheduler is attached.
    Attached {
        /// Its name as the kernel has it; empty if the kernel does not say.
        name: String,
    },
}

impl Obstacle {
    /// The failure to report.
    pub fn failure(&self) -> Failure {
        let unavailable = |code, message: &str| Failure::new(Exit::Unavailable, code, message);
        match self {
            Obstacle::NotPermitted => Failure::new(
                Exit::NotPermitted,
                "not-permitted",
                "loading a scheduler needs root (CAP_SYS_ADMIN, or CAP_BPF with CAP_PERFMON)",
            ),
            Obstacle::NoSchedExt => unavailable(
                "no-sched-ext",
                "this kernel has no sched_ext: /sys/kernel/sched_ext is missing; a kernel of version 6.12 or \
                 newer built with CONFIG_SCHED_CLASS_EXT is needed",
            ),
            Obstacle::NoBtf => unavailable(
                "no-btf",
                "this kernel does not describe its types: /sys/kernel/btf/vmlinux is missing; a kernel built \
                 with CONFIG_DEBUG_INFO_BTF is needed",
            ),
            Obstacle::Lockdown => unavailable(
                "lockdown",
                "the kernel is locked down (/sys/kernel/security/lockdown says confidentiality), which forbids \
                 BPF programs that read kernel memory",
            ),
            Obstacle::JitOff => unavailable(
                "bpf-jit-off",
                "the BPF compiler is switched off; set net.core.bpf_jit_enable to 1",
            ),
            Obstacle::Detaching => Failure::new(
                Exit::Temporary,
                "scheduler-detaching",
                "a sched_ext scheduler is just being detached; try again",
            ),
            Obstacle::Attached { name } if name.is_empty() => unavailable(
                "scheduler-attached",
                "another sched_ext scheduler is attached; end it first",
            ),
            Obstacle::Attached { name } => Failure::new(
                Exit::Unavailable,
                "scheduler-attached",
                format!("another sched_ext scheduler is attached: {name}; end it first"),
            ),
        }
    }
}

/// A host, seen through its file systems.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// The host below `root`: `/`, or a test's tree.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The first obstacle, if there is one.
    pub fn obstacle(&self) -> Option<Obstacle> {
        if !self.may_load() {
            return Some(Obstacle::NotPermitted);
        }
        self.kernel_obstacle().or_else(|| self.other_scheduler())
    }

    /// The first thing that the kernel lacks, whoever asks and whatever runs.
    pub fn kernel_obstacle(&self) -> Option<Obstacle> {
        if !self.path("sys/kernel/sched_ext").is_dir() {
            return Some(Obstacle::NoSchedExt);
        }
        if !self.path("sys/kernel/btf/vmlinux").exists() {
            return Some(Obstacle::NoBtf);
        }
        if self
            .word("sys/kernel/security/lockdown")
            .is_some_and(|text| text.contains("[confidentiality]"))
        {
            return Some(Obstacle::Lockdown);
        }
        // Absent where the kernel is built to compile always.
        if self
            .word("proc/sys/net/core/bpf_jit_enable")
            .is_some_and(|text| text == "0")
        {
            return Some(Obstacle::JitOff);
        }
        None
    }

    /// A scheduler in the way; `None` if the kernel says that there is none. Asked again when
    /// attaching fails: "busy" has other causes than another scheduler.
    fn other_scheduler(&self) -> Option<Obstacle> {
        match self.word("sys/kernel/sched_ext/state")?.as_str() {
            "disabling" => Some(Obstacle::Detaching),
            _ => self.attached().map(|name| Obstacle::Attached { name }),
        }
    }

    /// Name of the attached scheduler; `None` if the kernel says that there is none.
    pub fn attached(&self) -> Option<String> {
        let state = self.word("sys/kernel/sched_ext/state")?;
        (state != "disabled").then(|| {
            self.word("sys/kernel/sched_ext/root/ops")
                .unwrap_or_default()
        })
    }

    /// Counts CPU hotplug events since boot; tells the kernel which topology was seen.
    pub fn hotplug_seq(&self) -> u64 {
        self.word("sys/kernel/sched_ext/hotplug_seq")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    fn may_load(&self) -> bool {
        let status = fs::read_to_string(self.path("proc/self/status")).unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let Some(set) = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()) else {
            return false;
        };
        let has = |capability: u32| set >> capability & 1 == 1;
        has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON))
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    fn word(&self, below: &str) -> Option<String> {
        fs::read_to_string(self.path(below))
            .ok()
            .map(|text| text.trim().to_owned())
    }
}

/// What to say when the kernel refused to attach. `errno` is what it answered.
pub fn attach_failure(host: &Host, errno: i32, detail: &str) -> Failure {
    if let Some(obstacle) = host.other_scheduler() {
        return obstacle.failure();
    }
    let error = io::Error::from_raw_os_error(errno);
    let hint = match Errno::from_raw_os_error(errno) {
        // No other scheduler is attached, so "busy" must not be reported as one.
        Errno::BUSY => "; no other scheduler is attached, the kernel itself was busy",
        Errno::PERM | Errno::ACCESS => "; a security module may forbid it",
        _ => "",
    };
    Failure::new(
        Exit::of(&error),
        "attach-failed",
        format!("the kernel refused the scheduler: {detail}{hint}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that lacks nothing; tests change one file each.
    const FIT: [(&str, &str); 6] = [
        ("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
        ("proc/sys/net/core/bpf_jit_enable", "1\n"),
        ("sys/kernel/btf/vmlinux", ""),
        (
            "sys/kernel/security/lockdown",
            "[none] integrity confidentiality\n",
        ),
        ("sys/kernel/sched_ext/state", "disabled\n"),
        ("sys/kernel/sched_ext/hotplug_seq", "3\n"),
    ];

    /// A path below the root, and its content or `None` to remove it.
    type Change<'a> = (&'a str, Option<&'a str>);

    fn host(changes: &[Change<'_>]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            fs::write(path, text).expect("written");
        };
        FIT.iter().for_each(|(path, text)| write(path, text));
        for (path, change) in changes {
            match change {
                Some(text) => write(path, text),
                None if root.path().join(path).is_dir() => {
                    fs::remove_dir_all(root.path().join(path)).expect("removed")
                }
                None => fs::remove_file(root.path().join(path)).expect("removed"),
            }
        }
        let host = Host::new(root.path());
        (root, host)
    }

    fn obstacle(changes: &[Change<'_>]) -> Option<Obstacle> {
        host(changes).1.obstacle()
    }

    #[test]
    fn nothing_stands_in_the_way_of_a_fit_host() {
        assert_eq!(obstacle(&[]), None);
        assert_eq!(host(&[]).1.hotplug_seq(), 3);
    }

    #[test]
    fn k08_each_missing_thing_is_named() {
        let cases: [(&[Change<'_>], Obstacle); 6] = [
            (
                &[("proc/self/status", Some("CapEff:\t0000000000000000\n"))],
                Obstacle::NotPermitted,
            ),
            (&[("proc/self/status", None)], Obstacle::NotPermitted),
            (&[("sys/kernel/sched_ext", None)], Obstacle::NoSchedExt),
            (&[("sys/kernel/btf/vmlinux", None)], Obstacle::NoBtf),
            (
                &[(
                    "sys/kernel/security/lockdown",
                    Some("none integrity [confidentiality]\n"),
                )],
                Obstacle::Lockdown,
            ),
            (
                &[("proc/sys/net/core/bpf_jit_enable", Some("0\n"))],
                Obstacle::JitOff,
            ),
        ];
        for (changes, expected) in cases {
            assert_eq!(obstacle(changes), Some(expected));
        }
    }

    #[test]
    fn k08_the_first_obstacle_is_named_and_the_exit_code_follows() {
        let without_both = [
            ("sys/kernel/sched_ext", None),
            ("sys/kernel/btf/vmlinux", None),
        ];
        let failure = obstacle(&without_both).expect("an obstacle").failure();
        assert_eq!(
            (failure.exit, failure.code),
            (Exit::Unavailable, "no-sched-ext")
        );
        assert!(failure.message.contains("CONFIG_SCHED_CLASS_EXT"));
        assert_eq!(Obstacle::NotPermitted.failure().exit, Exit::NotPermitted);
    }

    #[test]
    fn bpf_and_perfmon_together_are_enough() {
        let with =
            |set: u64| obstacle(&[("proc/self/status", Some(&format!("CapEff:\t{set:016x}\n")))]);
        assert_eq!(with(1 << CAP_BPF | 1 << CAP_PERFMON), None);
        assert_eq!(with(1 << CAP_BPF), Some(Obstacle::NotPermitted));
    }

    #[test]
    fn a_kernel_that_always_compiles_has_no_switch() {
        assert_eq!(
            obstacle(&[
                ("proc/sys/net/core/bpf_jit_enable", None),
                ("sys/kernel/security/lockdown", None)
            ]),
            None
        );
    }

    #[test]
    fn k07_an_attached_scheduler_is_named() {
        let changes = [
            ("sys/kernel/sched_ext/state", Some("enabled\n")),
            ("sys/kernel/sched_ext/root/ops", Some("simple\n")),
        ];
        let failure = obstacle(&changes).expect("an obstacle").failure();
        assert_eq!(failure.exit, Exit::Unavailable);
        assert!(
            failure.message.contains("attached: simple"),
            "{}",
            failure.message
        );
        let busy = rustix::io::Errno::BUSY.raw_os_error();
        assert!(
            attach_failure(&host(&changes).1, busy, "busy")
                .message
                .contains("attached: simple")
        );
    }

    /// Where one daemon follows another, the first may not quite be gone.
    #[test]
    fn a_scheduler_on_its_way_out_is_worth_another_try() {
        let changes = [("sys/kernel/sched_ext/state", Some("disabling\n"))];
        assert_eq!(obstacle(&changes), Some(Obstacle::Detaching));
        let busy = rustix::io::Errno::BUSY.raw_os_error();
        let failure = attach_failure(&host(&changes).1, busy, "busy");
        assert_eq!(failure.exit, Exit::Temporary);
    }

    #[test]
    fn k07_busy_without_another_scheduler_does_not_claim_one() {
        let failure = attach_failure(
            &host(&[]).1,
            rustix::io::Errno::BUSY.raw_os_error(),
            "Device or resource busy",
        );
        assert_eq!(
            (failure.exit, failure.code),
            (Exit::Temporary, "attach-failed")
        );
        assert!(
            failure.message.contains("no other scheduler is attached"),
            "{}",
            failure.message
        );
    }
}
