//! Bytes to a TOML tree, with every syntax error of a file in one run.
//!
//! Byte offsets in the tree and in diagnostics are those of the file: what is refused or skipped
//! (a byte-order mark, a lone carriage return, a byte that is not UTF-8) is blanked out in place
//! before parsing, never removed.

use std::collections::HashSet;

use toml::Spanned;
use toml::de::DeTable;
use toml_parser::ParseError;
use toml_parser::parser::{RecursionGuard, parse_document};
use twopool_diag::{Code, Diagnostic, FileId, Findings, MAX_KEPT, Span};

use crate::firsts::{Firsts, MAX_DEPTH};

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
    let clean = String::from_utf8(clean).expect("only whole characters were blanked out");
    Decoded {
        text,
        clean,
        findings,
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

/// Parses a text in which `decode` found its way. Returns what could be understood. `line_of` gives
/// the line of a byte.
pub fn parse(file: FileId, text: &str, line_of: impl Fn(u32) -> u32) -> (Tree<'_>, Findings) {
    let Readable { end, errors_behind } = readable(text);
    let is_cut = end < text.len();
    let text = &text[..end];
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut firsts = None;
    let is_duplicate = |e: &toml::de::Error| e.message().starts_with("duplicate key");
    let broken = errors.iter().any(|e| !is_duplicate(e));
    let (mut findings, mut last) = (Findings::new(), None);
    let mut broken_lines = HashSet::new();
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        if is_cut && range.start >= end {
            continue; // what the cut itself broke
        }
        let range = range.start.min(text.len())..range.end.min(text.len());
        let diagnostic = if is_duplicate(&error) {
            let firsts = firsts.get_or_insert_with(|| Firsts::of(text));
            duplicate(file, text, range, firsts, broken)
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
    findings.note_errors(errors_behind);
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

/// How much of a text is worth a tree.
struct Readable {
    /// End of the part that is.
    end: usize,
    /// Syntax errors behind it.
    errors_behind: usize,
}

/// The text before the first syntax error that is one more than are kept. The parser of the tree
/// holds a hundred bytes and more for each error of what it is given; counting them is cheap.
/// Only errors of grammar are seen here: keys and values that are empty or malformed, and
/// duplicates, cost the parser of the tree what they cost.
fn readable(text: &str) -> Readable {
    let tokens = toml_parser::Source::new(text).lex().into_vec();
    let (mut first, mut end, mut behind) = (Vec::new(), text.len(), 0);
    let mut note = |error: ParseError| {
        let at = error.unexpected().map_or(0, |span| span.start());
        if first.len() < MAX_KEPT {
            first.push(at);
        } else if end == text.len() && at > 0 {
            end = at;
        }
        behind += usize::from(first.len() == MAX_KEPT && at >= end);
    };
    let mut nobody = ();
    let mut bounded = RecursionGuard::new(&mut nobody, MAX_DEPTH);
    parse_document(&tokens, &mut bounded, &mut note);
    match end < text.len() {
        true => Readable {
            end,
            errors_behind: behind + first.iter().filter(|at| **at >= end).count(),
        },
        false => Readable {
            end,
            errors_behind: 0,
        },
    }
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
    let mut diagnostic = Diagnostic::new(Code::Syntax, span(file, range.start, range.end), summary);
    if let Some(expected) = expected {
        diagnostic = diagnostic.label(format!("expected {expected}"));
    }
    match advice(summary) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

fn at_line_end(text: &str, at: usize) -> bool {
    matches!(text.as_bytes().get(at), None | Some(b'\n' | b'\r'))
}

/// Help for what people get wrong most often, by the parser's own words.
fn advice(summary: &str) -> Option<&'static str> {
    Some(match summary {
        "string values must be quoted" => {
            "put the value in quotes: \"..\", or '..' where backslashes stand for themselves"
        }
        "missing escaped value" => {
            "in double quotes a backslash starts an escape; use single quotes, '..', for a regex or a unit name"
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

/// A span from byte offsets of a file.
pub fn span(file: FileId, start: usize, end: usize) -> Span {
    Span {
        file,
        start: start as u32,
        end: end as u32,
    }
}
