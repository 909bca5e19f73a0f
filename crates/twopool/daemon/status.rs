//! Puts the daemon's state and the kernel's counters together.

use std::collections::HashMap;
use std::io;

use twopool_policy::policy::Pool;
use twopool_policy::text::escape;
use twopool_telemetry::{
    Daemon, Events, KernelInfo, PolicyInfo, PoolSample, RuleSample, Sample, State,
};

use super::event_loop::Scheduler;
use super::protocol::ThreadRow;
use super::state::Policies;
use crate::host::clock;
use crate::kernel::accounts::{RuleAccounts, RuleCounters};
use crate::kernel::counters::{Acting, ThreadReport};

/// What does not come from counters.
pub fn daemon(state: State, kernel: KernelInfo, policies: &Policies) -> Daemon {
    let active = policies.active();
    Daemon {
        state,
        kernel,
        policy: PolicyInfo {
            epoch: active.epoch,
            hash: active.candidate.hash.clone(),
            files: active.candidate.files.clone(),
            rules: active.candidate.rules.len() as u32,
            loaded_at: active.loaded_at.clone(),
        },
        last_reload: policies.last_reload().cloned(),
    }
}

/// One reading of everything; without a scheduler all figures are zero.
///
/// # Errors
/// A counter map cannot be read.
pub fn sample(
    daemon: Daemon,
    scheduler: Option<&dyn Scheduler>,
    policies: &Policies,
    accounts: &RuleAccounts,
) -> io::Result<Sample> {
    let active = policies.active();
    let (threads, counters) = match scheduler {
        Some(scheduler) => (
            Census::of(&scheduler.threads()?),
            accounts.read(scheduler.banks(), active.epoch)?,
        ),
        None => Default::default(),
    };
    let rules = active.candidate.rules.iter().enumerate().map(|(at, name)| {
        let counters = counters.get(at).copied().unwrap_or_default();
        rule(at, name, &threads, counters)
    });
    Ok(Sample {
        rules: rules.collect(),
        pools: [
            pool(scheduler, Pool::Critical, &threads)?,
            pool(scheduler, Pool::Background, &threads)?,
        ],
        events: scheduler.map_or_else(|| Ok(Events::default()), Scheduler::events)?,
        daemon,
    })
}

fn pool(scheduler: Option<&dyn Scheduler>, pool: Pool, threads: &Census) -> io::Result<PoolSample> {
    let Some(scheduler) = scheduler else {
        return Ok(PoolSample::default());
    };
    let (counters, cpus) = scheduler.pool(pool)?;
    Ok(PoolSample {
        cpus,
        threads: threads.pools[pool as usize],
        cpu_ns: counters.cpu_ns,
        preemptions: counters.preemptions,
        wait: counters.wait,
    })
}

fn rule(at: usize, name: &str, threads: &Census, counters: RuleCounters) -> RuleSample {
    let index = at as u32 + 1;
    RuleSample {
        index,
        name: name.to_owned(),
        threads: threads.rules.get(&index).copied().unwrap_or(0),
        matches: counters.matches,
        cpu_ns: counters.cpu_ns,
        last_match_at: clock::of_monotonic_ns(counters.last_match_ns),
    }
}

/// How many threads the policy in force puts where. A sleeping thread is counted where it will
/// wake, not where it fell asleep under an older policy.
#[derive(Debug, Default, PartialEq, Eq)]
struct Census {
    pools: [u64; 2],
    rules: HashMap<u32, u64>,
}

impl Census {
    fn of(threads: &[ThreadReport]) -> Self {
        let mut census = Census::default();
        let ours = threads.iter().filter(|thread| !thread.not_ours);
        for (pool, rule) in ours.filter_map(|thread| thread.fresh) {
            census.pools[pool as usize] += 1;
            if rule > 0 {
                *census.rules.entry(u32::from(rule)).or_default() += 1;
            }
        }
        census
    }
}

