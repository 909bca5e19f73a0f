//! Globs: parsed once, translated to a regex that must match the whole value.
//!
//! `*`, `?`, `[a-z]`, `[!a-z]` and `{a,b}`, no escape character. On names a wildcard matches any
//! byte. On cgroup paths it never matches `/`, components are never empty and `**` may stand only
//! as a whole component. The regex is in the `regex` crate's byte syntax, for `(?s-u)`.

use std::ops::Range;

use crate::limits::MAX_GLOB_EXPANSIONS;
use crate::text::push_hex;

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

/// The regex of a glob on cgroup paths. Leading and trailing slashes of the text do not matter.
pub fn path_regex(text: &str) -> Result<String, Fault> {
    let mut items = parse(text)?;
    forbid_slash(&mut items)?;
    let expansions = expand(&items, text)?;
    let several = expansions.len() > 1;
    let mut out = Vec::new();
    for items in &expansions {
        match components(items, text)? {
            Some(components) => out.push(path(&components)),
            None if several => {} // an alternative with an empty component matches no path
            None => return Err(empty_component(text)),
        }
    }
    out.dedup();
    match out.len() {
        0 => Err(empty_component(text)),
        1 => Ok(out.remove(0)),
        _ => Ok(format!("(?:{})", out.join("|"))),
    }
}

fn empty_component(text: &str) -> Fault {
    let at = text.find("//").unwrap_or(0);
    Fault {
        range: at..(at + 2).min(text.len()),
        label: "an empty component".to_owned(),
        help: Some("components of a cgroup path are never empty"),
    }
}

// ---- parsing ---------------------------------------------------------------------------------

fn parse(text: &str) -> Result<Vec<Item>, Fault> {
    let mut items = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'{' {
            let (piece, next) = alternates(text, at)?;
            items.push(Item { at, piece });
            at = next;
        } else {
            let (piece, next) = simple(text, at)?;
            items.push(Item { at, piece });
            at = next;
        }
    }
    Ok(items)
}

/// A piece other than braces, and where the next one starts.
fn simple(text: &str, at: usize) -> Result<(Piece, usize), Fault> {
    Ok(match text.as_bytes()[at] {
        b'*' => (Piece::Star, at + 1),
        b'?' => (Piece::One, at + 1),
        b'[' => class(text, at)?,
        byte => (Piece::Byte(byte), at + 1),
    })
}

fn alternates(text: &str, open: usize) -> Result<(Piece, usize), Fault> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut current = Vec::new();
    let mut at = open + 1;
    loop {
        match bytes.get(at) {
            None => {
                return Err(Fault {
                    range: open..open + 1,
                    label: "this brace is not closed".to_owned(),
                    help: Some("`[{]` is a literal brace"),
                });
            }
            Some(b'{') => {
                return Err(Fault {
                    range: at..at + 1,
                    label: "a brace inside braces".to_owned(),
                    help: Some(
                        "write the alternatives out; braces do not nest, and `[{]` is a literal brace",
                    ),
                });
            }
            Some(b'}') => {
                all.push(current);
                return Ok((Piece::Alternates(all), at + 1));
            }
            Some(b',') => {
                all.push(std::mem::take(&mut current));
                at += 1;
            }
            Some(_) => {
                let (piece, next) = simple(text, at)?;
                current.push(Item { at, piece });
                at = next;
            }
        }
    }
}

/// `[a-z]`, `[!a-z]`; a `]` right after the opening is a member, and so is a `-` at either end.
fn class(text: &str, open: usize) -> Result<(Piece, usize), Fault> {
    let bytes = text.as_bytes();
    let mut at = open + 1;
    let negated = bytes.get(at) == Some(&b'!');
    at += usize::from(negated);
    let first = at;
    let mut set = Box::new([false; 256]);
    loop {
        let Some(&low) = bytes.get(at) else {
            return Err(Fault {
                range: open..open + 1,
                label: "this bracket is not closed".to_owned(),
                help: Some("`[[]` is a literal bracket"),
            });
        };
        if low == b']' && at > first {
            break;
        }
        if !low.is_ascii() {
            let len = text[at..].chars().next().map_or(1, char::len_utf8);
            return Err(Fault {
                range: at..at + len,
                label: format!("a class holds single bytes; this is {len} bytes"),
                help: Some("use alternatives in braces: `{\u{e4},\u{f6}}`"),
            });
        }
        let is_range =
            bytes.get(at + 1) == Some(&b'-') && bytes.get(at + 2).is_some_and(|b| *b != b']');
        let high = if is_range { bytes[at + 2] } else { low };
        let next = at + if is_range { 3 } else { 1 };
        if !high.is_ascii() || high < low {
            let end = (next..=text.len())
                .find(|e| text.is_char_boundary(*e))
                .unwrap_or(text.len());
            return Err(Fault {
                range: at..end,
                label: "this range holds nothing".to_owned(),
                help: None,
            });
        }
        set[usize::from(low)..=usize::from(high)].fill(true);
        at = next;
    }
    if negated {
        set.iter_mut().for_each(|b| *b = !*b);
    }
    Ok((Piece::Class(set), at + 1))
}

// ---- paths -----------------------------------------------------------------------------------

