//! The table of exact names: a perfect hash, so that a look costs the same for one name and for
//! thousands. `struct name_entry` of `bpf/intf.h` says how it is searched.
//!
//! Built by hash and displace (Belazzougui, Botelho, Dietzfelbinger 2009): names are hashed into buckets
//! of up to four on average, and each bucket, the fullest first, gets the first displacement that sends
//! all of its names to free slots. A fifth of the slots stays free at least, for the last buckets of
//! several names.

/// The key of an empty slot: no name has it, since the last byte of each is NUL.
const EMPTY: [u64; 2] = [u64::MAX; 2];
/// Slots to a bucket.
const BUCKET: usize = 4;
/// Seeds that are tried; already the second is rarely needed.
const MAX_SEEDS: u32 = 1000;

/// A name as the table has it: its bytes followed by NULs, as two little-endian numbers.
pub type Key = [u64; 2];

/// Where a name may be: computed alike by the kernel program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    hash: u64,
}

impl Place {
    /// Of a name under a seed.
    pub fn of(key: Key, seed: u32) -> Self {
        let mut hash = (key[0] ^ u64::from(seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 32) ^ key[1]).wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            hash: hash ^ (hash >> 32),
        }
    }

    /// Index of its displacement.
    pub fn bucket(self, slots: usize) -> usize {
        (self.hash >> 48) as usize & (buckets(slots) - 1)
    }

    /// Its slot under that displacement.
    pub fn slot(self, displacement: u16, slots: usize) -> usize {
        let step = (self.hash >> 24) as u32 | 1;
        let from = self.hash as u32;
        from.wrapping_add(step.wrapping_mul(displacement.into())) as usize & slots.wrapping_sub(1)
    }
}

/// Displacements of a table of so many slots, both powers of two.
pub fn buckets(slots: usize) -> usize {
    (slots / BUCKET).max(1)
}

/// A finished table.
#[derive(Debug, PartialEq, Eq)]
pub struct NameTable {
    /// What made the hash perfect.
    pub seed: u32,
    /// One for each bucket.
    pub displacements: Vec<u16>,
    /// Key and value of each slot; a power of two.
    pub entries: Vec<(Key, u64)>,
}

impl NameTable {
    /// Of distinct names, at most 2^14.
    pub fn new(names: &[(Key, u64)]) -> Self {
        let slots = (names.len() + names.len() / 4).next_power_of_two();
        (0..MAX_SEEDS)
            .find_map(|seed| Self::with_seed(names, slots, seed))
            .expect("two names would have to meet under every seed")
    }

    fn with_seed(names: &[(Key, u64)], slots: usize, seed: u32) -> Option<Self> {
        let mut buckets = vec![Vec::new(); buckets(slots)];
        for name in names {
            let place = Place::of(name.0, seed);
            buckets[place.bucket(slots)].push((place, *name));
        }
        let mut order: Vec<usize> = (0..buckets.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(buckets[*index].len()));
        let mut table = Self {
            seed,
            displacements: vec![0; buckets.len()],
            entries: vec![(EMPTY, 0); slots],
        };
        for index in order {
            table.displacements[index] = table.put(&buckets[index])?;
        }
        Some(table)
    }

    /// Puts the names of a bucket into free slots, and returns the displacement that did it.
    fn put(&mut self, bucket: &[(Place, (Key, u64))]) -> Option<u16> {
        let slots = self.entries.len();
        let mut taken = Vec::with_capacity(bucket.len());
        for displacement in 0..slots {
            let displacement = u16::try_from(displacement).expect("at most 2^15 slots");
            taken.clear();
            for (place, _) in bucket {
                let slot = place.slot(displacement, slots);
                if self.entries[slot].0 != EMPTY || taken.contains(&slot) {
                    break;
                }
                taken.push(slot);
            }
            if taken.len() == bucket.len() {
                for (slot, (_, name)) in taken.iter().zip(bucket) {
                    self.entries[*slot] = *name;
                }
                return Some(displacement);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(table: &NameTable, key: Key) -> Option<u64> {
        let place = Place::of(key, table.seed);
        let slots = table.entries.len();
        let slot = place.slot(table.displacements[place.bucket(slots)], slots);
        (table.entries[slot].0 == key).then_some(table.entries[slot].1)
    }

    fn numbered(count: u64) -> Vec<(Key, u64)> {
        (0..count).map(|n| ([0x6d61_6e00 + n, n % 7], n)).collect()
    }

    #[test]
    fn every_name_is_found_and_no_other() {
        for count in [0, 1, 2, 3, 5, 64, 1000, 16_383, 16_384] {
            let names = numbered(count);
            let table = NameTable::new(&names);
            assert!(table.entries.len() <= 1 + 5 * names.len() / 2, "{count}");
            for (key, value) in &names {
                assert_eq!(find(&table, *key), Some(*value), "{count}: {key:x?}");
            }
            for stranger in 0..1000 {
                assert_eq!(find(&table, [stranger, 9]), None, "{count}");
            }
        }
    }

    /// A hash that spreads numbers well may still send names that differ in one late byte to one place,
    /// under any seed.
    #[test]
    fn names_that_differ_in_one_byte_are_told_apart() {
        let key = |bytes: &[u8; 16]| -> Key {
            [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight")))
        };
        for at in 0..15 {
            for count in 2..40 {
                let names = (0..count).map(|n| {
                    let mut bytes = *b"elasticsearch-x\0";
                    bytes[at] = b'A' + n;
                    (key(&bytes), u64::from(n) + 1)
                });
                let names: Vec<(Key, u64)> = names.collect();
                let table = NameTable::new(&names);
                assert!(table.seed < 50, "byte {at}, {count} names: {}", table.seed);
                for (key, value) in &names {
                    assert_eq!(find(&table, *key), Some(*value), "byte {at}");
                }
            }
        }
    }

    #[test]
    fn the_same_names_give_the_same_table() {
        assert_eq!(
            NameTable::new(&numbered(500)),
            NameTable::new(&numbered(500))
        );
    }
}