/// The rows of `threads`, by thread id.
pub fn thread_rows(threads: &[ThreadReport], policies: &Policies) -> Vec<ThreadRow> {
    let ours = threads.iter().filter(|thread| !thread.not_ours);
    let mut rows: Vec<ThreadRow> = ours.filter_map(|thread| row(thread, policies)).collect();
    rows.sort_by_key(|row| row.tid);
    rows
}

/// `None` if nothing is known: no class yet, and no policy to compute one from.
fn row(thread: &ThreadReport, policies: &Policies) -> Option<ThreadRow> {
    let waking = thread.fresh.map(|(pool, rule)| Acting {
        pool,
        rule,
        epoch: 0,
    });
    let acting = thread.acting.or(waking)?;
    let epoch = match thread.acting {
        Some(acting) => acting.epoch,
        None => policies.active().epoch,
    };
    Some(ThreadRow {
        tid: thread.tid,
        pid: thread.tgid,
        thread: escape(&thread.name),
        pool: acting.pool.as_str().to_owned(),
        rule: (acting.rule > 0).then_some(u32::from(acting.rule)),
        rule_name: policies.rule_name(epoch, acting.rule).map(str::to_owned),
        epoch: acting.epoch,
        next_pool: waking.unwrap_or(acting).pool.as_str().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::tests::candidate;

    fn thread(tid: i32, acting: (Pool, u16, u32), fresh: (Pool, u16)) -> ThreadReport {
        let (pool, rule, epoch) = acting;
        ThreadReport {
            tid,
            tgid: tid,
            name: b"a\xffb".to_vec(),
            acting: Some(Acting { pool, rule, epoch }),
            fresh: Some(fresh),
            stale: false,
            not_ours: false,
        }
    }

    fn policies() -> Policies {
        let mut first = candidate("a");
        first.image.set_epoch(1);
        Policies::new(first, "T".into())
    }

    #[test]
    fn a_sleeper_is_counted_where_it_will_wake() {
        let asleep = thread(1, (Pool::Background, 0, 1), (Pool::Critical, 1));
        let real_time = ThreadReport {
            not_ours: true,
            ..asleep.clone()
        };
        let census = Census::of(&[asleep, real_time]);
        assert_eq!(
            census,
            Census {
                pools: [1, 0],
                rules: HashMap::from([(1, 1)])
            }
        );
    }

    #[test]
    fn rows_name_rules_by_the_policy_that_gave_them() {
        let rows = thread_rows(
            &[
                thread(9, (Pool::Critical, 1, 1), (Pool::Critical, 1)),
                thread(3, (Pool::Background, 7, 55), (Pool::Critical, 1)),
            ],
            &policies(),
        );
        assert_eq!(rows.iter().map(|row| row.tid).collect::<Vec<_>>(), [3, 9]);
        assert_eq!(
            (rows[0].rule, rows[0].rule_name.as_deref()),
            (Some(7), None)
        );
        assert_eq!(
            (rows[0].pool.as_str(), rows[0].next_pool.as_str()),
            ("background", "critical")
        );
        assert_eq!(
            (rows[1].rule, rows[1].rule_name.as_deref()),
            (Some(1), Some("rule a"))
        );
        assert_eq!(rows[1].thread, "a\\xffb");
    }

    #[test]
    fn a_sleeper_from_before_the_attach_is_where_it_will_wake() {
        let asleep = thread(1, (Pool::Background, 0, 0), (Pool::Critical, 1));
        let row = row(
            &ThreadReport {
                acting: None,
                ..asleep
            },
            &policies(),
        )
        .expect("a policy is in force");
        assert_eq!(
            (row.pool.as_str(), row.rule, row.epoch),
            ("critical", Some(1), 0)
        );
        assert_eq!(row.rule_name.as_deref(), Some("rule a"));
    }

    #[test]
    fn a_real_time_thread_has_no_row() {
        let report = thread(1, (Pool::Critical, 1, 1), (Pool::Critical, 1));
        assert_eq!(
            thread_rows(
                &[ThreadReport {
                    not_ours: true,
                    ..report
                }],
                &policies()
            ),
            []
        );
    }
}
