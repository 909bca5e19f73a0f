//! Lines, words and headers of every text.

use std::path::Path;

use super::{SOURCES, TEXTS, assert_none, files, has_extension};

const LINE_WIDTH: usize = 120;

/// Words that do not belong in what users read, in pieces so that this file may hold them.
const FORBIDDEN: &[&[&str]] = &[
    &["/wo", "rk/"],
    &["../sha", "red"],
    &["FIX", "ME"],
    &["X", "XX "],
    &["TO", "DO"],
    &["deb.deb", "ian.org"],
    &["index.crates", ".io"],
];

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

/// The same source is to run where there is no kernel. A helper that is called past the door works in
/// every other test.
#[test]
fn the_kernel_is_reached_through_its_header_alone() {
    const DOOR: &[&str] = &["kernel.h", "kfuncs.h", "kernel_types.h", "native.h"];
    let mut complaints = Vec::new();
    for file in files(&["h", "c"]) {
        let Some(name) = file.path.strip_prefix("bpf/") else {
            continue;
        };
        if DOOR.contains(&name) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in
                words.filter(|word| word.starts_with("bpf_") || word.starts_with("scx_bpf_"))
            {
                complaints.push(format!("{}:{}: `{word}`", file.path, number + 1));
            }
        }
    }
    assert_none(&complaints);
}
