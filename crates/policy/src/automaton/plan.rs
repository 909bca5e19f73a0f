//! Who goes where: which patterns share a deterministic automaton, and which run in units.
//!
//! Patterns that behave alike are tried together under a limit that is linear in their size; a
//! group that passes it is split, most entangled patterns first, until the parts fit or are so few
//! that units serve them better. Then parts are merged again until `MAX_DFAS` are left.
//!
//! Invariant: every pattern ends in exactly one automaton or unit, or is named in the error.

use rustc_hash::FxHashSet;

use super::byteset::ByteSet;
use super::dfa::{MAX_STATES, determinize};
use super::position::Positions;
use super::unit::{BITS, Units, fits, pack};
use super::{Dfa, Domain, Member, Work};
use crate::image::{MAX_DFAS, MAX_NAME_UNITS, MAX_PATH_UNITS};

/// A group of at most this many patterns is not split any further.
const SMALLEST_GROUP: usize = 8;
/// Positions below which a part is as well off in units as in one of too many automata.
const SMALL_PART: usize = 128;
/// An automaton below this size is never worth a split.
const LEAST_STATES: usize = 256;

/// Residue of this many times what units can run is refused before the rest is looked at: no
/// automaton will take what did not fit one in groups of a few.
const HOPELESS: usize = 2;

/// Steps for each state that an attempt to join unlike patterns may take: sets that grow past this
/// are those of patterns that should not share an automaton, and most of the time would go there.
const STEPS_PER_STATE: usize = 100;

/// Everything that a dimension walks.
#[derive(Debug, Clone)]
pub(crate) struct Automata {
    /// At most `MAX_DFAS`.
    pub dfas: Vec<Dfa>,
    /// At most the domain's limit.
    pub units: Units,
}

/// Patterns (as indices) that would need more than the kernel program has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooLarge(pub Vec<usize>);

/// Builds the automata of one dimension.
pub(crate) fn plan(
    members: &[Member],
    domain: Domain,
    work: &mut Work,
) -> Result<Automata, TooLarge> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let shapes: Vec<Shape> = members.iter().map(|m| Shape::of(m.positions)).collect();
    order.sort_by_key(|m| (shapes[*m], members[*m].text));
    let mut plan = Plan {
        members,
        shapes,
        domain,
        work,
        parts: Vec::new(),
        residue: Vec::new(),
    };
    plan.split(&order)?;
    plan.rescue()?;
    plan.merge()?;
    plan.finish()
}

/// How a pattern's states multiply when it shares an automaton; least entangled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    /// Decided by a bounded beginning of the value.
    Literal,
    /// May begin anywhere.
    Floating,
    /// Begins at the start, then skips.
    Anchored,
    /// May begin anywhere and skips again.
    Entangled,
}

impl Shape {
    fn of(positions: &Positions) -> Self {
        let loops = |p: &u32| positions.follow[*p as usize].contains(p);
        let wide = |p: &u32| positions.class[*p as usize] == ByteSet::ALL;
        let floats = positions
            .start
            .iter()
            .any(|p| loops(p) && wide(p) && !positions.universal[*p as usize]);
        let skips = (0..positions.len() as u32).any(|p| {
            loops(&p) && !positions.universal[p as usize] && !positions.start.contains(&p)
        });
        match (floats, skips) {
            (false, false) => Shape::Literal,
            (true, false) => Shape::Floating,
            (false, true) => Shape::Anchored,
            (true, true) => Shape::Entangled,
        }
    }
}

/// Some patterns and their automaton.
struct Part {
    chosen: Vec<usize>,
    dfa: Dfa,
}

struct Plan<'a, 'w> {
    members: &'a [Member<'a>],
    shapes: Vec<Shape>,
    domain: Domain,
    work: &'w mut Work,
    parts: Vec<Part>,
    /// What units are to run.
    residue: Vec<usize>,
}

impl Plan<'_, '_> {
    fn determinize(&mut self, chosen: &[usize], max_states: usize, steps: usize) -> Option<Part> {
        let members: Vec<Member> = chosen.iter().map(|m| self.members[*m]).collect();
        let mut share = self.work.share(steps);
        let dfa = determinize(&members, self.domain, max_states, &mut share);
        self.work.settle(share);
        Some(Part {
            chosen: chosen.to_vec(),
            dfa: dfa?,
        })
    }

    fn positions(&self, chosen: &[usize]) -> usize {
        chosen
            .iter()
            .map(|m| self.members[*m].positions.len())
            .sum()
    }

