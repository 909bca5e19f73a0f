//! Time, and work measured in it.

use rustix::thread::{ClockId, Timespec};

/// Additions between two looks at the clock: a few microseconds, so that a look costs little and
/// the work done is exact enough.
const ADDITIONS: u32 = 2000;

/// Nanoseconds since boot, as all sleeping here counts them.
pub fn now_ns() -> u64 {
    to_ns(rustix::time::clock_gettime(ClockId::Monotonic))
}

/// CPU time that the calling thread has used, in nanoseconds.
pub fn thread_ns() -> u64 {
    to_ns(rustix::time::clock_gettime(ClockId::ThreadCPUTime))
}

/// Sleeps until a time of `now_ns`; returns at once when it has passed.
pub fn sleep_until_ns(deadline: u64) {
    let request = Timespec {
        tv_sec: (deadline / 1_000_000_000) as i64,
        tv_nsec: (deadline % 1_000_000_000) as i64,
    };
    // An absolute sleep that a signal interrupts is simply asked for again.
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request)
        == Err(rustix::io::Errno::INTR)
    {}
}

/// Uses up that much CPU time of the calling thread.
pub fn burn_ns(amount: u64) {
    let end = thread_ns() + amount;
    while thread_ns() < end {
        burn_a_little();
    }
}

/// A few microseconds of work that the compiler cannot remove.
pub fn burn_a_little() {
    let mut sum = 0u32;
    for i in 0..ADDITIONS {
        sum = std::hint::black_box(sum.wrapping_add(i));
    }
}

fn to_ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burning_uses_cpu_time() {
        let before = thread_ns();
        burn_ns(2_000_000);
        assert!(thread_ns() - before >= 2_000_000);
    }

    #[test]
    fn sleeping_into_the_past_returns() {
        sleep_until_ns(now_ns().saturating_sub(1_000_000));
    }
}
