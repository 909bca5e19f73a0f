//! Alternatives: every rule as a disjunction of plain conjunctions.
//!
//! A rule takes a thread if its own conditions hold, one of its `any` tables holds, and not all
//! conditions of its `not` hold. So it is one alternative for each `any` table and each condition
//! of `not`: own conditions, that table, and that condition negated.
//!
//! Invariant: alternatives are in rule order, so that the lowest one left decides.

use crate::policy::{Conditions, Policy};

/// The conditions of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Field {
    Thread,
    Process,
    Cgroup,
    User,
    Group,
    Nice,
    Kthread,
    Leader,
    Sched,
    Hint,
}

impl Field {
    /// The conditions that a table has.
    fn of(conditions: &Conditions) -> impl Iterator<Item = Field> {
        let Conditions {
            thread,
            process,
            cgroup,
            user,
            group,
            nice,
            kthread,
            leader,
            sched,
            hint,
        } = conditions;
        [
            (Field::Thread, thread.is_some()),
            (Field::Process, process.is_some()),
            (Field::Cgroup, cgroup.is_some()),
            (Field::User, user.is_some()),
            (Field::Group, group.is_some()),
            (Field::Nice, nice.is_some()),
            (Field::Kthread, kthread.is_some()),
            (Field::Leader, leader.is_some()),
            (Field::Sched, sched.is_some()),
            (Field::Hint, hint.is_some()),
        ]
        .into_iter()
        .filter_map(|(field, present)| present.then_some(field))
    }
}

/// One way to be taken by a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alternative<'a> {
    /// Counted from 0.
    pub rule: usize,
    /// Which of the rule's `any` tables, counted from 0; 0 for a rule without.
    pub any_index: usize,
    all: &'a Conditions,
    any: Option<&'a Conditions>,
    not: Option<(&'a Conditions, Field)>,
}

impl<'a> Alternative<'a> {
    /// The conditions that it needs met: the rule's own, then those of its `any` table.
    pub fn meets(&self) -> impl Iterator<Item = (Field, &'a Conditions)> {
        let tables = std::iter::once(self.all).chain(self.any);
        tables.flat_map(|table| Field::of(table).map(move |field| (field, table)))
    }

    /// The condition of `not` that it needs not met.
    pub fn avoids(&self) -> Option<(Field, &'a Conditions)> {
        self.not.map(|(table, field)| (field, table))
    }

    /// The table that asks about a field in a plane: 0 own, 1 `any`, 2 `not`.
    fn table(&self, plane: usize, field: Field) -> Option<&'a Conditions> {
        match plane {
            0 => Some(self.all),
            1 => self.any,
            _ => self
                .not
                .filter(|(_, negated)| *negated == field)
                .map(|(table, _)| table),
        }
    }
}

/// All alternatives of a policy, in rule order.
pub(crate) fn alternatives(policy: &Policy) -> Vec<Alternative<'_>> {
    let mut alternatives = Vec::new();
    for (rule, written) in policy.rules.iter().enumerate() {
        let any: Vec<Option<&Conditions>> = match written.any.as_slice() {
            [] => vec![None],
            tables => tables.iter().map(Some).collect(),
        };
        let not: Vec<Option<(&Conditions, Field)>> = match &written.not {
            None => vec![None],
            Some(table) => Field::of(table).map(|field| Some((table, field))).collect(),
        };
        for (any_index, any) in any.iter().enumerate() {
            let own = Alternative {
                rule,
                any_index,
                all: &written.all,
                any: *any,
                not: None,
            };
            alternatives.extend(not.iter().map(|not| Alternative { not: *not, ..own }));
        }
    }
    alternatives
}

/// What one dimension is asked: a plane row to start from, and one for each condition.
#[derive(Debug, Clone)]
pub(super) struct Asked<'a, C> {
    /// Planes 0 and 1 hold the alternatives that ask nothing there.
    pub init: Vec<u64>,
    /// Each condition as written, with the bits that meeting it sets.
    pub conditions: Vec<(&'a C, Vec<u64>)>,
}

impl<'a, C> Asked<'a, C> {
    /// Collects one field of all alternatives into rows of `3 * words` words.
    pub fn new(
        alternatives: &[Alternative<'a>],
        words: usize,
        field: Field,
        get: impl Fn(&'a Conditions) -> Option<&'a C>,
    ) -> Self {
        let mut asked = Self {
            init: vec![0; 3 * words],
            conditions: Vec::new(),
        };
        let mut known = std::collections::HashMap::new();
        for (index, alternative) in alternatives.iter().enumerate() {
            for plane in 0..3 {
                let bit = plane * words * 64 + index;
                let condition = alternative.table(plane, field).and_then(&get);
                match condition {
                    None if plane < 2 => super::rows::set(&mut asked.init, bit),
                    None => {}
                    Some(condition) => {
                        let at = *known
                            .entry(std::ptr::from_ref(condition))
                            .or_insert_with(|| {
                                asked.conditions.push((condition, vec![0; 3 * words]));
                                asked.conditions.len() - 1
                            });
                        super::rows::set(&mut asked.conditions[at].1, bit);
                    }
                }
            }
        }
        asked
    }
}
