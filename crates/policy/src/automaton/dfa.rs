//! Determinisation with emission.
//!
//! The states of an ordinary automaton for "which of these patterns match" must remember every
//! pattern that was already decided: 2^n states for n patterns of the form `*x*`. Here a state
//! *emits* the rows of the patterns that are decided when it is entered, and forgets them: a
//! pattern is decided once it is met and one of its universal positions is active, since then
//! nothing that follows can undo it. Its restart loop stays active; emitting again is harmless,
//! and forgetting the loop would itself be something to remember.
//!
//! Positions that are active in every state (restart loops and what they reach) are left out of
//! the states, and what they do for each byte class is computed once. So a state holds only what
//! is in flight, and a transition on a byte that nothing in flight waits for costs one look-up.
//!
//! Invariant: entering states along a value and ORing `emit`, then `fin` of the last one, gives
//! the union of the rows of exactly the patterns that the value meets.

use rustc_hash::FxHashMap;

use super::byteset::Classes;
use super::union::Union;
use super::{Domain, Member, Work};
use crate::thread::NAME_BYTES;

/// States are u16 in the image; this keeps one automaton below a few megabytes too.
pub(crate) const MAX_STATES: usize = 16384;

/// Positions that all states together may hold. An automaton worth having holds a few a state; one
/// that holds as many as it has patterns is going to pass its limit of states, and would take
/// hundreds of megabytes on the way.
const MAX_HELD: usize = 32 * MAX_STATES;

/// A deterministic automaton whose states emit rows.
#[derive(Debug, Clone)]
pub(crate) struct Dfa {
    /// Byte classes; their count is the width of `trans`.
    pub classes: Classes,
    /// Next state of state q on class c at `q * classes + c`. State 0 is the start.
    pub trans: Vec<u16>,
    /// Index into `rows` by state: emitted on every entry.
    pub emit: Vec<u32>,
    /// Index into `rows` by state: met if the value ends here.
    pub fin: Vec<u32>,
    /// Distinct rows; 0 is all zeros.
    pub rows: Vec<Box<[u64]>>,
}

impl Dfa {
    /// How many states it has.
    pub fn states(&self) -> usize {
        self.emit.len()
    }
}

/// Builds the automaton of some patterns; `None` if it needs more than `max_states` or more work
/// than is left.
pub(crate) fn determinize(
    members: &[Member],
    domain: Domain,
    max_states: usize,
    work: &mut Work,
) -> Option<Dfa> {
    let union = Union::new(members);
    let mut builder = Builder::new(&union, domain, max_states.min(MAX_STATES));
    builder.run(work)?;
    Some(builder.finish())
}

/// A state: what is in flight besides the permanent positions, and what entering it emits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    active: Box<[u32]>,
    emit: u32,
}

struct Builder<'a> {
    union: &'a Union<'a>,
    domain: Domain,
    max_states: usize,
    permanent: Vec<bool>,
    /// Positions for which a permanent one stands.
    covered: Vec<bool>,
    /// What the permanent positions lead to, by class.
    base: Vec<Vec<u32>>,
    /// The state reached when nothing else is in flight, by class, once known.
    base_state: Vec<Option<u16>>,
    states: Vec<Key>,
    /// Active ids of all of them.
    held: usize,
    ids: FxHashMap<Key, u16>,
    trans: Vec<u16>,
    rows: Vec<Box<[u64]>>,
    row_ids: FxHashMap<Box<[u64]>, u32>,
}

impl<'a> Builder<'a> {
    fn new(union: &'a Union<'a>, domain: Domain, max_states: usize) -> Self {
        let width = union.members.first().map_or(0, |member| member.row.len());
        let zeros = vec![0; width].into_boxed_slice();
        Self {
            union,
            domain,
            max_states,
            permanent: vec![false; union.owner.len()],
            covered: vec![false; union.owner.len()],
            base: vec![Vec::new(); union.classes.representatives.len()],
            base_state: vec![None; union.classes.representatives.len()],
            states: Vec::new(),
            held: 0,
            ids: FxHashMap::default(),
            trans: Vec::new(),
            rows: vec![zeros.clone()],
            row_ids: FxHashMap::from_iter([(zeros, 0)]),
        }
    }

