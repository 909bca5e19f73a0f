//! Which position of a pattern stands for which: `p` is simulated by `r` if whatever `p` leads to,
//! `r` leads to as well. A set that holds both needs only `r`, which keeps sets, and so the number
//! of states, small.

use super::Work;
use super::position::Positions;

const WORDS: usize = 4;
/// Follower checks of one pattern.
const MAX_CHECKS: usize = 4_000_000;
/// Bits for `MAX_POSITIONS` positions.
type Bits = [u64; WORDS];

/// The simulation preorder of one pattern.
#[derive(Debug, Clone)]
pub(crate) struct Simulation {
    /// For each position, the positions that simulate it, itself included.
    by: Vec<Bits>,
    /// Whether any position has a simulator other than itself.
    any: bool,
}

impl Simulation {
    /// The greatest preorder in which the class, the accepting and every follower of a position
    /// have their like. A pattern that takes too much work for that gets the preorder in which
    /// nothing stands for anything else: always right, only larger.
    pub fn new(positions: &Positions, work: &mut Work) -> Self {
        let n = positions.len();
        assert!(n <= 64 * WORDS, "checked before");
        let follows: Vec<Bits> = positions.follow.iter().map(|set| bits_of(set)).collect();
        let locally = |p: usize, r: usize| {
            positions.class[p].is_subset(&positions.class[r])
                && (positions.accepts[r] || !positions.accepts[p])
        };
        let mut by: Vec<Bits> = (0..n)
            .map(|p| {
                bits_of(
                    &(0..n as u32)
                        .filter(|r| locally(p, *r as usize))
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        let mut share = work.share(MAX_CHECKS);
        let refined = refine(&mut by, positions, &follows, &mut share);
        work.settle(share);
        if refined.is_none() {
            by = (0..n as u32).map(|p| bits_of(&[p])).collect();
        }
        let any = (0..n).any(|p| each(by[p]).any(|r| r != p));
        Self { by, any }
    }

    /// A sorted set without the positions for which another of it stands.
    pub fn prune(&self, set: &[u32]) -> Vec<u32> {
        if !self.any || set.len() < 2 {
            return set.to_vec();
        }
        let present = bits_of(set);
        set.iter()
            .copied()
            .filter(|p| !self.is_covered(*p, &present))
            .collect()
    }

    /// Whether `r` stands for `p`.
    pub fn simulates(&self, r: u32, p: u32) -> bool {
        self.by[p as usize][r as usize / 64] >> (r % 64) & 1 != 0
    }

    /// Of two that stand for each other, the lower one stays.
    pub fn covers(&self, r: u32, p: u32) -> bool {
        r != p && self.simulates(r, p) && (r < p || !self.simulates(p, r))
    }

    fn is_covered(&self, p: u32, present: &Bits) -> bool {
        let mut candidates = self.by[p as usize];
        candidates
            .iter_mut()
            .zip(present)
            .for_each(|(word, mask)| *word &= mask);
        each(candidates).any(|r| self.covers(r as u32, p))
    }
}

/// Removes simulators until every follower has its like; `None` when the work is used up.
fn refine(by: &mut [Bits], positions: &Positions, follows: &[Bits], work: &mut Work) -> Option<()> {
    let mut changed = true;
    while changed {
        changed = false;
        for p in 0..by.len() {
            for r in each(by[p]).filter(|r| *r != p) {
                work.spend(positions.follow[p].len())?;
                let mut followers = positions.follow[p].iter();
                if !followers.all(|f| intersects(&by[*f as usize], &follows[r])) {
                    by[p][r / 64] &= !(1 << (r % 64));
                    changed = true;
                }
            }
        }
    }
    Some(())
}

fn bits_of(set: &[u32]) -> Bits {
    let mut bits = [0; WORDS];
    set.iter()
        .for_each(|p| bits[*p as usize / 64] |= 1 << (p % 64));
    bits
}

fn intersects(a: &Bits, b: &Bits) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// The members of a set, ascending.
fn each(bits: Bits) -> impl Iterator<Item = usize> {
    (0..WORDS).flat_map(move |w| {
        std::iter::successors(Some(bits[w]), |word| Some(word & word.wrapping_sub(1)))
            .take_while(|word| *word != 0)
            .map(move |word| w * 64 + word.trailing_zeros() as usize)
    })
}
