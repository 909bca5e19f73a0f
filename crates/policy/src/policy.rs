//! `Policy`: what a policy means, with every default filled in and every name resolved.
//!
//! Produced by `resolve`, consumed by `lower` (to the image) and by `naive` (the plain evaluator).
//! Values compare without their spans: two policies that mean the same are equal.

use twopool_diag::Span;

/// A span that does not take part in comparison.
#[derive(Debug, Clone, Copy)]
pub struct At(pub Option<Span>);

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for At {}

/// One of the two pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Threads on the latency-critical path.
    Critical,
    /// Everything else.
    Background,
}

impl Pool {
    /// Both, in the order of `enum pool_id`.
    pub const ALL: [Pool; 2] = [Pool::Critical, Pool::Background];

    /// As written in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Pool::Critical => "critical",
            Pool::Background => "background",
        }
    }
}

/// A number of CPUs, absolute or relative to the online ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpus {
    /// A count, at least 0.
    Count(u32),
    /// 0..=100 percent of the online CPUs, rounded up.
    Percent(u32),
}

/// `placement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Use idle cores first.
    Spread,
    /// Fill busy cores and caches first.
    Pack,
}

/// `[pool.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// 1..=10000, share of CPU time while both pools want all of it.
    pub weight: u32,
    /// 100..=1_000_000.
    pub slice_us: u64,
    /// Least CPUs owned.
    pub cpus_min: Cpus,
    /// Most CPUs owned.
    pub cpus_max: Cpus,
    /// 0..=100; shrink below.
    pub utilization_low_percent: u32,
    /// 0..=100; grow above.
    pub utilization_high_percent: u32,
    /// A waking thread may take a CPU from the other pool.
    pub preempt: bool,
    /// cpufreq target, 1..=100; unset: leave the governor alone.
    pub perf_percent: Option<u32>,
    /// Where to put light load.
    pub placement: Placement,
}

/// `[steal]`: least time between two searches at each distance, `None` = never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steal {
    /// Between siblings of one core.
    pub smt_us: Option<u64>,
    /// Inside one last-level cache.
    pub llc_us: Option<u64>,
    /// Inside one NUMA node.
    pub node_us: Option<u64>,
    /// Anywhere.
    pub machine_us: Option<u64>,
}

/// `[hints]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    /// 100..=100_000.
    pub boost_us: u64,
    /// 1..=100.
    pub max_share_percent: u32,
}

/// Everything that a reload can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The pool of a thread that no rule takes.
    pub default: Pool,
    /// Settings of both pools, indexed by `Pool as usize`.
    pub pools: [PoolSettings; 2],
    /// `sizing.interval`, 1_000..=10_000_000.
    pub sizing_interval_us: u64,
    /// `[steal]`.
    pub steal: Steal,
    /// `[hints]`.
    pub hints: Hints,
    /// `limits.background_wait`, 10_000..=10_000_000.
    pub background_wait_us: u64,
    /// `attach.while_cgroup`; `None`: always attached.
    pub attach_while_cgroup: Option<CgroupCondition>,
    /// In effective order; the first that matches wins. At most 256.
    pub rules: Vec<Rule>,
    /// In effective order.
    pub tests: Vec<Test>,
    /// User names that this host does not know: name i has the id `UNKNOWN_ID_BASE + i`.
    pub unknown_users: Vec<String>,
    /// Group names, likewise.
    pub unknown_groups: Vec<String>,
}

/// First of the ids that stand for user and group names which no uid or gid has. Real ids are
/// below 2^32, so that such a condition matches nobody in the kernel, while tests and simulated
/// threads can still name it.
pub const UNKNOWN_ID_BASE: u64 = 1 << 32;

/// Weight of a thread inside its pool when nothing else is said.
pub const NEUTRAL_WEIGHT: u32 = 100;

/// One `[[rule]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Unique, at most 64 bytes.
    pub name: String,
    /// Where its threads go.
    pub pool: Pool,
    /// All must match.
    pub all: Conditions,
    /// At least one table must match; empty when the rule has no `any`.
    pub any: Vec<Conditions>,
    /// Must not match as a whole.
    pub not: Option<Conditions>,
    /// 100..=1_000_000; `None`: the pool's.
    pub slice_us: Option<u64>,
    /// 1..=10000.
    pub weight: u32,
    /// Threads that this rule takes at level 0 may send hints.
    pub hints: bool,
    /// The rule's header or name.
    pub at: At,
}

