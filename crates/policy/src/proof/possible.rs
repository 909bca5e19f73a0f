//! Which threads there can be. What a proof may rely on is here and nowhere else, each fact a
//! predicate of its own; whatever is not certain on every kernel is left out, since a fact too many
//! is a rule called unreachable that takes threads.

use std::ops::RangeInclusive;

use crate::limits::{MAX_HINT, MAX_ID};
use crate::lower::Field;
use crate::policy::UNKNOWN_ID_BASE;
use crate::thread::{NAME_BYTES, Thread};

/// Longest name of one directory, `NAME_MAX`.
pub(crate) const MAX_COMPONENT_BYTES: usize = 255;
/// Longest path that the kernel shows, `PATH_MAX` without the NUL.
pub(crate) const MAX_PATH_BYTES: usize = 4095;

/// Whether a kernel could show this thread.
pub fn is_possible(thread: &Thread) -> bool {
    is_name(&thread.thread)
        && is_name(&thread.process)
        && is_path(&thread.cgroup)
        && leader_names_the_process(thread)
        && kernel_thread_leads_itself(thread)
        && (-20..=19).contains(&thread.nice)
        && i64::from(thread.hint) <= MAX_HINT
}

/// Names are at most 15 bytes, none of them NUL. A name may be empty, and may hold a newline.
pub fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES && !name.contains(&0)
}

/// Cgroups are directories: no NUL, and components that are not empty, `.` or `..`. The kernel
/// refuses a newline in their names, because /proc/PID/cgroup could not be read with one.
pub fn is_path(path: &[u8]) -> bool {
    let Some(inner) = path.strip_prefix(b"/") else {
        return false;
    };
    if inner.is_empty() {
        return true;
    }
    path.len() <= MAX_PATH_BYTES
        && !path.iter().any(|byte| matches!(byte, 0 | b'\n'))
        && inner
            .split(|byte| *byte == b'/')
            .all(|part| part.len() <= MAX_COMPONENT_BYTES && !matches!(part, b"" | b"." | b".."))
}

/// `process` is the leader's name, so a leader has the same name twice.
pub fn leader_names_the_process(thread: &Thread) -> bool {
    !thread.leader || thread.thread == thread.process
}

/// A kernel thread is a thread group of its own.
pub fn kernel_thread_leads_itself(thread: &Thread) -> bool {
    !thread.kthread || thread.leader
}

/// Which threads are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Leaders: the two names are one.
    Leader,
    /// All others, none of them a kernel thread.
    Other,
    /// Whatever can be written down.
    Any,
}

/// The values that a number may have, with the most usual one. Users and groups that this host
/// does not know exist on some other one, so they count as ids too.
pub(super) struct Numbers {
    pub ranges: [RangeInclusive<u64>; 2],
    pub usual: u64,
}

impl Numbers {
    /// Of a field; `unknown` says how many users (or
    /// groups) are only known by name.
    #[allow(clippy::reversed_empty_ranges, reason = "no second range")]
    pub fn of(field: Field, kind: Kind, unknown: u64) -> Self {
        let one = |range, usual| Self {
            ranges: [range, 1..=0],
            usual,
        };
        let (least, most) = match kind {
            Kind::Leader => (1, 1),
            Kind::Other => (0, 0),
            Kind::Any => (0, 1),
        };
        match field {
            Field::User | Field::Group => Self {
                ranges: [
                    0..=MAX_ID as u64,
                    UNKNOWN_ID_BASE..=(UNKNOWN_ID_BASE + unknown).wrapping_sub(1),
                ],
                usual: 0,
            },
            Field::Nice => one(0..=39, 20),
            Field::Kthread => one(0..=most, 0),
            Field::Leader => one(least..=most, least),
            Field::Sched => one(0..=2, 0),
            Field::Hint => one(0..=MAX_HINT as u64, 0),
            Field::Thread | Field::Process | Field::Cgroup => unreachable!("not a number"),
        }
    }

    /// The usual value, or the least one, that is in every set of ranges of `meets` and in none of
    /// `avoids`. Exact: a value that is refused is raised to the least one that could be accepted.
    pub fn find(&self, meets: &[&[(u64, u64)]], avoids: &[&[(u64, u64)]]) -> Option<u64> {
        if self.at_least(self.usual, meets, avoids) == Some(self.usual) {
            return Some(self.usual);
        }
        self.at_least(0, meets, avoids)
    }

    fn at_least(
        &self,
        mut value: u64,
        meets: &[&[(u64, u64)]],
        avoids: &[&[(u64, u64)]],
    ) -> Option<u64> {
        let domain = self.ranges.each_ref().map(|r| (*r.start(), *r.end()));
        loop {
            let before = value;
            value = next_inside(value, domain.iter().filter(|(first, last)| first <= last))?;
            for set in meets {
                value = next_inside(value, set.iter())?;
            }
            for (first, last) in avoids.iter().flat_map(|set| set.iter()) {
                if (*first..=*last).contains(&value) {
                    value = last.checked_add(1)?;
                }
            }
            if value == before {
                return Some(value);
            }
        }
    }
}

/// The least number from `value` on that is in one of the ranges.
fn next_inside<'a>(value: u64, set: impl Iterator<Item = &'a (u64, u64)>) -> Option<u64> {
    let reached = set.filter(|(_, last)| *last >= value);
    reached.map(|(first, _)| value.max(*first)).min()
}
