//! Globs: parsed once, translated to a regex that must match the whole value.
//!
//! `*`, `?`, `[a-z]`, `[!a-z]` and `{a,b}`, no escape character. On names a wildcard matches any
//! byte. On cgroup paths it never matches `/`, components are never empty and `**` may stand only
//! as a whole component. The regex is in the `regex` crate's byte syntax, for `(?s-u)`.

mod parse;
mod path;

use std::ops::Range;

use crate::text::push_hex;

pub use path::path_regex;

use parse::parse;

/// What makes a bare string a glob.
pub const CHARACTERS: &[char] = &['*', '?', '[', '{'];

/// Why a text is no glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the text that show it.
    pub range: Range<usize>,
    /// What is wrong, for the label.
    pub label: String,
    /// How to fix it.
    pub help: Option<&'static str>,
}

/// One piece of a glob and the byte of the text that it starts at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    at: usize,
    piece: Piece,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Byte(u8),
    One,
    Star,
    Class(Box<[bool; 256]>),
    Alternates(Vec<Vec<Item>>),
}

/// The regex of a glob on thread and process names.
pub fn name_regex(text: &str) -> Result<String, Fault> {
    let items = parse(text)?;
    let mut out = String::new();
    emit(&items, &Wild::NAME, &mut out);
    Ok(out)
}

/// How wildcards are spelled.
struct Wild {
    one: &'static str,
    star: &'static str,
}

impl Wild {
    const NAME: Wild = Wild {
        one: ".",
        star: ".*",
    };
    const PATH: Wild = Wild {
        one: "[^/]",
        star: "[^/]*",
    };
}

fn emit(items: &[Item], wild: &Wild, out: &mut String) {
    let mut previous_star = false;
    for item in items {
        let is_star = item.piece == Piece::Star;
        match &item.piece {
            Piece::Byte(byte) => push_literal(out, *byte),
            Piece::One => out.push_str(wild.one),
            Piece::Star if previous_star => {}
            Piece::Star => out.push_str(wild.star),
            Piece::Class(set) => emit_class(set, out),
            Piece::Alternates(all) => {
                out.push_str("(?:");
                for (i, alternative) in all.iter().enumerate() {
                    if i > 0 {
                        out.push('|');
                    }
                    emit(alternative, wild, out);
                }
                out.push(')');
            }
        }
        previous_star = is_star;
    }
}

fn emit_class(set: &[bool; 256], out: &mut String) {
    out.push('[');
    let mut byte = 0;
    while byte < 256 {
        if !set[byte] {
            byte += 1;
            continue;
        }
        let end = (byte..256).find(|b| !set[*b]).unwrap_or(256) - 1;
        push_hex(out, byte as u8);
        if end > byte {
            out.push('-');
            push_hex(out, end as u8);
        }
        byte = end + 1;
    }
    out.push(']');
}

/// The regex of some bytes.
pub fn literal(bytes: &[u8]) -> String {
    let mut out = String::new();
    bytes.iter().for_each(|b| push_literal(&mut out, *b));
    out
}

