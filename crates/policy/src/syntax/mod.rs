//! Bytes to a TOML tree, with every syntax error of a file in one run.
//!
//! Byte offsets in the tree and in diagnostics are those of the file: what is refused or skipped
//! (a byte-order mark, a lone carriage return, a byte that is not UTF-8) is blanked out in place
//! before parsing, never removed.

mod keyless;
mod survey;
mod unquoted;

use std::collections::HashSet;

use toml::Spanned;
use toml::de::DeTable;
use twopool_diag::{Code, Diagnostic, FileId, Findings, Span};

use crate::firsts::Firsts;
use survey::Survey;
use unquoted::Unquoted;

const BOM: &str = "\u{feff}";
/// Bad bytes reported one by one; a binary file would give thousands.
const MAX_BAD_BYTES: usize = 8;

/// A decoded file: the text that spans refer to, and what was wrong with its bytes.
pub struct Decoded {
    /// As shown in diagnostics: valid UTF-8, as long as the file.
    pub text: String,
    /// The same with everything blanked out that TOML would trip over.
    pub clean: String,
    /// Complaints about single bytes.
    pub findings: Findings,
    /// Complaints about lines that were blanked out.
    keyless: Vec<Diagnostic>,
    survey: Survey,
}

/// Checks the encoding. Accepts a leading BOM and CRLF, refuses a BOM elsewhere and a lone CR.
pub fn decode(file: FileId, bytes: &[u8]) -> Decoded {
    let mut findings = Findings::new();
    let text = utf8(file, bytes, &mut findings);
    let mut clean = text.clone().into_bytes();
    for (at, _) in text.match_indices(BOM) {
        clean[at..at + BOM.len()].fill(b' ');
        if at > 0 {
            let span = span(file, at, at + BOM.len());
            findings.push(
                Diagnostic::new(Code::Syntax, span, "byte-order mark inside the text")
                    .label("bytes 0xEF 0xBB 0xBF")
                    .help("delete it; a byte-order mark may only be the first thing in a file"),
            );
        }
    }
    for (at, _) in text.match_indices('\r') {
        if bytes.get(at + 1) != Some(&b'\n') {
            clean[at] = b'\n'; // what was meant, most likely
            findings.push(
                Diagnostic::new(
                    Code::Syntax,
                    span(file, at, at + 1),
                    "carriage return without a newline",
                )
                .label("byte 0x0D")
                .help("end lines with LF or CRLF"),
            );
        }
    }
    let mut clean = String::from_utf8(clean).expect("only whole characters were blanked out");
    let mut survey = survey::of(&clean);
    let keyless = keyless::take_out(file, &mut clean, &survey.keyless);
    survey.words.retain(|word| {
        clean
            .get(word.clone())
            .is_some_and(|text| text.is_empty() || !text.trim().is_empty())
    });
    Decoded {
        text,
        clean,
        findings,
        keyless,
        survey,
    }
}

fn utf8(file: FileId, bytes: &[u8], findings: &mut Findings) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut bad = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push('?');
            bad += 1;
            if bad <= MAX_BAD_BYTES {
                let place = span(file, text.len() - 1, text.len());
                findings.push(
                    Diagnostic::new(Code::Syntax, place, "the text is not UTF-8")
                        .label(format!("byte 0x{byte:02X} at offset {}", text.len() - 1))
                        .help("save the file as UTF-8; in a regex, `(?-u)\\xff` stands for such a byte"),
                );
            }
        }
    }
    text
}

/// A parsed file.
pub struct Tree<'a> {
    /// Which one.
    pub file: FileId,
    /// The text that was parsed.
    pub text: &'a str,
    /// What could be understood of it.
    pub root: DeTable<'a>,
    /// It had syntax errors; the tree may lack something that the user wrote.
    pub broken: bool,
    /// The lines that begin a syntax error, from 1.
    pub broken_lines: HashSet<u32>,
}

