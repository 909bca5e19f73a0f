//! From a regex to its position automaton.
//!
//! A position is a place in the pattern that consumes one byte of a class. After the byte, the
//! positions of its `follow` list are active, and the pattern is met if the value ends there and
//! the position `accepts`. There are no empty transitions left, so a set of positions is a state.
//!
//! Invariant: `follow` and `start` are sorted, every position lies on a way from the start to an
//! accepting end (within 15 bytes for names), and the language is that of the regex on the values
//! of the domain.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

use regex_automata::nfa::thompson::{NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{self, Hir};

use super::byteset::ByteSet;
use super::simulation::Simulation;
use super::{Domain, Work};
use crate::thread::NAME_BYTES;

/// Positions of a pattern in which at most one is active at a time: literals, and most of `under`.
pub(crate) const MAX_LINEAR_POSITIONS: usize = 4096;
/// Positions of any other pattern.
pub(crate) const MAX_POSITIONS: usize = 256;
/// Entries of all follow lists: what the two limits above allow, so that a pattern that is going to
/// be refused is refused before its lists are long.
const MAX_FOLLOWERS: usize = MAX_POSITIONS * MAX_POSITIONS;
/// Positions that may be active at once in a pattern in which one of them at most takes a byte.
const MAX_LINEAR_ACTIVE: usize = MAX_FOLLOWERS / MAX_LINEAR_POSITIONS;
/// Bytes of the intermediate automaton: enough for `MAX_LINEAR_POSITIONS`, small enough to build.
const NFA_BYTES: usize = 4 << 20;

/// Why a regex has no position automaton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not a regex, or uses look-around that the automata do not have.
    Invalid(String),
    /// It has more positions than the limit.
    TooLarge(String),
}

/// One pattern without empty transitions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Positions {
    /// The bytes that each position consumes.
    pub class: Vec<ByteSet>,
    /// Active after the position's byte; sorted.
    pub follow: Vec<Vec<u32>>,
    /// The pattern is met after the position's byte, if the value ends there.
    pub accepts: Vec<bool>,
    /// From here, every further byte keeps the pattern met.
    pub universal: Vec<bool>,
    /// Active before the first byte; sorted.
    pub start: Vec<u32>,
    /// The empty value is met.
    pub start_accepts: bool,
    /// Which positions stand for others; empty for a pattern with one active position at a time.
    pub simulation: Option<Simulation>,
    /// Length of the shortest value that is met, in bytes; `None`: no value is.
    pub shortest: Option<usize>,
}

impl Positions {
    /// Reads a whole-value regex (`(?s-u)`, anchored at both ends). A pattern that no name is long
    /// enough for has no positions, only its shortest length.
    pub fn new(regex: &str, domain: Domain, work: &mut Work) -> Result<Self, Refusal> {
        let hir = parse(regex)?;
        let shortest = hir.properties().minimum_len();
        if domain == Domain::Name && shortest.is_some_and(|length| length > NAME_BYTES) {
            return Ok(Self {
                shortest,
                ..Self::default()
            });
        }
        let nfa = NFA::compiler()
            .configure(
                NFA::config()
                    .utf8(false)
                    .which_captures(WhichCaptures::None)
                    .nfa_size_limit(Some(NFA_BYTES)),
            )
            .build_from_hir(&hir)
            .map_err(|_| too_large(MAX_POSITIONS))?;
        let mut positions = Extraction::new(&nfa).run()?;
        positions.trim(domain);
        positions.find_universal();
        if !positions.is_linear() {
            if positions.len() > MAX_POSITIONS {
                return Err(too_large(MAX_POSITIONS));
            }
            positions.prune(work);
            positions.trim(domain);
            positions.find_universal();
            positions.simulation = Some(Simulation::new(&positions, work));
        }
        Ok(positions)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.class.len()
    }

    /// Whether a value is met, by walking it.
    pub fn matches(&self, value: &[u8]) -> bool {
        let (mut active, mut met) = (self.start.clone(), self.start_accepts);
        for byte in value {
            let consumed = active
                .iter()
                .filter(|p| self.class[**p as usize].contains(*byte));
            let consumed: Vec<usize> = consumed.map(|p| *p as usize).collect();
            met = consumed.iter().any(|p| self.accepts[*p]);
            active = consumed
                .iter()
                .flat_map(|p| self.follow[*p].iter().copied())
                .collect();
            active.sort_unstable();
            active.dedup();
        }
        met
    }

    /// Whether no two positions can ever be active at once and take the same byte.
    fn is_linear(&self) -> bool {
        std::iter::once(&self.start).chain(&self.follow).all(|set| {
            set.len() <= MAX_LINEAR_ACTIVE
                && set.iter().enumerate().all(|(i, p)| {
                    let class = &self.class[*p as usize];
                    set[i + 1..]
                        .iter()
                        .all(|q| !class.intersects(&self.class[*q as usize]))
                })
        })
    }

