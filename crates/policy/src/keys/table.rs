//! The rows themselves.

use super::{Key, Kind};
use crate::limits::MAX_HINT;

const fn key(
    path: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    doc: &'static str,
) -> Key {
    Key {
        path,
        kind,
        default,
        background: None,
        required: false,
        doc,
    }
}

const fn required(path: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key {
        path,
        kind,
        default: None,
        background: None,
        required: true,
        doc,
    }
}

const fn pool(
    path: &'static str,
    kind: Kind,
    critical: &'static str,
    background: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        path,
        kind,
        default: Some(critical),
        background: Some(background),
        required: false,
        doc,
    }
}

const WEIGHT: Kind = Kind::Integer {
    min: 1,
    max: 10_000,
};
const SLICE: Kind = Kind::Duration {
    min_us: 100,
    max_us: 1_000_000,
    off: false,
};
const STEAL: Kind = Kind::Duration {
    min_us: 0,
    max_us: 1_000_000,
    off: true,
};
const ANY_PERCENT: Kind = Kind::Percent { min: 0, max: 100 };
const SCHED: &[&str] = &["normal", "batch", "idle"];
const NICE: Kind = Kind::Numbers { min: -20, max: 19 };
const HINT: Kind = Kind::Numbers {
    min: 0,
    max: MAX_HINT,
};

/// Every key of the language, in the order of the reference.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("version", Kind::Version, None, "version of the policy language, 1; required in the policy file"),
    key("default", Kind::Pool, None, "the pool of a thread that no rule takes; required in the policy file"),

    pool("pool.*.weight", WEIGHT, "800", "100", "share of CPU time while both pools want all of it"),
    pool("pool.*.slice", SLICE, "\"3ms\"", "\"20ms\"",
        "how long a thread runs before others of its pool get a turn"),
    pool("pool.*.cpus.min", Kind::Cpus, "\"10%\"", "1", "least CPUs that the pool owns"),
    pool("pool.*.cpus.max", Kind::Cpus, "\"90%\"", "\"100%\"", "most CPUs that the pool owns"),
    pool("pool.*.utilization.low", ANY_PERCENT, "\"50%\"", "\"50%\"",
        "the pool shrinks below this utilization"),
    pool("pool.*.utilization.high", ANY_PERCENT, "\"80%\"", "\"80%\"",
        "the pool grows above this utilization"),
    pool("pool.*.preempt", Kind::Bool, "true", "false",
        "whether a waking thread may take a CPU from the other pool"),
    key("pool.*.perf", Kind::Percent { min: 1, max: 100 }, None,
        "cpufreq target while threads of the pool run; unset leaves the governor alone"),
    pool("pool.*.placement", Kind::Choice(&["spread", "pack"]), "\"spread\"", "\"spread\"",
        "whether light load goes to idle cores first or fills busy ones"),

    key("sizing.interval", Kind::Duration { min_us: 1_000, max_us: 10_000_000, off: false }, Some("\"20ms\""),
        "how often pool sizes are reconsidered"),

    key("steal.smt", STEAL, Some("\"0us\""),
        "least time between two searches among the siblings of one core"),
    key("steal.llc", STEAL, Some("\"0us\""), "least time between two searches inside one last-level cache"),
    key("steal.node", STEAL, Some("\"1ms\""), "least time between two searches inside one NUMA node"),
    key("steal.machine", STEAL, Some("\"10ms\""), "least time between two searches of the whole machine"),

    key("hints.boost", Kind::Duration { min_us: 100, max_us: 100_000, off: false }, Some("\"5ms\""),
        "how long one hint lasts at most, and the slice that it gives"),
    key("hints.max_share", Kind::Percent { min: 1, max: 100 }, Some("\"20%\""),
        "CPU time that hinted threads may take ahead of their pool"),

    key("limits.background_wait",
        Kind::Duration { min_us: 10_000, max_us: 10_000_000, off: false }, Some("\"200ms\""),
        "a runnable thread that waited this long is served next on a CPU that it may use"),

    key("attach.while_cgroup", Kind::Cgroups, None,
        "be the host's scheduler only while some matching cgroup has threads"),

    key("rule.name", Kind::Text, None, "unique name of the rule; FILE:N where it is absent"),
    required("rule.pool", Kind::Pool, "where the rule's threads go; required"),
    key("rule.thread", Kind::Names, None, "the thread's own name"),
    key("rule.process", Kind::Names, None, "the name of the thread's group leader"),
    key("rule.cgroup", Kind::Cgroups, None, "the thread's cgroup v2 path"),
    key("rule.user", Kind::Ids, None, "effective user: name, uid, list or range"),
    key("rule.group", Kind::Ids, None, "effective group: name, gid, list or range"),
    key("rule.nice", NICE, None, "nice value: number, list or range"),
    key("rule.kthread", Kind::Flag, None, "kernel thread or not"),
    key("rule.leader", Kind::Flag, None, "thread group leader or not"),
    key("rule.sched", Kind::Words(SCHED), None, "scheduling policy; SCHED_EXT counts as normal"),
    key("rule.hint", HINT, None, "level that the thread gave itself"),
    key("rule.not", Kind::Conditions, None, "conditions that must not all hold together"),
    key("rule.any", Kind::ConditionList, None, "tables of conditions of which at least one must hold"),
    key("rule.slice", SLICE, None, "overrides the pool's slice"),
    key("rule.weight", WEIGHT, Some("100"), "weight of the thread inside its pool"),
    key("rule.hints", Kind::Bool, Some("false"),
        "whether threads that the rule takes at level 0 may send hints"),

    key("test.name", Kind::Text, None, "name of the test"),
    required("test.thread", Kind::Text, "the thread's own name; required"),
    key("test.process", Kind::Text, None, "its group leader's name; the thread's own where it is absent"),
    key("test.cgroup", Kind::Path, Some("\"/\""), "its cgroup v2 path"),
    key("test.user", Kind::Id, Some("0"), "its effective user"),
    key("test.group", Kind::Id, Some("0"), "its effective group"),
    key("test.nice", Kind::Integer { min: -20, max: 19 }, Some("0"), "its nice value"),
    key("test.kthread", Kind::Bool, Some("false"), "kernel thread or not"),
    key("test.leader", Kind::Bool, None,
        "group leader or not; where it is absent, whether process equals thread"),
    key("test.sched", Kind::Choice(SCHED), Some("\"normal\""), "its scheduling policy"),
    key("test.hint", Kind::Integer { min: 0, max: MAX_HINT }, Some("0"), "its hint level"),
    required("test.expect.pool", Kind::Pool, "the pool that it must get; required"),
    key("test.expect.rule", Kind::Text, None, "the rule that must take it"),
];
