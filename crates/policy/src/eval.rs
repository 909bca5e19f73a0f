//! Classification on the encoded image: what the kernel program does, in Rust.
//!
//! `check`, `explain`, `plan` and `test` judge with this evaluator, so it works on the very bytes
//! that the kernel reads and takes the same steps with the same masks as `bpf/classify.h`. It does
//! not know rules, patterns or conditions; only tables.
//!
//! Invariant: no image, however damaged, makes it panic or loop.

use crate::image::names::Place;
use crate::image::{
    IMAGE_ABI, Image, MAX_ALTS, MAX_BOUNDS, MAX_DFAS, MAX_NAME_UNITS, MAX_PATH_UNITS,
    MAX_ROW_WORDS, RULE_HINTS, RULE_SLOTS, UNIT_SHIFTS, offset, size,
};
use crate::policy::Pool;
use crate::thread::{Thread, cut};

/// What the image decides about a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Where it runs.
    pub pool: Pool,
    /// The rule that took it, counted from 1; 0: none, the default pool.
    pub rule: u16,
    /// Its slice.
    pub slice_us: u64,
    /// 1..=10000, its weight inside the pool.
    pub weight: u32,
    /// It may send hints.
    pub hints: bool,
}

/// The bits of `struct thread_key`: flags in 0..=3, nice + 20 in 8..=13, hint level in 16..=25.
pub fn thread_key(thread: &Thread) -> u32 {
    let sched = thread.sched as u32;
    let flags = u32::from(thread.kthread) | u32::from(thread.leader) << 1 | sched << 2;
    let nice = (i32::from(thread.nice) + 20) as u32 & 63;
    flags | nice << 8 | (u32::from(thread.hint) & 1023) << 16
}

/// Bits by alternative.
pub(crate) type Row = [u64; MAX_ROW_WORDS];
type PlaneRow = [u64; 3 * MAX_ROW_WORDS];

impl Image {
    /// The class of a thread.
    pub fn classify(&self, thread: &Thread) -> Class {
        if self.u32_at(offset::ABI) != IMAGE_ABI {
            return Class {
                pool: Pool::Background,
                rule: 0,
                slice_us: 20_000,
                weight: 100,
                hints: false,
            };
        }
        self.rule_class(self.first_rule(&self.alive(thread)))
    }

    /// The alternatives that nothing about a thread rules out, as bits in rule order.
    pub(crate) fn alive(&self, thread: &Thread) -> Row {
        let bits = thread_key(thread);
        let mut alive = self.name_row(0, &thread.thread);
        for other in [
            self.name_row(1, &thread.process),
            self.path_row(&thread.cgroup),
            self.range_row(offset::USER, thread.user),
            self.range_row(offset::GROUP, thread.group),
            self.range_row(offset::HINT, u64::from(bits >> 16 & 1023)),
            self.row(self.u16_at(offset::NICE_ROW + 2 * (bits >> 8 & 63) as usize)),
            self.row(self.u16_at(offset::FLAGS_ROW + 2 * (bits & 15) as usize)),
        ] {
            alive
                .iter_mut()
                .zip(other)
                .for_each(|(word, mask)| *word &= mask);
        }
        alive
    }

    /// The rule slot of the first alternative that nothing ruled out; 0: none.
    fn first_rule(&self, alive: &Row) -> u16 {
        let first = alive
            .iter()
            .take(self.words())
            .enumerate()
            .find(|(_, word)| **word != 0);
        first.map_or(0, |(index, word)| {
            let alternative = (index * 64 + word.trailing_zeros() as usize) & (MAX_ALTS - 1);
            self.u16_at(offset::ALT_RULE + 2 * alternative)
        })
    }

    fn rule_class(&self, slot: u16) -> Class {
        let slot = usize::from(slot) & (RULE_SLOTS - 1);
        let at = offset::RULES + slot * size::RULE_SETTINGS;
        let flags_and_pool = self.u32_at(at + 12);
        Class {
            pool: if flags_and_pool >> 16 & 0xff == 0 {
                Pool::Critical
            } else {
                Pool::Background
            },
            rule: slot as u16,
            slice_us: self.u64_at(at) / 1000,
            weight: self.u32_at(at + 8),
            hints: flags_and_pool as u16 & RULE_HINTS != 0,
        }
    }

