//! Values of one dimension: is there a name (or a cgroup path) that meets some conditions and none
//! of some others?
//!
//! A condition is a union of patterns; it gets a deterministic automaton whose states are made when
//! they are first entered. A question is answered by breadth-first search over the product of the
//! automata of its conditions: a value that no longer can meet what it must, or that met for good
//! what it must not, is given up, and a condition that is settled the right way is dropped from the
//! state. That keeps the product of hundreds of conditions small where a plain one would explode.
//!
//! Invariant: an answer is exact. Whatever does not fit the work granted is `Exhausted`.

use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

use super::condition::{ALL, Condition, DEAD};
use super::possible::{is_name, is_path};
use crate::automaton::{ByteSet, Classes, Domain, Positions, Work};
use crate::policy::{Pattern, PatternKind};
use crate::thread::NAME_BYTES;

/// The work was not enough for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// An exact answer: a value, or that there is none.
pub(super) type Found = Result<Option<Vec<u8>>, Exhausted>;

/// Conditions to meet and conditions to avoid, both sorted.
type Asked = (Vec<u32>, Vec<u32>);

/// All patterns and conditions of one kind of value.
pub(super) struct Language<'a> {
    domain: Domain,
    /// Classes of bytes that no pattern tells apart, most readable first: the class, and its byte.
    bytes: Vec<(u8, u8)>,
    classes: usize,
    class_of: [u8; 256],
    positions: FxHashMap<&'a str, Rc<Positions>>,
    conditions: Vec<Condition>,
    ids: FxHashMap<Vec<&'a str>, u32>,
    known: FxHashMap<Asked, Option<Vec<u8>>>,
}

/// Bytes in the order in which an example should use them.
fn readability(byte: u8) -> (u8, u8) {
    let rank = match byte {
        b'x' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        b'A'..=b'Z' => 3,
        b'-' | b'_' | b'.' => 4,
        b'!'..=b'~' => 5,
        b' ' => 6,
        0x80.. => 7,
        _ => 8,
    };
    (rank, byte)
}

impl<'a> Language<'a> {
    /// Reads every pattern that conditions may use; they must be patterns of a compiled policy.
    pub fn new(
        patterns: impl Iterator<Item = &'a Pattern>,
        domain: Domain,
        work: &mut Work,
    ) -> Result<Self, Exhausted> {
        let mut positions = FxHashMap::default();
        let mut literal = ByteSet::default();
        for pattern in patterns {
            if pattern.kind == PatternKind::Exact {
                let bytes = pattern.bytes.iter();
                bytes.for_each(|byte| literal.add_range(*byte, *byte));
            } else if !positions.contains_key(pattern.regex.as_str()) {
                work.spend(pattern.regex.len()).ok_or(Exhausted)?;
                let read = Positions::new(&pattern.regex, domain, work).map_err(|_| Exhausted)?;
                positions.insert(pattern.regex.as_str(), Rc::new(read));
            }
        }
        literal.add_range(b'/', b'/');
        literal.add_range(b'.', b'.');
        let singles: Vec<ByteSet> = (0..=255)
            .filter(|byte| *byte == 0 || *byte == b'\n' || literal.contains(*byte))
            .map(|byte| {
                let mut set = ByteSet::default();
                set.add_range(byte, byte);
                set
            })
            .collect();
        let sets = positions.values().flat_map(|p| &p.class).chain(&singles);
        let classes = Classes::of_sets(sets);
        let forbidden = |byte: u8| byte == 0 || (domain == Domain::Path && byte == b'\n');
        let mut order: Vec<u8> = (0..=255).filter(|byte| !forbidden(*byte)).collect();
        order.sort_by_key(|byte| readability(*byte));
        let mut seen = FxHashSet::default();
        let bytes = order
            .into_iter()
            .map(|byte| (classes.of[usize::from(byte)], byte))
            .filter(|(class, _)| seen.insert(*class))
            .collect();
        Ok(Self {
            domain,
            bytes,
            classes: classes.representatives.len(),
            class_of: classes.of,
            positions,
            conditions: Vec::new(),
            ids: FxHashMap::default(),
            known: FxHashMap::default(),
        })
    }

