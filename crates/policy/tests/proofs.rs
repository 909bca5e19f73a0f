//! Proofs against brute force: what is called unreachable is never reached, what is shown is so.

mod common;

use std::collections::HashMap;

use twopool_policy::compile::Compiled;
use twopool_policy::explain::explain;
use twopool_policy::generate::{Random, policy_text, threads};
use twopool_policy::naive::{NaiveRegexes, classify, rule_matches};
use twopool_policy::policy::{Policy, Sched};
use twopool_policy::proof::{Outcome, Verdict, diff, is_possible, overlaps, reach};
use twopool_policy::thread::Thread;

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
fn strings(most: usize) -> Vec<Vec<u8>> {
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

/// One thread for each way in which the conditions of a policy come out, over a space that holds
/// at least one thread for each way that any thread can.
struct Brute<'a> {
    policy: &'a Policy,
    regexes: NaiveRegexes,
    threads: Vec<Thread>,
}

impl<'a> Brute<'a> {
    /// Thins each dimension out to values that the policy's conditions tell apart.
    fn new(policy: &'a Policy, names: &[Vec<u8>], paths: &[Vec<u8>]) -> Self {
        let regexes = NaiveRegexes::new(policy);
        let thin = |values: &[Vec<u8>], set: &dyn Fn(&mut Thread, &[u8])| -> Vec<Vec<u8>> {
            let mut seen: HashMap<Vec<bool>, Vec<u8>> = HashMap::new();
            for value in values {
                let mut t = Thread::named(b"");
                set(&mut t, value);
                seen.entry(signature(policy, &regexes, &t))
                    .or_insert_with(|| value.clone());
            }
            let mut thinned: Vec<Vec<u8>> = seen.into_values().collect();
            thinned.sort();
            thinned
        };
        let threads = thin(names, &|t, v| t.thread = v.to_vec());
        let processes = thin(names, &|t, v| t.process = v.to_vec());
        let both = thin(names, &|t, v| {
            t.thread = v.to_vec();
            t.process = v.to_vec();
        });
        let cgroups = thin(paths, &|t, v| t.cgroup = v.to_vec());
        let mut all = Vec::new();
        let pairs = threads
            .iter()
            .flat_map(|t| processes.iter().map(move |p| (t, p, false)));
        for (thread, process, leader) in pairs.chain(both.iter().map(|n| (n, n, true))) {
            for cgroup in &cgroups {
                for nice in [-2, -1, 0, 1, 2] {
                    for sched in [Sched::Normal, Sched::Batch, Sched::Idle] {
                        for kthread in [false, true] {
                            let mut t = Thread::named(thread);
                            t.process.clone_from(process);
                            t.cgroup.clone_from(cgroup);
                            (t.nice, t.sched, t.kthread, t.leader) = (nice, sched, kthread, leader);
                            if is_possible(&t) {
                                all.push(t);
                            }
                        }
                    }
                }
            }
        }
        Self {
            policy,
            regexes,
            threads: all,
        }
    }
}

/// How every single name and cgroup condition of a policy comes out.
fn signature(policy: &Policy, regexes: &NaiveRegexes, t: &Thread) -> Vec<bool> {
    let class = twopool_policy::eval::Class {
        pool: policy.default,
        rule: 0,
        slice_us: 0,
        weight: 0,
        hints: false,
    };
    let traces = explain(policy, regexes, t, class).rules;
    traces
        .iter()
        .flat_map(|rule| rule.conditions.iter().map(|c| c.matched))
        .collect()
}

fn tiny(seed: u64) -> (String, Compiled) {
    let r = &mut Random::new(seed);
    let text = tiny_rules(r);
    let out = common::compiled(format!("version = 1\ndefault = 'background'\n{text}"));
    (text, out)
}

#[test]
fn answers_equal_brute_force_on_small_languages() {
    let names = strings(5);
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
    let (mut reached, mut unreached) = (0, 0);
    for seed in 0..400 {
        let (text, out) = tiny(seed);
        let (Some(policy), Some(image)) = (&out.policy, &out.image) else {
            continue;
        };
        let brute = Brute::new(policy, &names, &paths);
        let mut hit = vec![false; policy.rules.len()];
        for t in &brute.threads {
            if let Some(rule) = classify(brute.policy, &brute.regexes, t) {
                hit[rule] = true;
            }
        }
        for (rule, verdict) in reach(policy, image).rules.iter().enumerate() {
            match verdict {
                Verdict::Reachable(t) => {
                    assert!(is_possible(t), "seed {seed}: {t:?}");
                    assert_eq!(
                        classify(policy, &brute.regexes, t),
                        Some(rule),
                        "seed {seed}"
                    );
                    assert!(
                        hit[rule],
                        "seed {seed}: brute force is too small for {t:?}\n{text}"
                    );
                    reached += 1;
                }
                Verdict::Unreachable(why) => {
                    assert!(!hit[rule], "seed {seed}: rule {rule} is reached\n{text}");
                    check_blockers(&brute, rule, why.blockers(), seed, &text);
                    unreached += 1;
                }
                Verdict::Undecided => panic!("seed {seed}: a small policy is undecided\n{text}"),
            }
        }
    }
    assert!(
        reached > 500 && unreached > 200,
        "{reached} reached, {unreached} not"
    );
}