fn push_literal(out: &mut String, byte: u8) {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/') {
        out.push(char::from(byte));
    } else {
        push_hex(out, byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(regex: &str, value: &str) -> bool {
        let text = format!("^(?s-u:{regex})$");
        regex::bytes::RegexBuilder::new(&text)
            .unicode(false)
            .build()
            .unwrap()
            .is_match(value.as_bytes())
    }

    fn check(regex: fn(&str) -> Result<String, Fault>, glob: &str, yes: &[&str], no: &[&str]) {
        let regex = regex(glob).unwrap_or_else(|e| panic!("{glob}: {e:?}"));
        for value in yes {
            assert!(
                matches(&regex, value),
                "{glob} ({regex}) must match {value}"
            );
        }
        for value in no {
            assert!(
                !matches(&regex, value),
                "{glob} ({regex}) must not match {value}"
            );
        }
    }

    #[test]
    fn name_wildcards_match_any_byte() {
        check(
            name_regex,
            "kworker/*",
            &["kworker/u8:3", "kworker/"],
            &["kworker", "xkworker/1"],
        );
        check(name_regex, "a?c", &["abc", "a/c", "a\nc"], &["ac", "abbc"]);
        check(
            name_regex,
            "[a-c]x[!0-9]",
            &["axb", "cx/"],
            &["dxb", "ax1", "ax"],
        );
        check(name_regex, "{a,bc,}d", &["ad", "bcd", "d"], &["abcd", "b"]);
        check(name_regex, "[*]", &["*"], &["a", ""]);
        check(name_regex, "[]a]", &["]", "a"], &["[", "]a"]);
        check(name_regex, "[!]a]", &["b"], &["]", "a"]);
        check(name_regex, "[a-]", &["a", "-"], &["b"]);
        check(name_regex, r"a\*", &[r"a\", r"a\x"], &["a*"]);
        check(name_regex, "a}b]c,", &["a}b]c,"], &["ab"]);
    }

    #[test]
    fn path_wildcards_stay_inside_a_component() {
        check(path_regex, "/a/*", &["/a/b"], &["/a", "/a/b/c", "/a/"]);
        check(path_regex, "/*", &["/a"], &["/", "/a/b"]);
        check(path_regex, "/a?b", &["/axb"], &["/a/b"]);
        check(path_regex, "/a[!x]b", &["/ayb"], &["/a/b", "/axb"]);
        check(path_regex, "a/b/", &["/a/b"], &["/a", "/a/b/c"]);
    }

    #[test]
    fn two_stars_are_zero_or_more_components() {
        check(
            path_regex,
            "/a/**",
            &["/a", "/a/b", "/a/b/c"],
            &["/ab", "/"],
        );
        check(
            path_regex,
            "/**/x",
            &["/x", "/a/x", "/a/b/x"],
            &["/ax", "/x/a", "/"],
        );
        check(
            path_regex,
            "/a/**/x",
            &["/a/x", "/a/b/c/x"],
            &["/ax", "/a/bx"],
        );
        check(path_regex, "/**/x/**", &["/x", "/a/x/b"], &["/ax", "/xa"]);
        check(path_regex, "/**", &["/", "/a", "/a/b"], &[]);
        check(path_regex, "/**/*", &["/a", "/a/b"], &["/"]);
        check(path_regex, "/a/**/**/b", &["/a/b", "/a/x/b"], &["/ab"]);
    }

    #[test]
    fn braces_on_paths_may_hold_slashes() {
        check(
            path_regex,
            "{/a,/b/c}/**",
            &["/a", "/b/c/d"],
            &["/b", "/bc"],
        );
        check(path_regex, "/a{,/b}", &["/a", "/a/b"], &["/b", "/ab"]);
        check(path_regex, "/{,a/b}/c", &["/a/b/c", "/c"], &["/b/c"]);
        check(path_regex, "/x/{,a/b}/c", &["/x/a/b/c"], &["/x/c"]);
        check(
            path_regex,
            "/{a,b}.slice",
            &["/a.slice", "/b.slice"],
            &["/.slice"],
        );
        check(path_regex, "/{**,a}/x", &["/x", "/a/x", "/q/x"], &["/a"]);
        check(path_regex, "/{*,b/c}*", &["/x", "/b/cd"], &["/x/y", "/"]);
    }

    #[test]
    fn a_component_is_never_empty() {
        check(path_regex, "/{,a}", &["/a"], &["/", "/b"]);
        check(path_regex, "/{,a}{,b}", &["/a", "/b", "/ab"], &["/", "/ba"]);
        check(path_regex, "/*{,a}", &["/a", "/ba", "/x"], &["/"]);
        check(path_regex, "/{*,a}", &["/a", "/x"], &["/"]);
        check(path_regex, "/{}", &[], &["/", "/a"]);
    }

    #[test]
    fn what_is_not_closed_or_misplaced_is_refused_with_its_place() {
        let place = |text: &str| path_regex(text).unwrap_err().range;
        assert_eq!(place("/a[b"), 2..3);
        assert_eq!(place("/a{b,c"), 2..3);
        assert_eq!(place("/a{b,{c}}"), 5..6);
        assert_eq!(place("/a**/b"), 2..4);
        assert_eq!(place("/a/***"), 3..5);
        assert_eq!(place("/a//b*"), 2..4);
        assert_eq!(name_regex("x[z-a]").unwrap_err().range, 2..5);
        assert_eq!(name_regex("x[\u{e4}]").unwrap_err().range, 2..4);
        assert!(
            name_regex("[").is_err() && name_regex("[]").is_err() && name_regex("[!]").is_err()
        );
        assert!(name_regex("[a-\u{e4}]").is_err());
        assert!(path_regex("/[/]").is_err());
    }
}
