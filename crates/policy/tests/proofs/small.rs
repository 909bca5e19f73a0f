//! On small languages the answers are those of brute force, in both directions.

use std::collections::BTreeSet;

use twopool_policy::naive::{classify, rule_matches};
use twopool_policy::proof::{Verdict, is_possible, overlaps, reach};
use twopool_policy::thread::Thread;

use crate::brute::Brute;
use crate::tiny::{paths, strings, tiny};

#[test]
fn answers_equal_brute_force_on_small_languages() {
    let names = strings(5);
    let paths = paths();
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
    let paths = paths();
    let mut seen = 0;
    for seed in 1000..1150 {
        let (text, out) = tiny(seed);
        let (Some(policy), Some(image)) = (&out.policy, &out.image) else {
            continue;
        };
        let brute = Brute::new(policy, &names, &paths);
        let mut pairs = BTreeSet::new();
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
        let found = overlaps(policy, image, &out.reach);
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
        let got: BTreeSet<_> = found.found.iter().map(|o| (o.winner, o.loser)).collect();
        assert!(
            got.is_superset(&pairs),
            "seed {seed}: {pairs:?} but {got:?}\n{text}"
        );
        seen += got.len();
    }
    assert!(seen > 100, "{seen} overlaps");
}
