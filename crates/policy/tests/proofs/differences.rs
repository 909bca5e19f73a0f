//! What distinguishes two policies is real, and complete as far as random threads can tell.

use twopool_policy::compile::Compiled;
use twopool_policy::generate::{Random, policy_text, threads};
use twopool_policy::proof::{Outcome, diff};

use crate::{common, possible};

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
