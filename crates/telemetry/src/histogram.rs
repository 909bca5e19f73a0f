//! The wait histogram of `bpf/stats.h`, and percentiles from it.
//!
//! Log-linear: buckets 0 to 3 hold that many units of 256 ns; from there on four buckets to each
//! power of two, so that a percentile is off by at most an eighth of its value. Bucket 4e + s
//! (e >= 1) begins at (4 + s) << (e - 1) units. The last one has no end.

/// Buckets of one histogram; `WAIT_BUCKETS` in `bpf/intf.h`.
pub const WAIT_BUCKETS: usize = 128;

/// Nanoseconds in one unit of the buckets.
const UNIT_NS: u64 = 256;

/// Where a bucket begins, in nanoseconds; `bucket` may be one past the last.
pub fn bucket_start_ns(bucket: usize) -> u64 {
    let units = match bucket {
        0..4 => bucket as u64,
        _ => (4 + (bucket as u64 & 3)) << (bucket / 4 - 1),
    };
    units * UNIT_NS
}

/// Waits from runnable to running, counted by length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; WAIT_BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: [0; WAIT_BUCKETS],
        }
    }
}

impl Histogram {
    /// Adds counts, bucket by bucket; buckets past the last are ignored.
    pub fn add(&mut self, counts: impl IntoIterator<Item = u64>) {
        for (mine, other) in self.counts.iter_mut().zip(counts) {
            *mine = mine.saturating_add(other);
        }
    }

    /// All waits counted.
    pub fn total(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The wait that `percent` (1..=100) of all waits do not exceed, in nanoseconds, as if the
    /// waits of one bucket were spread evenly over it. `None` if nothing was counted.
    pub fn percentile_ns(&self, percent: u32) -> Option<u64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let rank = (u128::from(total) * u128::from(percent.clamp(1, 100))).div_ceil(100) as u64;
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            if *count > 0 && below + count >= rank {
                let start = bucket_start_ns(bucket);
                let width = bucket_start_ns(bucket + 1) - start;
                let part = u128::from(width) * u128::from(rank - below) / u128::from(*count);
                return Some(start + part as u64);
            }
            below += count;
        }
        unreachable!("rank is at most the total")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bucket of a wait by the text of `bpf/stats.h`, by search instead of by shifting.
    fn bucket_of(wait_ns: u64) -> usize {
        (0..WAIT_BUCKETS)
            .rev()
            .find(|bucket| bucket_start_ns(*bucket) <= wait_ns)
            .expect("bucket 0 starts at 0")
    }

    fn of(waits_ns: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for wait in waits_ns {
            let mut counts = [0; WAIT_BUCKETS];
            counts[bucket_of(*wait)] = 1;
            histogram.add(counts);
        }
        histogram
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let starts: Vec<u64> = (0..=WAIT_BUCKETS).map(bucket_start_ns).collect();
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(
            &starts[..10],
            [0, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2560]
        );
    }

    #[test]
    fn nothing_counted_has_no_percentile() {
        assert_eq!(Histogram::default().percentile_ns(99), None);
    }

    #[test]
    fn a_percentile_is_within_an_eighth_of_the_exact_one() {
        let waits: Vec<u64> = (1..=10_000).map(|i| i * 1_000).collect();
        let histogram = of(&waits);
        for percent in [1, 10, 50, 90, 99, 100] {
            let exact = waits[(waits.len() * percent as usize).div_ceil(100) - 1] as f64;
            let found = histogram.percentile_ns(percent).expect("not empty") as f64;
            assert!(
                (found - exact).abs() <= exact / 8.0,
                "p{percent}: {found} for {exact}"
            );
        }
    }

    #[test]
    fn one_long_wait_in_a_hundred_is_seen_at_p100_alone() {
        let mut waits = vec![5_000; 99];
        waits.push(1_000_000_000);
        let histogram = of(&waits);
        assert!(histogram.percentile_ns(99).expect("not empty") < 6_000);
        assert!(histogram.percentile_ns(100).expect("not empty") > 900_000_000);
    }

    #[test]
    fn counts_beyond_the_range_of_u64_saturate() {
        let mut histogram = of(&[300]);
        histogram.add([u64::MAX; WAIT_BUCKETS]);
        assert_eq!(histogram.total(), u64::MAX);
    }
}
