//! Numbers and flags: conditions become rows for every value, or for every range of values.

use super::alternatives::{Alternative, Asked, Field};
use super::rows::{Rows, or, resolve};
use crate::image::{MAX_BOUNDS, RangesRecord, Tables};
use crate::policy::{Conditions, NumberCondition, Sched};

/// A number that needs more bounds than the kernel program searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyBounds(pub usize);

/// The range table of one number, over all of u64.
pub(super) fn ranges<'a>(
    alternatives: &[Alternative<'a>],
    words: usize,
    field: Field,
    get: impl Fn(&'a Conditions) -> Option<&'a NumberCondition>,
    rows: &mut Rows,
    tables: &mut Tables,
) -> Result<RangesRecord, TooManyBounds> {
    let asked = Asked::new(alternatives, words, field, get);
    let mut starts = vec![0];
    for (first, last) in asked
        .conditions
        .iter()
        .flat_map(|(condition, _)| &condition.ranges)
    {
        starts.push(*first);
        starts.extend(last.checked_add(1));
    }
    starts.sort_unstable();
    starts.dedup();
    if starts.len() > MAX_BOUNDS {
        return Err(TooManyBounds(starts.len()));
    }
    let mut planes = vec![asked.init.clone(); starts.len()];
    for (condition, met) in &asked.conditions {
        for (first, last) in merged(&condition.ranges) {
            let from = starts.partition_point(|start| *start < first);
            let to = starts.partition_point(|start| *start <= last);
            planes[from..to].iter_mut().for_each(|row| or(row, met));
        }
    }
    let mut ids: Vec<u16> = planes
        .iter()
        .map(|row| rows.intern(&resolve(row)) as u16)
        .collect();
    let slots = starts.len().next_power_of_two();
    starts.resize(slots, u64::MAX);
    ids.resize(slots, ids[ids.len() - 1]);
    Ok(RangesRecord {
        starts: tables.push_u64s(&starts),
        rows: tables.push_u16s(&ids),
        slots: slots as u32,
    })
}

/// Ranges without overlap, ascending.
fn merged(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (first, last) in sorted {
        match merged.last_mut() {
            Some(previous) if first <= previous.1 => previous.1 = previous.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// Row ids by nice + 20; values that no thread has rule out everything.
pub(super) fn nice(alternatives: &[Alternative], words: usize, rows: &mut Rows) -> [u16; 64] {
    let asked = Asked::new(alternatives, words, Field::Nice, |c| c.nice.as_ref());
    let mut ids = [0; 64];
    for (value, id) in ids.iter_mut().take(40).enumerate() {
        let holds = |condition: &NumberCondition| {
            condition
                .ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&(value as u64)))
        };
        *id = rows.intern(&row_of(&asked, holds)) as u16;
    }
    ids
}

/// Row ids by the flags of a thread key: kernel thread, leader, scheduling policy.
pub(super) fn flags(alternatives: &[Alternative], words: usize, rows: &mut Rows) -> [u16; 16] {
    let kthread = Asked::new(alternatives, words, Field::Kthread, |c| c.kthread.as_ref());
    let leader = Asked::new(alternatives, words, Field::Leader, |c| c.leader.as_ref());
    let sched = Asked::new(alternatives, words, Field::Sched, |c| c.sched.as_ref());
    let mut ids = [0; 16];
    for (value, id) in ids.iter_mut().enumerate() {
        let Some(policy) = Sched::ALL.get(value >> 2) else {
            break;
        };
        let mut row = row_of(&kthread, |wanted| *wanted == (value & 1 != 0));
        for other in [
            row_of(&leader, |wanted| *wanted == (value & 2 != 0)),
            row_of(&sched, |wanted| wanted.contains(policy)),
        ] {
            row.iter_mut()
                .zip(other)
                .for_each(|(word, mask)| *word &= mask);
        }
        *id = rows.intern(&row) as u16;
    }
    ids
}

/// The row of one value, given which conditions it meets.
fn row_of<C>(asked: &Asked<C>, holds: impl Fn(&C) -> bool) -> Vec<u64> {
    let mut planes = asked.init.clone();
    let met = asked
        .conditions
        .iter()
        .filter(|(condition, _)| holds(condition));
    met.for_each(|(_, bits)| or(&mut planes, bits));
    resolve(&planes)
}