/// Classes of a path glob never match `/`.
fn forbid_slash(items: &mut [Item]) -> Result<(), Fault> {
    for item in items {
        match &mut item.piece {
            Piece::Class(set) => {
                set[usize::from(b'/')] = false;
                if !set.contains(&true) {
                    return Err(Fault {
                        range: item.at..item.at + 1,
                        label: "this class matches nothing".to_owned(),
                        help: Some("a class on cgroup paths never matches `/`"),
                    });
                }
            }
            Piece::Alternates(all) => {
                for alternative in all {
                    forbid_slash(alternative)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_slash(item: &Item) -> bool {
    item.piece == Piece::Byte(b'/')
}

/// Writes braces out where an alternative holds a `/` or a `**`, so that every component of the
/// results is a component of the path.
fn expand(items: &[Item], text: &str) -> Result<Vec<Vec<Item>>, Fault> {
    let mut out: Vec<Vec<Item>> = vec![Vec::new()];
    for item in items {
        match &item.piece {
            Piece::Alternates(all)
                if all
                    .iter()
                    .any(|a| a.iter().any(is_slash) || doubled(a).is_some()) =>
            {
                if out.len() * all.len() > MAX_GLOB_EXPANSIONS {
                    return Err(Fault {
                        range: item.at..text.len(),
                        label: format!("stands for more than {MAX_GLOB_EXPANSIONS} globs"),
                        help: Some("write a list of globs instead of braces with `/` inside"),
                    });
                }
                out = out
                    .iter()
                    .flat_map(|head| {
                        all.iter()
                            .map(move |tail| [head.as_slice(), tail.as_slice()].concat())
                    })
                    .collect();
            }
            _ => out.iter_mut().for_each(|head| head.push(item.clone())),
        }
    }
    Ok(out)
}

/// Where two stars are written side by side. Stars that only meet when braces are written out
/// stay two single ones.
fn doubled(items: &[Item]) -> Option<usize> {
    let is_star = |item: &Item| item.piece == Piece::Star;
    items
        .windows(2)
        .find(|w| is_star(&w[0]) && is_star(&w[1]) && w[0].at + 1 == w[1].at)
        .map(|w| w[0].at)
}

#[derive(Debug, PartialEq)]
enum Component<'a> {
    /// `**`: zero or more components.
    Many,
    One(&'a [Item]),
}

/// The components, without leading and trailing slashes; `None` if one in between is empty.
fn components<'a>(items: &'a [Item], text: &str) -> Result<Option<Vec<Component<'a>>>, Fault> {
    let mut parts: Vec<&[Item]> = items.split(is_slash).collect();
    while parts.first().is_some_and(|p| p.is_empty()) {
        parts.remove(0);
    }
    while parts.last().is_some_and(|p| p.is_empty()) {
        parts.pop();
    }
    let mut out = Vec::new();
    for part in parts {
        if part.is_empty() {
            return Ok(None);
        }
        let two_stars = part.len() == 2 && doubled(part).is_some();
        if !two_stars {
            if let Some(at) = doubled(part) {
                return Err(Fault {
                    range: at..(at + 2).min(text.len()),
                    label: "`**` may stand only as a whole component".to_owned(),
                    help: Some(
                        "write `*` for part of a component, `/**/` for any number of components",
                    ),
                });
            }
            out.push(Component::One(part));
        } else if out.last() != Some(&Component::Many) {
            out.push(Component::Many);
        }
    }
    Ok(Some(out))
}

/// Valid for well-formed paths, which is all that the kernel has: one leading slash, no trailing
/// one, no empty component. So `.*` before a `/` ends at the end of a component.
fn path(components: &[Component<'_>]) -> String {
    if components.iter().all(|c| *c == Component::Many) {
        return if components.is_empty() {
            "/".to_owned()
        } else {
            "/.*".to_owned()
        };
    }
    let mut out = String::new();
    for (i, component) in components.iter().enumerate() {
        match component {
            Component::Many if i == 0 => out.push_str(".*"),
            Component::Many => out.push_str("(?:/.*)?"),
            Component::One(items) => {
                out.push('/');
                emit_not_empty(items, &mut out);
            }
        }
    }
    out
}

/// A component's regex without the empty string, which would match the root.
fn emit_not_empty(items: &[Item], out: &mut String) {
    if !items.iter().all(nullable) {
        return emit(items, &Wild::PATH, out);
    }
    if items.iter().any(accepts_all) {
        return out.push_str("[^/]+");
    }
    // Only braces with an empty alternative: the first that is not empty, then the others.
    let mut ways = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let Piece::Alternates(all) = &item.piece else {
            continue;
        };
        let full: Vec<Vec<Item>> = all.iter().filter(|a| !a.is_empty()).cloned().collect();
        if full.is_empty() {
            continue;
        }
        let mut way = String::new();
        emit(
            &[Item {
                at: item.at,
                piece: Piece::Alternates(full),
            }],
            &Wild::PATH,
            &mut way,
        );
        emit(&items[i + 1..], &Wild::PATH, &mut way);
        ways.push(way);
    }
    // `{}` and `{,}` alone leave nothing: a class that no byte is in.
    out.push_str(&if ways.is_empty() {
        "[^\\x00-\\xff]".to_owned()
    } else {
        format!("(?:{})", ways.join("|"))
    });
}

fn nullable(item: &Item) -> bool {
    match &item.piece {
        Piece::Star => true,
        Piece::Alternates(all) => all.iter().any(|a| a.iter().all(nullable)),
        _ => false,
    }
}

/// Whether a piece alone accepts every run of bytes.
fn accepts_all(item: &Item) -> bool {
    match &item.piece {
        Piece::Star => true,
        Piece::Alternates(all) => all
            .iter()
            .any(|a| !a.is_empty() && a.iter().all(accepts_all)),
        _ => false,
    }
}

// ---- regexes ---------------------------------------------------------------------------------

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