/// Parses what `decode` made of a file. Returns what could be understood. `line_of` gives the line
/// of a byte.
pub fn parse(
    file: FileId,
    decoded: &Decoded,
    line_of: impl Fn(u32) -> u32,
) -> (Tree<'_>, Findings) {
    let end = decoded.survey.end;
    let is_cut = end < decoded.clean.len();
    let text = &decoded.clean[..end];
    let mut unquoted = Unquoted::new(file, text, &decoded.survey.words);
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut firsts = None;
    let is_duplicate = |e: &toml::de::Error| e.message().starts_with("duplicate key");
    let broken = !decoded.keyless.is_empty() || errors.iter().any(|e| !is_duplicate(e));
    let (mut findings, mut last) = (Findings::new(), None);
    let places = decoded.keyless.iter().filter_map(|d| d.span);
    let mut broken_lines: HashSet<u32> = places.map(|span| line_of(span.start)).collect();
    findings.extend(decoded.keyless.iter().cloned());
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        if is_cut && range.start >= end {
            continue; // what the cut itself broke
        }
        let range = range.start.min(text.len())..range.end.min(text.len());
        let diagnostic = if is_duplicate(&error) {
            let firsts = firsts.get_or_insert_with(|| Firsts::of(text));
            duplicate(file, text, range, firsts, broken)
        } else if unquoted.is_about(range.start) {
            unquoted.next_line(range.start)
        } else {
            Some(syntax_error(file, text, error.message(), range))
        };
        let Some(diagnostic) = diagnostic.filter(|d| last.as_ref() != Some(d)) else {
            continue;
        };
        if diagnostic.code == Code::Syntax {
            broken_lines.extend(diagnostic.span.map(|s| line_of(s.start)));
        }
        findings.push(diagnostic.clone());
        last = Some(diagnostic);
    }
    findings.note_errors(decoded.survey.errors_behind);
    (
        Tree {
            file,
            text,
            root: Spanned::into_inner(root),
            broken,
            broken_lines,
        },
        findings,
    )
}

fn syntax_error(
    file: FileId,
    text: &str,
    message: &str,
    range: std::ops::Range<usize>,
) -> Diagnostic {
    let (summary, expected) = match message.split_once(", expected ") {
        Some((summary, expected)) => (summary, Some(expected)),
        None => (message, None),
    };
    // An empty place at the end of a line would show nothing; step back to what precedes it.
    let range = if range.is_empty() && range.start > 0 && at_line_end(text, range.start) {
        let start = text[..range.start]
            .char_indices()
            .next_back()
            .map_or(0, |(i, _)| i);
        if text[start..].starts_with('\n') {
            range
        } else {
            start..range.start
        }
    } else {
        range
    };
    let place = span(file, range.start, range.end);
    let mut diagnostic = Diagnostic::new(Code::Syntax, place, summary);
    if let Some(expected) = expected {
        diagnostic = diagnostic.label(format!("expected {expected}"));
    }
    match advice(summary, expected) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

fn at_line_end(text: &str, at: usize) -> bool {
    matches!(text.as_bytes().get(at), None | Some(b'\n' | b'\r'))
}

/// Help for what people get wrong most often, by the parser's own words.
fn advice(summary: &str, expected: Option<&str>) -> Option<&'static str> {
    Some(match summary {
        "string values must be quoted" => {
            "put the value in quotes: \"..\", or '..' where backslashes stand for themselves"
        }
        "missing escaped value" => {
            "in double quotes a backslash starts an escape; use single quotes, '..', for a regex or a unit name"
        }
        "invalid basic string" if expected == Some("`\"`") => {
            "end the string on its line with `\"`"
        }
        "invalid literal string" if expected == Some("`'`") => {
            "end the string on its line with `'`"
        }
        "unexpected leading zero" => "write the number without leading zeros",
        _ => return None,
    })
}

/// `None` for what only the parser takes for a duplicate: behind a header that is not well formed
/// it puts keys into a table that the user did not mean.
fn duplicate(
    file: FileId,
    text: &str,
    range: std::ops::Range<usize>,
    firsts: &Firsts<'_>,
    broken: bool,
) -> Option<Diagnostic> {
    let found = firsts.lookup(range.start);
    let (name, first) = found.unwrap_or_else(|| (text[range.clone()].to_owned(), range.start));
    let place = span(file, range.start, range.end);
    let diagnostic = Diagnostic::new(Code::DuplicateKey, place, format!("duplicate key `{name}`"))
        .label("given again here");
    if first == range.start {
        return (!broken).then_some(diagnostic);
    }
    let first_end = (first + (range.end - range.start)).min(text.len());
    Some(diagnostic.related(span(file, first, first_end), "first given here"))
}

/// Where the line of a byte begins.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// A span from byte offsets of a file.
pub fn span(file: FileId, start: usize, end: usize) -> Span {
    Span {
        file,
        start: start as u32,
        end: end as u32,
    }
}
