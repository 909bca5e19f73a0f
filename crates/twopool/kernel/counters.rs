//! Reads the kernel program's counters and its view of threads.
//!
//! Counters are per CPU and only ever grow, so that a reader may sum at any time.

use std::io::{self, Read};
use std::mem::{offset_of, size_of};

use libbpf_rs::{Iter, MapCore, MapFlags, MapHandle};
use twopool_policy::image::RULE_SLOTS;
use twopool_policy::policy::Pool;
use twopool_telemetry::{Events, Histogram, WAIT_BUCKETS};

use super::abi::types;
use super::accounts::{RuleBanks, RuleCounters};

/// Counters of one pool, summed over CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolCounters {
    /// CPU time of its threads.
    pub cpu_ns: u64,
    /// CPUs that its threads took from the other pool.
    pub preemptions: u64,
    /// Runnable to running.
    pub wait: Histogram,
}

/// The counter maps of a loaded scheduler.
#[derive(Debug)]
pub struct Counters {
    pools: MapHandle,
    rules: MapHandle,
    events: MapHandle,
}

impl Counters {
    /// The maps `pool_stats`, `rule_stats` and `event_stats`.
    pub fn new(pools: MapHandle, rules: MapHandle, events: MapHandle) -> Self {
        Self {
            pools,
            rules,
            events,
        }
    }

    /// What the scheduler did.
    pub fn events(&self) -> io::Result<Events> {
        let values = per_cpu(&self.events, 0)?;
        let sum = |offset| values.iter().map(|value| u64_at(value, offset)).sum();
        macro_rules! events {
            ($($field:ident)*) => {
                Events { $($field: sum(offset_of!(types::event_counters, $field)),)* }
            };
        }
        Ok(events! {
            idle_hits borrows grants overdue own_queue kthread_local steals fallback_no_context
            fallback_no_image
        })
    }

    /// One pool.
    pub fn pool(&self, pool: Pool) -> io::Result<PoolCounters> {
        let mut sum = PoolCounters::default();
        for value in per_cpu(&self.pools, pool as u32)? {
            let field = |offset| u64_at(&value, offset);
            sum.cpu_ns += field(offset_of!(types::pool_counters, cpu_ns));
            sum.preemptions += field(offset_of!(types::pool_counters, preemptions));
            let wait = offset_of!(types::pool_counters, wait);
            sum.wait
                .add((0..WAIT_BUCKETS).map(|bucket| field(wait + 8 * bucket)));
        }
        Ok(sum)
    }
}

impl RuleBanks for Counters {
    fn read(&self, bank: usize, slot: usize) -> io::Result<RuleCounters> {
        let mut sum = RuleCounters::default();
        for value in per_cpu(&self.rules, rule_key(bank, slot))? {
            sum.add(RuleCounters {
                matches: u64_at(&value, offset_of!(types::rule_counters, matches)),
                cpu_ns: u64_at(&value, offset_of!(types::rule_counters, cpu_ns)),
                last_match_ns: u64_at(&value, offset_of!(types::rule_counters, last_match_ns)),
            });
        }
        Ok(sum)
    }

    fn clear(&self, bank: usize, slot: usize) -> io::Result<()> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(io::Error::other)?;
        let zeros = vec![vec![0; size_of::<types::rule_counters>()]; cpus];
        let key = rule_key(bank, slot).to_ne_bytes();
        self.rules
            .update_percpu(&key, &zeros, MapFlags::ANY)
            .map_err(io::Error::other)
    }
}

fn rule_key(bank: usize, slot: usize) -> u32 {
    (bank * RULE_SLOTS + slot) as u32
}

fn per_cpu(map: &MapHandle, key: u32) -> io::Result<Vec<Vec<u8>>> {
    let values = map
        .lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)
        .map_err(io::Error::other)?;
    values.ok_or_else(|| io::Error::other("a counter of the kernel program is missing"))
}

/// One thread as the kernel program has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadReport {
    /// Thread id.
    pub tid: i32,
    /// Id of its process.
    pub tgid: i32,
    /// The bytes of its name.
    pub name: Vec<u8>,
    /// What the scheduler acts on; `None` if it knows nothing of the thread yet.
    pub acting: Option<Acting>,
    /// Pool and rule slot by the policy in force, looked up for this report; `None` without one.
    pub fresh: Option<(Pool, u16)>,
    /// Changed since it was classified; noticed at its next wake or tick.
    pub stale: bool,
    /// Another scheduling class runs it: real-time, deadline.
    pub not_ours: bool,
}

