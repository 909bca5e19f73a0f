//! Any bytes give diagnostics, never a panic, and every place lies inside its text.
//!
//! Random edits of valid policies and of the bad ones beside their complaints. A failure names the
//! seed.

mod common;

use twopool_diag::render::{CheckDocument, TestCounts, human};
use twopool_diag::{Diagnostic, Span};
use twopool_policy::compile::Compiled;
use twopool_policy::generate::{Random, policy_text};

const TEXTS: u64 = 1_500;

const SCRAPS: &[&[u8]] = &[
    b"=",
    b"[",
    b"]",
    b"[[",
    b"]]",
    b"{",
    b"}",
    b"\"",
    b"'",
    b"\"\"\"",
    b"'''",
    b"\n",
    b"\r",
    b"\r\n",
    b",",
    b".",
    b"#",
    b"\\",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc3\xa4",
    b"\0",
    b"-",
    b"1e9",
    b"0x",
    b"version = 1\n",
    b"[pool]\n",
    b"rule = 1\n",
    b"[[rule.not]]\n",
    b"[rule]\n",
    b"not.thread = \"a\"\n",
    b"any = [{}]\n",
    b"\"\" = 1\n",
    b"\"pool.critical\" = 1\n",
    b"thread = { regex = '((' }\n",
    b"cgroup = '/{a/b,{'\n",
    b"slice = \"\xc3\xa4ms\"\n",
    b"[[test]]\nexpect = { pool = \"critical\" }\n",
    b"**",
    b"{,}",
    b"[!",
    b"2000-01-01",
    b"inf",
];

fn edited(seed: u64) -> Vec<u8> {
    let r = &mut Random::new(seed);
    let mut text = policy_text(seed % 40);
    if text.len() > 2_000 {
        // Whole rules only, so that what is left is valid before it is edited.
        let most = (0..=2_000)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        let end = text[..most].rfind("[[rule]]").unwrap_or(0);
        text.truncate(end);
    }
    let mut text = text.into_bytes();
    for _ in 0..r.below(5) {
        let at = r.below(text.len() + 1);
        match r.below(3) {
            0 => {
                let end = (at + r.below(12)).min(text.len());
                text.drain(at..end);
            }
            1 => {
                let scrap = r.pick(SCRAPS);
                text.splice(at..at, scrap.iter().copied());
            }
            _ => {
                let from = r.below(text.len() + 1);
                let end = (from + r.below(60)).min(text.len());
                let copy = text[from..end].to_vec();
                text.splice(at..at, copy);
            }
        }
    }
    text
}

fn places(d: &Diagnostic) -> impl Iterator<Item = Span> {
    d.span
        .into_iter()
        .chain(d.related.iter().map(|(span, _)| *span))
        .collect::<Vec<_>>()
        .into_iter()
}

fn check(out: &Compiled, what: &str) {
    for d in &out.diagnostics {
        for span in places(d) {
            let text = &out.sources.file(span.file).text;
            let range = span.start as usize..span.end as usize;
            assert!(text.get(range).is_some(), "{what}: {span:?} of {d:?}");
        }
    }
    let (errors, _) = out.counts();
    assert_eq!(out.is_valid(), errors == 0, "{what}");
    let report = human(&out.sources, &out.diagnostics, false);
    assert!(
        report.matches("\n --> ").count() <= out.diagnostics.total(),
        "{what}"
    );
    CheckDocument::new(&out.sources, &out.diagnostics, TestCounts::default());
}

#[test]
fn edited_policies_never_panic() {
    let mut valid = 0;
    for seed in 0..TEXTS {
        let out = common::compiled(edited(seed));
        valid += u64::from(out.is_valid());
        check(&out, &format!("seed {seed}"));
    }
    assert!(
        valid > TEXTS / 20 && valid < TEXTS * 19 / 20,
        "{valid} of {TEXTS} edited texts are valid"
    );
}

/// One error more or less around the number that is kept changes nothing but the counts.
#[test]
fn errors_are_counted_exactly_where_the_text_is_cut() {
    let words = "[[a]]\nx = nginx\ny = [test, io-a]\n";
    for line in [
        "[[a]]\n= \n",
        "a b\n",
        "]",
        "[[a]]\nx = 'a\n",
        "[[[\n",
        words,
    ] {
        let count = |n: usize| {
            let out = common::compiled(line.repeat(n));
            check(&out, line);
            out.counts().0
        };
        // What one more line adds is the same below and above the cut.
        let each = count(101) - count(100);
        assert_eq!(count(3_000) - count(100), 2_900 * each, "{line:?}");
    }
}

/// A walk that recursed with the text ended the daemon.
#[test]
fn deep_nesting_and_a_duplicate_key_are_errors_and_no_overflow() {
    for open in ["[", "{x="] {
        let out = common::compiled(format!("a=1\na=1\nb={}", open.repeat(500_000)));
        check(&out, open);
        assert!(out.counts().0 > 0);
    }
}

#[test]
fn bytes_that_are_no_text_never_panic() {
    for seed in 0..300 {
        let r = &mut Random::new(seed);
        let bytes: Vec<u8> = (0..r.below(200)).map(|_| r.next_u64() as u8).collect();
        check(&common::compiled(bytes), &format!("seed {seed}"));
    }
}
