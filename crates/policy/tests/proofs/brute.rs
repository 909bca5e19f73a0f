//! Every thread that a small policy can tell from the others, by listing them.

use std::collections::HashMap;

use twopool_policy::explain::explain;
use twopool_policy::naive::NaiveRegexes;
use twopool_policy::policy::{Policy, Sched};
use twopool_policy::proof::is_possible;
use twopool_policy::thread::Thread;

/// One thread for each way in which the conditions of a policy come out, over a space that holds
/// at least one thread for each way that any thread can.
pub struct Brute<'a> {
    pub policy: &'a Policy,
    pub regexes: NaiveRegexes,
    pub threads: Vec<Thread>,
}

impl<'a> Brute<'a> {
    /// Thins each dimension out to values that the policy's conditions tell apart.
    pub fn new(policy: &'a Policy, names: &[Vec<u8>], paths: &[Vec<u8>]) -> Self {
        let regexes = NaiveRegexes::new(policy);
        let thin = |values: &[Vec<u8>], set: &dyn Fn(&mut Thread, &[u8])| -> Vec<Vec<u8>> {
            let mut seen: HashMap<Vec<Option<bool>>, Vec<u8>> = HashMap::new();
            for value in values {
                let mut t = Thread::named(b"");
                set(&mut t, value);
                seen.entry(signature(policy, &regexes, &t))
                    .or_insert_with(|| value.clone());
            }
            let mut thinned: Vec<Vec<u8>> = seen.into_values().collect();
            thinned.sort();
            thinned
        };
        let threads = thin(names, &|t, v| t.thread = v.to_vec());
        let processes = thin(names, &|t, v| t.process = v.to_vec());
        let both = thin(names, &|t, v| {
            t.thread = v.to_vec();
            t.process = v.to_vec();
        });
        let cgroups = thin(paths, &|t, v| t.cgroup = v.to_vec());
        let mut all = Vec::new();
        let pairs = threads
            .iter()
            .flat_map(|t| processes.iter().map(move |p| (t, p, false)));
        for (thread, process, leader) in pairs.chain(both.iter().map(|n| (n, n, true))) {
            for cgroup in &cgroups {
                for nice in [-2, -1, 0, 1, 2] {
                    for sched in [Sched::Normal, Sched::Batch, Sched::Idle] {
                        for kthread in [false, true] {
                            let mut t = Thread::named(thread);
                            t.process.clone_from(process);
                            t.cgroup.clone_from(cgroup);
                            (t.nice, t.sched, t.kthread, t.leader) = (nice, sched, kthread, leader);
                            if is_possible(&t) {
                                all.push(t);
                            }
                        }
                    }
                }
            }
        }
        Self {
            policy,
            regexes,
            threads: all,
        }
    }
}

/// How every single name and cgroup condition of a policy comes out.
fn signature(policy: &Policy, regexes: &NaiveRegexes, t: &Thread) -> Vec<Option<bool>> {
    let class = twopool_policy::eval::Class {
        pool: policy.default,
        rule: 0,
        slice_us: 0,
        weight: 0,
        hints: false,
    };
    let traces = explain(policy, regexes, t, class).rules;
    traces
        .iter()
        .flat_map(|rule| rule.conditions.iter().map(|c| c.matched))
        .collect()
}
