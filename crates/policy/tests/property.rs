//! The compiled image decides as the naive evaluator does, on random policies and threads.
//!
//! Deterministic by default, so that a failure is everybody's failure; `TWOPOOL_SEED` starts
//! elsewhere. A failure names the seed.

mod common;

use std::collections::BTreeSet;

use twopool_policy::explain::{Unknown, explain, explain_partly};
use twopool_policy::generate::{policy_text, threads};
use twopool_policy::naive::{NaiveRegexes, classify, rule_matches};

const POLICIES: u64 = 400;
const THREADS: usize = 60;

#[allow(
    clippy::disallowed_methods,
    reason = "whoever runs the test may choose the seed"
)]
fn first_seed() -> u64 {
    match std::env::var("TWOPOOL_SEED") {
        Ok(text) => text.parse().expect("TWOPOOL_SEED is a number"),
        Err(_) => 1,
    }
}

#[test]
fn the_image_equals_the_naive_evaluator() {
    let mut pairs = 0_usize;
    let mut taken = 0_usize;
    for seed in first_seed()..first_seed() + POLICIES {
        let text = policy_text(seed);
        let out = common::compiled(&text);
        let (Some(policy), Some(image)) = (&out.policy, &out.image) else {
            panic!(
                "seed {seed} does not compile:\n{text}\n{}",
                common::report(&out)
            );
        };
        let regexes = NaiveRegexes::new(policy);
        for thread in threads(seed, policy, THREADS) {
            let expected = classify(policy, &regexes, &thread);
            let class = image.classify(&thread);
            let got = usize::from(class.rule).checked_sub(1);
            assert_eq!(got, expected, "seed {seed}, {thread:?}\n{text}");
            let rule = expected.map(|i| &policy.rules[i]);
            let pool = rule.map_or(policy.default, |r| r.pool);
            let slice = rule
                .and_then(|r| r.slice_us)
                .unwrap_or(policy.pools[pool as usize].slice_us);
            assert_eq!(
                (class.pool, class.slice_us),
                (pool, slice),
                "seed {seed}, {thread:?}\n{text}"
            );
            assert_eq!(
                class.weight,
                rule.map_or(100, |r| r.weight),
                "seed {seed}, {thread:?}"
            );
            assert_eq!(
                class.hints,
                rule.is_some_and(|r| r.hints),
                "seed {seed}, {thread:?}"
            );
            pairs += 1;
            taken += usize::from(got.is_some());
        }
    }
    assert!(pairs >= 10_000, "{pairs} pairs");
    // A generator whose threads match nothing, or everything, would test nothing.
    assert!(
        (pairs / 4..pairs * 19 / 20).contains(&taken),
        "{taken} of {pairs} threads were taken by a rule"
    );
}

/// Whatever a thread's cgroup and ids really are, what was said without knowing them is true.
#[test]
fn what_is_said_of_a_partly_known_thread_holds_for_all_that_it_may_be() {
    let (mut known, mut unknown) = (0, 0);
    for seed in first_seed()..first_seed() + 100 {
        let out = common::compiled(policy_text(seed));
        let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
        let regexes = NaiveRegexes::new(policy);
        let all = threads(seed, policy, 20);
        for (thread, other) in all.iter().zip(all.iter().rev()) {
            for (cgroup, ids) in [(true, false), (false, true), (true, true)] {
                let mut real = thread.clone();
                if cgroup {
                    real.cgroup.clone_from(&other.cgroup);
                }
                if ids {
                    (real.user, real.group) = (other.user, other.group);
                }
                let hidden = Unknown { cgroup, ids };
                let said = explain_partly(policy, &regexes, thread, hidden);
                let truth = explain(policy, &regexes, &real, image.classify(&real));
                for (said, truth) in said.rules.iter().zip(&truth.rules) {
                    assert!(
                        said.matched
                            .is_none_or(|matched| truth.matched == Some(matched))
                    );
                }
                unknown += usize::from(said.pool.is_none());
                if said.pool.is_some() {
                    known += 1;
                    assert_eq!(said.pool, truth.pool, "seed {seed}, {real:?}");
                    assert_eq!(said.rule, truth.rule, "seed {seed}, {real:?}");
                    assert_eq!((said.slice_us, said.weight), (truth.slice_us, truth.weight));
                }
            }
        }
    }
    assert!(
        known > 500 && unknown > 500,
        "{known} known, {unknown} unknown"
    );
}

#[test]
fn reasons_add_up_to_the_verdict() {
    for seed in first_seed()..first_seed() + 100 {
        let out = common::compiled(policy_text(seed));
        let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
        let regexes = NaiveRegexes::new(policy);
        for thread in threads(seed, policy, 20) {
            let why = explain(policy, &regexes, &thread, image.classify(&thread));
            for (rule, trace) in policy.rules.iter().zip(&why.rules) {
                let matches = rule_matches(rule, &regexes, &thread);
                assert_eq!(trace.matched, Some(matches), "seed {seed}, {thread:?}");
            }
        }
    }
}

#[test]
fn the_generator_reaches_every_part_of_the_language() {
    let mut words = BTreeSet::new();
    for seed in 0..200 {
        let text = policy_text(seed);
        for word in [
            "exact", "prefix", "glob", "regex", "under", "any =", "not =", "user", "group", "nice",
            "kthread", "leader", "sched", "hint =", "hints", "min =", "max =", "**", "r150",
        ] {
            if text.contains(word) {
                words.insert(word);
            }
        }
    }
    assert_eq!(words.len(), 19, "only {words:?}");
}
