//! The positions of several patterns under one numbering, as determinisation walks them.
//!
//! Invariant: ids of one pattern are consecutive, so that a sorted set is grouped by pattern.

use rustc_hash::FxHashMap;

use super::Member;
use super::byteset::{ByteSet, Classes};
use super::position::Positions;

/// The positions of several patterns under one numbering. Each pattern owns a run of ids, its
/// positions and then one more that means "met if the value ends here".
pub(super) struct Union<'a> {
    pub members: &'a [Member<'a>],
    pub classes: Classes,
    /// First id of each member, and the end.
    pub first: Vec<u32>,
    pub owner: Vec<u32>,
    /// Active after the id's byte, with the met marks.
    pub follow: Vec<Vec<u32>>,
    /// Bit c: the id consumes byte class c.
    pub takes: Vec<[u64; 4]>,
    pub universal: Vec<bool>,
    pub start: Vec<u32>,
}

impl<'a> Union<'a> {
    pub fn new(members: &'a [Member<'a>]) -> Self {
        let classes = Classes::of_sets(members.iter().flat_map(|m| &m.positions.class));
        let mut union = Self {
            members,
            classes,
            first: vec![0],
            owner: Vec::new(),
            follow: Vec::new(),
            takes: Vec::new(),
            universal: Vec::new(),
            start: Vec::new(),
        };
        let mut known: FxHashMap<ByteSet, [u64; 4]> = FxHashMap::default();
        for (index, member) in members.iter().enumerate() {
            union.add(index as u32, member.positions, &mut known);
        }
        union
    }

    fn add(&mut self, owner: u32, from: &Positions, known: &mut FxHashMap<ByteSet, [u64; 4]>) {
        let base = self.owner.len() as u32;
        let met = base + from.len() as u32;
        let shift = |set: &[u32], accepts: bool| -> Vec<u32> {
            set.iter()
                .map(|p| p + base)
                .chain(accepts.then_some(met))
                .collect()
        };
        for p in 0..from.len() {
            self.follow.push(shift(&from.follow[p], from.accepts[p]));
            self.universal.push(from.universal[p]);
            let takes = known
                .entry(from.class[p])
                .or_insert_with(|| self.classes.bits(&from.class[p]));
            self.takes.push(*takes);
        }
        self.follow.push(Vec::new());
        self.universal.push(false);
        self.takes.push([0; 4]);
        self.owner.resize(met as usize + 1, owner);
        self.start.extend(shift(&from.start, from.start_accepts));
        self.first.push(met + 1);
    }

    pub fn is_met_mark(&self, id: u32) -> bool {
        self.first[self.owner[id as usize] as usize + 1] == id + 1
    }

    pub fn takes(&self, id: u32, class: usize) -> bool {
        self.takes[id as usize][class / 64] >> (class % 64) & 1 != 0
    }

    fn takes_all(&self, id: u32) -> bool {
        self.takes[id as usize]
            .iter()
            .map(|w| w.count_ones() as usize)
            .sum::<usize>()
            == self.classes.representatives.len()
    }

    /// The ids of `set` that stay active whatever comes: loops over every byte, and what a loop
    /// itself reaches. Universal positions and met marks come and go.
    pub fn permanent(&self, set: &[u32]) -> Vec<bool> {
        let mut permanent = vec![false; self.owner.len()];
        let kept = |id: u32| !self.universal[id as usize] && !self.is_met_mark(id);
        let loops = set.iter().copied().filter(|id| {
            kept(*id) && self.takes_all(*id) && self.follow[*id as usize].contains(id)
        });
        for reached in loops.flat_map(|id| &self.follow[id as usize]) {
            if kept(*reached) && set.binary_search(reached).is_ok() {
                permanent[*reached as usize] = true;
            }
        }
        permanent
    }
}
