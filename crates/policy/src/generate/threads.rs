//! Random threads near the patterns of a policy.

use super::{Random, path, word};
use crate::policy::{Conditions, NumberCondition, Pattern, PatternKind, Policy, Rule, Sched};
use crate::thread::{NAME_BYTES, Thread};

/// Threads for a policy, many of them near its patterns.
pub fn threads(seed: u64, policy: &Policy, n: usize) -> Vec<Thread> {
    let r = &mut Random::new(seed ^ 0x7468_7265_6164_7321);
    let seeds = Seeds::of(policy);
    (0..n).map(|_| thread(r, &seeds)).collect()
}

/// What the policy speaks of.
#[derive(Default)]
struct Seeds<'a> {
    names: Vec<&'a Pattern>,
    paths: Vec<&'a Pattern>,
    users: Vec<u64>,
    groups: Vec<u64>,
    nices: Vec<u64>,
    hints: Vec<u64>,
}

impl<'a> Seeds<'a> {
    fn of(policy: &'a Policy) -> Self {
        let mut seeds = Self::default();
        for c in policy.rules.iter().flat_map(Rule::tables) {
            seeds.add(c);
        }
        seeds
    }

    fn add(&mut self, c: &'a Conditions) {
        self.names.extend(c.names());
        self.paths.extend(c.patterns("cgroup"));
        edges(c.user.as_ref(), &mut self.users);
        edges(c.group.as_ref(), &mut self.groups);
        edges(c.nice.as_ref(), &mut self.nices);
        edges(c.hint.as_ref(), &mut self.hints);
    }
}

fn edges(condition: Option<&NumberCondition>, out: &mut Vec<u64>) {
    for (min, max) in condition.iter().flat_map(|c| &c.ranges) {
        out.extend([*min, *max, min.saturating_sub(1), max.saturating_add(1)]);
    }
}

fn thread(r: &mut Random, seeds: &Seeds<'_>) -> Thread {
    let mut t = Thread::named(&name(r, &seeds.names));
    if r.one_in(2) {
        t.process = name(r, &seeds.names);
    }
    t.leader = if r.one_in(4) {
        r.one_in(2)
    } else {
        t.thread == t.process
    };
    t.cgroup = cgroup(r, &seeds.paths);
    t.user = number(r, &seeds.users, &[0, 1000, 4_294_967_294], u64::MAX);
    t.group = number(r, &seeds.groups, &[0, 1000], u64::MAX);
    t.nice = (number(r, &seeds.nices, &[20, 20, 0, 39], 39) as i8) - 20;
    t.hint = number(r, &seeds.hints, &[0, 0, 0, 512, 1023], 1023) as u16;
    t.kthread = r.one_in(4);
    t.sched = r.pick(&[Sched::Normal, Sched::Normal, Sched::Batch, Sched::Idle]);
    t
}

fn number(r: &mut Random, seeds: &[u64], usual: &[u64], most: u64) -> u64 {
    let from = if seeds.is_empty() || r.one_in(3) {
        usual
    } else {
        seeds
    };
    r.pick(from).min(most)
}

fn name(r: &mut Random, patterns: &[&Pattern]) -> Vec<u8> {
    let mut out = if patterns.is_empty() || r.one_in(6) {
        word(r, NAME_BYTES).into_bytes()
    } else {
        let pattern: &Pattern = r.pick(patterns);
        instance(r, pattern, &|r| {
            r.pick(&[&b""[..], b"x", b"srv", b"-1", b"ab", b"\xff", b"/"])
                .to_vec()
        })
    };
    if r.one_in(5) {
        mutate(r, &mut out);
    }
    out.retain(|b| *b != 0);
    out.truncate(NAME_BYTES);
    out
}

fn cgroup(r: &mut Random, patterns: &[&Pattern]) -> Vec<u8> {
    if r.one_in(10) {
        return b"/".to_vec();
    }
    let mut out = if patterns.is_empty() || r.one_in(6) {
        path(r, 5).into_bytes()
    } else {
        let pattern: &Pattern = r.pick(patterns);
        instance(r, pattern, &|r| {
            r.pick(&[&b"a"[..], b"x", b"web.service", b"", b"b/c1", b"\xfe"])
                .to_vec()
        })
    };
    if r.one_in(5) {
        mutate(r, &mut out);
    }
    if r.one_in(4) {
        out.extend_from_slice(path(r, 2).as_bytes());
    }
    out.retain(|b| *b != 0 && *b != b'\n');
    well_formed(&out)
}

/// A path as the kernel could have it.
fn well_formed(path: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = path
        .split(|b| *b == b'/')
        .filter(|p| !p.is_empty() && *p != b"." && *p != b"..")
        .collect();
    [b"/", parts.join(&b'/').as_slice()].concat()
}

/// A value that a pattern likely matches: its literal bytes with something for each wildcard.
fn instance(r: &mut Random, pattern: &Pattern, filler: &dyn Fn(&mut Random) -> Vec<u8>) -> Vec<u8> {
    match pattern.kind {
        PatternKind::Exact => pattern.bytes.clone(),
        PatternKind::Prefix => [pattern.bytes.clone(), filler(r)].concat(),
        PatternKind::Under if r.one_in(3) => pattern.bytes.clone(),
        PatternKind::Under => [pattern.bytes.clone(), b"/".to_vec(), filler(r)].concat(),
        PatternKind::Glob | PatternKind::Regex => filled(r, &pattern.bytes, pattern.kind, filler),
    }
}

fn filled(
    r: &mut Random,
    text: &[u8],
    kind: PatternKind,
    filler: &dyn Fn(&mut Random) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut i = 0;
    while i < text.len() {
        match text[i] {
            b'*' | b'+' => out.extend(filler(r)),
            b'?' if kind == PatternKind::Glob => out.push(r.pick(b"ab0-\xff")),
            b'.' if kind == PatternKind::Regex => out.push(r.pick(b"ab0-\xff")),
            b'\\' if kind == PatternKind::Regex && i + 1 < text.len() => {
                i += 1;
                out.push(match text[i] {
                    b'd' => b'7',
                    b'w' => b'a',
                    other => other,
                });
            }
            b'[' => {
                let end = (i + 2..text.len())
                    .find(|j| text[*j] == b']')
                    .unwrap_or(text.len() - 1);
                out.push(if r.one_in(3) {
                    b'7'
                } else {
                    r.pick(&text[i + 1..=end])
                });
                i = end;
            }
            b'{' | b'(' => {
                let close = if text[i] == b'{' { b'}' } else { b')' };
                let end = (i..text.len())
                    .find(|j| text[*j] == close)
                    .unwrap_or(text.len() - 1);
                let separator = if text[i] == b'{' { b',' } else { b'|' };
                let inside = text[i + 1..end]
                    .split(|b| *b == separator)
                    .collect::<Vec<_>>();
                out.extend_from_slice(r.pick(&inside));
                i = end;
            }
            b'^' | b'$' | b'|' if kind == PatternKind::Regex => {}
            byte => out.push(byte),
        }
        i += 1;
    }
    out
}

fn mutate(r: &mut Random, value: &mut Vec<u8>) {
    if value.is_empty() {
        return value.push(b'a');
    }
    let at = r.below(value.len());
    match r.below(4) {
        0 => {
            value.remove(at);
        }
        1 => value.insert(at, r.pick(b"ax0-/ \xc3\xff")),
        2 => value[at] = r.pick(b"bz9_/A\x80"),
        _ => value.truncate(at),
    }
}
