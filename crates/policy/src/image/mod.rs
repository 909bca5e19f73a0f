//! `Image`: one policy as the kernel program reads it, byte for byte.
//!
//! This file is the Rust mirror of `bpf/intf.h`: the same limits, offsets and sizes under the same
//! names, written once here and compared with the C compiler's answer by a test of the program.
//! Everything is little-endian whatever the host is.
//!
//! An image holds the used beginning of `struct policy_image`: all bytes after it are zero.
//!
//! `encode` writes it, `eval` reads it.
//!
//! Invariant: every offset that an image holds was checked when it was written; a reader that
//! masks its indices as `intf.h` says never leaves the image.

mod encode;
pub(crate) mod names;

pub(crate) use encode::{
    DfaRecord, Header, NameDimRecord, PoolRecord, RangesRecord, RuleRecord, Tables, encode,
};

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
    NAME_DISPLACEMENTS "name_displacements" 4;
    NAME_SEED "name_seed" 4;
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
