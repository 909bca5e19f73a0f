//! How long files and functions may be.

use std::collections::BTreeMap;
use std::path::Path;

use super::{SOURCES, assert_none, files, has_extension};

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 70;

/// Files of more than FILE_LINES lines: (path, lines it may have, why it is one file).
const LONG_FILES: &[(&str, usize, &str)] = &[];

/// Functions of more than FUNCTION_LINES lines: (path, name, lines it may have).
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

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
    for file in files(&["rs", "h", "c"]) {
        let found = match has_extension(Path::new(&file.path), &["rs"]) {
            true => functions(&file.text),
            false => c_functions(&file.text),
        };
        for (name, lines) in found {
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

/// The same for C in the kernel's style: the body stands between braces in the first column, and
/// what precedes it up to a blank line or a comment is the head.
fn c_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (open, _) in lines.iter().enumerate().filter(|(_, line)| **line == "{") {
        let before = lines[..open].iter().rev();
        let head = before
            .take_while(|line| !line.is_empty() && !line.ends_with("*/") && **line != "}")
            .count();
        let Some(body) = lines[open..].iter().position(|line| *line == "}") else {
            continue;
        };
        let (name, _) = lines[open - head].split_once('(').unwrap_or_default();
        let name = name.rsplit([' ', '*']).next().unwrap_or_default();
        found.push((name.to_owned(), head + body + 1));
    }
    found
}

#[test]
fn function_lengths_are_measured() {
    let text =
        "    pub fn one() {\n        two();\n    }\nfn two();\n// a fn in prose\nfn three() {\n}\n";
    assert_eq!(
        functions(text),
        [("one".to_owned(), 3), ("three".to_owned(), 2)]
    );
    let text =
        "/* one */\nstatic u32 *one(u32 a,\n\t\tu32 b)\n{\n\treturn 0;\n}\nstruct two {\n};\n";
    assert_eq!(c_functions(text), [("one".to_owned(), 5)]);
}
