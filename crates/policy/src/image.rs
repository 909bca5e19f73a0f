//! `Image`: one policy as the kernel program reads it, byte for byte.
//!
//! This file is the Rust mirror of `bpf/intf.h`: the same limits, offsets and sizes under the same
//! names, written once here and compared with the C compiler's answer by a test of the program.
//! Everything is little-endian whatever the host is.
//!
//! An image holds the used beginning of `struct policy_image`: all bytes after it are zero.
//!
//! Invariant: every offset that an image holds was checked when it was written; a reader that
//! masks its indices as `intf.h` says never leaves the image.

/// `IMAGE_ABI`.
pub const IMAGE_ABI: u32 = 1;
/// `MAX_RULES`: rules, without the default.
pub const MAX_RULES: usize = 256;
/// `RULE_SLOTS`: entries of the rule table, slot 0 being the default pool.
pub const RULE_SLOTS: usize = 512;
/// `MAX_ALTS`: alternatives of all rules, after `any` and `not` are expanded.
pub const MAX_ALTS: usize = 512;
/// `MAX_ROW_WORDS`.
pub const MAX_ROW_WORDS: usize = 8;
/// `MAX_EXACT_NAMES`: distinct exact names of threads and processes together.
pub const MAX_EXACT_NAMES: usize = 16384;
/// `MAX_BOUNDS`: entries of one range table.
pub const MAX_BOUNDS: usize = 4096;
/// `MAX_DFAS`: deterministic automata per dimension.
pub const MAX_DFAS: usize = 4;
/// `MAX_NAME_UNITS`: bit-parallel units per name dimension.
pub const MAX_NAME_UNITS: usize = 48;
/// `MAX_PATH_UNITS`: bit-parallel units for cgroup paths.
pub const MAX_PATH_UNITS: usize = 16;
/// `UNIT_SHIFTS`: distinct follow distances in one unit.
pub const UNIT_SHIFTS: usize = 6;
/// `POOL_WORDS`: u64s of the table pool.
pub const POOL_WORDS: usize = 1 << 19;
/// `STEAL_OFF`: never search at this distance.
pub const STEAL_OFF: u64 = u64::MAX;
/// `CPUS_PERCENT`: a number of CPUs is relative.
pub const CPUS_PERCENT: u32 = 0x8000_0000;
/// `RULE_HINTS`.
pub const RULE_HINTS: u16 = 1;

/// Sizes of the structs of `intf.h`, in bytes.
pub mod size {
    use super::*;
    /// `struct dfa`.
    pub const DFA: usize = 24;
    /// `struct unit`.
    pub const UNIT: usize = 16 + 8 * UNIT_SHIFTS + 8 + 8;
    /// `struct automata`.
    pub const AUTOMATA: usize = 16 + MAX_DFAS * DFA;
    /// `struct name_entry`.
    pub const NAME_ENTRY: usize = 24;
    /// `struct name_dim`.
    pub const NAME_DIM: usize = 8 + AUTOMATA;
    /// `struct ranges`.
    pub const RANGES: usize = 16;
    /// `struct rule_settings`.
    pub const RULE_SETTINGS: usize = 16;
    /// `struct pool_settings`.
    pub const POOL_SETTINGS: usize = 40;
    /// `struct policy_image`.
    pub const POLICY_IMAGE: usize = offset::POOL + 8 * POOL_WORDS;
}

