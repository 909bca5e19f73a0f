//! Random policies and threads for property tests, here and in the native and kernel tests.
//!
//! Deterministic: a seed always gives the same text and the same threads. Threads are made from the
//! policy's own patterns, so that they match often and miss narrowly.

pub mod fuzz;
mod threads;

use std::fmt::Write;

pub use threads::threads;

/// SplitMix64: tiny, seedable, the same everywhere.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator of its own sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0..n; `n` at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next_u64() % n as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of some things.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const WORDS: &[&str] = &[
    "srv", "io", "a", "b", "ab", "java", "GC", "kworker", "web", "x", "worker", "0", "7",
    "t\u{f6}", "req", "-", " ",
];
const SEPARATORS: &[&str] = &["", "-", "/", ":", "_", ".", " "];
const COMPONENTS: &[&str] = &[
    "a",
    "b",
    "ads.slice",
    "web.service",
    "x",
    "kubepods.slice",
    "user-1000.slice",
    "app\\x2db.scope",
    "c1",
    "d-7.scope",
];

/// The text of a policy that compiles. One in sixteen has many rules, one in sixteen many globs
/// that contain a word.
pub fn policy_text(seed: u64) -> String {
    let r = &mut Random::new(seed);
    let mut out = format!("version = 1\ndefault = \"{}\"\n", pool(r));
    if r.one_in(3) {
        writeln!(
            out,
            "[pool.critical]\nweight = {}\nslice = \"{}us\"",
            1 + r.below(10_000),
            100 + r.below(9_000)
        )
        .expect("a string takes every write");
    }
    let rules = match r.below(16) {
        0 => 100 + r.below(120),
        1 => 0,
        _ => 1 + r.below(12),
    };
    let shape = Shape {
        contains: r.one_in(16),
        is_long: rules > 50,
    };
    for i in 0..rules {
        writeln!(out, "[[rule]]\nname = \"r{i}\"\npool = \"{}\"", pool(r))
            .expect("a string takes every write");
        if r.one_in(4) {
            writeln!(out, "slice = \"{}us\"", 100 + r.below(5_000))
                .expect("a string takes every write");
        }
        if r.one_in(4) {
            writeln!(out, "weight = {}", 1 + r.below(1_000)).expect("a string takes every write");
        }
        if r.one_in(8) {
            out.push_str("hints = true\n");
        }
        rule_conditions(r, shape, rules, &mut out);
    }
    out
}

fn pool(r: &mut Random) -> &'static str {
    if r.one_in(2) {
        "critical"
    } else {
        "background"
    }
}

/// What kind of policy is being made.
#[derive(Clone, Copy)]
struct Shape {
    /// All name patterns are globs that contain a word.
    contains: bool,
    /// So many rules that they must share the room for automata.
    is_long: bool,
}

fn rule_conditions(r: &mut Random, shape: Shape, rules: usize, out: &mut String) {
    // A rule without conditions hides all later ones, so it stays rare in long lists.
    let least = usize::from(!r.one_in(20 + rules));
    let own = conditions(r, least, shape);
    for (key, value) in &own {
        writeln!(out, "{key} = {value}").expect("a string takes every write");
    }
    // Few in long lists: alternatives are limited.
    let branch = if rules > 50 { 20 } else { 3 };
    if r.one_in(branch) {
        let tables: Vec<String> = (0..1 + r.below(3))
            .map(|_| {
                inline(&conditions(
                    r,
                    1,
                    Shape {
                        contains: false,
                        ..shape
                    },
                ))
            })
            .collect();
        writeln!(out, "any = [{}]", tables.join(", ")).expect("a string takes every write");
    }
    if r.one_in(branch) {
        writeln!(
            out,
            "not = {}",
            inline(&conditions(
                r,
                1,
                Shape {
                    contains: false,
                    ..shape
                }
            ))
        )
        .expect("a string takes every write");
    }
}

