//! The automaton of one condition, made as it is walked.
//!
//! A state is where the exact names still agree with the value, and the active positions of the
//! other patterns. Two states are named: `DEAD`, from which nothing is met any more, and `ALL`,
//! from which everything is.

use rustc_hash::FxHashMap;
use std::rc::Rc;

use crate::automaton::{Positions, Work};

/// Neither met nor to be met.
pub(super) const DEAD: u32 = 0;
/// Met, whatever follows.
pub(super) const ALL: u32 = 1;
/// A transition that was not taken yet.
const UNKNOWN: u32 = u32::MAX;

/// A union of patterns.
pub(super) struct Condition {
    /// Sorted.
    exact: Vec<Vec<u8>>,
    other: Vec<Rc<Positions>>,
    classes: usize,
    start: u32,
    states: Vec<State>,
    ids: FxHashMap<State, u32>,
    trans: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// Exact values that begin like the value: a range of `exact`, and how many bytes agree.
    exact: (u32, u32),
    depth: u32,
    /// Active positions: pattern, position; sorted.
    active: Box<[(u32, u32)]>,
    met: bool,
}

impl Condition {
    /// Of exact values and other patterns.
    pub fn new(mut exact: Vec<Vec<u8>>, other: Vec<Rc<Positions>>, classes: usize) -> Self {
        exact.sort_unstable();
        exact.dedup();
        let named = |met| State {
            exact: (0, 0),
            depth: 0,
            active: Box::default(),
            met,
        };
        let mut condition = Self {
            exact,
            other,
            classes,
            start: DEAD,
            // Their keys are never looked up: DEAD by its own test, ALL by that of universality.
            states: vec![named(false), named(true)],
            ids: FxHashMap::default(),
            trans: vec![DEAD; classes],
        };
        condition.trans.resize(2 * classes, ALL);
        condition.start = condition.first();
        condition
    }

    fn first(&mut self) -> u32 {
        let mut active = Vec::new();
        let mut met = self.exact.first().is_some_and(Vec::is_empty);
        for (pattern, positions) in (0u32..).zip(&self.other) {
            met |= positions.start_accepts;
            if positions.start_accepts
                && positions
                    .start
                    .iter()
                    .any(|p| positions.universal[*p as usize])
            {
                return ALL;
            }
            active.extend(positions.start.iter().map(|p| (pattern, *p)));
        }
        let exact = (0, self.exact.len() as u32);
        self.state_of(State {
            exact,
            depth: 0,
            active: active.into(),
            met,
        })
    }

    /// Its size: positions and exact values.
    pub fn weight(&self) -> usize {
        let positions = self.other.iter().map(|positions| positions.len());
        self.exact.len() + positions.sum::<usize>()
    }

    /// Before the first byte.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Whether a value that ends here meets the condition.
    pub fn is_met(&self, state: u32) -> bool {
        self.states[state as usize].met
    }

    /// The state behind a byte of a class; `None` when the work is used up.
    pub fn step(&mut self, state: u32, class: u8, byte: u8, work: &mut Work) -> Option<u32> {
        let at = state as usize * self.classes + usize::from(class);
        if self.trans[at] == UNKNOWN {
            self.trans[at] = self.walk(state, byte, work)?;
        }
        Some(self.trans[at])
    }

    fn walk(&mut self, state: u32, byte: u8, work: &mut Work) -> Option<u32> {
        let from = self.states[state as usize].clone();
        let (exact, mut met) = self.narrow(&from, byte);
        let mut active = Vec::new();
        for group in from.active.chunk_by(|a, b| a.0 == b.0) {
            let pattern = group[0].0;
            let positions = &self.other[pattern as usize];
            let (mut next, mut accepted) = (Vec::new(), false);
            for (_, p) in group {
                let p = *p as usize;
                if positions.class[p].contains(byte) {
                    next.extend(&positions.follow[p]);
                    accepted |= positions.accepts[p];
                }
            }
            work.spend(group.len() + next.len())?;
            next.sort_unstable();
            next.dedup();
            if accepted && next.iter().any(|p| positions.universal[*p as usize]) {
                return Some(ALL);
            }
            if let Some(simulation) = &positions.simulation {
                next = simulation.prune(&next);
            }
            active.extend(next.into_iter().map(|p| (pattern, p)));
            met |= accepted;
        }
        work.spend(self.classes + active.len())?;
        Some(self.state_of(State {
            exact,
            depth: from.depth + 1,
            active: active.into(),
            met,
        }))
    }

    /// The exact values that go on with a byte, and whether one of them ends behind it.
    fn narrow(&self, from: &State, byte: u8) -> ((u32, u32), bool) {
        let (first, last) = (from.exact.0 as usize, from.exact.1 as usize);
        let depth = from.depth as usize;
        let among = &self.exact[first..last];
        let low = among.partition_point(|value| value.get(depth).is_none_or(|b| *b < byte));
        let high = among.partition_point(|value| value.get(depth).is_none_or(|b| *b <= byte));
        let met = low < high && among[low].len() == depth + 1;
        (((first + low) as u32, (first + high) as u32), met)
    }

    fn state_of(&mut self, mut state: State) -> u32 {
        let exhausted = state.exact.0 == state.exact.1;
        if exhausted {
            (state.exact, state.depth) = ((0, 0), 0);
        }
        if exhausted && state.active.is_empty() && !state.met {
            return DEAD;
        }
        if let Some(id) = self.ids.get(&state) {
            return *id;
        }
        let id = self.states.len() as u32;
        self.trans.resize(self.trans.len() + self.classes, UNKNOWN);
        self.ids.insert(state.clone(), id);
        self.states.push(state);
        id
    }
}
