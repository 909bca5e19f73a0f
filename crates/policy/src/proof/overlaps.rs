//! Threads that rules of both pools claim: the order of the rules decides about them.

use super::reach::Prover;
use super::solve::{Answer, Question, solve};
use super::space::Space;
use super::{TOTAL_STEPS, Verdict, with_share};
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
/// later one would take too.
pub fn overlaps(policy: &Policy, image: &Image) -> Overlaps {
    let mut out = Overlaps::default();
    let rules = policy.rules.len();
    let pools: Vec<_> = policy.rules.iter().map(|rule| rule.pool).collect();
    let Ok(space) = Space::new(&[(policy, image)]) else {
        out.undecided = (0..rules)
            .map(|i| (0..i).filter(|j| pools[i] != pools[*j]).count())
            .sum();
        return out;
    };
    let mut prover = Prover::new(space);
    let mut work = Work::new(TOTAL_STEPS);
    for winner in 0..rules {
        if let Verdict::Unreachable(_) = prover.rule(winner) {
            continue;
        }
        for loser in winner + 1..rules {
            if pools[winner] == pools[loser] {
                continue;
            }
            match pair(&mut prover.space, winner, loser, &mut work) {
                Answer::Yes(witness) => out.found.push(Overlap {
                    winner,
                    loser,
                    witness: *witness,
                }),
                Answer::No(_) => {}
                Answer::Undecided => out.undecided += 1,
            }
        }
    }
    out
}

fn pair(space: &mut Space, winner: usize, loser: usize, work: &mut Work) -> Answer {
    let blockers = [space.sides[0].bits(|rule| rule < winner), [0; 8]];
    let of = |rule: usize| {
        let alternatives = space.sides[0].alternatives.iter();
        alternatives.filter(move |alternative| alternative.rule == rule)
    };
    let questions: Vec<Question> = of(winner)
        .flat_map(|a| of(loser).map(move |b| (a, b)))
        .map(|(a, b)| Question {
            meets: a.meets.iter().chain(&b.meets).copied().collect(),
            avoids: a.avoids.into_iter().chain(b.avoids).collect(),
            blockers,
        })
        .collect();
    let mut undecided = false;
    for question in questions {
        match with_share(work, |work| solve(space, &question, work)) {
            Answer::Yes(thread) => {
                if usize::from(space.sides[0].classify(&thread).rule) == winner + 1 {
                    return Answer::Yes(thread);
                }
                debug_assert!(false, "rule {winner} does not take its witness {thread:?}");
                undecided = true;
            }
            Answer::No(_) => {}
            Answer::Undecided => undecided = true,
        }
    }
    if undecided {
        Answer::Undecided
    } else {
        Answer::No([[0; 8]; 2])
    }
}