macro_rules! layout {
    ($($constant:ident $name:literal $size:expr;)*) => {
        /// Offsets of the fields of `struct policy_image`, in bytes.
        pub mod offset {
            layout!(@offsets 0; $($constant $name $size;)*);
        }

        /// Every field of `struct policy_image`: C name, offset and size in bytes.
        pub const FIELDS: &[(&str, usize, usize)] = &[$(($name, offset::$constant, $size),)*];
    };
    (@offsets $at:expr;) => {};
    (@offsets $at:expr; $constant:ident $name:literal $size:expr; $($rest:tt)*) => {
        #[allow(unused_imports)]
        use super::*;
        #[doc = concat!("`", $name, "`.")]
        pub const $constant: usize = $at;
        layout!(@rest $constant $size; $($rest)*);
    };
    (@rest $previous:ident $previous_size:expr;) => {};
    (@rest $previous:ident $previous_size:expr; $constant:ident $name:literal $size:expr; $($rest:tt)*) => {
        #[doc = concat!("`", $name, "`.")]
        pub const $constant: usize = $previous + $previous_size;
        layout!(@rest $constant $size; $($rest)*);
    };
}

layout! {
    ABI "abi" 4;
    EPOCH "epoch" 4;
    WORDS "words" 4;
    RULE_COUNT "rule_count" 4;
    PLANE_ROWS "plane_rows" 4;
    ROWS "rows" 4;
    NAMES "names" 4;
    NAME_SLOTS "name_slots" 4;
    NAME_DIMS "name_dims" (2 * size::NAME_DIM);
    CGROUP "cgroup" size::NAME_DIM;
    USER "user" size::RANGES;
    GROUP "group" size::RANGES;
    HINT "hint" size::RANGES;
    NICE_ROW "nice_row" 128;
    FLAGS_ROW "flags_row" 32;
    ALT_RULE "alt_rule" (2 * MAX_ALTS);
    RULES "rules" (RULE_SLOTS * size::RULE_SETTINGS);
    POOLS "pools" (2 * size::POOL_SETTINGS);
    STEAL_NS "steal_ns" 32;
    SIZING_INTERVAL_NS "sizing_interval_ns" 8;
    BACKGROUND_WAIT_NS "background_wait_ns" 8;
    HINT_BOOST_NS "hint_boost_ns" 8;
    HINT_SHARE_PERMILLE "hint_share_permille" 4;
    POOL_USED "pool_used" 4;
    POOL "pool" (8 * POOL_WORDS);
}

/// One compiled policy. Two images are equal if the kernel would see the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// The used beginning of `struct policy_image`; what follows is zero.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Any bytes as an image, for what must not break on a damaged one.
    #[cfg(test)]
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Length of the whole `struct policy_image`, in bytes.
    pub const fn full_len() -> usize {
        size::POLICY_IMAGE
    }

    /// The number that tells published images apart; 0 in one that was never published.
    pub fn epoch(&self) -> u32 {
        self.u32_at(offset::EPOCH)
    }

    /// Numbers the image for publication.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.bytes[offset::EPOCH..offset::EPOCH + 4].copy_from_slice(&epoch.to_le_bytes());
    }

    /// Reads a field of the image; zero past its used part, as in the kernel.
    pub(crate) fn u16_at(&self, offset: usize) -> u16 {
        let bytes = self.bytes.get(offset..offset + 2);
        u16::from_le_bytes(bytes.map_or([0; 2], |b| b.try_into().expect("two bytes")))
    }

    /// Likewise.
    pub(crate) fn u32_at(&self, offset: usize) -> u32 {
        let bytes = self.bytes.get(offset..offset + 4);
        u32::from_le_bytes(bytes.map_or([0; 4], |b| b.try_into().expect("four bytes")))
    }

    /// Likewise.
    pub(crate) fn u64_at(&self, offset: usize) -> u64 {
        let bytes = self.bytes.get(offset..offset + 8);
        u64::from_le_bytes(bytes.map_or([0; 8], |b| b.try_into().expect("eight bytes")))
    }

    /// Word `index` of the pool.
    pub(crate) fn pool_u64(&self, index: usize) -> u64 {
        self.u64_at(offset::POOL + 8 * (index & (POOL_WORDS - 1)))
    }

    /// Half-word `index` of the pool.
    pub(crate) fn pool_u16(&self, index: usize) -> u16 {
        self.u16_at(offset::POOL + 2 * (index & (4 * POOL_WORDS - 1)))
    }
}

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
