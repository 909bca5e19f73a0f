//! `explain`, `show` and names of users, as commands use them.

mod common;

use common::{named, policy};
use twopool_policy::explain::{Explanation, Unknown, explain, explain_partly};
use twopool_policy::naive::NaiveRegexes;
use twopool_policy::resolve::{NOBODY, user_id};
use twopool_policy::thread::Thread;

const RULES: &str = "
[[rule]]
name = \"debug\"
pool = \"background\"
thread = { prefix = \"srv-debug\" }

[[rule]]
name = \"request path\"
pool = \"critical\"
thread = \"srv-*\"
process = [\"adserver\", { regex = 'rank-(eu|us)[0-9]+' }]
any = [{ thread = \"*-io-*\" }, { nice = -5 }]
not = { user = \"ads\" }
slice = \"1ms\"
weight = 200
";

fn thread() -> Thread {
    Thread {
        process: b"rank-eu7".to_vec(),
        nice: -5,
        leader: false,
        ..named("srv-1")
    }
}

fn explained() -> Explanation {
    let out = policy(RULES);
    let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
    let thread = thread();
    explain(
        policy,
        &NaiveRegexes::new(policy),
        &thread,
        image.classify(&thread),
    )
}

#[test]
fn the_json_has_the_public_shape() {
    let why = explained();
    let json = serde_json::to_value(&why).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "format_version": "1",
            "thread": {
                "tid": null, "thread": "srv-1", "process": "rank-eu7", "cgroup": "/", "uid": 0, "gid": 0,
                "nice": -5, "kthread": false, "leader": false, "sched": "normal", "hint": 0
            },
            "pool": "critical",
            "rule": {"index": 2, "name": "request path"},
            "slice_us": 1000,
            "weight": 200,
            "rules": [
                {"index": 1, "name": "debug", "matched": false, "conditions": [
                    {"path": "thread", "matched": false, "pattern": "prefix srv-debug"}]},
                {"index": 2, "name": "request path", "matched": true, "conditions": [
                    {"path": "thread", "matched": true, "pattern": "srv-*"},
                    {"path": "process", "matched": true, "pattern": "regex rank-(eu|us)[0-9]+"},
                    {"path": "any[0].thread", "matched": false, "pattern": "*-io-*"},
                    {"path": "any[1].nice", "matched": true, "pattern": "-5"},
                    {"path": "not.user", "matched": false, "pattern": "ads"}]}
            ]
        })
    );
}

#[test]
fn people_read_the_verdict_first() {
    let why = explained();
    let expected = "\
srv-1 of rank-eu7 -> critical by rule 2 `request path`; slice 1ms, weight 200
  cgroup /, uid 0, gid 0, nice -5, not leader, normal

    1  debug: does not match
       - thread  prefix srv-debug
    2  request path: takes it
       + thread         srv-*
       + process        regex rank-(eu|us)[0-9]+
       - any[0].thread  *-io-*
       + any[1].nice    -5
       + not: does not keep the thread out, since not all of this holds
           user  ads  does not hold
";
    assert_eq!(why.human(), expected);
}

/// A plus before a condition that keeps the thread out would be read as the contrary.
#[test]
fn an_exception_is_signed_as_it_speaks_for_the_rule() {
    let out = policy(
        "[[rule]]\npool = \"critical\"\nthread = \"srv-*\"\nnot = { thread = \"srv-1\", nice = -5 }\n",
    );
    let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
    let of = |thread: Thread| {
        let class = image.classify(&thread);
        explain(policy, &NaiveRegexes::new(policy), &thread, class).human()
    };
    let kept_out = "    1  policy:1: does not match\n       + thread  srv-*\n       \
        - not: keeps the thread out, since all of this holds\n           \
        thread  srv-1  holds\n           nice    -5  holds\n";
    assert!(of(thread()).ends_with(kept_out), "{}", of(thread()));
    let taken = "    1  policy:1: takes it\n       + thread  srv-*\n       \
        + not: does not keep the thread out, since not all of this holds\n           \
        thread  srv-1  holds\n           nice    -5  does not hold\n";
    let plain = of(named("srv-1"));
    assert!(plain.ends_with(taken), "{plain}");
}

/// Inside a namespace a thread has another cgroup, or other ids, than the scheduler sees.
#[test]
fn what_depends_on_something_unknown_is_unknown() {
    let out = policy(
        "[[rule]]\nname = \"a\"\npool = \"critical\"\ncgroup = \"/a\"\nthread = \"srv-*\"\n\
         [[rule]]\nname = \"b\"\npool = \"critical\"\nthread = \"io-*\"\nslice = \"1ms\"\nweight = 7\n",
    );
    let policy = out.policy.as_ref().unwrap();
    let unknown = Unknown {
        cgroup: true,
        ids: false,
    };
    let of = |name: &str| {
        let regexes = NaiveRegexes::new(policy);
        explain_partly(policy, &regexes, &named(name), unknown)
    };
    let json = serde_json::to_value(of("srv-1")).unwrap();
    for key in ["pool", "rule", "slice_us", "weight"] {
        assert!(json[key].is_null(), "{json}");
    }
    assert!(json["thread"]["cgroup"].is_null() && json["thread"]["uid"] == 0);
    assert_eq!(json["unknown"], serde_json::json!(["cgroup"]));
    assert!(json["rules"][0]["matched"].is_null());
    let text = of("srv-1").human();
    assert_eq!(
        text.lines().next(),
        Some("srv-1 -> unknown, which depends on its cgroup")
    );
    assert!(
        text.contains("  a: may match\n       + thread  srv-*\n       ? cgroup  /a\n"),
        "{text}"
    );
    // What is unknown does not matter here.
    let known = of("io-1");
    assert_eq!(
        (known.pool, known.slice_us, known.weight),
        (Some("critical"), Some(1000), Some(7))
    );
    assert_eq!(of("x").pool, Some("background"));
    assert!(of("x").rule.is_none());
}

#[test]
fn show_names_the_line_of_every_value_that_was_written() {
    let out = policy(RULES);
    let value = |path: &str| {
        out.settings
            .iter()
            .find(|s| s.path == path)
            .unwrap_or_else(|| panic!("{path}"))
    };
    assert_eq!(value("pool.critical.weight").value, "800");
    assert!(value("pool.critical.weight").origin.is_none());
    assert_eq!(
        value("rule[2].process").value,
        "[\"adserver\", { regex = \"rank-(eu|us)[0-9]+\" }]"
    );
    let span = value("rule[2].slice").origin.expect("it was written");
    assert_eq!(out.sources.position(span.file, span.start).line, 16);
    assert_eq!(value("rule[1].slice").value, "\"20ms\"");
    assert_eq!(value("rule[2].any[1].nice").value, "-5");
    assert_eq!(value("rule[2].not.user").value, "\"ads\"");
    assert_eq!(value("steal.machine").value, "\"10ms\"");
}

#[test]
fn a_user_that_the_host_does_not_know_is_compared_by_name() {
    let out = policy("[[rule]]\nname = \"r\"\npool = \"critical\"\nuser = [\"ads\", \"ghost\"]");
    let policy = out.policy.as_ref().unwrap();
    let as_user = |name: &str| Thread {
        user: user_id(policy, &common::TestHost, name),
        ..named("x")
    };
    assert_eq!(as_user("ads").user, 1001);
    assert_eq!(as_user("nobody-else").user, NOBODY);
    assert_eq!(
        common::rule_of(&out, &as_user("ghost")).as_deref(),
        Some("r")
    );
    assert_eq!(common::rule_of(&out, &as_user("nobody-else")), None);
    assert_eq!(
        common::rule_of(
            &out,
            &Thread {
                user: u64::from(u32::MAX),
                ..named("x")
            }
        ),
        None
    );
}