    /// The condition that one of these patterns matches. Equal sets of patterns are one condition.
    pub fn condition(&mut self, patterns: impl Iterator<Item = &'a Pattern>) -> u32 {
        let mut patterns: Vec<&'a Pattern> = patterns.collect();
        patterns.sort_by_key(|pattern| pattern.regex.as_str());
        patterns.dedup_by_key(|pattern| pattern.regex.as_str());
        let key: Vec<&str> = patterns.iter().map(|p| p.regex.as_str()).collect();
        let fresh = self.conditions.len() as u32;
        let id = *self.ids.entry(key).or_insert(fresh);
        if id == fresh {
            let (exact, other): (Vec<&Pattern>, Vec<&Pattern>) = patterns
                .iter()
                .partition(|pattern| pattern.kind == PatternKind::Exact);
            let exact = exact.iter().map(|pattern| pattern.bytes.clone()).collect();
            let other = other
                .iter()
                .map(|pattern| Rc::clone(&self.positions[pattern.regex.as_str()]))
                .collect();
            self.conditions
                .push(Condition::new(exact, other, self.classes));
        }
        id
    }

    /// Positions and exact values of a condition.
    pub fn weight(&self, condition: u32) -> usize {
        self.conditions[condition as usize].weight()
    }

    /// A value that meets all of `meets` and none of `avoids`: of the shortest, the most readable.
    /// A name is empty only if it must be.
    pub fn find(&mut self, mut meets: Vec<u32>, mut avoids: Vec<u32>, work: &mut Work) -> Found {
        for set in [&mut meets, &mut avoids] {
            set.sort_unstable();
            set.dedup();
        }
        if meets.iter().any(|id| avoids.binary_search(id).is_ok()) {
            return Ok(None);
        }
        let asked = (meets, avoids);
        if let Some(known) = self.known.get(&asked) {
            return Ok(known.clone());
        }
        let found = self.search(&asked, work)?;
        let is_possible = |value: &Vec<u8>| match self.domain {
            Domain::Name => is_name(value),
            Domain::Path => is_path(value),
        };
        if found.as_ref().is_some_and(|value| !is_possible(value)) {
            // The shortest is longer than a path may be, which the search does not look at.
            return Err(Exhausted);
        }
        self.known.insert(asked, found.clone());
        Ok(found)
    }

    fn search(&mut self, (meets, avoids): &Asked, work: &mut Work) -> Found {
        let all: Vec<u32> = meets.iter().chain(avoids).copied().collect();
        let mut search = Search {
            language: self,
            all: &all,
            must: meets.len(),
            nodes: Vec::new(),
            seen: FxHashSet::default(),
        };
        search.run(work)
    }
}

/// What is known of the value beside its automata: where in its component a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// Before the first byte.
    Start,
    /// Behind the first slash; the root ends here.
    Root,
    /// Behind a further slash.
    Slash,
    /// Behind that many dots and nothing else.
    Dots(u8),
    /// Where a value may end.
    Inside,
}

/// Conditions that are not settled, by index into the question, with their states.
type Live = Rc<[(u16, u32)]>;

struct Node {
    parent: u32,
    byte: u8,
    place: Place,
    live: Live,
}

struct Search<'s, 'a> {
    language: &'s mut Language<'a>,
    all: &'s [u32],
    /// The first so many conditions are to be met, the others to be avoided.
    must: usize,
    nodes: Vec<Node>,
    seen: FxHashSet<(Place, Live)>,
}

impl Search<'_, '_> {
    fn run(&mut self, work: &mut Work) -> Found {
        let states = self
            .all
            .iter()
            .map(|id| self.language.conditions[*id as usize].start());
        let states: Vec<(u16, u32)> = (0u16..).zip(states).collect();
        let Some(live) = self.unsettled(states) else {
            return Ok(None);
        };
        let empty_is_met = self.language.domain == Domain::Name && self.may_end(&live);
        self.nodes.push(Node {
            parent: 0,
            byte: 0,
            place: Place::Start,
            live,
        });
        let (mut done, mut depth) = (0, 0);
        while done < self.nodes.len() {
            if self.language.domain == Domain::Name && depth == NAME_BYTES {
                break;
            }
            let level = self.nodes.len();
            for node in done..level {
                if let Some(last) = self.expand(node, work)? {
                    let value = self.value(last);
                    return self.rounded(value, work).map(Some);
                }
            }
            (done, depth) = (level, depth + 1);
        }
        Ok(empty_is_met.then(Vec::new))
    }