    /// Fewest bytes consumed when each position has just consumed one; `usize::MAX`: never.
    fn depths(&self) -> Vec<usize> {
        let mut depth = vec![usize::MAX; self.len()];
        let mut queue: VecDeque<u32> = self.start.iter().copied().collect();
        self.start.iter().for_each(|p| depth[*p as usize] = 1);
        while let Some(p) = queue.pop_front() {
            for q in &self.follow[p as usize] {
                if depth[*q as usize] == usize::MAX {
                    depth[*q as usize] = depth[p as usize] + 1;
                    queue.push_back(*q);
                }
            }
        }
        depth
    }

    /// Fewest bytes still to come after each position's own until the pattern may be met.
    fn remaining(&self) -> Vec<usize> {
        let mut before = vec![Vec::new(); self.len()];
        for (p, follow) in self.follow.iter().enumerate() {
            follow.iter().for_each(|q| before[*q as usize].push(p));
        }
        let mut left = vec![usize::MAX; self.len()];
        let mut queue: VecDeque<usize> = (0..self.len()).filter(|p| self.accepts[*p]).collect();
        queue.iter().for_each(|p| left[*p] = 0);
        while let Some(q) = queue.pop_front() {
            for p in &before[q] {
                if left[*p] == usize::MAX {
                    left[*p] = left[q] + 1;
                    queue.push_back(*p);
                }
            }
        }
        left
    }

    /// Drops the positions that no value of the domain needs, and finds the shortest value.
    fn trim(&mut self, domain: Domain) {
        let longest = match domain {
            Domain::Name => NAME_BYTES,
            Domain::Path => usize::MAX,
        };
        let (depth, left) = (self.depths(), self.remaining());
        let total = |p: usize| depth[p].saturating_add(left[p]);
        self.shortest = match self.start_accepts {
            true => Some(0),
            false => (0..self.len())
                .map(total)
                .min()
                .filter(|n| *n != usize::MAX),
        };
        let kept = |p: usize| total(p) != usize::MAX && total(p) <= longest;
        let mut renamed = vec![u32::MAX; self.len()];
        let kept: Vec<usize> = (0..self.len()).filter(|p| kept(*p)).collect();
        kept.iter()
            .enumerate()
            .for_each(|(new, old)| renamed[*old] = new as u32);
        let rename = |set: &[u32]| -> Vec<u32> {
            set.iter()
                .map(|p| renamed[*p as usize])
                .filter(|p| *p != u32::MAX)
                .collect()
        };
        self.start = rename(&self.start);
        self.follow = kept.iter().map(|p| rename(&self.follow[*p])).collect();
        self.class = kept.iter().map(|p| self.class[*p]).collect();
        self.accepts = kept.iter().map(|p| self.accepts[*p]).collect();
    }

    /// The greatest set of positions that take any byte, accept after it and reach the set again.
    fn find_universal(&mut self) {
        let any = |p: &usize| self.class[*p] == ByteSet::ALL && self.accepts[*p];
        self.universal = (0..self.len()).map(|p| any(&p)).collect();
        loop {
            let lost = (0..self.len()).find(|p| {
                self.universal[*p] && !self.follow[*p].iter().any(|q| self.universal[*q as usize])
            });
            match lost {
                Some(p) => self.universal[p] = false,
                None => break,
            }
        }
    }

    /// Drops from each set the positions for which another one stands.
    fn prune(&mut self, work: &mut Work) {
        let simulation = Simulation::new(self, work);
        self.start = simulation.prune(&self.start);
        for follow in &mut self.follow {
            *follow = simulation.prune(follow);
        }
    }
}

fn too_large(limit: usize) -> Refusal {
    Refusal::TooLarge(format!("it expands to more than {limit} positions"))
}

/// Parses as `(?s-u)` and refuses the look-around that would need to know neighbouring bytes.
fn parse(regex: &str) -> Result<Hir, Refusal> {
    let mut builder = ParserBuilder::new();
    builder
        .utf8(false)
        .unicode(false)
        .dot_matches_new_line(true);
    let hir = builder
        .build()
        .parse(regex)
        .map_err(|error| Refusal::Invalid(error.to_string()))?;
    let refused = hir
        .properties()
        .look_set()
        .iter()
        .find_map(|look| match look {
            hir::Look::Start | hir::Look::End => None,
            hir::Look::StartLF | hir::Look::EndLF | hir::Look::StartCRLF | hir::Look::EndCRLF => {
                Some("multi-line `^` and `$`")
            }
            _ => Some("word boundaries such as `\\b`"),
        });
    match refused {
        Some(what) => Err(Refusal::Invalid(format!("{what} are not supported"))),
        None => Ok(hir),
    }
}

