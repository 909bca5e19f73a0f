//! What must hold for any input: the bodies of the fuzz targets, which a plain test runs over the kept
//! inputs too. Each panics where something does not hold.

use twopool_diag::render::{CheckDocument, TestCounts, human};

use crate::compile::{Compiled, Input, Role, compile, compile_unproven};
use crate::explain::explain;
use crate::naive::{NaiveRegexes, classify};
use crate::resolve::Names;
use crate::text::toml_string;
use crate::thread::{Thread, cgroup_path};
use crate::tsv;

/// A target's name, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 4] = [
    ("policy", policy),
    ("pattern", pattern),
    ("tsv", threads),
    ("differential", differential),
];

/// A host that knows root.
struct Host;

impl Names for Host {
    fn user(&self, name: &str) -> Option<u32> {
        (name == "root").then_some(0)
    }

    fn group(&self, name: &str) -> Option<u32> {
        self.user(name)
    }
}

/// Bytes that separate the parts of an input: no policy, pattern or name contains it.
const SEPARATOR: u8 = 0;

fn input(name: &str, role: Role, bytes: &[u8]) -> Input {
    Input {
        name: name.to_owned(),
        role,
        bytes: bytes.to_vec(),
    }
}

/// A policy file, and after a NUL its drop-in: findings have places inside their texts and can be shown,
/// and what is valid compiles to the same image again.
pub fn policy(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == SEPARATOR);
    let mut inputs = vec![input(
        "policy.toml",
        Role::Policy,
        parts.next().unwrap_or_default(),
    )];
    inputs.extend(
        parts
            .next()
            .map(|part| input("50-x.toml", Role::DropIn, part)),
    );
    let out = compile(&inputs, &Host);
    check_findings(&out);
    if out.is_valid() {
        let again = compile_unproven(&inputs, &Host);
        assert!(again.image == out.image, "another image from the same text");
    }
}

fn check_findings(out: &Compiled) {
    for found in &out.diagnostics {
        let related = found.related.iter().map(|(span, _)| *span);
        for span in found.span.into_iter().chain(related) {
            let text = &out.sources.file(span.file).text;
            let range = span.start as usize..span.end as usize;
            assert!(text.get(range).is_some(), "{span:?} of {found:?}");
        }
    }
    assert_eq!(out.is_valid(), out.counts().0 == 0);
    assert_eq!(out.is_valid(), out.image.is_some());
    human(&out.sources, &out.diagnostics, false);
    let document = CheckDocument::new(&out.sources, &out.diagnostics, TestCounts::default());
    serde_json::to_string(&document).expect("our documents have string keys");
}

/// Forms of a condition around a pattern.
const FORMS: [(&str, &str); 7] = [
    ("thread = ", ""),
    ("thread = { regex = ", " }"),
    ("thread = { prefix = ", " }"),
    ("not = { process = ", " }"),
    ("cgroup = ", ""),
    ("cgroup = { regex = ", " }"),
    ("cgroup = { under = ", " }"),
];

/// A byte for the form, a pattern, and values that it may match, with NULs between: image and naive
/// evaluator agree about each value.
pub fn pattern(data: &[u8]) {
    let Some((form, rest)) = data.split_first() else {
        return;
    };
    let mut parts = rest.split(|byte| *byte == SEPARATOR);
    let Ok(pattern) = std::str::from_utf8(parts.next().unwrap_or_default()) else {
        return;
    };
    let (before, after) = FORMS[usize::from(*form) % FORMS.len()];
    let text = format!(
        "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"critical\"\n{before}{}{after}\n",
        toml_string(pattern)
    );
    let out = compile_unproven(
        &[input("policy.toml", Role::Policy, text.as_bytes())],
        &Host,
    );
    check_findings(&out);
    compare(
        &out,
        parts.map(|value| Thread {
            cgroup: cgroup_path(value),
            ..Thread::named(value)
        }),
    );
}

/// A list of threads: what is read is written as it was read.
pub fn threads(data: &[u8]) {
    if let Ok(threads) = tsv::read(data) {
        let written = tsv::write(&threads);
        let again = tsv::read(&written).expect("what was written can be read");
        assert_eq!(again.len(), threads.len());
        for (again, first) in again.iter().zip(&threads) {
            // A list holds no thread ids.
            let first = Thread {
                tid: None,
                ..first.clone()
            };
            assert_eq!(*again, first);
        }
    }
}

/// A policy and after a NUL a list of threads: image, naive evaluator and reasons agree.
pub fn differential(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == SEPARATOR);
    let policy = input(
        "policy.toml",
        Role::Policy,
        parts.next().unwrap_or_default(),
    );
    let Ok(threads) = tsv::read(parts.next().unwrap_or_default()) else {
        return;
    };
    compare(&compile_unproven(&[policy], &Host), threads.into_iter());
}

fn compare(out: &Compiled, threads: impl Iterator<Item = Thread>) {
    let (Some(policy), Some(image)) = (&out.policy, &out.image) else {
        return;
    };
    let regexes = NaiveRegexes::new(policy);
    for thread in threads {
        let class = image.classify(&thread);
        let by_image = usize::from(class.rule).checked_sub(1);
        assert_eq!(by_image, classify(policy, &regexes, &thread), "{thread:?}");
        let why = explain(policy, &regexes, &thread, class);
        let first = why.rules.iter().position(|rule| rule.matched == Some(true));
        assert_eq!(by_image, first, "{thread:?}");
    }
}
