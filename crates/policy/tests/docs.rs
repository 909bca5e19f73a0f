//! The documents about the language, held to the language: the reference lists every key with its
//! true range and default, and every example does what its page says.
//!
//! `TWOPOOL_BLESS=1` writes the list of keys anew.

// Documents are files.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use common::{codes, compiled, report};
use twopool_diag::Code;
use twopool_policy::keys::{KEYS, Key, Kind};

const BEGIN: &str = "<!-- keys: begin; written by the test `the_reference_lists_every_key` -->\n";
const END: &str = "<!-- keys: end -->";

/// Codes that no policy yields by itself, and why.
const NOT_BY_TEXT: &[(Code, &str)] = &[
    (Code::SliceBelowTick, "needs the tick of a host"),
    (Code::NoCgroup2, "needs the mounts of a host"),
];

fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md")
}

fn words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

fn duration(us: u64) -> String {
    match us {
        _ if us >= 1_000_000 && us.is_multiple_of(1_000_000) => format!("{}s", us / 1_000_000),
        _ if us >= 1_000 && us.is_multiple_of(1_000) => format!("{}ms", us / 1_000),
        _ => format!("{us}us"),
    }
}

/// What may stand there.
fn value(kind: Kind) -> String {
    match kind {
        Kind::Version => "`1`".to_owned(),
        Kind::Pool => "`critical`, `background`".to_owned(),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Duration {
            min_us,
            max_us,
            off,
        } => {
            let (min, max) = (duration(min_us), duration(max_us));
            let off = if off { ", or `off`" } else { "" };
            format!("duration, {min} to {max}{off}")
        }
        Kind::Percent { min, max } => format!("percentage, {min}% to {max}%"),
        Kind::Cpus => "count or percentage of the online CPUs".to_owned(),
        Kind::Bool | Kind::Flag => "`true`, `false`".to_owned(),
        Kind::Choice(choice) => words(choice),
        Kind::Text => "text".to_owned(),
        Kind::Path => "cgroup path".to_owned(),
        Kind::Id => "id or name".to_owned(),
        Kind::Names => "names".to_owned(),
        Kind::Cgroups => "cgroups".to_owned(),
        Kind::Ids => "ids, names, ranges".to_owned(),
        Kind::Numbers { min, max } => format!("numbers and ranges, {min} to {max}"),
        Kind::Words(choice) => format!("one or a list of {}", words(choice)),
        Kind::Conditions => "table of conditions".to_owned(),
        Kind::ConditionList => "list of tables of conditions".to_owned(),
    }
}

fn default(key: &Key) -> String {
    match (key.default, key.background) {
        (None, _) => String::new(),
        (Some(both), Some(background)) if both != background => {
            format!("`{both}`; background `{background}`")
        }
        (Some(both), _) => format!("`{both}`"),
    }
}

fn table() -> String {
    let mut text = String::from("\n| key | value | default | what it does |\n|---|---|---|---|\n");
    for key in KEYS {
        let path = key.path.replace('*', "NAME");
        let (value, default, doc) = (value(key.kind), default(key), key.doc);
        let _ = writeln!(text, "| `{path}` | {value} | {default} | {doc} |");
    }
    text.push('\n');
    text
}

#[test]
fn the_reference_lists_every_key() {
    let text = fs::read_to_string(reference()).expect("docs/policy.md");
    let (before, rest) = text.split_once(BEGIN).expect("the list begins");
    let (list, after) = rest.split_once(END).expect("the list ends");
    if std::env::var_os("TWOPOOL_BLESS").is_some() {
        let new = format!("{before}{BEGIN}{}{END}{after}", table());
        return fs::write(reference(), new).expect("the reference can be written");
    }
    assert_eq!(
        list,
        table(),
        "run with TWOPOOL_BLESS=1 and read the difference"
    );
}

/// The TOML blocks of a page.
fn examples(page: &str) -> Vec<&str> {
    page.split("```toml\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("a block ends").0)
        .collect()
}

/// How an example begins that is no policy by itself.
const PART: &str = "# Part of a policy file: `version` and `default` stand at its top.\n";

/// An example that does not compile teaches a mistake, and so does a part that does not say what
/// it is part of: it gets the two lines that it names.
#[test]
fn the_examples_of_the_reference_compile() {
    let text = fs::read_to_string(reference()).expect("docs/policy.md");
    let blocks = examples(&text);
    assert!(blocks.len() >= 3, "the reference has examples");
    for block in blocks {
        let head = match block.starts_with(PART) {
            true => "version = 1\ndefault = \"background\"\n",
            false => "",
        };
        let out = compiled(format!("{head}{block}"));
        assert!(codes(&out).is_empty(), "{block}\n{}", report(&out));
    }
}

/// A page whose wrong example is accepted, or whose right one is not, explains nothing.
#[test]
fn the_wrong_example_of_a_code_yields_it_and_the_right_one_yields_none() {
    for code in Code::ALL {
        let name = code.as_str();
        let blocks = examples(code.page());
        let [wrong, right] = blocks[..] else {
            panic!("{name}: a wrong and a right example, not {}", blocks.len())
        };
        let out = compiled(right);
        assert!(out.is_valid(), "{name}, right:\n{}", report(&out));
        assert_eq!(codes(&out), [], "{name}, right:\n{}", report(&out));
        let out = compiled(wrong);
        match NOT_BY_TEXT.iter().find(|(exempt, _)| exempt == code) {
            None => assert!(
                codes(&out).contains(code),
                "{name}, wrong:\n{}",
                report(&out)
            ),
            // The day it is reported, its page must lose the note that it is not.
            Some(_) => assert!(!codes(&out).contains(code), "{name} needs no exemption"),
        }
    }
}
