//! One or two policies as literals over a common space of threads.
//!
//! An alternative is a conjunction of literals: conditions to meet in some dimensions and perhaps
//! one to avoid. Conditions that ask the same are one, whichever rule or policy they are from, so
//! that a contradiction between two of them is seen without a search.

use rustc_hash::FxHashMap;

use super::language::{Exhausted, Found, Language};
use super::possible::{Kind, Numbers};
use crate::automaton::{Domain, WORK, Work};
use crate::eval::{Class, Row};
use crate::image::Image;
use crate::lower::{Field, alternatives};
use crate::policy::{Conditions, NumberCondition, Pattern, Policy, Rule, UNKNOWN_ID_BASE};
use crate::thread::Thread;

/// One condition on one dimension. Names of threads and processes share their conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Literal {
    pub field: Field,
    pub condition: u32,
}

/// One alternative of a policy.
#[derive(Debug, Clone)]
pub(super) struct Alternative {
    /// Counted from 0.
    pub rule: usize,
    /// Which `any` table of the rule.
    pub any_index: usize,
    pub meets: Vec<Literal>,
    pub avoids: Option<Literal>,
    /// How much its patterns add to an automaton: simple ones are tried first.
    pub weight: usize,
}

/// A policy and what proofs need of it.
pub(super) struct Side<'a> {
    pub policy: &'a Policy,
    image: &'a Image,
    pub alternatives: Vec<Alternative>,
    /// The common number of each user and group that is only known by name.
    users: Vec<u64>,
    groups: Vec<u64>,
}

impl Side<'_> {
    /// The bits of the alternatives of some rules.
    pub fn bits(&self, rules: impl Fn(usize) -> bool) -> Row {
        let mut row = Row::default();
        for (index, alternative) in self.alternatives.iter().enumerate() {
            row[index / 64] |= u64::from(rules(alternative.rule)) << (index % 64);
        }
        row
    }

    /// The alternatives of a rule, with their indices.
    pub fn of_rule(&self, rule: usize) -> impl Iterator<Item = (usize, &Alternative)> {
        let all = self.alternatives.iter().enumerate();
        all.filter(move |(_, alternative)| alternative.rule == rule)
    }

    /// A thread as this policy numbers its users and groups.
    fn localised(&self, thread: &Thread) -> Thread {
        let local = |id: u64, common: &[u64]| match id.checked_sub(UNKNOWN_ID_BASE) {
            None => id,
            Some(_) => common
                .iter()
                .position(|known| *known == id)
                .map_or(u64::MAX - 1, |index| UNKNOWN_ID_BASE + index as u64),
        };
        Thread {
            user: local(thread.user, &self.users),
            group: local(thread.group, &self.groups),
            ..thread.clone()
        }
    }

    /// What the image decides about a thread.
    pub fn classify(&self, thread: &Thread) -> Class {
        self.image.classify(&self.localised(thread))
    }

    /// The alternatives that take a thread.
    pub fn alive(&self, thread: &Thread) -> Row {
        self.image.alive(&self.localised(thread))
    }
}

/// Everything that questions about one or two policies share.
pub(super) struct Space<'a> {
    pub sides: Vec<Side<'a>>,
    names: Language<'a>,
    paths: Language<'a>,
    numbers: Vec<Vec<(u64, u64)>>,
    number_ids: FxHashMap<Vec<(u64, u64)>, u32>,
    unknown_users: Vec<&'a str>,
    unknown_groups: Vec<&'a str>,
}

impl<'a> Space<'a> {
    /// The space of some compiled policies.
    pub fn new(policies: &[(&'a Policy, &'a Image)]) -> Result<Self, Exhausted> {
        let tables = || {
            policies
                .iter()
                .flat_map(|(policy, _)| &policy.rules)
                .flat_map(Rule::tables)
        };
        let names = tables().flat_map(Conditions::names);
        let paths = tables().flat_map(|c| c.patterns("cgroup"));
        let mut work = Work::new(WORK);
        let mut space = Self {
            sides: Vec::new(),
            names: Language::new(names, Domain::Name, &mut work)?,
            paths: Language::new(paths, Domain::Path, &mut work)?,
            numbers: Vec::new(),
            number_ids: FxHashMap::default(),
            unknown_users: Vec::new(),
            unknown_groups: Vec::new(),
        };
        for (policy, image) in policies {
            space.add(policy, image);
        }
        Ok(space)
    }

