//! The one table of TOML keys. Parsing, the check for unknown keys, "did you mean", `show` and the
//! reference derive from it, so that they cannot drift apart.
//!
//! Invariant: every leaf that a policy may hold is one row of [`KEYS`]. `*` in a path stands for
//! the name of a pool; the conditions of `rule.not` and `rule.any` are the rows of `rule` whose
//! kind is a condition.

use crate::limits::{MAX_HINT, MAX_ID};
use crate::policy::Pool;

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The version of the language.
    Version,
    /// The name of a pool.
    Pool,
    /// An integer in an inclusive range.
    Integer {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// A duration with a unit, in an inclusive range of microseconds.
    Duration {
        /// Least, in microseconds.
        min_us: u64,
        /// Greatest, in microseconds.
        max_us: u64,
        /// Whether `"off"` may stand instead.
        off: bool,
    },
    /// An integer and `%`, inclusive.
    Percent {
        /// Least.
        min: u32,
        /// Greatest.
        max: u32,
    },
    /// A count of CPUs or a percentage of the online ones.
    Cpus,
    /// `true` or `false`.
    Bool,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Any text that is not empty.
    Text,
    /// A cgroup path.
    Path,
    /// A user or group in a test: an id or a name.
    Id,
    /// A condition on a thread or process name.
    Names,
    /// A condition on a cgroup path.
    Cgroups,
    /// A condition on a user or group.
    Ids,
    /// A condition on an integer.
    Numbers {
        /// Least value there is.
        min: i64,
        /// Greatest value there is.
        max: i64,
    },
    /// A condition on the scheduling policy: one word or a list.
    Words(&'static [&'static str]),
    /// A condition that is true or false.
    Flag,
    /// A table of conditions.
    Conditions,
    /// A list of tables of conditions.
    ConditionList,
}

impl Kind {
    /// Whether such a key asks something of a thread and may stand in `not` and `any`.
    pub fn is_condition(self) -> bool {
        matches!(
            self,
            Kind::Names
                | Kind::Cgroups
                | Kind::Ids
                | Kind::Numbers { .. }
                | Kind::Words(_)
                | Kind::Flag
        )
    }
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Dotted; `*` is a pool's name.
    pub path: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// The default as TOML text; for pools, that of `critical`.
    pub default: Option<&'static str>,
    /// The default of `background` where it differs.
    pub background: Option<&'static str>,
    /// One line that says what the key does.
    pub doc: &'static str,
}

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
    pool("pool.*.slice", SLICE, "\"3ms\"", "\"20ms\"", "how long a thread runs before others of its pool get a turn"),
    pool("pool.*.cpus.min", Kind::Cpus, "\"10%\"", "1", "least CPUs that the pool owns"),
    pool("pool.*.cpus.max", Kind::Cpus, "\"90%\"", "\"100%\"", "most CPUs that the pool owns"),
    pool("pool.*.utilization.low", ANY_PERCENT, "\"50%\"", "\"50%\"", "the pool shrinks below this utilization"),
    pool("pool.*.utilization.high", ANY_PERCENT, "\"80%\"", "\"80%\"", "the pool grows above this utilization"),
    pool("pool.*.preempt", Kind::Bool, "true", "false", "whether a waking thread may take a CPU from the other pool"),
    key("pool.*.perf", Kind::Percent { min: 1, max: 100 }, None, "cpufreq target while threads of the pool run; unset leaves the governor alone"),
    pool("pool.*.placement", Kind::Choice(&["spread", "pack"]), "\"spread\"", "\"spread\"", "whether light load goes to idle cores first or fills busy ones"),

    key("sizing.interval", Kind::Duration { min_us: 1_000, max_us: 10_000_000, off: false }, Some("\"20ms\""), "how often pool sizes are reconsidered"),

    key("steal.smt", STEAL, Some("\"0us\""), "least time between two searches among the siblings of one core"),
    key("steal.llc", STEAL, Some("\"0us\""), "least time between two searches inside one last-level cache"),
    key("steal.node", STEAL, Some("\"1ms\""), "least time between two searches inside one NUMA node"),
    key("steal.machine", STEAL, Some("\"10ms\""), "least time between two searches of the whole machine"),

    key("hints.boost", Kind::Duration { min_us: 100, max_us: 100_000, off: false }, Some("\"5ms\""), "how long one hint lasts at most, and the slice that it gives"),
    key("hints.max_share", Kind::Percent { min: 1, max: 100 }, Some("\"20%\""), "CPU time that hinted threads may take ahead of their pool"),

    key("limits.background_wait", Kind::Duration { min_us: 10_000, max_us: 10_000_000, off: false }, Some("\"200ms\""), "a runnable thread that waited this long is served next on a CPU that it may use"),

    key("attach.while_cgroup", Kind::Cgroups, None, "be the host's scheduler only while some matching cgroup has threads"),

    key("rule.name", Kind::Text, None, "unique name of the rule; FILE:N where it is absent"),
    key("rule.pool", Kind::Pool, None, "where the rule's threads go; required"),
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
    key("rule.hints", Kind::Bool, Some("false"), "whether threads that the rule takes at level 0 may send hints"),

    key("test.name", Kind::Text, None, "name of the test"),
    key("test.thread", Kind::Text, None, "the thread's own name; required"),
    key("test.process", Kind::Text, None, "its group leader's name; the thread's own where it is absent"),
    key("test.cgroup", Kind::Path, Some("\"/\""), "its cgroup v2 path"),
    key("test.user", Kind::Id, Some("0"), "its effective user"),
    key("test.group", Kind::Id, Some("0"), "its effective group"),
    key("test.nice", Kind::Integer { min: -20, max: 19 }, Some("0"), "its nice value"),
    key("test.kthread", Kind::Bool, Some("false"), "kernel thread or not"),
    key("test.leader", Kind::Bool, None, "group leader or not; where it is absent, whether process equals thread"),
    key("test.sched", Kind::Choice(SCHED), Some("\"normal\""), "its scheduling policy"),
    key("test.hint", Kind::Integer { min: 0, max: MAX_HINT }, Some("0"), "its hint level"),
    key("test.expect.pool", Kind::Pool, None, "the pool that it must get; required"),
    key("test.expect.rule", Kind::Text, None, "the rule that must take it"),
];

