//! Proofs against brute force and against random threads: what is called unreachable is never
//! reached, and what is shown is so.

mod brute;
#[path = "../common/mod.rs"]
mod common;
mod differences;
mod small;
mod tiny;

use twopool_policy::generate::{policy_text, threads};
use twopool_policy::naive::{NaiveRegexes, classify};
use twopool_policy::proof::{Verdict, is_possible};
use twopool_policy::thread::Thread;

/// Thousands of names before a rule make the search for a thread that is none of them long, and nearly any
/// thread of the rule is one.
#[test]
fn a_rule_behind_a_long_list_has_a_witness() {
    let list = |count: usize, of: &dyn Fn(usize) -> String| -> String {
        (0..count).map(|i| format!("\"{}\", ", of(i))).collect()
    };
    let out = common::policy(&format!(
        "[[rule]]\npool = \"critical\"\nthread = [{}]\n[[rule]]\npool = \"critical\"\nthread = [{}]\n",
        list(16_000, &|i| format!("name-{i}")),
        list(60, &|i| format!("*in{i}side*"))
    ));
    let found = &out.reach.rules;
    assert!(matches!(found[1], Verdict::Reachable(_)), "{:?}", found[1]);
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
pub fn possible(t: Thread) -> Vec<Thread> {
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
