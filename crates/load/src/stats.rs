//! Percentiles of everything that was measured: no buckets, no estimates.

use serde::{Deserialize, Serialize};

/// Latencies in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90 %.
    pub p90_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// 99.9 %.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// Summarises latencies in nanoseconds; all zero when there are none.
pub fn summarise(mut values: Vec<u64>) -> Latency {
    values.sort_unstable();
    let at = |fraction: f64| nearest_rank(&values, fraction) as f64 / 1000.0;
    let sum: u64 = values.iter().sum();
    Latency {
        mean_us: sum as f64 / 1000.0 / values.len().max(1) as f64,
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: at(1.0),
    }
}

/// The least value that `fraction` of all values do not exceed.
fn nearest_rank(sorted: &[u64], fraction: f64) -> u64 {
    let rank = (fraction * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let latency = summarise((1..=1000).rev().map(|n| n * 1000).collect());
        assert_eq!(latency.p50_us, 500.0);
        assert_eq!(latency.p99_us, 990.0);
        assert_eq!(latency.p999_us, 999.0);
        assert_eq!(latency.max_us, 1000.0);
    }

    #[test]
    fn nothing_measured_is_zero() {
        assert_eq!(summarise(Vec::new()).p99_us, 0.0);
    }
}
