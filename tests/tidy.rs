//! Rules about the text of this repository that no compiler checks.
//!
//! A rule that has exceptions keeps them in a list that may only get shorter: an entry that is no
//! longer needed fails the test too.

// Tests act on the machine.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 70;
const LINE_WIDTH: usize = 120;

/// Files of more than FILE_LINES lines: (path, lines it may have, why it is one file).
const LONG_FILES: &[(&str, usize, &str)] = &[];

/// Functions of more than FUNCTION_LINES lines: (path, name, lines it may have).
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Words that do not belong in what users read, in pieces so that this file may hold them.
const FORBIDDEN: &[&[&str]] = &[
    &["/wo", "rk/"],
    &["FIX", "ME"],
    &["X", "XX "],
    &["TO", "DO"],
    &["deb.deb", "ian.org"],
    &["index.crates", ".io"],
];

const SOURCES: &[&str] = &["rs", "h", "c", "sh"];
const TEXTS: &[&str] = &["rs", "h", "c", "sh", "toml", "md"];
const SKIPPED_DIRS: &[&str] = &["target", ".git", "ui"];

struct File {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(extensions: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    let mut dirs = vec![root().to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                let name = entry.file_name();
                if !SKIPPED_DIRS.iter().any(|skipped| name == *skipped) {
                    dirs.push(path);
                }
            } else if has_extension(&path, extensions) {
                // A file that an editor is replacing right now may be gone.
                let Ok(text) = std::fs::read_to_string(&path) else {
                    continue;
                };
                let path = path.strip_prefix(root()).expect("below the root");
                let path = path.to_string_lossy().into_owned();
                found.push(File { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "the walk found no file");
    found
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| extensions.contains(&extension))
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// A file that does not fit a sitting is two files.
#[test]
fn files_are_short() {
    let mut complaints = Vec::new();
    let mut allowed: BTreeMap<&str, usize> = LONG_FILES
        .iter()
        .map(|(path, lines, _)| (*path, *lines))
        .collect();
    for file in files(SOURCES) {
        let lines = file.text.lines().count();
        match allowed.remove(file.path.as_str()) {
            None if lines > FILE_LINES => {
                complaints.push(format!("{}: {lines} lines, limit {FILE_LINES}", file.path));
            }
            Some(limit) if lines > limit => {
                complaints.push(format!("{}: {lines} lines, grew past {limit}", file.path));
            }
            Some(_) if lines <= FILE_LINES => {
                complaints.push(format!("{}: take it off LONG_FILES", file.path));
            }
            _ => {}
        }
    }
    complaints.extend(allowed.keys().map(|path| format!("{path}: no such file")));
    assert_none(&complaints);
}

/// A function that does not fit a screen hides its own shape.
#[test]
fn functions_are_short() {
    let mut complaints = Vec::new();
    let mut used = Vec::new();
    for file in files(&["rs"]) {
        for (name, lines) in functions(&file.text) {
            let exception = LONG_FUNCTIONS
                .iter()
                .find(|(path, function, _)| *path == file.path && *function == name);
            let limit = exception.map_or(FUNCTION_LINES, |(_, _, limit)| *limit);
            if lines > limit {
                complaints.push(format!(
                    "{}: {name}: {lines} lines, limit {limit}",
                    file.path
                ));
            }
            if exception.is_some() && lines > FUNCTION_LINES {
                used.push((file.path.clone(), name));
            }
        }
    }
    for (path, name, _) in LONG_FUNCTIONS {
        if !used.contains(&((*path).to_owned(), (*name).to_owned())) {
            complaints.push(format!("{path}: {name}: take it off LONG_FUNCTIONS"));
        }
    }
    assert_none(&complaints);
}

/// Names and lengths of the functions of a file as rustfmt lays them out: the closing brace stands
/// below the beginning of the line that has `fn`.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indent}}}");
        let body = lines[start..].iter().position(|line| *line == closing);
        let declaration = lines[start..].iter().position(|line| line.ends_with(';'));
        match (body, declaration) {
            // A declaration without a body: its semicolon comes before any brace opens.
            (Some(end), Some(semicolon))
                if !lines[start..=start + semicolon]
                    .iter()
                    .any(|l| l.contains('{')) =>
            {
                let _ = end;
            }
            (Some(end), _) => found.push((name.to_owned(), end + 1)),
            (None, _) => {}
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let modifiers = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "const",
        "async",
        "unsafe",
        "extern",
        "\"C\"",
    ];
    if !before
        .split_whitespace()
        .all(|word| modifiers.contains(&word))
    {
        return None;
    }
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0).then(|| &after[..end])
}

#[test]
fn function_lengths_are_measured() {
    let text =
        "    pub fn one() {\n        two();\n    }\nfn two();\n// a fn in prose\nfn three() {\n}\n";
    assert_eq!(
        functions(text),
        [("one".to_owned(), 3), ("three".to_owned(), 2)]
    );
}

#[test]
fn lines_are_narrow_and_have_no_trailing_blanks() {
    let mut complaints = Vec::new();
    for file in files(TEXTS) {
        let is_source = has_extension(Path::new(&file.path), SOURCES);
        for (number, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, number + 1);
            if line.ends_with([' ', '\t']) {
                complaints.push(format!("{place}: trailing blanks"));
            }
            // A tab is up to eight columns; text in quotes may have to be one line.
            let width = line
                .chars()
                .map(|c| if c == '\t' { 8 } else { 1 })
                .sum::<usize>();
            if is_source && width > LINE_WIDTH && !line.contains('"') {
                complaints.push(format!("{place}: {width} columns, limit {LINE_WIDTH}"));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn files_begin_with_their_purpose() {
    let mut complaints = Vec::new();
    for file in files(SOURCES) {
        let begins = ["//!", "//", "/*", "#!"]
            .iter()
            .any(|mark| file.text.starts_with(mark));
        if !begins {
            complaints.push(format!("{}: does not begin with a comment", file.path));
        }
    }
    assert_none(&complaints);
}

#[test]
fn no_word_is_out_of_place() {
    let mut complaints = Vec::new();
    let words: Vec<String> = FORBIDDEN.iter().map(|pieces| pieces.concat()).collect();
    for file in files(TEXTS) {
        for (number, line) in file.text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                complaints.push(format!("{}:{}: `{word}`", file.path, number + 1));
            }
        }
    }
    assert_none(&complaints);
}

/// A policy that we support says what it is meant to do, in a form that is checked.
#[test]
fn policies_have_tests() {
    let complaints: Vec<String> = files(&["toml"])
        .iter()
        .filter(|file| file.path.starts_with("policies/"))
        .filter(|file| !file.text.lines().any(|line| line.trim() == "[[test]]"))
        .map(|file| format!("{}: no [[test]]", file.path))
        .collect();
    assert_none(&complaints);
}

/// Every code that a user may meet has a page, and every page is of a code.
#[test]
fn diagnostic_codes_are_documented() {
    let dir = root().join("docs/diagnostics");
    let mut complaints = Vec::new();
    for code in twopool_diag::Code::ALL {
        if !dir.join(format!("{}.md", code.as_str())).is_file() {
            complaints.push(format!("docs/diagnostics/{}.md is missing", code.as_str()));
        }
    }
    let pages: Vec<PathBuf> = std::fs::read_dir(&dir)
        .expect("docs/diagnostics")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| has_extension(path, &["md"]))
        .collect();
    for page in pages {
        let stem = page
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !twopool_diag::Code::ALL
            .iter()
            .any(|code| code.as_str() == stem)
        {
            complaints.push(format!("docs/diagnostics/{stem}.md is of no code"));
        }
    }
    assert_none(&complaints);
}

/// A guest test whose file is not in the registry never runs.
#[test]
fn guest_tests_are_registered() {
    let main = std::fs::read_to_string(root().join("tests/vm/main.rs")).expect("the registry");
    let complaints: Vec<String> = files(&["rs"])
        .iter()
        .filter(|file| file.path.starts_with("tests/vm/") && file.text.contains("pub const TESTS"))
        .filter_map(|file| {
            let topic = Path::new(&file.path).file_stem()?.to_str()?.to_owned();
            (!main.contains(&format!("{topic}::TESTS")))
                .then(|| format!("{}: not in TOPICS", file.path))
        })
        .collect();
    assert_none(&complaints);
}
