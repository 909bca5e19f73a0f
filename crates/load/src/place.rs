//! Who a load is to the scheduler: names, niceness, policy, affinity, cgroup, user.

use anyhow::{Context, Result, bail};
use rustix::thread::CpuSet;
use std::path::Path;

const CGROUPS: &str = "/sys/fs/cgroup";

/// A kernel scheduling policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    /// SCHED_OTHER
    Normal,
    /// SCHED_BATCH
    Batch,
    /// SCHED_IDLE
    Idle,
}

/// Set on the process before it starts threads, which inherit all of it.
#[derive(Debug, Clone, clap::Args)]
pub struct Place {
    /// Name of the process: its first thread's
    #[arg(long, value_name = "NAME")]
    pub process: Option<String>,
    /// Niceness, -20 to 19
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub nice: i32,
    /// Scheduling policy
    #[arg(long, value_enum, default_value = "normal")]
    pub sched: Policy,
    /// CPUs that the threads may use, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    pub cpus: Option<CpuList>,
    /// Cgroup to move into, from the root; made when it does not exist
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// User and group id to become, after everything else
    #[arg(long, value_name = "ID")]
    pub uid: Option<u32>,
}

/// CPU numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

impl Place {
    /// Moves the calling process there. Call it before there are other threads.
    pub fn enter(&self) -> Result<()> {
        if let Some(cgroup) = &self.cgroup {
            enter_cgroup(cgroup)?;
        }
        if let Some(name) = &self.process {
            set_name(name)?;
        }
        if let Some(cpus) = &self.cpus {
            pin(&cpus.0)?;
        }
        if self.nice != 0 {
            rustix::process::setpriority_process(None, self.nice).context("cannot set niceness")?;
        }
        if self.sched != Policy::Normal {
            set_policy(self.sched)?;
        }
        if let Some(id) = self.uid {
            become_user(id)?;
        }
        Ok(())
    }
}

/// Names the calling thread; the kernel keeps 15 bytes.
pub fn set_name(name: &str) -> Result<()> {
    let name = std::ffi::CString::new(name).context("a name contains a NUL")?;
    rustix::thread::set_name(&name).context("cannot set a thread's name")
}

/// `req-N` → `req-3`: replaces the pattern's last N with a number.
pub fn numbered(pattern: &str, number: usize) -> String {
    match pattern.rfind('N') {
        Some(at) => format!("{}{number}{}", &pattern[..at], &pattern[at + 1..]),
        None => pattern.to_owned(),
    }
}

/// Restricts the calling thread, and those that it starts from then on.
pub fn pin(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    rustix::thread::sched_setaffinity(None, &set).context("cannot set the affinity")
}

/// Gives the calling thread a scheduling policy.
#[allow(unsafe_code, reason = "no safe wrapper of this system call is at hand")]
pub fn set_policy(policy: Policy) -> Result<()> {
    let number = match policy {
        Policy::Normal => libc::SCHED_OTHER,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Idle => libc::SCHED_IDLE,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live sched_param for the length of the call; 0 is this thread.
    let result = unsafe { libc::sched_setscheduler(0, number, &raw const parameters) };
    if result != 0 {
        return Err(std::io::Error::last_os_error()).context("cannot set the scheduling policy");
    }
    Ok(())
}

fn enter_cgroup(path: &str) -> Result<()> {
    let dir = Path::new(CGROUPS).join(path.trim_start_matches('/'));
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    std::fs::write(dir.join("cgroup.procs"), "0")
        .with_context(|| format!("cannot move into {}", dir.display()))
}

fn become_user(id: u32) -> Result<()> {
    let user = rustix::process::Uid::from_raw(id);
    let group = rustix::process::Gid::from_raw(id);
    // Credentials are the calling thread's; threads that it starts inherit them.
    rustix::thread::set_thread_res_gid(group, group, group).context("cannot change the group")?;
    rustix::thread::set_thread_res_uid(user, user, user).context("cannot change the user")
}

fn parse_cpus(text: &str) -> Result<CpuList> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse()?, last.parse()?);
        if first > last || last >= CpuSet::MAX_CPU {
            bail!("`{part}` is not a range of CPUs");
        }
        cpus.extend(first..=last);
    }
    Ok(CpuList(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_at_the_last_n() {
        assert_eq!(numbered("req-N", 3), "req-3");
        assert_eq!(numbered("N-workerN-x", 12), "N-worker12-x");
        assert_eq!(numbered("fixed", 1), "fixed");
    }

    #[test]
    fn cpu_lists_parse() {
        assert_eq!(parse_cpus("0,2-3").unwrap().0, [0, 2, 3]);
        for wrong in ["", "3-1", "x", "99999"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }
}
