//! Rows of bits: one bit for every alternative.

use rustc_hash::FxHashMap;

/// Rows of one width, each stored once. Id 0 is all zeros.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    width: usize,
    ids: FxHashMap<Box<[u64]>, u32>,
    words: Vec<u64>,
}

impl Rows {
    /// For rows of `width` words.
    pub fn new(width: usize) -> Self {
        let mut rows = Self {
            width,
            ids: FxHashMap::default(),
            words: Vec::new(),
        };
        rows.intern(&vec![0; width]);
        rows
    }

    /// The id of a row.
    pub fn intern(&mut self, row: &[u64]) -> u32 {
        assert_eq!(row.len(), self.width);
        if let Some(id) = self.ids.get(row) {
            return *id;
        }
        let id = self.ids.len() as u32;
        self.ids.insert(row.into(), id);
        self.words.extend_from_slice(row);
        id
    }

    /// All rows, one after the other.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Sets one bit.
pub(super) fn set(row: &mut [u64], bit: usize) {
    row[bit / 64] |= 1 << (bit % 64);
}

/// ORs one row into another.
pub(super) fn or(row: &mut [u64], other: &[u64]) {
    row.iter_mut()
        .zip(other)
        .for_each(|(word, bits)| *word |= bits);
}

/// What a plane row leaves: plane 0 and plane 1 and not plane 2.
pub(super) fn resolve(planes: &[u64]) -> Vec<u64> {
    let words = planes.len() / 3;
    (0..words)
        .map(|w| planes[w] & planes[words + w] & !planes[2 * words + w])
        .collect()
}
