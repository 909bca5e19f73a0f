//! What distinguishes two policies: one thread for each pair of outcomes that differ.
//!
//! Only classification is compared: pool, slice and weight of threads. Two policies that differ in
//! text, names of rules or settings of pools alone have no such thread.

use std::collections::BTreeMap;

use super::TOTAL_STEPS;
use super::question::Answer;
use super::solve::solve_both;
use super::space::Space;
use crate::automaton::Work;
use crate::eval::Class;
use crate::image::Image;
use crate::policy::{Policy, Pool};
use crate::thread::Thread;

/// What a thread gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// Its pool.
    pub pool: Pool,
    /// Its slice.
    pub slice_us: u64,
    /// Its weight inside the pool.
    pub weight: u32,
}

impl Outcome {
    /// Of a class.
    pub fn of(class: Class) -> Self {
        Self {
            pool: class.pool,
            slice_us: class.slice_us,
            weight: class.weight,
        }
    }
}

/// A thread for which two policies differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What the old policy gives it.
    pub from: Outcome,
    /// The old policy's rule, counted from 0; `None`: its default.
    pub from_rule: Option<usize>,
    /// What the new policy gives it.
    pub to: Outcome,
    /// The new policy's rule, likewise.
    pub to_rule: Option<usize>,
    /// The thread. Users and groups that a host does not know are numbered over both policies.
    pub witness: Thread,
}

/// Everything that distinguishes two policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// One for each pair of outcomes.
    pub found: Vec<Difference>,
    /// Pairs of outcomes that the budget did not suffice for.
    pub undecided: usize,
}

/// Compares two compiled policies: for each pair of different outcomes that some thread has, one
/// such thread, which both images confirm.
pub fn diff(old: (&Policy, &Image), new: (&Policy, &Image)) -> Differences {
    let mut out = Differences::default();
    let outcomes = [slots(old.0), slots(new.0)];
    let unknown = |policy: &Policy| (policy.unknown_users.clone(), policy.unknown_groups.clone());
    if old.0.rules == new.0.rules && unknown(old.0) == unknown(new.0) && outcomes[0] == outcomes[1]
    {
        return out;
    }
    let mut pairs: BTreeMap<(Outcome, Outcome), Vec<(usize, usize)>> = BTreeMap::new();
    for (i, from) in outcomes[0].iter().enumerate() {
        for (j, to) in outcomes[1].iter().enumerate() {
            if from != to {
                pairs.entry((*from, *to)).or_default().push((i, j));
            }
        }
    }
    let Ok(mut space) = Space::new(&[old, new]) else {
        out.undecided = pairs.len();
        return out;
    };
    let mut work = Work::new(TOTAL_STEPS);
    for (wanted, slots) in pairs {
        let mut undecided = false;
        let found = slots
            .into_iter()
            .find_map(|slots| match pair(&mut space, slots, &mut work) {
                Answer::Yes(thread) => judged(&space, wanted, *thread),
                Answer::No(_) => None,
                Answer::Undecided => {
                    undecided = true;
                    None
                }
            });
        out.undecided += usize::from(undecided && found.is_none());
        out.found.extend(found);
    }
    out
}

/// The outcome of every rule, and of the default behind them.
fn slots(policy: &Policy) -> Vec<Outcome> {
    let outcome = |pool: Pool, slice_us: Option<u64>, weight: u32| Outcome {
        pool,
        slice_us: slice_us.unwrap_or(policy.pools[pool as usize].slice_us),
        weight,
    };
    let rules = policy.rules.iter();
    rules
        .map(|rule| outcome(rule.pool, rule.slice_us, rule.weight))
        .chain([outcome(policy.default, None, 100)])
        .collect()
}

/// A thread that the old policy gives to one slot and the new one to another.
fn pair(space: &mut Space, (from, to): (usize, usize), work: &mut Work) -> Answer {
    let blockers = [
        space.sides[0].bits(|rule| rule < from),
        space.sides[1].bits(|rule| rule < to),
    ];
    solve_both(space, [(0, from), (1, to)], blockers, work)
}

/// The difference as both images see it; `None` would be a fault of ours.
fn judged(space: &Space, wanted: (Outcome, Outcome), witness: Thread) -> Option<Difference> {
    let [from, to] = [0, 1].map(|side: usize| space.sides[side].classify(&witness));
    let rule = |class: Class| usize::from(class.rule).checked_sub(1);
    let holds = (Outcome::of(from), Outcome::of(to)) == wanted;
    debug_assert!(holds, "the images do not confirm {witness:?}");
    holds.then(|| Difference {
        from: wanted.0,
        from_rule: rule(from),
        to: wanted.1,
        to_rule: rule(to),
        witness,
    })
}
