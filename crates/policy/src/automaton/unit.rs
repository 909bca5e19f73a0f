//! The bit-parallel form: patterns whose deterministic automata would explode.
//!
//! A unit runs up to 64 positions of several patterns at once. A byte keeps the active positions
//! that consume it, and each of the unit's few follow distances moves them on. It never explodes,
//! but every unit costs as much for each byte as an automaton of any size, so this is the form for
//! what is left, not for everything.
//!
//! Invariant: a pattern's positions lie side by side in one unit, its met mark last.

use std::collections::BTreeSet;

use super::Member;
use super::byteset::Classes;
use super::position::Positions;
use crate::image::UNIT_SHIFTS;

/// Positions and met marks of one unit.
pub(super) const BITS: usize = 64;

/// All units of one dimension.
#[derive(Debug, Clone)]
pub(crate) struct Units {
    /// Byte classes, shared.
    pub classes: Classes,
    /// In no particular order; a value meets what any of them finds.
    pub units: Vec<Unit>,
}

/// `struct unit`, before its rows are numbered.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// Active before the first byte.
    pub init: u64,
    /// Met marks.
    pub accept: u64,
    /// Positions with a follower at each distance.
    pub from: [u64; UNIT_SHIFTS],
    /// The distances, 0..=63.
    pub by: [u8; UNIT_SHIFTS],
    /// Positions that consume a byte of each class.
    pub masks: Vec<u64>,
    /// The member that each met mark belongs to.
    pub met: Vec<(u32, usize)>,
}

/// One pattern laid out in consecutive bits.
#[derive(Debug, Clone)]
struct Layout {
    member: usize,
    /// Bit of each position; the met mark has the last bit.
    place: Vec<usize>,
    distances: BTreeSet<u8>,
}

impl Layout {
    /// The order of positions that needs fewer distances; `None` if neither fits a unit.
    fn new(member: usize, positions: &Positions) -> Option<Self> {
        if positions.len() >= BITS {
            return None;
        }
        let as_found: Vec<usize> = (0..positions.len()).collect();
        [as_found, depth_first(positions)]
            .into_iter()
            .map(|place| Self {
                member,
                distances: distances(positions, &place),
                place,
            })
            .min_by_key(|layout| layout.distances.len())
            .filter(|layout| layout.distances.len() <= UNIT_SHIFTS)
    }

    fn bits(&self) -> usize {
        self.place.len() + 1
    }
}

/// Each position's place in a walk that goes deep first.
fn depth_first(positions: &Positions) -> Vec<usize> {
    let mut place = vec![usize::MAX; positions.len()];
    let mut stack: Vec<u32> = positions.start.iter().rev().copied().collect();
    let mut next = 0;
    while let Some(p) = stack.pop() {
        if place[p as usize] == usize::MAX {
            place[p as usize] = next;
            next += 1;
            stack.extend(positions.follow[p as usize].iter().rev());
        }
    }
    assert_eq!(next, positions.len(), "every position is reached");
    place
}

fn distances(positions: &Positions, place: &[usize]) -> BTreeSet<u8> {
    edges(positions, place)
        .map(|(from, to)| distance(from, to))
        .collect()
}

fn distance(from: usize, to: usize) -> u8 {
    ((to + BITS - from) % BITS) as u8
}

/// Every follow edge by places; the met mark is the place after the last position.
fn edges<'a>(
    positions: &'a Positions,
    place: &'a [usize],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    (0..positions.len()).flat_map(move |p| {
        let met = positions.accepts[p].then_some(place.len());
        let followers = positions.follow[p].iter().map(|q| place[*q as usize]);
        followers.chain(met).map(move |to| (place[p], to))
    })
}

/// Whether a pattern can be run by a unit.
pub(crate) fn fits(positions: &Positions) -> bool {
    Layout::new(0, positions).is_some()
}

/// Packs patterns that fit, given as indices into `members`.
pub(crate) fn pack(members: &[Member], chosen: &[usize]) -> Units {
    let layouts = chosen
        .iter()
        .map(|m| Layout::new(*m, members[*m].positions));
    let mut layouts: Vec<Layout> = layouts.map(|layout| layout.expect("it fits")).collect();
    layouts.sort_by(|a, b| {
        (&a.distances, b.bits(), a.member).cmp(&(&b.distances, a.bits(), b.member))
    });
    let mut bins: Vec<(usize, BTreeSet<u8>, Vec<Layout>)> = Vec::new();
    for layout in layouts {
        let room = bins.iter_mut().find(|(used, distances, _)| {
            used + layout.bits() <= BITS
                && distances.union(&layout.distances).count() <= UNIT_SHIFTS
        });
        match room {
            Some((used, distances, content)) => {
                *used += layout.bits();
                distances.extend(&layout.distances);
                content.push(layout);
            }
            None => bins.push((layout.bits(), layout.distances.clone(), vec![layout])),
        }
    }
    let sets = chosen.iter().flat_map(|m| &members[*m].positions.class);
    let classes = Classes::of_sets(sets);
    let units = bins.iter().map(|(_, distances, content)| {
        let mut unit = Unit::new(distances, classes.representatives.len());
        let mut base = 0;
        for layout in content {
            unit.add(layout, members[layout.member].positions, base, &classes);
            base += layout.bits();
        }
        unit
    });
    Units {
        units: units.collect(),
        classes,
    }
}

impl Unit {
    fn new(distances: &BTreeSet<u8>, classes: usize) -> Self {
        let mut by = [0; UNIT_SHIFTS];
        by.iter_mut()
            .zip(distances)
            .for_each(|(slot, distance)| *slot = *distance);
        let from = [0; UNIT_SHIFTS];
        Self {
            init: 0,
            accept: 0,
            from,
            by,
            masks: vec![0; classes],
            met: Vec::new(),
        }
    }

    fn add(&mut self, layout: &Layout, positions: &Positions, base: usize, classes: &Classes) {
        let met = base + positions.len();
        self.accept |= 1 << met;
        self.met.push((met as u32, layout.member));
        self.init |= u64::from(positions.start_accepts) << met;
        for p in &positions.start {
            self.init |= 1 << (base + layout.place[*p as usize]);
        }
        for (p, class) in positions.class.iter().enumerate() {
            let bit = 1 << (base + layout.place[p]);
            for (mask, byte) in self.masks.iter_mut().zip(&classes.representatives) {
                *mask |= if class.contains(*byte) { bit } else { 0 };
            }
        }
        for (from, to) in edges(positions, &layout.place) {
            let distance = distance(from, to);
            let slot = self.by.iter().position(|by| *by == distance);
            let slot = slot.expect("the unit has the distances of what it holds");
            self.from[slot] |= 1 << (base + from);
        }
    }
}
