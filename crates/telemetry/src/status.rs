//! The status document: the public JSON shape of `twopool status`.

use serde::{Deserialize, Serialize};

use crate::sample::{
    Events, KernelInfo, LastReload, PolicyInfo, PoolSample, RuleSample, Sample, State,
};

/// Version of every JSON document of the program.
pub const FORMAT_VERSION: &str = "1";

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `FORMAT_VERSION`.
    pub format_version: String,
    /// Where the daemon stands.
    pub state: State,
    /// The kernel.
    pub kernel: KernelInfo,
    /// The active policy.
    pub policy: PolicyInfo,
    /// The last attempt to change it, if there was one.
    pub last_reload: Option<LastReload>,
    /// Both pools.
    pub pools: Pools,
    /// What the scheduler did.
    pub events: Events,
    /// In effective order.
    pub rules: Vec<Rule>,
}

/// Both pools by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pools {
    /// Threads on the latency-critical path.
    pub critical: Pool,
    /// Everything else.
    pub background: Pool,
}

/// One pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Online CPUs that it owns.
    pub cpus: Vec<u32>,
    /// Threads in it now.
    pub threads: u64,
    /// CPU time of its threads since the scheduler was attached.
    pub cpu_seconds: f64,
    /// CPUs that its threads took from the other pool as they woke.
    pub preemptions: u64,
    /// Runnable to running; null before the first.
    pub wait_us: WaitUs,
}

/// Percentiles in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitUs {
    /// Half of all waits do not exceed it.
    pub p50: Option<u64>,
    /// Ninety-nine in a hundred do not exceed it.
    pub p99: Option<u64>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Position in the effective policy, from 1.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Threads that it holds now.
    pub threads: u64,
    /// Classifications that chose it.
    pub matches: u64,
    /// CPU time of its threads.
    pub cpu_seconds: f64,
    /// RFC 3339; null: never.
    pub last_match_at: Option<String>,
}

impl From<Sample> for Status {
    fn from(sample: Sample) -> Status {
        let [critical, background] = sample.pools;
        Status {
            format_version: FORMAT_VERSION.to_owned(),
            state: sample.daemon.state,
            kernel: sample.daemon.kernel,
            policy: sample.daemon.policy,
            last_reload: sample.daemon.last_reload,
            pools: Pools {
                critical: critical.into(),
                background: background.into(),
            },
            events: sample.events,
            rules: sample.rules.into_iter().map(Rule::from).collect(),
        }
    }
}

impl From<PoolSample> for Pool {
    fn from(sample: PoolSample) -> Pool {
        let percentile_us = |percent| {
            sample
                .wait
                .percentile_ns(percent)
                .map(|ns| ns.div_ceil(1_000))
        };
        Pool {
            threads: sample.threads,
            cpu_seconds: seconds(sample.cpu_ns),
            preemptions: sample.preemptions,
            wait_us: WaitUs {
                p50: percentile_us(50),
                p99: percentile_us(99),
            },
            cpus: sample.cpus,
        }
    }
}

impl From<RuleSample> for Rule {
    fn from(sample: RuleSample) -> Rule {
        Rule {
            index: sample.index,
            name: sample.name,
            threads: sample.threads,
            matches: sample.matches,
            cpu_seconds: seconds(sample.cpu_ns),
            last_match_at: sample.last_match_at,
        }
    }
}

/// Seconds to the microsecond, so that documents do not end in rounding noise.
fn seconds(ns: u64) -> f64 {
    (ns / 1_000) as f64 / 1e6
}