/// Range of uids and gids that a condition may name.
pub const IDS: (i64, i64) = (0, MAX_ID);

/// The forms of a name pattern.
pub const NAME_FORMS: &[&str] = &["exact", "prefix", "glob", "regex"];
/// The forms of a cgroup pattern.
pub const CGROUP_FORMS: &[&str] = &["under", "exact", "glob", "regex"];
/// The bounds of a range.
pub const BOUNDS: &[&str] = &["min", "max"];
/// The keys of the whole file that name arrays of tables.
pub const LISTS: &[&str] = &["rule", "test"];

/// The row of a path like `pool.critical.weight`, if it is a key.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| path_matches(k.path, path))
}

fn path_matches(row: &str, path: &str) -> bool {
    let (mut row, mut path) = (row.split('.'), path.split('.'));
    loop {
        match (row.next(), path.next()) {
            (None, None) => return true,
            (Some("*"), Some(p)) if is_pool(p) => {}
            (Some(r), Some(p)) if r == p => {}
            _ => return false,
        }
    }
}

fn is_pool(name: &str) -> bool {
    Pool::ALL.iter().any(|p| p.as_str() == name)
}

/// What may stand directly inside a table: the next component of every key below `section`
/// (`""` is the whole file), without repetition, in the order of the table.
pub fn children(section: &str) -> Vec<&'static str> {
    let depth = if section.is_empty() {
        0
    } else {
        section.split('.').count()
    };
    let mut out: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let parts: Vec<&'static str> = key.path.split('.').collect();
        let inside =
            depth == 0 || (parts.len() > depth && path_matches(&parts[..depth].join("."), section));
        if !inside {
            continue;
        }
        let names = if parts[depth] == "*" {
            Pool::ALL.map(Pool::as_str).to_vec()
        } else {
            vec![parts[depth]]
        };
        for name in names {
            if !out.contains(&name) {
                out.push(name);
            }
        }
    }
    out
}

/// Names of the keys that ask something of a thread, as allowed in `not` and `any`.
pub fn conditions() -> Vec<&'static str> {
    KEYS.iter()
        .filter(|k| k.kind.is_condition())
        .filter_map(|k| k.path.strip_prefix("rule."))
        .collect()
}

