//! Clock readings for people.

use std::time::Duration;

use jiff::Timestamp;

/// The time now, RFC 3339 to the millisecond.
pub fn now() -> String {
    rfc3339(Timestamp::now())
}

/// When a moment of the monotonic clock was, in nanoseconds since boot; `None` for 0 (never) and
/// for moments that no date can name.
pub fn of_monotonic_ns(moment_ns: u64) -> Option<String> {
    if moment_ns == 0 {
        return None;
    }
    let spec = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = Duration::new(spec.tv_sec.try_into().ok()?, spec.tv_nsec.try_into().ok()?);
    let age = now_ns.saturating_sub(Duration::from_nanos(moment_ns));
    Timestamp::now().checked_sub(age).ok().map(rfc3339)
}

/// Nanoseconds between two ticks of the scheduler: the coarse clock advances with the tick, so that its
/// resolution is the tick's length. `None` for one that is no length of a tick.
pub fn tick_ns() -> Option<u64> {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    let nanoseconds = u64::try_from(tick.tv_nsec).unwrap_or(0);
    (tick.tv_sec == 0 && nanoseconds >= 1000).then_some(nanoseconds)
}

fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_between_one_and_ten_milliseconds() {
        let tick = tick_ns().expect("Linux has a coarse clock");
        assert!((1_000_000..=10_000_000).contains(&tick), "{tick}");
    }

    #[test]
    fn zero_is_never() {
        assert_eq!(of_monotonic_ns(0), None);
    }

    #[test]
    fn a_moment_just_after_boot_lies_in_the_past() {
        let then: Timestamp = of_monotonic_ns(1)
            .expect("a date")
            .parse()
            .expect("RFC 3339");
        assert!(then < Timestamp::now());
        assert!(now().ends_with('Z'));
    }
}
