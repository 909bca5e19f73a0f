//! Sets of bytes, and the classes of bytes that a group of sets cannot tell apart.

use rustc_hash::FxHashMap;

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    /// Every byte.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// Adds an inclusive range.
    pub fn add_range(&mut self, first: u8, last: u8) {
        (first..=last).for_each(|byte| self.0[usize::from(byte >> 6)] |= 1 << (byte & 63));
    }

    /// Whether it holds a byte.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    /// Whether every byte of it is in the other.
    pub fn is_subset(&self, other: &ByteSet) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Whether the two share a byte.
    pub fn intersects(&self, other: &ByteSet) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .any(|(mine, theirs)| mine & theirs != 0)
    }
}

/// Bytes in classes: two bytes of one class are in the same sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Classes {
    /// The class of each byte, 0..`representatives.len()`.
    pub of: [u8; 256],
    /// One byte of each class.
    pub representatives: Vec<u8>,
}

impl Classes {
    /// The coarsest classes that tell the sets apart, numbered by their first bytes.
    pub fn of_sets<'a>(sets: impl IntoIterator<Item = &'a ByteSet>) -> Self {
        let mut of = [0u8; 256];
        let mut distinct: Vec<&ByteSet> = sets.into_iter().collect();
        distinct.sort();
        distinct.dedup();
        for set in distinct {
            let mut split: FxHashMap<(u8, bool), u8> = FxHashMap::default();
            for byte in 0..=255u8 {
                let class = &mut of[usize::from(byte)];
                let fresh = split.len() as u8;
                *class = *split.entry((*class, set.contains(byte))).or_insert(fresh);
            }
        }
        let mut representatives = Vec::new();
        for byte in 0..=255u8 {
            if usize::from(of[usize::from(byte)]) == representatives.len() {
                representatives.push(byte);
            }
        }
        Self {
            of,
            representatives,
        }
    }

    /// The classes that make up a set which was among those told apart: bit c for class c.
    pub fn bits(&self, set: &ByteSet) -> [u64; 4] {
        let mut bits = [0; 4];
        for (class, byte) in self.representatives.iter().enumerate() {
            bits[class / 64] |= u64::from(set.contains(*byte)) << (class % 64);
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u8, u8)]) -> ByteSet {
        let mut set = ByteSet::default();
        ranges
            .iter()
            .for_each(|(first, last)| set.add_range(*first, *last));
        set
    }

    #[test]
    fn classes_separate_what_sets_separate_and_nothing_else() {
        let sets = [
            set(&[(b'a', b'z')]),
            set(&[(b'm', b'm')]),
            set(&[(0, 255)]),
            set(&[(b'm', b'z')]),
        ];
        let classes = Classes::of_sets(&sets);
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                let same = classes.of[usize::from(a)] == classes.of[usize::from(b)];
                let alike = sets.iter().all(|set| set.contains(a) == set.contains(b));
                assert_eq!(same, alike, "bytes {a} and {b}");
            }
        }
        assert_eq!(classes.representatives.len(), 4);
        for (class, byte) in classes.representatives.iter().enumerate() {
            assert_eq!(usize::from(classes.of[usize::from(*byte)]), class);
        }
    }

    #[test]
    fn every_byte_may_have_a_class_of_its_own() {
        let sets: Vec<ByteSet> = (0..=255u8).map(|byte| set(&[(byte, byte)])).collect();
        assert_eq!(Classes::of_sets(&sets).representatives.len(), 256);
    }
}