/// Where else a name is a key, as a user would write the table: `[pool.critical]`.
pub fn homes(name: &str) -> Vec<String> {
    let mut out = Vec::new();
    for key in KEYS {
        let parts: Vec<&str> = key.path.split('.').collect();
        let Some(at) = parts.iter().position(|p| *p == name) else {
            continue;
        };
        if at == 0 {
            push_new(&mut out, "the top of the file".to_owned());
        } else if parts[1..at].contains(&"*") {
            let rest: String = parts[2..at].iter().map(|p| format!(".{p}")).collect();
            for pool in Pool::ALL {
                push_new(&mut out, format!("`[pool.{}{rest}]`", pool.as_str()));
            }
        } else if LISTS.contains(&parts[0]) && at == 1 {
            push_new(&mut out, format!("`[[{}]]`", parts[0]));
        } else {
            push_new(&mut out, format!("`[{}]`", parts[..at].join(".")));
        }
    }
    out
}

fn push_new(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Every key outside `[[rule]]` and `[[test]]` with its concrete path and its default, pools
/// written out.
pub fn settings() -> Vec<(String, &'static Key, Option<&'static str>)> {
    let mut out = Vec::new();
    for key in KEYS
        .iter()
        .filter(|k| !LISTS.contains(&k.path.split('.').next().unwrap_or("")))
    {
        if !key.path.contains('*') {
            out.push((key.path.to_owned(), key, key.default));
        }
    }
    let pool_keys = KEYS.iter().filter(|k| k.path.contains('*'));
    let mut pools = Vec::new();
    for pool in Pool::ALL {
        for key in pool_keys.clone() {
            let default = match pool {
                Pool::Critical => key.default,
                Pool::Background => key.background.or(key.default),
            };
            pools.push((key.path.replace('*', pool.as_str()), key, default));
        }
    }
    let top = out
        .iter()
        .take_while(|(path, ..)| !path.contains('.'))
        .count();
    out.splice(top..top, pools);
    out
}

/// The candidate that a misspelt word most likely meant, if one is close.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1) + 1;
    candidates
        .into_iter()
        .map(|c| {
            (
                strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase()),
                c,
            )
        })
        .filter(|(distance, c)| *distance <= limit && *distance < c.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_key_is_found_under_both_pools_and_no_other() {
        assert_eq!(
            find("pool.critical.cpus.min").map(|k| k.path),
            Some("pool.*.cpus.min")
        );
        assert!(find("pool.background.weight").is_some());
        assert!(find("pool.fast.weight").is_none());
        assert!(find("pool.critical").is_none());
    }

    #[test]
    fn the_children_of_a_table_are_what_may_stand_in_it() {
        assert_eq!(children("pool"), ["critical", "background"]);
        assert_eq!(children("pool.critical.cpus"), ["min", "max"]);
        assert_eq!(children("steal"), ["smt", "llc", "node", "machine"]);
        assert_eq!(children("test.expect"), ["pool", "rule"]);
        assert!(children("").contains(&"rule"));
        assert!(children("nowhere").is_empty());
    }

    #[test]
    fn only_questions_about_a_thread_may_stand_in_not_and_any() {
        let names = conditions();
        assert!(names.contains(&"thread") && names.contains(&"hint"));
        assert!(!names.contains(&"not") && !names.contains(&"hints") && !names.contains(&"pool"));
    }

    #[test]
    fn a_misplaced_key_knows_its_home() {
        assert_eq!(
            homes("preempt"),
            ["`[pool.critical]`", "`[pool.background]`"]
        );
        assert_eq!(homes("smt"), ["`[steal]`"]);
        assert_eq!(homes("version"), ["the top of the file"]);
        assert_eq!(homes("kthread"), ["`[[rule]]`", "`[[test]]`"]);
    }

    #[test]
    fn pools_are_written_out_with_their_own_defaults() {
        let all = settings();
        let value = |path: &str| all.iter().find(|(p, ..)| p == path).and_then(|(.., d)| *d);
        assert_eq!(value("pool.critical.weight"), Some("800"));
        assert_eq!(value("pool.background.weight"), Some("100"));
        assert_eq!(value("pool.background.perf"), None);
        assert_eq!(value("steal.node"), Some("\"1ms\""));
    }

    #[test]
    fn a_typo_finds_its_word_and_nonsense_finds_none() {
        assert_eq!(nearest("wieght", ["weight", "slice"]), Some("weight"));
        assert_eq!(nearest("tread", ["thread", "process"]), Some("thread"));
        assert_eq!(nearest("zzz", ["thread", "process"]), None);
    }
}
