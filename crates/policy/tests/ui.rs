//! Every bad policy is a file beside its expected complaint: `tests/ui/NAME.toml` and
//! `NAME.stderr`, drop-ins in `NAME.d/`. `TWOPOOL_BLESS=1` writes the complaints anew; read the
//! difference before you commit it.

// The corpus is files.
#![allow(clippy::disallowed_methods)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use twopool_diag::render::{CheckDocument, TestCounts, human, summary_line};
use twopool_diag::{Code, Severity};
use twopool_policy::compile::{Compiled, Input, Role, compile};
use twopool_policy::dropins::is_dropin;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ui")
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("tests/ui is there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("tests/ui can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    paths.sort();
    paths
}

fn compile_case(path: &Path) -> Compiled {
    let file_name = |path: &Path| {
        path.file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned()
    };
    let mut inputs = vec![Input {
        name: file_name(path),
        role: Role::Policy,
        bytes: fs::read(path).expect("the case can be read"),
    }];
    let folder = path.with_extension("d");
    for entry in fs::read_dir(&folder).into_iter().flatten() {
        let path = entry.expect("drop-ins can be listed").path();
        let name = file_name(&path);
        if is_dropin(name.as_bytes()) {
            let shown = format!("{}/{name}", file_name(&folder));
            inputs.push(Input {
                name: shown,
                role: Role::DropIn,
                bytes: fs::read(&path).expect("readable"),
            });
        }
    }
    compile(&inputs, &common::TestHost)
}

fn report(out: &Compiled) -> String {
    let mut text = human(&out.sources, &out.diagnostics, false);
    if let Some(line) = summary_line(&out.diagnostics) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[test]
fn every_bad_policy_gets_its_complaint() {
    let bless = std::env::var_os("TWOPOOL_BLESS").is_some();
    let mut wrong = Vec::new();
    for path in cases() {
        let got = report(&compile_case(&path));
        let expected_path = path.with_extension("stderr");
        if bless {
            fs::write(&expected_path, &got).expect("the complaint can be written");
            continue;
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        if got != expected {
            wrong.push(format!(
                "{}\n--- expected\n{expected}\n--- got\n{got}",
                path.display()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} complaints differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn file_names_say_what_is_in_them() {
    for path in cases() {
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let out = compile_case(&path);
        let first = out
            .diagnostics
            .iter()
            .map(|d| d.code.as_str())
            .find(|code| stem.starts_with(code));
        let (errors, warnings) = out.counts();
        if stem.starts_with("valid") || stem == "encoding-bom-and-crlf" {
            assert_eq!((errors, warnings), (0, 0), "{stem}\n{}", report(&out));
        } else if stem.starts_with("warning-") {
            assert!(
                errors == 0 && warnings > 0 && out.is_valid(),
                "{stem}\n{}",
                report(&out)
            );
        } else {
            assert!(errors > 0 && !out.is_valid(), "{stem}\n{}", report(&out));
            let general = ["encoding", "empty", "several", "drop-ins", "limit"];
            let named = first.is_some() || general.iter().any(|g| stem.starts_with(g));
            assert!(
                named,
                "{stem} has no diagnostic of that name\n{}",
                report(&out)
            );
        }
    }
}

#[test]
fn every_code_of_a_policy_alone_has_a_case() {
    let seen: BTreeSet<Code> = cases()
        .iter()
        .flat_map(|path| common::codes(&compile_case(path)))
        .collect();
    // These need a host.
    let elsewhere = [Code::SliceBelowTick, Code::NoCgroup2];
    let missing: Vec<&str> = Code::ALL
        .iter()
        .filter(|c| !seen.contains(c) && !elsewhere.contains(c))
        .map(|c| c.as_str())
        .collect();
    assert!(missing.is_empty(), "no case in tests/ui for {missing:?}");
}

#[test]
fn messages_keep_the_house_form() {
    for path in cases() {
        for d in &compile_case(&path).diagnostics {
            let related = d.related.iter().map(|(_, text)| text.clone());
            for text in [Some(d.summary.clone()), d.label.clone(), d.help.clone()]
                .into_iter()
                .flatten()
                .chain(related)
            {
                assert!(
                    !text.is_empty() && !text.ends_with('.') || text.ends_with(".."),
                    "{text}"
                );
                assert!(
                    !text.starts_with(|c: char| c.is_ascii_uppercase()),
                    "{text}"
                );
            }
            assert!(
                d.span.is_some(),
                "{}: `{}` has no place",
                path.display(),
                d.summary
            );
        }
    }
}

#[test]
fn the_json_document_agrees_with_the_report() {
    for path in cases() {
        let out = compile_case(&path);
        let document = CheckDocument::new(&out.sources, &out.diagnostics, TestCounts::default());
        assert_eq!(document.valid, out.is_valid(), "{}", path.display());
        assert_eq!((document.error_count, document.warning_count), out.counts());
        assert_eq!(document.diagnostics.len(), out.diagnostics.kept().len());
        let errors = out
            .diagnostics
            .iter()
            .filter(|d| d.severity() == Severity::Error)
            .count();
        assert_eq!(
            document
                .diagnostics
                .iter()
                .filter(|d| d.severity == "error")
                .count(),
            errors
        );
    }
}
