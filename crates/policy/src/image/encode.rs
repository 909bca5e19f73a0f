//! Writes an image: records with the names of the C structs, and the pool of tables behind them.
//!
//! Invariant: the writer and the layout table agree at every field that either names.

use super::{IMAGE_ABI, Image, MAX_ALTS, MAX_RULES, POOL_WORDS, offset, size};

/// `struct dfa`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DfaRecord {
    pub cls: u32,
    pub trans: u32,
    pub emit: u32,
    pub fin: u32,
    pub classes: u32,
    pub start: u32,
}

/// `struct name_dim` with its `struct automata`.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameDimRecord {
    pub init: u32,
    pub root: u32,
    pub unit_count: u32,
    pub unit_cls: u32,
    pub units: u32,
    pub dfas: Vec<DfaRecord>,
}

/// `struct ranges`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RangesRecord {
    pub starts: u32,
    pub rows: u32,
    pub slots: u32,
}

/// `struct rule_settings`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleRecord {
    pub slice_ns: u64,
    pub weight: u32,
    pub flags: u16,
    pub pool: u8,
}

/// `struct pool_settings`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolRecord {
    pub slice_ns: u64,
    pub weight: u32,
    pub flags: u32,
    pub cpus_min: u32,
    pub cpus_max: u32,
    pub util_low_permille: u32,
    pub util_high_permille: u32,
    pub perf_permille: u32,
}

/// `struct policy_image` before its pool.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub words: u32,
    pub plane_rows: u32,
    pub rows: u32,
    pub names: u32,
    pub name_slots: u32,
    pub name_displacements: u32,
    pub name_seed: u32,
    pub name_dims: [NameDimRecord; 2],
    pub cgroup: NameDimRecord,
    pub user: RangesRecord,
    pub group: RangesRecord,
    pub hint: RangesRecord,
    pub nice_row: [u16; 64],
    pub flags_row: [u16; 16],
    /// At most `MAX_ALTS`.
    pub alt_rule: Vec<u16>,
    /// Slot 0 first; at most `MAX_RULES + 1`.
    pub rules: Vec<RuleRecord>,
    pub pools: [PoolRecord; 2],
    pub steal_ns: [u64; 4],
    pub sizing_interval_ns: u64,
    pub background_wait_ns: u64,
    pub hint_boost_ns: u64,
    pub hint_share_permille: u32,
}

/// The table pool while it is filled. Grows past `POOL_WORDS`; `encode` is where that is refused.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    words: Vec<u64>,
}

impl Tables {
    /// Appends u64s and returns their offset in u64s.
    pub fn push_u64s(&mut self, values: &[u64]) -> u32 {
        let at = self.words.len();
        self.words.extend_from_slice(values);
        u32::try_from(at).expect("a pool below 2^32 words")
    }

    /// Appends u16s and returns their offset in u16s.
    pub fn push_u16s(&mut self, values: &[u16]) -> u32 {
        let at = self.words.len() * 4;
        self.words.extend(values.chunks(4).map(|four| {
            four.iter()
                .rev()
                .fold(0, |word, value| word << 16 | u64::from(*value))
        }));
        u32::try_from(at).expect("a pool below 2^32 half-words")
    }

    /// u64s in use.
    pub fn len(&self) -> usize {
        self.words.len()
    }
}

/// Writes the image; `None` if the tables do not fit the pool.
pub(crate) fn encode(header: &Header, tables: &Tables) -> Option<Image> {
    if tables.len() > POOL_WORDS {
        return None;
    }
    let mut out = Writer {
        bytes: Vec::with_capacity(offset::POOL + 8 * tables.len()),
    };
    write_header(&mut out, header, tables.len() as u32);
    out.reach(offset::POOL);
    for word in &tables.words {
        out.u64(*word);
    }
    Some(Image { bytes: out.bytes })
}

fn write_header(out: &mut Writer, header: &Header, pool_used: u32) {
    assert!(header.alt_rule.len() <= MAX_ALTS && header.rules.len() <= MAX_RULES + 1);
    out.u32(IMAGE_ABI);
    out.u32(0);
    out.u32(header.words);
    out.u32(header.rules.len() as u32 - 1);
    for value in [
        header.plane_rows,
        header.rows,
        header.names,
        header.name_slots,
        header.name_displacements,
        header.name_seed,
    ] {
        out.u32(value);
    }
    out.reach(offset::NAME_DIMS);
    header.name_dims.iter().for_each(|dim| out.name_dim(dim));
    out.name_dim(&header.cgroup);
    out.reach(offset::USER);
    [header.user, header.group, header.hint]
        .iter()
        .for_each(|ranges| out.ranges(ranges));
    out.reach(offset::NICE_ROW);
    header.nice_row.iter().for_each(|row| out.u16(*row));
    header.flags_row.iter().for_each(|row| out.u16(*row));
    out.reach(offset::ALT_RULE);
    header.alt_rule.iter().for_each(|rule| out.u16(*rule));
    out.fill(offset::RULES);
    header.rules.iter().for_each(|rule| out.rule(rule));
    out.fill(offset::POOLS);
    header.pools.iter().for_each(|pool| out.pool(pool));
    out.reach(offset::STEAL_NS);
    header.steal_ns.iter().for_each(|ns| out.u64(*ns));
    for ns in [
        header.sizing_interval_ns,
        header.background_wait_ns,
        header.hint_boost_ns,
    ] {
        out.u64(ns);
    }
    out.u32(header.hint_share_permille);
    out.u32(pool_used);
}

/// Little-endian bytes in the order of the C struct.
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Zeros up to an offset.
    fn fill(&mut self, offset: usize) {
        assert!(
            self.bytes.len() <= offset,
            "the table before {offset} is too long"
        );
        self.bytes.resize(offset, 0);
    }

    /// Asserts that the fields so far end where the layout says.
    fn reach(&self, offset: usize) {
        assert_eq!(
            self.bytes.len(),
            offset,
            "the layout table and the writer disagree"
        );
    }

    fn name_dim(&mut self, dim: &NameDimRecord) {
        let end = self.bytes.len() + size::NAME_DIM;
        let count = dim.dfas.len() as u32;
        for value in [
            dim.init,
            dim.root,
            count,
            dim.unit_count,
            dim.unit_cls,
            dim.units,
        ] {
            self.u32(value);
        }
        for dfa in &dim.dfas {
            for value in [
                dfa.cls,
                dfa.trans,
                dfa.emit,
                dfa.fin,
                dfa.classes,
                dfa.start,
            ] {
                self.u32(value);
            }
        }
        self.fill(end);
    }

    fn ranges(&mut self, ranges: &RangesRecord) {
        for value in [ranges.starts, ranges.rows, ranges.slots, 0] {
            self.u32(value);
        }
    }

    fn rule(&mut self, rule: &RuleRecord) {
        self.u64(rule.slice_ns);
        self.u32(rule.weight);
        self.u16(rule.flags);
        self.bytes.extend_from_slice(&[rule.pool, 0]);
    }

    fn pool(&mut self, pool: &PoolRecord) {
        self.u64(pool.slice_ns);
        for value in [
            pool.weight,
            pool.flags,
            pool.cpus_min,
            pool.cpus_max,
            pool.util_low_permille,
            pool.util_high_permille,
            pool.perf_permille,
            0,
        ] {
            self.u32(value);
        }
    }
}