/// The named rules take every thread of the rule, and none of them can be left out.
fn check_blockers(brute: &Brute, rule: usize, blockers: &[usize], seed: u64, text: &str) {
    let matches = |i: usize, t: &Thread| rule_matches(&brute.policy.rules[i], &brute.regexes, t);
    let of_rule: Vec<&Thread> = brute.threads.iter().filter(|t| matches(rule, t)).collect();
    let taken = |t: &&&Thread, without: Option<usize>| {
        blockers
            .iter()
            .any(|b| Some(*b) != without && matches(*b, t))
    };
    assert!(
        of_rule.iter().all(|t| taken(&t, None)),
        "seed {seed}: {blockers:?} do not block rule {rule}\n{text}"
    );
    for left_out in blockers {
        assert!(
            !of_rule.iter().all(|t| taken(&t, Some(*left_out))),
            "seed {seed}: {left_out} of {blockers:?} is not needed for rule {rule}\n{text}"
        );
    }
}

#[test]
fn overlaps_equal_brute_force_on_small_languages() {
    let names = strings(4);
    let paths: Vec<Vec<u8>> = [
        &b"/"[..],
        b"/a",
        b"/b",
        b"/x",
        b"/a/a",
        b"/a/b",
        b"/ab",
        b"/xx",
        b"/b/a",
        b"/b/b",
        b"/b/x",
        b"/a/x",
        b"/x/x",
        b"/x/a",
        b"/x/b",
        b"/a/a/a",
        b"/a/b/x",
        b"/ab/b",
        b"/ab/a",
        b"/x/x/x",
        b"/xx/a",
        b"/a/xx",
        b"/ax/xx",
        b"/ax/x",
        b"/a/ab",
        b"/xx/xx",
        b"/ax/ax",
        b"/x/ax",
        b"/b/ax",
        b"/b/xx",
    ]
    .iter()
    .map(|p| p.to_vec())
    .collect();
    let mut seen = 0;
    for seed in 1000..1150 {
        let (text, out) = tiny(seed);
        let (Some(policy), Some(image)) = (&out.policy, &out.image) else {
            continue;
        };
        let brute = Brute::new(policy, &names, &paths);
        let mut pairs = std::collections::BTreeSet::new();
        for t in &brute.threads {
            let Some(winner) = classify(policy, &brute.regexes, t) else {
                continue;
            };
            for loser in winner + 1..policy.rules.len() {
                let differ = policy.rules[winner].pool != policy.rules[loser].pool;
                if differ && rule_matches(&policy.rules[loser], &brute.regexes, t) {
                    pairs.insert((winner, loser));
                }
            }
        }
        let found = overlaps(policy, image);
        assert_eq!(found.undecided, 0, "seed {seed}");
        for overlap in &found.found {
            let t = &overlap.witness;
            assert!(is_possible(t));
            assert_eq!(
                classify(policy, &brute.regexes, t),
                Some(overlap.winner),
                "seed {seed}"
            );
            assert!(
                rule_matches(&policy.rules[overlap.loser], &brute.regexes, t),
                "seed {seed}"
            );
        }
        let got: std::collections::BTreeSet<_> =
            found.found.iter().map(|o| (o.winner, o.loser)).collect();
        assert!(
            got.is_superset(&pairs),
            "seed {seed}: {pairs:?} but {got:?}\n{text}"
        );
        seen += got.len();
    }
    assert!(seen > 100, "{seen} overlaps");
}

#[test]
fn nothing_random_reaches_what_is_called_unreachable() {
    let (mut pairs, mut unreached, mut undecided) = (0, 0, 0);
    for seed in 1..=200 {
        let out = common::compiled(policy_text(seed));
        let (Some(policy), Some(image)) = (&out.policy, &out.image) else {
            panic!("seed {seed} does not compile");
        };
        let regexes = NaiveRegexes::new(policy);
        let found = &out.reach;
        undecided += found.undecided;
        for (rule, verdict) in found.rules.iter().enumerate() {
            if let Verdict::Reachable(t) = verdict {
                assert!(is_possible(t), "seed {seed}: {t:?}");
                assert_eq!(
                    classify(policy, &regexes, t),
                    Some(rule),
                    "seed {seed}: {t:?}"
                );
                assert_eq!(usize::from(image.classify(t).rule), rule + 1);
            }
            unreached += usize::from(matches!(verdict, Verdict::Unreachable(_)));
        }
        for t in threads(seed, policy, 120).into_iter().flat_map(possible) {
            pairs += 1;
            let Some(rule) = classify(policy, &regexes, &t) else {
                continue;
            };
            assert!(
                !matches!(found.rules[rule], Verdict::Unreachable(_)),
                "seed {seed}: rule {rule} takes {t:?}"
            );
        }
    }
    assert!(pairs >= 10_000, "{pairs} pairs");
    assert!(unreached > 20, "{unreached} unreachable rules");
    assert!(undecided < 20, "{undecided} undecided");
}

