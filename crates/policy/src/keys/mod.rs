//! The one table of TOML keys. Parsing, the check for unknown keys, "did you mean", `show` and the
//! reference derive from it, so that they cannot drift apart.
//!
//! Invariant: every leaf that a policy may hold is one row of [`KEYS`]. `*` in a path stands for
//! the name of a pool; the conditions of `rule.not` and `rule.any` are the rows of `rule` whose
//! kind is a condition.

mod table;

use crate::limits::MAX_ID;
use crate::policy::Pool;

pub use table::KEYS;

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
    /// Whether every table of its list must hold it. (`version` and `default` are required of the
    /// policy file alone, not of drop-ins.)
    pub required: bool,
    /// One line that says what the key does.
    pub doc: &'static str,
}

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
    fn the_line_about_a_required_key_says_so() {
        for key in KEYS {
            assert_eq!(
                key.required,
                key.doc.ends_with("; required"),
                "{}",
                key.path
            );
        }
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
}