    fn add(&mut self, policy: &'a Policy, image: &'a Image) {
        let users = common_ids(&policy.unknown_users, &mut self.unknown_users);
        let groups = common_ids(&policy.unknown_groups, &mut self.unknown_groups);
        let mut side = Side {
            policy,
            image,
            alternatives: Vec::new(),
            users,
            groups,
        };
        for alternative in alternatives(policy) {
            let meets = alternative.meets();
            let meets = meets.map(|(field, table)| self.literal(field, table, &side));
            let meets: Vec<Literal> = meets.collect();
            let avoids = alternative.avoids();
            let avoids = avoids.map(|(field, table)| self.literal(field, table, &side));
            let weights = meets
                .iter()
                .chain(&avoids)
                .map(|literal| self.weight(*literal));
            side.alternatives.push(Alternative {
                rule: alternative.rule,
                any_index: alternative.any_index,
                weight: weights.sum(),
                meets,
                avoids,
            });
        }
        self.sides.push(side);
    }

    fn literal(&mut self, field: Field, table: &'a Conditions, side: &Side<'a>) -> Literal {
        const PRESENT: &str = "alternatives name fields that are there";
        let one = |value: u64| vec![(value, value)];
        let condition = match field {
            Field::Thread => self.names.condition(table.patterns("thread").iter()),
            Field::Process => self.names.condition(table.patterns("process").iter()),
            Field::Cgroup => self.paths.condition(table.patterns("cgroup").iter()),
            Field::User => {
                let ids = table.user.as_ref().expect(PRESENT);
                self.number(renumbered(ids, &side.users))
            }
            Field::Group => {
                let ids = table.group.as_ref().expect(PRESENT);
                self.number(renumbered(ids, &side.groups))
            }
            Field::Nice => self.number(table.nice.as_ref().expect(PRESENT).ranges.clone()),
            Field::Hint => self.number(table.hint.as_ref().expect(PRESENT).ranges.clone()),
            Field::Kthread => self.number(one(table.kthread.expect(PRESENT).into())),
            Field::Leader => self.number(one(table.leader.expect(PRESENT).into())),
            Field::Sched => {
                let policies = table.sched.as_ref().expect(PRESENT);
                self.number(
                    policies
                        .iter()
                        .flat_map(|sched| one(*sched as u64))
                        .collect(),
                )
            }
        };
        Literal { field, condition }
    }

    /// The condition that one pattern of a name or cgroup condition is alone.
    pub fn pattern(&mut self, field: Field, pattern: &'a Pattern) -> Literal {
        let one = std::iter::once(pattern);
        let condition = match field {
            Field::Cgroup => self.paths.condition(one),
            _ => self.names.condition(one),
        };
        Literal { field, condition }
    }

    fn weight(&self, literal: Literal) -> usize {
        match literal.field {
            Field::Thread | Field::Process => self.names.weight(literal.condition),
            Field::Cgroup => self.paths.weight(literal.condition),
            _ => 0,
        }
    }

    fn number(&mut self, mut ranges: Vec<(u64, u64)>) -> u32 {
        ranges.sort_unstable();
        ranges.dedup();
        let fresh = self.numbers.len() as u32;
        *self.number_ids.entry(ranges).or_insert_with_key(|ranges| {
            self.numbers.push(ranges.clone());
            fresh
        })
    }

    /// A name that meets and avoids these conditions.
    pub fn find_name(&mut self, meets: Vec<u32>, avoids: Vec<u32>, work: &mut Work) -> Found {
        self.names.find(meets, avoids, work)
    }

    /// A cgroup path, likewise.
    pub fn find_path(&mut self, meets: Vec<u32>, avoids: Vec<u32>, work: &mut Work) -> Found {
        self.paths.find(meets, avoids, work)
    }

    /// A number, likewise, of a thread of some kind.
    pub fn find_number(
        &self,
        field: Field,
        kind: Kind,
        meets: &[u32],
        avoids: &[u32],
    ) -> Option<u64> {
        let unknown = match field {
            Field::User => self.unknown_users.len(),
            _ => self.unknown_groups.len(),
        };
        let sets = |ids: &[u32]| -> Vec<&[(u64, u64)]> {
            ids.iter()
                .map(|id| self.numbers[*id as usize].as_slice())
                .collect()
        };
        Numbers::of(field, kind, unknown as u64).find(&sets(meets), &sets(avoids))
    }
}

fn common_ids<'a>(names: &'a [String], known: &mut Vec<&'a str>) -> Vec<u64> {
    let ids = names.iter().map(|name| {
        let index = known.iter().position(|k| k == name).unwrap_or_else(|| {
            known.push(name);
            known.len() - 1
        });
        UNKNOWN_ID_BASE + index as u64
    });
    ids.collect()
}

fn renumbered(condition: &NumberCondition, common: &[u64]) -> Vec<(u64, u64)> {
    let renumber = |range: &(u64, u64)| match range.0.checked_sub(UNKNOWN_ID_BASE) {
        None => *range,
        Some(index) => (common[index as usize], common[index as usize]),
    };
    condition.ranges.iter().map(renumber).collect()
}
