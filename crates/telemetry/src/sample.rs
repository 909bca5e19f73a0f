//! `Sample`: everything that was read about a running daemon at one moment, in plain numbers.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Where the daemon stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The host's threads are scheduled by this policy.
    Attached,
    /// Not yet: the scheduler is being loaded, or a condition of the policy does not hold.
    Waiting,
    /// Detached on request.
    Paused,
    /// The kernel ended the scheduler; the daemon tries again.
    Ejected,
}

/// Outcome of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReloadResult {
    /// The new policy runs.
    Applied,
    /// The files mean what already runs.
    Unchanged,
    /// The new policy is not valid; the old one stays.
    Rejected,
    /// The new policy was taken back.
    RolledBack,
}

impl ReloadResult {
    /// As in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ReloadResult::Applied => "applied",
            ReloadResult::Unchanged => "unchanged",
            ReloadResult::Rejected => "rejected",
            ReloadResult::RolledBack => "rolled-back",
        }
    }
}

/// The kernel the daemon runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// As `uname -r` says.
    pub release: String,
    /// Name of the attached scheduler as the kernel has it; empty if there is none.
    pub ops: String,
}

/// The active policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyInfo {
    /// Counts the policies that this daemon applied, from 1.
    pub epoch: u32,
    /// `sha256:` and the hash of the set of files.
    pub hash: String,
    /// In effective order.
    pub files: Vec<String>,
    /// Number of rules.
    pub rules: u32,
    /// RFC 3339.
    pub loaded_at: String,
}

/// The last attempt to change the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastReload {
    /// Its outcome.
    pub result: ReloadResult,
    /// RFC 3339.
    pub at: String,
    /// As in the document of `check`.
    pub diagnostics: Vec<serde_json::Value>,
}

/// What does not come from counters.
#[derive(Debug, Clone, PartialEq)]
pub struct Daemon {
    /// Where it stands.
    pub state: State,
    /// The kernel.
    pub kernel: KernelInfo,
    /// The active policy.
    pub policy: PolicyInfo,
    /// `None`: only the policy of the start was ever loaded.
    pub last_reload: Option<LastReload>,
}

/// Counters of one pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolSample {
    /// Online CPUs that it owns, ascending.
    pub cpus: Vec<u32>,
    /// Threads in it now.
    pub threads: u64,
    /// CPU time of its threads since the scheduler was attached.
    pub cpu_ns: u64,
    /// CPUs that its threads took from the other pool as they woke.
    pub preemptions: u64,
    /// Runnable to running.
    pub wait: Histogram,
}

/// What the scheduler did, summed over the machine since it was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Events {
    /// Wakes that found an idle CPU of their pool.
    pub idle_hits: u64,
    /// Wakes that found one of the other pool.
    pub borrows: u64,
    /// Turns given to the pool that was owed time.
    pub grants: u64,
    /// Turns given to a queue that had waited too long.
    pub overdue: u64,
    /// Threads that waited in a CPU's own queue: pinned, or with a mask that cuts through a cache.
    pub own_queue: u64,
    /// Kernel threads bound to a CPU that ran there at once.
    pub kthread_local: u64,
    /// Threads taken from another cache's queues.
    pub steals: u64,
    /// Wakes of threads without an account, for want of memory: the kernel queued them.
    pub fallback_no_context: u64,
    /// Wakes without a usable policy.
    pub fallback_no_image: u64,
}

/// Counters of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSample {
    /// Position in the effective policy, from 1.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Threads that it holds now.
    pub threads: u64,
    /// Classifications that chose it.
    pub matches: u64,
    /// CPU time of its threads.
    pub cpu_ns: u64,
    /// RFC 3339; `None`: never.
    pub last_match_at: Option<String>,
}

/// One reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What does not come from counters.
    pub daemon: Daemon,
    /// Critical, background.
    pub pools: [PoolSample; 2],
    /// What the scheduler did.
    pub events: Events,
    /// In effective order.
    pub rules: Vec<RuleSample>,
}