    fn words(&self) -> usize {
        (self.u32_at(offset::WORDS) as usize).clamp(1, MAX_ROW_WORDS)
    }

    /// Row `id`, with zeros after `words`.
    fn row(&self, id: u16) -> Row {
        let (words, rows) = (self.words(), self.u32_at(offset::ROWS) as usize);
        let at = rows + usize::from(id) * words;
        std::array::from_fn(|w| if w < words { self.pool_u64(at + w) } else { 0 })
    }

    fn range_row(&self, ranges: usize, value: u64) -> Row {
        let starts = self.u32_at(ranges) as usize;
        let rows = self.u32_at(ranges + 4) as usize;
        let slots = self.u32_at(ranges + 8) as usize & (2 * MAX_BOUNDS - 1);
        let index = search(slots, |i| self.pool_u64(starts + i) <= value);
        self.row(self.pool_u16(rows + index))
    }

    fn name_row(&self, dim: usize, name: &[u8]) -> Row {
        let at = offset::NAME_DIMS + dim * size::NAME_DIM;
        let name = cut(name);
        let name = &name[..name.iter().position(|b| *b == 0).unwrap_or(name.len())];
        let mut walk = Walk::start(self, at, MAX_NAME_UNITS);
        walk.or_row(self.exact_row(dim, name));
        name.iter().for_each(|byte| walk.step(*byte));
        self.resolve(&walk.end())
    }

    fn path_row(&self, path: &[u8]) -> Row {
        if path == b"/" {
            let mut root = [0; 3 * MAX_ROW_WORDS];
            self.or_plane_row(&mut root, self.u32_at(offset::CGROUP + 4));
            return self.resolve(&root);
        }
        let mut walk = Walk::start(self, offset::CGROUP, MAX_PATH_UNITS);
        path.iter().for_each(|byte| walk.step(*byte));
        self.resolve(&walk.end())
    }

    /// The plane row of an exact name in one dimension; 0 where it has none.
    fn exact_row(&self, dim: usize, name: &[u8]) -> u32 {
        let mut key = [0; 16];
        key[..name.len()].copy_from_slice(name);
        let key = u128::from_le_bytes(key);
        let (low, high) = (key as u64, (key >> 64) as u64);
        let names = self.u32_at(offset::NAMES) as usize;
        let slots = self.u32_at(offset::NAME_SLOTS) as usize;
        let place = Place::of([low, high], self.u32_at(offset::NAME_SEED));
        let displacements = self.u32_at(offset::NAME_DISPLACEMENTS) as usize;
        let displacement = self.pool_u16(displacements + place.bucket(slots));
        let entry = names + 3 * place.slot(displacement, slots);
        if (self.pool_u64(entry), self.pool_u64(entry + 1)) != (low, high) {
            return 0;
        }
        (self.pool_u64(entry + 2) >> (32 * dim)) as u32
    }

    fn or_plane_row(&self, into: &mut PlaneRow, id: u32) {
        let width = 3 * self.words();
        let at = self.u32_at(offset::PLANE_ROWS) as usize + id as usize * width;
        for (w, word) in into.iter_mut().take(width).enumerate() {
            *word |= self.pool_u64(at + w);
        }
    }

    /// plane 0 and plane 1 and not plane 2.
    fn resolve(&self, planes: &PlaneRow) -> Row {
        let words = self.words();
        std::array::from_fn(|w| match w < words {
            true => planes[w] & planes[words + w] & !planes[2 * words + w],
            false => 0,
        })
    }
}

/// The last index below `slots` (a power of two) for which `at_most` holds, or 0. The search of
/// the kernel program: a fixed number of steps, whatever the table holds.
fn search(slots: usize, at_most: impl Fn(usize) -> bool) -> usize {
    let (mut index, mut step) = (0, slots / 2);
    while step > 0 {
        if at_most(index + step) {
            index += step;
        }
        step /= 2;
    }
    index
}

