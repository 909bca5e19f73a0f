//! Random policies over a language so small that all its threads can be listed.

use twopool_policy::compile::Compiled;
use twopool_policy::generate::Random;

use crate::common;

/// A tiny language: names over two letters and a digit, of at most three bytes.
const LETTERS: &[u8] = b"ab1";
/// A byte that no tiny pattern names: stands for all other bytes.
const OTHER: u8 = b'x';

fn tiny_name(r: &mut Random) -> String {
    let atoms = ["a", "b", "1", "*", "?", "[ab]", "[!a]", "{a,b1}", "a", "*"];
    let text: String = (0..1 + r.below(3)).map(|_| r.pick(&atoms)).collect();
    match r.below(6) {
        0 => format!("{{ prefix = '{}' }}", r.pick(&["a", "b", "ab", "1"])),
        1 => format!(
            "{{ regex = '{}' }}",
            r.pick(&["a+", "(a|b)*", "[ab]?1", ".?", "(ab|ba)+", "[^a]*", ".{2}"])
        ),
        _ => format!("'{text}'"),
    }
}

fn tiny_path(r: &mut Random) -> String {
    let atoms = ["/a", "/b", "/*", "/**", "/a*", "/?"];
    let text: String = (0..1 + r.below(2)).map(|_| r.pick(&atoms)).collect();
    match r.below(4) {
        0 => format!("{{ under = '{}' }}", r.pick(&["/", "/a", "/a/b"])),
        _ => format!("'{text}'"),
    }
}

fn list(r: &mut Random, one: fn(&mut Random) -> String) -> String {
    let items: Vec<String> = (0..1 + r.below(2)).map(|_| one(r)).collect();
    format!("[{}]", items.join(", "))
}

fn tiny_conditions(r: &mut Random) -> Vec<String> {
    let mut kinds = vec![0, 1, 2, 3, 4, 5, 6, 0, 1];
    let mut out: Vec<String> = Vec::new();
    for _ in 0..1 + r.below(3) {
        let kind = kinds.swap_remove(r.below(kinds.len()));
        let condition = match kind {
            0 => format!("thread = {}", list(r, tiny_name)),
            1 => format!("process = {}", list(r, tiny_name)),
            2 => format!("cgroup = {}", list(r, tiny_path)),
            3 => format!("kthread = {}", r.one_in(2)),
            4 => format!("leader = {}", r.one_in(2)),
            5 => format!(
                "nice = {{ {} = {} }}",
                r.pick(&["min", "max"]),
                r.pick(&[-1, 0, 1])
            ),
            _ => format!("sched = '{}'", r.pick(&["normal", "batch", "idle"])),
        };
        let key = condition.split(' ').next().map(str::to_owned);
        if !out
            .iter()
            .any(|c| c.split(' ').next().map(str::to_owned) == key)
        {
            out.push(condition);
        }
    }
    out
}

fn tiny_rules(r: &mut Random) -> String {
    let mut text = String::new();
    for i in 0..2 + r.below(6) {
        let pool = r.pick(&["critical", "background"]);
        text.push_str(&format!("[[rule]]\nname = 'r{i}'\npool = '{pool}'\n"));
        if !r.one_in(12) {
            text.push_str(&tiny_conditions(r).join("\n"));
            text.push('\n');
        }
        if r.one_in(4) {
            let tables: Vec<String> = (0..2)
                .map(|_| format!("{{ {} }}", tiny_conditions(r).join(", ")))
                .collect();
            text.push_str(&format!("any = [{}]\n", tables.join(", ")));
        }
        if r.one_in(4) {
            text.push_str(&format!("not = {{ {} }}\n", tiny_conditions(r).join(", ")));
        }
    }
    text
}

/// Every value that tiny patterns can tell apart, up to a length that is enough for all of them.
pub fn strings(most: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..most {
        last = last
            .iter()
            .flat_map(|s: &Vec<u8>| {
                let bytes = LETTERS.iter().copied().chain([OTHER]);
                bytes.map(move |b| [s.as_slice(), &[b]].concat())
            })
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// The cgroup paths of at most three components that tiny patterns can tell apart.
pub fn paths() -> Vec<Vec<u8>> {
    let mut paths: Vec<Vec<u8>> = vec![b"/".to_vec()];
    let parts: Vec<Vec<u8>> = strings(2).into_iter().filter(|s| !s.is_empty()).collect();
    for a in &parts {
        paths.push([b"/", a.as_slice()].concat());
        for b in &parts {
            paths.push([b"/", a.as_slice(), b"/", b].concat());
            for c in [&b"a"[..], b"b", b"x", b"xx"] {
                paths.push([b"/", a.as_slice(), b"/", b, b"/", c].concat());
            }
        }
    }
    paths
}

/// The rules of a seed, and what came of them.
pub fn tiny(seed: u64) -> (String, Compiled) {
    let r = &mut Random::new(seed);
    let text = tiny_rules(r);
    let out = common::compiled(format!("version = 1\ndefault = 'background'\n{text}"));
    (text, out)
}