/// The threads that a kernel can show, made from one that it perhaps cannot.
fn possible(t: Thread) -> Vec<Thread> {
    let lead = Thread {
        process: t.thread.clone(),
        leader: true,
        ..t.clone()
    };
    let follow = Thread {
        leader: false,
        kthread: false,
        ..t
    };
    [lead, follow].into_iter().filter(is_possible).collect()
}

#[test]
fn differences_are_real_and_complete_on_random_threads() {
    let mut seen = 0;
    for seed in 1..=120 {
        let old_text = policy_text(seed);
        let new_text = mutated(&old_text, seed);
        let (old, new) = (common::compiled(&old_text), common::compiled(&new_text));
        let (Some(p), Some(i)) = (&old.policy, &old.image) else {
            panic!("seed {seed} does not compile");
        };
        let (Some(q), Some(j)) = (&new.policy, &new.image) else {
            panic!("seed {seed} does not compile when mutated");
        };
        if p.rules.len() > 50 {
            continue;
        }
        let found = diff((p, i), (q, j));
        for d in &found.found {
            assert_ne!(d.from, d.to);
            if d.witness.user < 1 << 32 && d.witness.group < 1 << 32 {
                assert_eq!(Outcome::of(i.classify(&d.witness)), d.from, "seed {seed}");
                assert_eq!(Outcome::of(j.classify(&d.witness)), d.to, "seed {seed}");
            }
        }
        seen += found.found.len();
        if found.undecided > 0
            || p.unknown_users != q.unknown_users
            || p.unknown_groups != q.unknown_groups
        {
            continue;
        }
        for t in threads(seed, p, 100).into_iter().flat_map(possible) {
            let (from, to) = (Outcome::of(i.classify(&t)), Outcome::of(j.classify(&t)));
            let known = from == to || found.found.iter().any(|d| (d.from, d.to) == (from, to));
            assert!(known, "seed {seed}: {from:?} to {to:?} was missed: {t:?}");
        }
    }
    assert!(seen > 50, "{seen} differences");
}

/// The same policy with two neighbouring rules swapped, or one left out.
fn mutated(text: &str, seed: u64) -> String {
    let r = &mut Random::new(seed ^ 0x6469_6666);
    let mut parts: Vec<&str> = text.split("[[rule]]").collect();
    if parts.len() > 2 {
        let at = 1 + r.below(parts.len() - 2);
        if r.one_in(2) {
            parts.swap(at, at + 1);
        } else {
            parts.remove(at);
        }
    }
    parts.join("[[rule]]")
}

#[test]
fn policies_that_differ_in_text_only_do_not_differ() {
    let same = [
        ("thread = 'srv-*'", "thread = { prefix = 'srv-' }"),
        ("thread = ['a', 'b']", "thread = { regex = 'b|a' }"),
        ("cgroup = { under = '/a' }", "cgroup = '/a/**'"),
        (
            "nice = { min = 0 }",
            "nice = [{ max = 5, min = 0 }, { min = 6 }]",
        ),
        ("any = [{ nice = 1 }, { nice = 2 }]", "nice = [2, 1]"),
        ("not = { kthread = true }", "kthread = false"),
        ("sched = ['normal', 'batch', 'idle']", ""),
        ("kthread = true", "kthread = true\nleader = true"),
    ];
    for (old, new) in same {
        let rule = |condition: &str| {
            common::policy(&format!("[[rule]]\npool = 'critical'\n{condition}\n"))
        };
        let (old_out, new_out) = (rule(old), rule(new));
        let pair = |out: &Compiled| (out.policy.clone().unwrap(), out.image.clone().unwrap());
        let ((p, i), (q, j)) = (pair(&old_out), pair(&new_out));
        assert_eq!(
            diff((&p, &i), (&q, &j)),
            Default::default(),
            "{old} and {new}"
        );
    }
}

#[test]
fn users_that_only_one_policy_knows_by_name_are_told_apart() {
    let rule =
        |name: &str| common::policy(&format!("[[rule]]\npool = 'critical'\nuser = '{name}'\n"));
    let (old, new) = (rule("nosuchuser"), rule("nosuchotheruser"));
    let found = diff(
        (old.policy.as_ref().unwrap(), old.image.as_ref().unwrap()),
        (new.policy.as_ref().unwrap(), new.image.as_ref().unwrap()),
    );
    assert_eq!(found.found.len(), 2, "{found:?}");
}