    /// Breadth first, so that a state is first met at its least depth; a name has no use for the
    /// followers of a state that no name reaches before its last byte.
    fn run(&mut self, work: &mut Work) -> Option<()> {
        let classes = self.union.classes.representatives.len();
        let mut start = self.union.start.clone();
        let mut done = 0;
        let mut depth = 0;
        if self.domain == Domain::Path {
            // The only first byte of a path. Starting the automaton proper after it makes the
            // loops that a leading `/` opens permanent, as those of names are from the start.
            self.state_of(start.clone())?;
            let slash = usize::from(self.union.classes.of[usize::from(b'/')]);
            start = self.step_all(&self.union.start, slash);
            self.settle(&start);
            // Its key was made before anything was permanent, so no other state may find it.
            self.ids.clear();
            self.trans.resize(classes, 0);
            self.trans[slash] = self.state_of(start)?;
            (done, depth) = (1, 1);
        } else {
            self.settle(&start);
            self.state_of(start)?;
        }
        while done < self.states.len() {
            let level = self.states.len();
            if self.domain == Domain::Name && depth == NAME_BYTES {
                break;
            }
            for state in done..level {
                self.expand(state, work)?;
            }
            (done, depth) = (level, depth + 1);
        }
        self.trans.resize(self.states.len() * classes, 0);
        Some(())
    }

    /// Fixes what is permanent, given the first set from which everything else is reached.
    fn settle(&mut self, set: &[u32]) {
        self.permanent = self.union.permanent(set);
        let permanent: Vec<u32> = (0..self.permanent.len() as u32)
            .filter(|id| self.permanent[*id as usize])
            .collect();
        for group in permanent
            .chunk_by(|a, b| self.union.owner[*a as usize] == self.union.owner[*b as usize])
        {
            let owner = self.union.owner[group[0] as usize] as usize;
            let base = self.union.first[owner];
            let member = self.union.members[owner].positions;
            let Some(simulation) = &member.simulation else {
                continue;
            };
            for p in 0..member.len() as u32 {
                self.covered[(base + p) as usize] = !self.permanent[(base + p) as usize]
                    && group.iter().any(|r| simulation.simulates(r - base, p));
            }
        }
        for class in 0..self.base.len() {
            let mut base = self.step_all(&permanent, class);
            base.retain(|id| self.is_in_flight(*id));
            self.base[class] = base;
        }
    }

    fn is_in_flight(&self, id: u32) -> bool {
        !self.permanent[id as usize] && !self.covered[id as usize]
    }

    fn step_all(&self, set: &[u32], class: usize) -> Vec<u32> {
        let taking = set.iter().filter(|id| self.union.takes(**id, class));
        let mut next: Vec<u32> = taking
            .flat_map(|id| &self.union.follow[*id as usize])
            .copied()
            .collect();
        next.sort_unstable();
        next.dedup();
        next
    }

    /// All transitions of one state.
    fn expand(&mut self, state: usize, work: &mut Work) -> Option<()> {
        let classes = self.base.len();
        let active = self.states[state].active.clone();
        let mut touched = [0u64; 4];
        for id in &active {
            let takes = self.union.takes[*id as usize];
            touched
                .iter_mut()
                .zip(takes)
                .for_each(|(all, one)| *all |= one);
        }
        work.spend(classes)?;
        for class in 0..classes {
            let next = if touched[class / 64] >> (class % 64) & 1 == 0 {
                match self.base_state[class] {
                    Some(next) => next,
                    None => {
                        let next = self.state_of(self.base[class].clone())?;
                        self.base_state[class] = Some(next);
                        next
                    }
                }
            } else {
                let mut set = self.step_all(&active, class);
                set.extend(&self.base[class]);
                set.sort_unstable();
                set.dedup();
                work.spend(active.len() + set.len())?;
                self.state_of(set)?
            };
            self.trans.push(next);
        }
        Some(())
    }

