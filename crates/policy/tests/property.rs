//! The compiled image decides as the naive evaluator does, on random policies and threads.
//!
//! Deterministic by default, so that a failure is everybody's failure; `TWOPOOL_SEED` starts
//! elsewhere. A failure names the seed.

mod common;

use std::collections::BTreeSet;

use twopool_policy::generate::{policy_text, threads};
use twopool_policy::naive::{NaiveRegexes, classify};

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