fn inline(conditions: &[(&'static str, String)]) -> String {
    let parts: Vec<String> = conditions
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", parts.join(", "))
}

fn conditions(r: &mut Random, least: usize, shape: Shape) -> Vec<(&'static str, String)> {
    let mut out: Vec<(&'static str, String)> = Vec::new();
    let wanted = least * (1 + r.below(2)) + usize::from(r.one_in(6));
    while out.len() < wanted {
        let (key, value) = match r.below(20) {
            0..=6 => ("thread", listed(r, |r| name_pattern(r, shape))),
            7..=9 => ("process", listed(r, |r| name_pattern(r, shape))),
            10..=13 => ("cgroup", listed(r, |r| cgroup_pattern(r, shape.is_long))),
            14 => ("user", listed(r, |r| id(r, &["root", "ads", "nosuchuser"]))),
            15 => ("group", listed(r, |r| id(r, &["root", "nosuchgroup"]))),
            16 => ("nice", listed(r, |r| range(r, -20, 19))),
            17 => ("kthread", r.one_in(3).to_string()),
            18 => ("leader", r.one_in(2).to_string()),
            _ if r.one_in(2) => (
                "sched",
                listed(r, |r| {
                    format!("\"{}\"", r.pick(&["normal", "batch", "idle"]))
                }),
            ),
            _ => ("hint", listed(r, |r| range(r, 0, 1023))),
        };
        if !out.iter().any(|(k, _)| *k == key) {
            out.push((key, value));
        }
    }
    out
}

fn listed(r: &mut Random, mut one: impl FnMut(&mut Random) -> String) -> String {
    if !r.one_in(4) {
        return one(r);
    }
    let items: Vec<String> = (0..1 + r.below(4)).map(|_| one(r)).collect();
    format!("[{}]", items.join(", "))
}

fn range(r: &mut Random, min: i64, max: i64) -> String {
    let span = (max - min + 1) as usize;
    let value = min + r.below(span) as i64;
    match r.below(4) {
        0 => format!("{{ min = {value} }}"),
        1 => format!("{{ max = {value} }}"),
        2 => {
            let high = value + r.below((max - value + 1) as usize) as i64;
            format!("{{ min = {value}, max = {high} }}")
        }
        _ => value.to_string(),
    }
}

fn id(r: &mut Random, names: &[&str]) -> String {
    if r.one_in(3) {
        return format!("\"{}\"", r.pick(names));
    }
    let top = r.pick(&[3, 2_000, 4_294_967_294]);
    range(r, 0, top)
}

/// A word of at most `most` bytes.
fn word(r: &mut Random, most: usize) -> String {
    let mut out = String::new();
    for _ in 0..1 + r.below(3) {
        let next = format!("{}{}", r.pick(WORDS), r.pick(SEPARATORS));
        if out.len() + next.len() <= most {
            out.push_str(&next);
        }
    }
    if out.is_empty() { "w".to_owned() } else { out }
}

fn name_pattern(r: &mut Random, shape: Shape) -> String {
    if shape.contains {
        return format!("\"*{}*\"", word(r, 6));
    }
    if shape.is_long && !r.one_in(3) {
        return match r.below(4) {
            0 | 1 => format!("{{ exact = \"{}\" }}", word(r, 15)),
            2 => format!("{{ prefix = \"{}\" }}", word(r, 8)),
            _ => format!("\"{}*{}\"", word(r, 5), word(r, 5)),
        };
    }
    match r.below(10) {
        0..=2 => format!("{{ exact = \"{}\" }}", word(r, 15)),
        3 | 4 => format!("{{ prefix = \"{}\" }}", word(r, 8)),
        5..=7 => format!("{{ glob = '{}' }}", name_glob(r)),
        _ => format!("{{ regex = '{}' }}", name_regex(r)),
    }
}

fn name_glob(r: &mut Random) -> String {
    let mut out = String::new();
    for _ in 0..1 + r.below(4) {
        match r.below(8) {
            0 | 1 => out.push('*'),
            2 => out.push('?'),
            3 => out.push_str(r.pick(&["[a-c]", "[!a]", "[0-9]", "[]x]", "[*]", "[a-]", "[!0-9]"])),
            4 => out.push_str(r.pick(&["{a,b}", "{srv,io-*}", "{,x}", "{[ab],?}", "{*,b}"])),
            _ => out.push_str(&word(r, 3)),
        }
    }
    out
}

fn name_regex(r: &mut Random) -> String {
    let piece = |r: &mut Random| match r.below(9) {
        0 => "(a|b)".to_owned(),
        1 => ".*".to_owned(),
        2 => "[0-9]+".to_owned(),
        3 => "(srv|io)?".to_owned(),
        4 => "\\d".to_owned(),
        5 => "\\w{0,3}".to_owned(),
        6 => "(?i:ab)".to_owned(),
        7 => ".".to_owned(),
        _ => regex_syntax::escape(&word(r, 3)),
    };
    let parts: Vec<String> = (0..1 + r.below(4)).map(|_| piece(r)).collect();
    match r.below(8) {
        0 => format!("^{}$", parts.concat()),
        1 => format!("{}|{}", parts.concat(), regex_syntax::escape(&word(r, 4))),
        _ => parts.concat(),
    }
}

fn path(r: &mut Random, most: usize) -> String {
    (0..1 + r.below(most))
        .map(|_| format!("/{}", r.pick(COMPONENTS)))
        .collect()
}

fn cgroup_pattern(r: &mut Random, is_long: bool) -> String {
    match r.below(10) {
        0 | 1 => format!(
            "{{ under = '{}' }}",
            if r.one_in(8) {
                "/".to_owned()
            } else {
                path(r, 3)
            }
        ),
        2 => format!(
            "{{ exact = '{}' }}",
            if r.one_in(4) {
                "/".to_owned()
            } else {
                path(r, 4)
            }
        ),
        3 | 4 => {
            let tail = r.pick(&["", ".*", "(/.*)?", "/[a-z]+", "/[^/]*"]);
            format!(
                "{{ regex = '{}{tail}' }}",
                regex_syntax::escape(&path(r, 2))
            )
        }
        _ => format!("'{}'", path_glob(r, is_long)),
    }
}

/// Globs with several `**` are the ones that a policy cannot have many of.
fn path_glob(r: &mut Random, is_long: bool) -> String {
    let mut out = String::new();
    let most = if is_long { 1 } else { 3 };
    for _ in 0..1 + r.below(4) {
        out.push('/');
        match r.below(8) {
            0 | 1 if out.matches("**").count() < most => out.push_str("**"),
            2 => out.push('*'),
            3 => out.push_str(r.pick(&[
                "*.slice",
                "*.service",
                "d-*.scope",
                "user-[0-9]*",
                "?",
                "a*",
                "*{,a}",
            ])),
            4 => out.push_str(r.pick(&["{a,b}", "{x,ads.slice}", "{,a}b", "{c1,b/x}", "{*,a/b}"])),
            _ => out.push_str(r.pick(COMPONENTS)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Input, Role, compile};
    use crate::resolve::NoNames;
    use crate::thread::NAME_BYTES;

    #[test]
    fn every_seed_gives_a_policy_that_compiles_and_threads_that_the_kernel_could_have() {
        for seed in 0..60 {
            let text = policy_text(seed);
            assert_eq!(text, policy_text(seed));
            let input = Input {
                name: "random.toml".into(),
                role: Role::Policy,
                bytes: text.clone().into_bytes(),
            };
            let compiled = compile(&[input], &NoNames);
            let policy = compiled
                .policy
                .unwrap_or_else(|| panic!("seed {seed}\n{text}\n{:?}", compiled.diagnostics));
            for thread in threads(seed, &policy, 50) {
                assert!(thread.thread.len() <= NAME_BYTES && thread.process.len() <= NAME_BYTES);
                assert!(
                    thread.cgroup.starts_with(b"/")
                        && !thread.cgroup.windows(2).any(|w| w == b"//")
                );
            }
        }
    }
}
