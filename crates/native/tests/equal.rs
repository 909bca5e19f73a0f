//! The kernel program's classification equals the evaluator that `check`, `explain` and `plan` use,
//! thread by thread, over random policies. Were they to differ, a dry run would promise one thing
//! and the kernel do another.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use twopool_native::Buffer;
use twopool_policy::eval::Class;
use twopool_policy::generate::{policy_text, threads};
use twopool_policy::policy::Pool;
use twopool_policy::thread::Thread;

const POLICIES: u64 = 1000;
const THREADS: usize = 1000;
const WORKERS: u64 = 4;

#[test]
fn a_million_random_threads_are_judged_alike() {
    let taken_by_a_rule = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let taken = &taken_by_a_rule;
            scope.spawn(move || {
                let mut buffer = Buffer::default();
                for seed in (worker..POLICIES).step_by(WORKERS as usize) {
                    taken.fetch_add(compare(seed, &mut buffer), Ordering::Relaxed);
                }
            });
        }
    });
    // threads that no rule takes prove little: many must get past the default
    let share = taken_by_a_rule.into_inner() as f64 / (POLICIES as f64 * THREADS as f64);
    assert!(share > 0.2, "only {share} of the threads met a rule");
}

/// Compares one policy; how many threads a rule took.
fn compare(seed: u64, buffer: &mut Buffer) -> u64 {
    let text = policy_text(seed);
    let (policy, image) = common::policy(&text);
    buffer.load(&image, 1);
    let mut taken = 0;
    for thread in threads(seed, &policy, THREADS) {
        let rust = image.classify(&thread);
        let c = buffer
            .classify(&thread)
            .expect("a compiled image is usable");
        assert_eq!(c, rust, "seed {seed}: {thread:?}\n{text}");
        taken += u64::from(rust.rule != 0);
    }
    taken
}

#[test]
fn an_image_of_another_abi_or_unpublished_is_refused() {
    let (_, image) = common::policy("version = 1\ndefault = \"critical\"\n");
    let thread = Thread::named(b"x");
    assert!(Buffer::with(&image, 1).classify(&thread).is_some());
    assert_eq!(
        Buffer::with(&image, 0).classify(&thread),
        None,
        "epoch 0 is never published"
    );
    let mut other = Buffer::default();
    let mut bytes = image.as_bytes().to_vec();
    bytes[4] = 1; // the epoch
    bytes[0] ^= 0xff;
    other.load_bytes(&bytes);
    assert_eq!(other.classify(&thread), None);
}

#[test]
fn without_rules_the_default_pool_takes_everything() {
    let (_, image) = common::policy("version = 1\ndefault = \"critical\"\n");
    let class = Buffer::with(&image, 1).classify(&Thread::named(b"anything"));
    let expected = Class {
        pool: Pool::Critical,
        rule: 0,
        slice_us: 3000,
        weight: 100,
        hints: false,
    };
    assert_eq!(class, Some(expected));
}