impl Rule {
    /// All its tables of conditions.
    pub fn tables(&self) -> impl Iterator<Item = &Conditions> + Clone {
        self.tables_to_meet().chain(&self.not)
    }

    /// Without `not`.
    pub fn tables_to_meet(&self) -> impl Iterator<Item = &Conditions> + Clone {
        std::iter::once(&self.all).chain(&self.any)
    }
}

/// Conditions that all must hold; an absent one holds always.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// The thread's own name.
    pub thread: Option<NameCondition>,
    /// Its thread group leader's name.
    pub process: Option<NameCondition>,
    /// Its cgroup v2 path.
    pub cgroup: Option<CgroupCondition>,
    /// Effective uid, or an id from `UNKNOWN_ID_BASE`.
    pub user: Option<NumberCondition>,
    /// Effective gid, likewise.
    pub group: Option<NumberCondition>,
    /// -20..=19, stored with 20 added: 0..=39.
    pub nice: Option<NumberCondition>,
    /// Kernel thread or not.
    pub kthread: Option<bool>,
    /// Thread group leader or not.
    pub leader: Option<bool>,
    /// One of these.
    pub sched: Option<Vec<Sched>>,
    /// 0..=1023.
    pub hint: Option<NumberCondition>,
}

impl Conditions {
    /// The patterns of `thread`, `process` or `cgroup`; none where the key is absent.
    pub fn patterns(&self, key: &str) -> &[Pattern] {
        let patterns = match key {
            "thread" => self.thread.as_ref().map(|c| &c.patterns),
            "process" => self.process.as_ref().map(|c| &c.patterns),
            "cgroup" => self.cgroup.as_ref().map(|c| &c.patterns),
            _ => unreachable!("`{key}` has no patterns"),
        };
        patterns.map_or(&[], Vec::as_slice)
    }

    /// The patterns of `thread`, then of `process`.
    pub fn names(&self) -> impl Iterator<Item = &Pattern> + Clone {
        self.patterns("thread")
            .iter()
            .chain(self.patterns("process"))
    }
}

/// Scheduling policy as rules see it (SCHED_EXT counts as normal).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sched {
    /// SCHED_NORMAL and SCHED_EXT.
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
}

impl Sched {
    /// In the order of their numbers, which `struct thread_key` holds: 0, 1, 2.
    pub const ALL: [Sched; 3] = [Sched::Normal, Sched::Batch, Sched::Idle];

    /// As written in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Sched::Normal => "normal",
            Sched::Batch => "batch",
            Sched::Idle => "idle",
        }
    }
}

/// A value in one of these inclusive ranges. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberCondition {
    /// As written, inclusive, min <= max.
    pub ranges: Vec<(u64, u64)>,
    /// The condition as the user wrote each range, for `explain`; same length as `ranges`.
    pub texts: Vec<String>,
    /// The value's place.
    pub at: At,
}

/// One of these patterns matches a thread or process name. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameCondition {
    /// In the order written.
    pub patterns: Vec<Pattern>,
}

/// One of these patterns matches a cgroup path. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupCondition {
    /// In the order written.
    pub patterns: Vec<Pattern>,
}

/// How a pattern was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PatternKind {
    /// The whole value. Names are already cut to 15 bytes, paths normalised.
    Exact,
    /// Names only: the value's beginning.
    Prefix,
    /// Paths only: that cgroup and all below, by whole components.
    Under,
    /// A glob; its meaning differs between names and paths.
    Glob,
    /// The `regex` crate's syntax, whole value, `(?s-u)`.
    Regex,
}

/// One pattern, checked to be well formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// How `text` is to be read. A bare string without glob characters is `Exact`.
    pub kind: PatternKind,
    /// The text after normalisation (cut, slashes), as `explain` shows it.
    pub text: String,
    /// The same in bytes: for an exact name, what the kernel keeps (may end inside a character).
    pub bytes: Vec<u8>,
    /// The pattern as a regex that must match the WHOLE value, in the `regex` crate's byte syntax,
    /// to be compiled with `(?s-u)` in front and anchored by the compiler (not part of this text).
    pub regex: String,
    /// The string's place.
    pub at: At,
}

/// One `[[test]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// As written, or `test N`.
    pub name: String,
    /// The thread to judge.
    pub thread: crate::thread::Thread,
    /// Its expected pool.
    pub pool: Pool,
    /// Its expected rule, by name; `None`: any.
    pub rule: Option<String>,
    /// The table's place.
    pub at: At,
}
