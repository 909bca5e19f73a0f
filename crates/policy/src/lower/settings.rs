//! Everything of an image that is not classification.

use crate::image::{CPUS_PERCENT, Header, PoolRecord, RULE_HINTS, RuleRecord, STEAL_OFF};
use crate::policy::{Cpus, NEUTRAL_WEIGHT, Placement, Policy, Pool, PoolSettings};

const NS_PER_US: u64 = 1000;
/// `enum pool_flags`.
const POOL_PREEMPT: u32 = 1;
const POOL_PACK: u32 = 2;
const POOL_PERF_SET: u32 = 4;

/// Fills the settings of a header.
pub(super) fn settings(policy: &Policy, header: &mut Header) {
    header.rules = rules(policy);
    header.pools = Pool::ALL.map(|pool| pool_record(&policy.pools[pool as usize]));
    let steal = &policy.steal;
    header.steal_ns = [steal.smt_us, steal.llc_us, steal.node_us, steal.machine_us]
        .map(|us| us.map_or(STEAL_OFF, |us| us * NS_PER_US));
    header.sizing_interval_ns = policy.sizing_interval_us * NS_PER_US;
    header.background_wait_ns = policy.background_wait_us * NS_PER_US;
    header.hint_boost_ns = policy.hints.boost_us * NS_PER_US;
    header.hint_share_permille = policy.hints.max_share_percent * 10;
}

/// The default pool's slot, then one for each rule.
fn rules(policy: &Policy) -> Vec<RuleRecord> {
    let slice_ns = |pool: Pool, own: Option<u64>| {
        own.unwrap_or(policy.pools[pool as usize].slice_us) * NS_PER_US
    };
    let default = RuleRecord {
        slice_ns: slice_ns(policy.default, None),
        weight: NEUTRAL_WEIGHT,
        flags: 0,
        pool: policy.default as u8,
    };
    let rules = policy.rules.iter().map(|rule| RuleRecord {
        slice_ns: slice_ns(rule.pool, rule.slice_us),
        weight: rule.weight,
        flags: if rule.hints { RULE_HINTS } else { 0 },
        pool: rule.pool as u8,
    });
    std::iter::once(default).chain(rules).collect()
}

fn pool_record(pool: &PoolSettings) -> PoolRecord {
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    PoolRecord {
        slice_ns: pool.slice_us * NS_PER_US,
        weight: pool.weight,
        flags: flag(pool.preempt, POOL_PREEMPT)
            | flag(pool.placement == Placement::Pack, POOL_PACK)
            | flag(pool.perf_percent.is_some(), POOL_PERF_SET),
        cpus_min: cpus(pool.cpus_min),
        cpus_max: cpus(pool.cpus_max),
        util_low_permille: pool.utilization_low_percent * 10,
        util_high_permille: pool.utilization_high_percent * 10,
        perf_permille: pool.perf_percent.unwrap_or(0) * 10,
    }
}

fn cpus(cpus: Cpus) -> u32 {
    match cpus {
        Cpus::Count(count) => count.min(CPUS_PERCENT - 1),
        Cpus::Percent(percent) => CPUS_PERCENT | percent,
    }
}
