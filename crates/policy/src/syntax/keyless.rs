//! Lines whose key is not followed by `=`: `thread: nginx`.
//!
//! The parser of the tree stops at such a line, and whatever is wrong behind it would come out in
//! the next run only. So these lines are told of here and blanked out before it sees them.

use std::ops::Range;

use twopool_diag::{Code, Diagnostic, FileId};

use super::unquoted::value;
use super::{line_start, span};

/// The line around a place.
fn line(text: &str, at: usize) -> Range<usize> {
    let end = text[at..].find(['\n', '\r']).map_or(text.len(), |i| at + i);
    line_start(text, at)..end
}

/// Blanks out the lines of these places, and says what is wrong with each.
pub fn take_out(file: FileId, text: &mut String, places: &[usize]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut clean = std::mem::take(text).into_bytes();
    let whole = String::from_utf8(clean.clone()).expect("it was a string");
    for at in places {
        let line = line(&whole, *at);
        if clean[line.clone()].iter().all(|byte| *byte == b' ') {
            continue; // a second place on the same line, or a line of a string
        }
        clean[line.clone()].fill(b' ');
        found.push(finding(file, &whole, line, *at));
    }
    *text = String::from_utf8(clean).expect("only whole lines were blanked out");
    found
}

fn finding(file: FileId, text: &str, line: Range<usize>, at: usize) -> Diagnostic {
    let colon = text[line.clone()].find(':').map(|i| line.start + i);
    let is_key = |key: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.\"'".contains(c);
        !key.is_empty() && key.chars().all(is_part)
    };
    let with_colon = colon.map(|colon| (colon, text[line.start..colon].trim()));
    if let Some((colon, key)) = with_colon.filter(|(_, key)| is_key(key)) {
        let place = span(file, colon, colon + 1);
        let found = Diagnostic::new(Code::Syntax, place, "a colon between a key and its value")
            .label("expected `=`");
        let raw = text[colon + 1..line.end].trim();
        return match value(key, raw) {
            Some(value) => found.help(format!("write `{key} = {value}`")),
            None => found.help("write `=` between a key and its value"),
        };
    }
    // An empty place at the end of a line would show nothing.
    let rest = text[at..line.end].chars().next();
    let place = match (rest, text[line.start..at].chars().next_back()) {
        (Some(next), _) => at..at + next.len_utf8(),
        (None, Some(last)) => at - last.len_utf8()..at,
        (None, None) => at..at,
    };
    Diagnostic::new(
        Code::Syntax,
        span(file, place.start, place.end),
        "key with no value",
    )
    .label("expected `=` and a value")
}