/// The automata of one dimension on their way over a value: `struct path_state` and where its
/// tables are.
pub(crate) struct Walk<'a> {
    image: &'a Image,
    /// Offset of the `struct name_dim`.
    dim: usize,
    dfas: usize,
    units: usize,
    q: [u16; MAX_DFAS],
    d: [u64; MAX_NAME_UNITS],
    acc: PlaneRow,
}

impl<'a> Walk<'a> {
    /// Before the first byte.
    pub(crate) fn start(image: &'a Image, dim: usize, max_units: usize) -> Self {
        let mut walk = Self {
            image,
            dim,
            dfas: (image.u32_at(dim + 8) as usize).min(MAX_DFAS),
            units: (image.u32_at(dim + 12) as usize).min(max_units),
            q: [0; MAX_DFAS],
            d: [0; MAX_NAME_UNITS],
            acc: [0; 3 * MAX_ROW_WORDS],
        };
        walk.or_row(image.u32_at(dim));
        for i in 0..walk.dfas {
            walk.enter(i, image.u32_at(walk.dfa(i) + 20) as u16);
        }
        for i in 0..walk.units {
            walk.d[i] = image.pool_u64(walk.unit(i));
        }
        walk
    }

    /// One byte.
    pub(crate) fn step(&mut self, byte: u8) {
        let image = self.image;
        for i in 0..self.dfas {
            let dfa = self.dfa(i);
            let class = image.pool_u16(image.u32_at(dfa) as usize + usize::from(byte));
            let trans = image.u32_at(dfa + 4) as usize;
            let classes = image.u32_at(dfa + 16) as usize & 511;
            let next = trans + usize::from(self.q[i]) * classes + usize::from(class);
            self.enter(i, image.pool_u16(next));
        }
        if self.units == 0 {
            return;
        }
        let classes = image.u32_at(self.dim + 16) as usize;
        let class = usize::from(image.pool_u16(classes + usize::from(byte)));
        for i in 0..self.units {
            let unit = self.unit(i);
            let masks = image.pool_u64(unit + UNIT_SHIFTS + 3) as u32 as usize;
            let active = self.d[i] & image.pool_u64(masks + class);
            let by = image.pool_u64(unit + UNIT_SHIFTS + 2);
            self.d[i] = (0..UNIT_SHIFTS).fold(0, |next, k| {
                let from = image.pool_u64(unit + 2 + k);
                next | (active & from).rotate_left((by >> (8 * k)) as u32 & 63)
            });
        }
    }

    /// What the value met in all, if it ends here. The walk may go on.
    pub(crate) fn end(&self) -> PlaneRow {
        let image = self.image;
        let mut planes = self.acc;
        for i in 0..self.dfas {
            let fin = image.u32_at(self.dfa(i) + 12) as usize;
            let row = image.pool_u16(fin + usize::from(self.q[i]));
            image.or_plane_row(&mut planes, u32::from(row));
        }
        for i in 0..self.units {
            let unit = self.unit(i);
            let bits = (image.pool_u64(unit + UNIT_SHIFTS + 3) >> 32) as usize;
            let mut met = self.d[i] & image.pool_u64(unit + 1);
            while met != 0 {
                let row = image.pool_u16(bits + met.trailing_zeros() as usize);
                image.or_plane_row(&mut planes, u32::from(row));
                met &= met - 1;
            }
        }
        planes
    }

    fn or_row(&mut self, id: u32) {
        self.image.or_plane_row(&mut self.acc, id);
    }

    fn enter(&mut self, dfa: usize, state: u16) {
        self.q[dfa] = state;
        let emit = self.image.u32_at(self.dfa(dfa) + 8) as usize;
        self.or_row(u32::from(self.image.pool_u16(emit + usize::from(state))));
    }

    /// Offset of a `struct dfa` in the image.
    fn dfa(&self, index: usize) -> usize {
        self.dim + 24 + index * size::DFA
    }

    /// Index of a `struct unit`'s first word in the pool.
    fn unit(&self, index: usize) -> usize {
        self.image.u32_at(self.dim + 20) as usize + index * (size::UNIT / 8)
    }
}