/// A classification in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acting {
    /// Its pool.
    pub pool: Pool,
    /// Rule slot; 0 = the default pool.
    pub rule: u16,
    /// Of the policy that gave it.
    pub epoch: u32,
}

/// Reads all threads from a started task iterator.
pub fn read_threads(mut iterator: Iter) -> io::Result<Vec<ThreadReport>> {
    let mut bytes = Vec::new();
    iterator.read_to_end(&mut bytes)?;
    // The kernel delivers whole records; a cut one would mean that the two sides disagree.
    if !bytes.len().is_multiple_of(size_of::<types::task_report>()) {
        return Err(io::Error::other("the kernel program's thread list is cut"));
    }
    Ok(bytes
        .chunks_exact(size_of::<types::task_report>())
        .map(decode_report)
        .collect())
}

fn decode_report(record: &[u8]) -> ThreadReport {
    let word = |offset: usize| {
        u32::from_ne_bytes(record[offset..offset + 4].try_into().expect("four bytes"))
    };
    let class = |offset: usize| {
        let rule = offset + offset_of!(types::thread_class, rule);
        let pool = record[offset + offset_of!(types::thread_class, pool)];
        let pool = if pool == Pool::Critical as u8 {
            Pool::Critical
        } else {
            Pool::Background
        };
        (pool, u16::from_ne_bytes([record[rule], record[rule + 1]]))
    };
    let flags = word(offset_of!(types::task_report, flags));
    let has = |flag: types::report_flags| flags & flag.0 != 0;
    let name = offset_of!(types::task_report, comm);
    let (pool, rule) = class(offset_of!(types::task_report, acting));
    let acting = Acting {
        pool,
        rule,
        epoch: word(offset_of!(types::task_report, epoch)),
    };
    ThreadReport {
        tid: word(offset_of!(types::task_report, tid)).cast_signed(),
        tgid: word(offset_of!(types::task_report, tgid)).cast_signed(),
        name: record[name..name + 16]
            .iter()
            .copied()
            .take_while(|byte| *byte != 0)
            .collect(),
        // Storage is made before a thread first runs; until then its epoch is 0.
        acting: (has(types::report_flags::REPORT_HAS_CONTEXT) && acting.epoch != 0)
            .then_some(acting),
        fresh: (!has(types::report_flags::REPORT_NO_FRESH))
            .then(|| class(offset_of!(types::task_report, fresh))),
        stale: has(types::report_flags::REPORT_STALE),
        not_ours: has(types::report_flags::REPORT_NOT_OURS),
    }
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..offset + 8).map_or(0, |field| {
        u64::from_ne_bytes(field.try_into().expect("eight bytes"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_the_iterator_is_decoded_by_the_c_layout() {
        use types::report_flags as flags;

        let mut record = vec![0; size_of::<types::task_report>()];
        let mut put = |offset: usize, bytes: &[u8]| {
            record[offset..offset + bytes.len()].copy_from_slice(bytes)
        };
        put(offset_of!(types::task_report, tid), &42_i32.to_ne_bytes());
        put(offset_of!(types::task_report, tgid), &41_i32.to_ne_bytes());
        put(offset_of!(types::task_report, comm), b"srv-\xff\0rest");
        put(offset_of!(types::task_report, epoch), &3_u32.to_ne_bytes());
        put(
            offset_of!(types::task_report, flags),
            &(flags::REPORT_HAS_CONTEXT.0 | flags::REPORT_STALE.0).to_ne_bytes(),
        );
        let fresh = offset_of!(types::task_report, fresh);
        put(
            fresh + offset_of!(types::thread_class, rule),
            &9_u16.to_ne_bytes(),
        );
        put(fresh + offset_of!(types::thread_class, pool), &[1]);
        let report = decode_report(&record);
        assert_eq!(report.name, b"srv-\xff");
        assert_eq!((report.tid, report.tgid), (42, 41));
        assert_eq!(
            report.acting,
            Some(Acting {
                pool: Pool::Critical,
                rule: 0,
                epoch: 3
            })
        );
        assert_eq!(report.fresh, Some((Pool::Background, 9)));
        assert!(report.stale && !report.not_ours);
    }
}
