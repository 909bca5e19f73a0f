//! Threads that rules of both pools claim: the order of the rules decides about them.

use super::question::Answer;
use super::solve::solve_both;
use super::space::Space;
use super::{Reach, TOTAL_STEPS, Verdict};
use crate::automaton::Work;
use crate::image::Image;
use crate::policy::Policy;
use crate::thread::Thread;

/// Two rules of different pools that one thread meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The rule that takes the thread, counted from 0.
    pub winner: usize,
    /// The later rule that would take it too.
    pub loser: usize,
    /// The thread.
    pub witness: Thread,
}

/// All overlaps of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlaps {
    /// In rule order.
    pub found: Vec<Overlap>,
    /// Pairs of rules that the budget did not suffice for.
    pub undecided: usize,
}

/// Finds every pair of rules of different pools of which the earlier one takes a thread that the
/// later one would take too. What is known to be out of reach is not looked for again.
pub fn overlaps(policy: &Policy, image: &Image, reach: &Reach) -> Overlaps {
    let mut out = Overlaps::default();
    let rules = policy.rules.len();
    let pools: Vec<_> = policy.rules.iter().map(|rule| rule.pool).collect();
    let Ok(mut space) = Space::new(&[(policy, image)]) else {
        out.undecided = (0..rules)
            .map(|i| (0..i).filter(|j| pools[i] != pools[*j]).count())
            .sum();
        return out;
    };
    let mut work = Work::new(TOTAL_STEPS);
    for winner in 0..rules {
        if let Verdict::Unreachable(_) = reach.rules[winner] {
            continue;
        }
        let blockers = [space.sides[0].bits(|rule| rule < winner), [0; 8]];
        for loser in winner + 1..rules {
            if pools[winner] == pools[loser] {
                continue;
            }
            match solve_both(&mut space, [(0, winner), (0, loser)], blockers, &mut work) {
                Answer::Yes(witness) => {
                    let taken_by = usize::from(space.sides[0].classify(&witness).rule);
                    debug_assert_eq!(taken_by, winner + 1, "the witness is {witness:?}");
                    if taken_by == winner + 1 {
                        out.found.push(Overlap {
                            winner,
                            loser,
                            witness: *witness,
                        });
                    } else {
                        out.undecided += 1;
                    }
                }
                Answer::No(_) => {}
                Answer::Undecided => out.undecided += 1,
            }
        }
    }
    out
}