    /// Finds parts whose automata are linear in their patterns; the rest is residue.
    /// Invariant: work is bounded by the part of the patterns that shows that they do not fit.
    fn split(&mut self, chosen: &[usize]) -> Result<(), TooLarge> {
        if chosen.is_empty() {
            return Ok(());
        }
        let limit = (self.positions(chosen) * 3 / 2).clamp(LEAST_STATES, MAX_STATES);
        let mixed = self.shapes[chosen[0]] != self.shapes[chosen[chosen.len() - 1]];
        let steps = if mixed {
            limit * STEPS_PER_STATE
        } else {
            usize::MAX
        };
        if let Some(part) = self.determinize(chosen, limit, steps) {
            self.parts.push(part);
            return Ok(());
        }
        if chosen.len() <= SMALLEST_GROUP {
            self.residue.extend(chosen);
            return match self.is_hopeless() {
                true => Err(TooLarge(self.residue.clone())),
                false => Ok(()),
            };
        }
        let last = self.shapes[chosen[chosen.len() - 1]];
        let same = chosen.partition_point(|m| self.shapes[*m] < last);
        let (left, right) = chosen.split_at(if same > 0 { same } else { chosen.len() / 2 });
        self.split(left)?;
        self.split(right)
    }

    /// Whether the residue is far beyond what units can run. What no unit runs at all is not
    /// counted: it may get an automaton of its own.
    fn is_hopeless(&self) -> bool {
        let sizes = self
            .residue
            .iter()
            .map(|m| self.members[*m].positions.len());
        let bits: usize = sizes.filter(|size| *size < BITS).map(|size| size + 1).sum();
        bits > HOPELESS * BITS * self.max_units()
    }

    /// Residue that no unit can run gets an automaton of its own, however large.
    fn rescue(&mut self) -> Result<(), TooLarge> {
        let (fit, large): (Vec<_>, Vec<_>) = self
            .residue
            .iter()
            .partition(|m| fits(self.members[**m].positions));
        self.residue = fit;
        for m in large {
            let part = self
                .determinize(&[m], MAX_STATES, usize::MAX)
                .ok_or(TooLarge(vec![m]))?;
            self.parts.push(part);
        }
        Ok(())
    }

    /// Brings the number of parts down to what the kernel program walks.
    fn merge(&mut self) -> Result<(), TooLarge> {
        while self.parts.len() > MAX_DFAS && self.demote_one(SMALL_PART) {}
        let mut tried = FxHashSet::default();
        while self.parts.len() > MAX_DFAS {
            if !self.merge_one(&mut tried) && !self.demote_one(usize::MAX) {
                self.parts.sort_by_key(|part| part.dfa.states());
                let chosen = self.parts[MAX_DFAS..]
                    .iter()
                    .flat_map(|part| part.chosen.clone());
                return Err(TooLarge(chosen.collect()));
            }
        }
        Ok(())
    }

    /// Joins two parts whose common automaton is hardly larger than the two, the smallest first.
    /// `tried` holds the pairs that were too large, by the first pattern of each.
    fn merge_one(&mut self, tried: &mut FxHashSet<(usize, usize)>) -> bool {
        self.parts
            .sort_by_key(|part| (part.dfa.states(), part.chosen[0]));
        for small in 0..self.parts.len() {
            for large in small + 1..self.parts.len() {
                let (a, b) = (&self.parts[small], &self.parts[large]);
                if !tried.insert((a.chosen[0], b.chosen[0])) {
                    continue;
                }
                let sum = a.dfa.states() + b.dfa.states();
                let chosen: Vec<usize> = a.chosen.iter().chain(&b.chosen).copied().collect();
                let limit = (sum * 5 / 4).min(MAX_STATES);
                if let Some(part) = self.determinize(&chosen, limit, limit * STEPS_PER_STATE) {
                    tried.retain(|(a, b)| *a != chosen[0] && *b != chosen[0]);
                    self.parts.remove(large);
                    self.parts[small] = part;
                    return true;
                }
            }
        }
        false
    }

    /// Leaves the smallest part below `limit` positions that units can take to them.
    fn demote_one(&mut self, limit: usize) -> bool {
        let size = |part: &Part| self.positions(&part.chosen);
        let mut order: Vec<usize> = (0..self.parts.len())
            .filter(|i| size(&self.parts[*i]) < limit)
            .collect();
        order.sort_by_key(|i| (size(&self.parts[*i]), self.parts[*i].chosen[0]));
        for i in order {
            let chosen = &self.parts[i].chosen;
            if !chosen.iter().all(|m| fits(self.members[*m].positions)) {
                continue;
            }
            let all: Vec<usize> = self.residue.iter().chain(chosen).copied().collect();
            if pack(self.members, &all).units.len() <= self.max_units() {
                self.residue = all;
                self.parts.remove(i);
                return true;
            }
        }
        false
    }

    fn max_units(&self) -> usize {
        match self.domain {
            Domain::Name => MAX_NAME_UNITS,
            Domain::Path => MAX_PATH_UNITS,
        }
    }

    fn finish(mut self) -> Result<Automata, TooLarge> {
        let mut units = pack(self.members, &self.residue);
        if units.units.len() > self.max_units() {
            let chosen = self.residue.clone();
            let room = self.parts.len() < MAX_DFAS;
            match room
                .then(|| self.determinize(&chosen, MAX_STATES, usize::MAX))
                .flatten()
            {
                Some(part) => self.parts.push(part),
                None => return Err(TooLarge(chosen)),
            }
            units = pack(self.members, &[]);
        }
        Ok(Automata {
            dfas: self.parts.into_iter().map(|part| part.dfa).collect(),
            units,
        })
    }
}
