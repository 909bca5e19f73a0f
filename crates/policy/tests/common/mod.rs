//! What the integration tests share: a host with two users, and policies from text.

#![allow(dead_code, reason = "each test binary uses its own part")]

use twopool_diag::Code;
use twopool_policy::compile::{Compiled, Input, Role, compile};
use twopool_policy::policy::Policy;
use twopool_policy::resolve::Names;
use twopool_policy::thread::Thread;

/// A host that knows `root` and `ads`, whatever the machine that runs the tests knows.
pub struct TestHost;

impl Names for TestHost {
    fn user(&self, name: &str) -> Option<u32> {
        match name {
            "root" => Some(0),
            "ads" => Some(1001),
            _ => None,
        }
    }

    fn group(&self, name: &str) -> Option<u32> {
        self.user(name)
    }
}

pub fn compiled(text: impl AsRef<[u8]>) -> Compiled {
    let input = Input {
        name: "policy.toml".into(),
        role: Role::Policy,
        bytes: text.as_ref().to_vec(),
    };
    compile(&[input], &TestHost)
}

/// A policy with the two pools and these rules, which must compile.
pub fn policy(rules: &str) -> Compiled {
    let out = compiled(format!("version = 1\ndefault = \"background\"\n{rules}"));
    assert!(out.is_valid(), "{rules}\n{}", report(&out));
    out
}

pub fn report(out: &Compiled) -> String {
    twopool_diag::render::human(&out.sources, &out.diagnostics, false)
}

pub fn codes(out: &Compiled) -> Vec<Code> {
    out.diagnostics.iter().map(|d| d.code).collect()
}

/// The same without a remark on rules that only ask for names, as most rules of tests do.
pub fn other_codes(out: &Compiled) -> Vec<Code> {
    let mut codes = codes(out);
    codes.retain(|code| *code != Code::CommOnlyElevation);
    codes
}

/// The name of the rule that takes a thread, by the image and by the naive evaluator, which must
/// agree; `None`: the default pool.
pub fn rule_of(out: &Compiled, thread: &Thread) -> Option<String> {
    let policy: &Policy = out.policy.as_ref().expect("a valid policy");
    let class = out.image.as_ref().expect("a valid policy").classify(thread);
    let image = usize::from(class.rule).checked_sub(1);
    let naive = twopool_policy::naive::classify(
        policy,
        &twopool_policy::naive::NaiveRegexes::new(policy),
        thread,
    );
    assert_eq!(
        image, naive,
        "image and naive evaluator disagree about {thread:?}"
    );
    image.map(|i| policy.rules[i].name.clone())
}

/// Whether a policy of one rule with this condition takes a thread.
pub fn takes(condition: &str, thread: &Thread) -> bool {
    let out = policy(&format!("[[rule]]\npool = \"critical\"\n{condition}\n"));
    rule_of(&out, thread).is_some()
}

pub fn named(name: impl AsRef<[u8]>) -> Thread {
    Thread::named(name.as_ref())
}

pub fn in_cgroup(path: impl AsRef<[u8]>) -> Thread {
    Thread {
        cgroup: path.as_ref().to_vec(),
        ..Thread::named(b"x")
    }
}
