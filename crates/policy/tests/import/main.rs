//! Imports of the samples in tests/import: their policies and reports, and that the policies compile,
//! also those of samples with faults.
//!
//! `TWOPOOL_BLESS=1` writes policies and reports anew; read the difference before you commit it.

// Samples are files.
#![allow(clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod layers;

use std::fs;
use std::path::{Path, PathBuf};

use twopool_diag::Code;
use twopool_policy::generate::Random;
use twopool_policy::import::{Imported, Source, ananicy, layered, report};
use twopool_policy::thread::Thread;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import")
}

fn read(path: &Path, name: &str) -> Source {
    Source {
        name: name.to_owned(),
        bytes: fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    }
}

fn ananicy_sample() -> Imported {
    let names = [
        "00-quota.cgroups",
        "00-types.types",
        "desktop.rules",
        "games/all.rules",
    ];
    let sources: Vec<Source> = names
        .iter()
        .map(|name| read(&folder().join("ananicy").join(name), name))
        .collect();
    ananicy::import("ananicy", &sources)
}

fn layered_sample(name: &str) -> Imported {
    layered::import(&read(&folder().join("layered").join(name), name))
}

/// Compares with `NAME.toml` and `NAME.report`, and compiles.
fn judge(name: &str, imported: &Imported) {
    let out = common::compiled(&imported.policy);
    assert!(
        out.is_valid(),
        "{name}:\n{}\n{}",
        imported.policy,
        common::report(&out)
    );
    // Whoever wrote the pattern was a program that knows its forms.
    let doubts = [
        Code::LooksLikeRegex,
        Code::LooksLikeGlob,
        Code::CgroupMountPoint,
    ];
    let doubted = common::codes(&out).iter().any(|code| doubts.contains(code));
    assert!(!doubted, "{name}:\n{}", common::report(&out));
    assert_eq!(
        out.policy.map(|policy| policy.rules.len()),
        Some(imported.rules)
    );
    for (ending, text) in [("toml", &imported.policy), ("report", &report(imported))] {
        let path = folder().join(format!("{name}.{ending}"));
        if std::env::var_os("TWOPOOL_BLESS").is_some() {
            fs::write(&path, text).expect("written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(expected == *text, "{}\n{text}", path.display());
    }
}

#[test]
fn the_samples_become_these_policies_with_these_reports() {
    judge("ananicy", &ananicy_sample());
    judge("layered-server", &layered_sample("server.json"));
    judge("layered-partial", &layered_sample("partial.json"));
}

/// A process gets what its line says, whatever its threads are called.
#[test]
fn processes_of_the_ananicy_sample_get_what_their_lines_say() {
    let out = common::compiled(&ananicy_sample().policy);
    let rule_of = |process: &str| {
        let thread = Thread {
            process: Thread::named(process.as_bytes()).thread,
            ..Thread::named(b"worker-3")
        };
        common::rule_of(&out, &thread)
    };
    let expected = [
        ("mixer", Some("ananicy, critical, weight 1455")),
        (
            "mixer-daemon-of-the-desktop",
            Some("ananicy, critical, weight 1164"),
        ),
        ("indexer", Some("ananicy, background, weight 1")),
        ("editor", Some("ananicy, background, weight 1")),
        (
            "compile-server-worker",
            Some("ananicy, critical, weight 305"),
        ),
        ("capture", Some("ananicy, critical, weight 100")),
        ("player", Some("ananicy, critical, weight 100")),
        ("[helper]*", Some("ananicy, background, weight 33")),
        (
            "say \"hi\" \\ 'now'",
            Some("ananicy, background, weight 33"),
        ),
        (
            "grüße-aus-dem-süden",
            Some("ananicy, background, weight 41"),
        ),
        ("schlüsselbündel", Some("ananicy, background, weight 41")),
        (
            "Skyward-Win64-Something",
            Some("ananicy, critical, weight 305"),
        ),
        ("guard", None),
        ("mystery", None),
        ("python3", None),
        ("h", None),
    ];
    for (process, rule) in expected {
        assert_eq!(rule_of(process).as_deref(), rule, "{process}");
    }
}

/// A rule set at the size of the public ones: few rules, within every limit.
#[test]
fn sixteen_thousand_names_fit_into_one_policy() {
    let mut text = String::new();
    for number in 0..16_000 {
        let nice = number % 40 - 20;
        text.push_str(&format!(
            "{{\"name\": \"app{number:05}-x86_64\", \"nice\": {nice}}}\n"
        ));
    }
    let source = Source {
        name: "all.rules".to_owned(),
        bytes: text.into_bytes(),
    };
    let imported = ananicy::import("d", &[source]);
    assert_eq!((imported.read, imported.kept), (16_000, 16_000));
    assert!(imported.rules <= 40, "{}", imported.rules);
    let out = common::compiled(&imported.policy);
    assert!(out.is_valid(), "{}", common::report(&out));
}

/// A copy with a few bytes changed, taken out or doubled.
fn damaged(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len());
        match random.below(4) {
            0 => out[at] = random.below(256) as u8,
            1 => out[at] = random.pick(b"{}[]\",:\\\n 0"),
            2 => drop(out.remove(at)),
            _ => out.extend_from_within(at..(at + 40).min(out.len())),
        }
    }
    out
}

/// Whatever a file holds: no panic, and what comes out is a policy.
#[test]
fn damaged_samples_become_policies_all_the_same() {
    let random = &mut Random::new(15);
    let samples = [
        "ananicy/desktop.rules",
        "ananicy/games/all.rules",
        "layered/server.json",
        "layered/partial.json",
    ]
    .map(|name| read(&folder().join(name), name));
    let mut malformed = 0;
    for round in 0..400 {
        let sample = &samples[round % samples.len()];
        let source = Source {
            name: sample.name.clone(),
            bytes: damaged(random, &sample.bytes),
        };
        let imported = match round % samples.len() {
            0 | 1 => ananicy::import("d", &[source]),
            _ => layered::import(&source),
        };
        malformed += usize::from(imported.is_malformed());
        let out = common::compiled(&imported.policy);
        assert!(
            out.is_valid(),
            "{}\n{}",
            imported.policy,
            common::report(&out)
        );
    }
    assert!(malformed > 100, "only {malformed} were found malformed");
}