/// What is reached without consuming a byte.
#[derive(Debug, Clone, Default)]
struct Closure {
    positions: Vec<u32>,
    accepts: bool,
}

/// Removes empty transitions. A position is a byte-consuming state together with one target.
struct Extraction<'a> {
    nfa: &'a NFA,
    ids: FxHashMap<(StateID, StateID), u32>,
    targets: Vec<StateID>,
    class: Vec<ByteSet>,
    closures: FxHashMap<StateID, Closure>,
}

impl<'a> Extraction<'a> {
    fn new(nfa: &'a NFA) -> Self {
        Self {
            nfa,
            ids: FxHashMap::default(),
            targets: Vec::new(),
            class: Vec::new(),
            closures: FxHashMap::default(),
        }
    }

    fn run(mut self) -> Result<Positions, Refusal> {
        let start = self.closure(self.nfa.start_anchored(), true)?;
        let (mut next, mut followers) = (0, 0);
        while next < self.targets.len() {
            let target = self.targets[next];
            if !self.closures.contains_key(&target) {
                let closure = self.closure(target, false)?;
                self.closures.insert(target, closure);
            }
            followers += self.closures[&target].positions.len();
            if followers > MAX_FOLLOWERS {
                return Err(too_large(MAX_POSITIONS));
            }
            next += 1;
        }
        let closures = self.targets.iter().map(|target| &self.closures[target]);
        Ok(Positions {
            follow: closures
                .clone()
                .map(|closure| closure.positions.clone())
                .collect(),
            accepts: closures.map(|closure| closure.accepts).collect(),
            class: self.class,
            start: start.positions,
            start_accepts: start.accepts,
            ..Positions::default()
        })
    }

    /// `^` holds only before the first byte; after `$` nothing but the end may come.
    fn closure(&mut self, from: StateID, at_start: bool) -> Result<Closure, Refusal> {
        let mut closure = Closure::default();
        let mut seen = FxHashSet::default();
        let mut stack = vec![(from, false)];
        while let Some((id, ended)) = stack.pop() {
            if !seen.insert((id, ended)) {
                continue;
            }
            match self.nfa.state(id) {
                State::Match { .. } => closure.accepts = true,
                State::Fail => {}
                State::Capture { next, .. } => stack.push((*next, ended)),
                State::Union { alternates } => {
                    stack.extend(alternates.iter().rev().map(|next| (*next, ended)));
                }
                State::BinaryUnion { alt1, alt2 } => {
                    stack.extend([(*alt2, ended), (*alt1, ended)]);
                }
                State::Look {
                    look: Look::Start,
                    next,
                } if at_start => stack.push((*next, ended)),
                State::Look {
                    look: Look::End,
                    next,
                } => stack.push((*next, true)),
                State::Look { .. } => {}
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) if ended => {}
                State::ByteRange { trans } => {
                    self.add(&mut closure, id, [(trans.start, trans.end, trans.next)])?;
                }
                State::Sparse(sparse) => {
                    let transitions = sparse.transitions.iter();
                    let transitions = transitions.map(|t| (t.start, t.end, t.next));
                    self.add(&mut closure, id, transitions)?;
                }
                State::Dense(dense) => {
                    let bytes = (0..=255u8).zip(dense.transitions.iter());
                    let transitions = bytes.filter(|(_, next)| **next != StateID::ZERO);
                    let transitions = transitions.map(|(byte, next)| (byte, byte, *next));
                    self.add(&mut closure, id, transitions)?;
                }
            }
        }
        closure.positions.sort_unstable();
        closure.positions.dedup();
        Ok(closure)
    }

    /// The positions of one state, made on first sight.
    fn add(
        &mut self,
        closure: &mut Closure,
        state: StateID,
        transitions: impl IntoIterator<Item = (u8, u8, StateID)>,
    ) -> Result<(), Refusal> {
        let known = self.targets.len() as u32;
        for (first, last, target) in transitions {
            let fresh = self.targets.len() as u32;
            let position = *self.ids.entry((state, target)).or_insert(fresh);
            if position == fresh {
                self.targets.push(target);
                self.class.push(ByteSet::default());
            }
            if position >= known {
                self.class[position as usize].add_range(first, last);
            }
            closure.positions.push(position);
        }
        match self.targets.len() > MAX_LINEAR_POSITIONS {
            true => Err(too_large(MAX_LINEAR_POSITIONS)),
            false => Ok(()),
        }
    }
}
