//! Which rule wins.

use crate::common;
use crate::common::{named, other_codes, policy, report, rule_of, takes};
use twopool_diag::Code;
use twopool_policy::compile::{Input, Role, compile};
use twopool_policy::eval::Class;
use twopool_policy::explain::explain;
use twopool_policy::naive::NaiveRegexes;
use twopool_policy::proof::{Verdict, Why};
use twopool_policy::thread::Thread;

#[test]
fn p01_the_first_match_wins_in_file_order() {
    let rules = "\
[[rule]]
name = \"A\"
pool = \"background\"
thread = { prefix = \"java\" }
[[rule]]
name = \"B\"
pool = \"critical\"
thread = { exact = \"java\" }
[[rule]]
name = \"C\"
pool = \"background\"
[[rule]]
name = \"D\"
pool = \"critical\"
user = 0
";
    let out = policy(rules);
    assert_eq!(rule_of(&out, &named("java")).as_deref(), Some("A"));
    assert_eq!(rule_of(&out, &named("ruby")).as_deref(), Some("C"));
    assert_eq!(
        other_codes(&out),
        [Code::UnreachableRule, Code::UnreachableRule],
        "{}",
        report(&out)
    );
    let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
    let thread = named("java");
    let class: Class = image.classify(&thread);
    let why = explain(policy, &NaiveRegexes::new(policy), &thread, class);
    assert_eq!(why.rule.as_ref().map(|r| r.name.as_str()), Some("A"));
    let all: Vec<&str> = why
        .rules
        .iter()
        .filter(|r| r.matched == Some(true))
        .map(|r| r.name.as_str())
        .collect();
    assert_eq!(
        all,
        ["A", "B", "C", "D"],
        "the winner and all others that match"
    );
    assert!(
        why.human().contains("later rules that match too"),
        "{}",
        why.human()
    );
}

#[test]
fn p01_every_rule_takes_a_thread_or_names_those_that_take_its_threads() {
    let out = policy(
        "[[rule]]\nname = \"A\"\npool = \"background\"\nthread = \"java*\"\nnice = { max = 0 }\n\
         [[rule]]\nname = \"B\"\npool = \"background\"\nthread = { regex = 'j.*' }\nnice = { min = 1 }\n\
         [[rule]]\nname = \"C\"\npool = \"critical\"\nthread = { exact = \"java\" }\n\
         [[rule]]\nname = \"D\"\npool = \"critical\"\nthread = { exact = \"jav\" }\n",
    );
    let rules: Vec<Option<String>> = out
        .reach
        .rules
        .iter()
        .map(|verdict| match verdict {
            Verdict::Reachable(thread) => rule_of(&out, thread),
            _ => None,
        })
        .collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(rules, [named("A"), named("B"), None, named("D")]);
    assert_eq!(
        out.reach.rules[2],
        Verdict::Unreachable(Why::TakenBy(vec![0, 1]))
    );
    assert!(
        report(&out).contains("`A` and `B` together take all of its threads first"),
        "{}",
        report(&out)
    );
}

#[test]
fn p01_drop_ins_have_one_order() {
    let file = |name: &str, role, text: &str| Input {
        name: name.into(),
        role,
        bytes: text.as_bytes().to_vec(),
    };
    let rule = |pool: &str| {
        format!(
            "[[rule]]\npool = \"{pool}\"\nthread = \"x\"\n[pool.critical]\nweight = {}\n",
            pool.len()
        )
    };
    let main = format!(
        "version = 1\ndefault = \"background\"\n{}",
        rule("background")
    );
    let mut inputs = vec![
        file("p/policy.toml", Role::Policy, &main),
        file("p/policy.d/49-early.toml", Role::DropIn, &rule("critical")),
        file("p/policy.d/50-late.toml", Role::DropIn, &rule("background")),
        file("p/policy.d/a.toml", Role::DropIn, &rule("critical")),
    ];
    for _ in 0..inputs.len() {
        inputs.rotate_left(1);
        let out = compile(&inputs, &common::TestHost);
        let policy = out.policy.as_ref().expect("valid");
        let names: Vec<&str> = policy.rules.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["49-early:1", "policy:1", "50-late:1", "a:1"]);
        assert_eq!(
            policy.pools[0].weight, 8,
            "what comes first wins for settings too"
        );
    }
}

#[test]
fn p04_conditions_are_anded_lists_are_ored() {
    let rule = "process = { exact = \"python3\" }\ncgroup = { under = \"jobs\" }";
    let thread = |name: &str, cgroup: &str| Thread {
        cgroup: cgroup.as_bytes().to_vec(),
        ..named(name)
    };
    assert!(takes(rule, &thread("python3", "/jobs/7")));
    assert!(!takes(rule, &thread("python3", "/system.slice")));
    assert!(!takes(rule, &thread("perl", "/jobs/7")));
    let list = "process = [\"python3\", { prefix = \"perl\" }]\ncgroup = { under = [\"jobs\", \"/batch\"] }";
    assert!(takes(list, &thread("perl5", "/batch")) && !takes(list, &thread("ruby", "/batch")));
    let out = policy(&format!("[[rule]]\npool = \"critical\"\n{rule}"));
    let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
    let elsewhere = thread("python3", "/system.slice");
    let why = explain(
        policy,
        &NaiveRegexes::new(policy),
        &elsewhere,
        image.classify(&elsewhere),
    );
    let conditions: Vec<(&str, Option<bool>)> = why.rules[0]
        .conditions
        .iter()
        .map(|c| (c.path.as_str(), c.matched))
        .collect();
    assert_eq!(
        conditions,
        [("process", Some(true)), ("cgroup", Some(false))]
    );
}

#[test]
fn p04_not_is_refused_as_a_whole_and_any_needs_one() {
    let not = "thread = \"srv-*\"\nnot = { thread = \"srv-debug*\", nice = 5 }";
    let nice = |name: &str, nice| Thread {
        nice,
        ..named(name)
    };
    assert!(takes(not, &nice("srv-debug", 0)) && takes(not, &nice("srv-1", 5)));
    assert!(!takes(not, &nice("srv-debug", 5)));
    let any = "any = [{ thread = \"io-*\" }, { nice = -5 }]";
    assert!(
        takes(any, &nice("io-1", 0)) && takes(any, &nice("x", -5)) && !takes(any, &nice("x", 0))
    );
}