    /// The state of a set of active ids (sorted, with met marks); `None` past the limit.
    fn state_of(&mut self, mut set: Vec<u32>) -> Option<u16> {
        set.retain(|id| !self.permanent[*id as usize] && !self.covered[*id as usize]);
        let mut active = Vec::with_capacity(set.len());
        let mut emit: Option<Vec<u64>> = None;
        let union = self.union;
        for group in set.chunk_by(|a, b| union.owner[*a as usize] == union.owner[*b as usize]) {
            let owner = union.owner[group[0] as usize] as usize;
            let met = union.is_met_mark(group[group.len() - 1]);
            let decided = met && group.iter().any(|id| union.universal[*id as usize]);
            if decided {
                let row = emit.get_or_insert_with(|| self.rows[0].to_vec());
                row.iter_mut()
                    .zip(union.members[owner].row)
                    .for_each(|(w, bits)| *w |= bits);
            }
            self.keep(owner, group, decided, &mut active);
        }
        let emit = emit.map_or(0, |row| self.row_id(row));
        let key = Key {
            active: active.into_boxed_slice(),
            emit,
        };
        if let Some(state) = self.ids.get(&key) {
            return Some(*state);
        }
        self.held += key.active.len();
        if self.states.len() == self.max_states || self.held > MAX_HELD {
            return None;
        }
        let state = self.states.len() as u16;
        self.states.push(key.clone());
        self.ids.insert(key, state);
        Some(state)
    }

    /// What one pattern keeps in flight of its active ids.
    fn keep(&self, owner: usize, group: &[u32], decided: bool, active: &mut Vec<u32>) {
        let base = self.union.first[owner];
        let begin = active.len();
        active.extend(group.iter().filter(|id| {
            !decided || !(self.union.universal[**id as usize] || self.union.is_met_mark(**id))
        }));
        let Some(simulation) = &self.union.members[owner].positions.simulation else {
            return;
        };
        if active.len() - begin < 2 {
            return;
        }
        // A universal position stands for everything, the restart loop included: it must not take
        // the loop with it, for it is dropped itself as soon as its pattern is met.
        let kept = active.split_off(begin);
        let stands = |r: &u32, p: u32| {
            !self.union.universal[*r as usize]
                && !self.union.is_met_mark(*r)
                && simulation.covers(r - base, p - base)
        };
        active.extend(
            kept.iter()
                .filter(|p| self.union.is_met_mark(**p) || !kept.iter().any(|r| stands(r, **p))),
        );
    }

    fn row_id(&mut self, row: Vec<u64>) -> u32 {
        let row = row.into_boxed_slice();
        let fresh = self.rows.len() as u32;
        *self.row_ids.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            fresh
        })
    }

    fn finish(mut self) -> Dfa {
        let states = std::mem::take(&mut self.states);
        let fin = states
            .iter()
            .map(|state| self.final_row(&state.active))
            .collect();
        Dfa {
            classes: self.union.classes.clone(),
            trans: self.trans,
            emit: states.iter().map(|state| state.emit).collect(),
            fin,
            rows: self.rows,
        }
    }

    /// The rows of the patterns that are met if the value ends, besides what was emitted.
    fn final_row(&mut self, active: &[u32]) -> u32 {
        let mut row = self.rows[0].to_vec();
        for id in active.iter().filter(|id| self.union.is_met_mark(**id)) {
            let met = self.union.members[self.union.owner[*id as usize] as usize].row;
            row.iter_mut().zip(met).for_each(|(w, bits)| *w |= bits);
        }
        self.row_id(row)
    }
}