    /// Makes the nodes behind one; the first at which a value may end is the answer.
    fn expand(&mut self, node: usize, work: &mut Work) -> Result<Option<usize>, Exhausted> {
        let (place, live) = (self.nodes[node].place, Rc::clone(&self.nodes[node].live));
        for index in 0..self.language.bytes.len() {
            let (class, byte) = self.language.bytes[index];
            let Some(next_place) = self.next_place(place, byte) else {
                continue;
            };
            work.spend(live.len() + 1).ok_or(Exhausted)?;
            let mut states = Vec::with_capacity(live.len());
            let mut lost = false;
            for (condition, state) in live.iter() {
                let id = self.all[usize::from(*condition)] as usize;
                let automaton = &mut self.language.conditions[id];
                let next = automaton.step(*state, class, byte, work).ok_or(Exhausted)?;
                lost = next == self.hopeless(*condition);
                if lost {
                    break;
                }
                states.push((*condition, next));
            }
            if lost {
                continue;
            }
            let Some(next) = self.unsettled(states) else {
                continue;
            };
            if !self.seen.insert((next_place, Rc::clone(&next))) {
                continue;
            }
            let ends = matches!(next_place, Place::Inside | Place::Root) && self.may_end(&next);
            self.nodes.push(Node {
                parent: node as u32,
                byte,
                place: next_place,
                live: next,
            });
            if ends {
                return Ok(Some(self.nodes.len() - 1));
            }
        }
        Ok(None)
    }

    /// The state in which a condition can no longer come out as asked.
    fn hopeless(&self, condition: u16) -> u32 {
        if usize::from(condition) < self.must {
            DEAD
        } else {
            ALL
        }
    }

    /// Drops what is settled as asked; `None` if something is settled otherwise.
    fn unsettled(&self, mut states: Vec<(u16, u32)>) -> Option<Live> {
        if states
            .iter()
            .any(|(condition, state)| *state == self.hopeless(*condition))
        {
            return None;
        }
        states.retain(|(_, state)| *state != DEAD && *state != ALL);
        Some(states.into())
    }

    fn may_end(&self, live: &Live) -> bool {
        live.iter().all(|(condition, state)| {
            let automaton = &self.language.conditions[self.all[usize::from(*condition)] as usize];
            automaton.is_met(*state) == (usize::from(*condition) < self.must)
        })
    }

    /// A name that ends like `srv-` reads better as `srv-1`, where that is an answer too.
    fn rounded(&mut self, mut value: Vec<u8>, work: &mut Work) -> Result<Vec<u8>, Exhausted> {
        let open = value.last().is_some_and(u8::is_ascii_punctuation);
        if self.language.domain == Domain::Path || !open || value.len() == NAME_BYTES {
            return Ok(value);
        }
        value.push(b'1');
        for (condition, id) in self.all.iter().enumerate() {
            let automaton = &mut self.language.conditions[*id as usize];
            let mut state = automaton.start();
            for byte in &value {
                let class = self.language.class_of[usize::from(*byte)];
                work.spend(1).ok_or(Exhausted)?;
                state = automaton.step(state, class, *byte, work).ok_or(Exhausted)?;
            }
            if automaton.is_met(state) != (condition < self.must) {
                value.pop();
                break;
            }
        }
        Ok(value)
    }

    fn next_place(&self, place: Place, byte: u8) -> Option<Place> {
        if self.language.domain == Domain::Name {
            return Some(Place::Inside);
        }
        match (place, byte) {
            (Place::Start, b'/') => Some(Place::Root),
            (Place::Start, _) | (Place::Root | Place::Slash | Place::Dots(_), b'/') => None,
            (Place::Root | Place::Slash, b'.') => Some(Place::Dots(1)),
            (Place::Dots(1), b'.') => Some(Place::Dots(2)),
            (Place::Inside, b'/') => Some(Place::Slash),
            _ => Some(Place::Inside),
        }
    }

    fn value(&self, mut node: usize) -> Vec<u8> {
        let mut value = Vec::new();
        while node != 0 {
            value.push(self.nodes[node].byte);
            node = self.nodes[node].parent as usize;
        }
        value.reverse();
        value
    }
}
