//! One cheap look at a text before a tree is made of it.
//!
//! The parser of the tree holds a hundred bytes and more for each error of what it is given, so a
//! text is cut at the first error that is one more than are kept; behind it errors are only
//! counted. Duplicate keys are not seen here and cost the parser of the tree what they cost.

use std::ops::Range;

use toml_parser::decoder::Encoding;
use toml_parser::parser::{EventReceiver, RecursionGuard, ValidateWhitespace, parse_document};
use toml_parser::{ErrorSink, ParseError, Source, Span};
use twopool_diag::MAX_KEPT;

use super::line_start;
use super::unquoted::reads_as_word;
use crate::firsts::MAX_DEPTH;

/// How much of a text is worth a tree, and what the parser of the tree would not tell.
#[derive(Debug, Clone)]
pub struct Survey {
    /// End of the part that is.
    pub end: usize,
    /// Syntax errors behind it.
    pub errors_behind: usize,
    /// Words before it that stand where a value is expected and have no quotes, in order.
    pub words: Vec<Range<usize>>,
    /// Places before it where a key ends without `=`. The parser of the tree reads no further.
    pub keyless: Vec<usize>,
}

/// Walks a text.
pub fn of(text: &str) -> Survey {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut errors = Errors {
        text,
        first: Vec::new(),
        end: text.len(),
        behind: 0,
        keyless: Vec::new(),
    };
    let mut values = Values {
        source,
        text,
        words: Vec::new(),
    };
    let mut spaced = ValidateWhitespace::new(&mut values, source);
    let mut bounded = RecursionGuard::new(&mut spaced, MAX_DEPTH);
    parse_document(&tokens, &mut bounded, &mut errors);
    let end = errors.end;
    if end == text.len() {
        errors.behind = 0;
    } else {
        // Those among the first that are reported late.
        errors.behind += errors
            .first
            .iter()
            .filter(|(at, is_told)| *at >= end && *is_told)
            .count();
    }
    values.words.retain(|word| word.start < end);
    errors.keyless.retain(|at| *at < end);
    Survey {
        end,
        errors_behind: errors.behind,
        words: values.words,
        keyless: errors.keyless,
    }
}

/// One more word on a line: all words of a line are one error to the user.
const SAME_LINE: &str = "same line";

/// The places of the first errors, and the count of the others.
struct Errors<'a> {
    text: &'a str,
    /// Places, and whether an error is told of there.
    first: Vec<(usize, bool)>,
    end: usize,
    behind: usize,
    keyless: Vec<usize>,
}

impl ErrorSink for Errors<'_> {
    fn report_error(&mut self, error: ParseError) {
        let at = error.unexpected().map_or(0, |span| span.start());
        let is_told = error.description() != SAME_LINE;
        if self.first.len() < MAX_KEPT {
            self.first.push((at, is_told));
            if error.description() == "key with no value" {
                self.keyless.push(at);
            }
            return;
        }
        if at > 0 && self.end == self.text.len() {
            // At a line's start, so that the cut itself is no error.
            let line = line_start(self.text, at);
            self.end = if line > 0 { line } else { at };
        }
        self.behind += usize::from(at >= self.end && is_told);
    }
}

/// Reads keys and values as the parser of the tree does, for their errors alone.
struct Values<'a> {
    source: Source<'a>,
    text: &'a str,
    words: Vec<Range<usize>>,
}

impl EventReceiver for Values<'_> {
    fn simple_key(&mut self, span: Span, encoding: Option<Encoding>, error: &mut dyn ErrorSink) {
        if let Some(raw) = self.source.get(span) {
            let raw = toml_parser::Raw::new_unchecked(raw.as_str(), encoding, span);
            raw.decode_key(&mut (), error);
        }
    }

    fn scalar(&mut self, span: Span, encoding: Option<Encoding>, error: &mut dyn ErrorSink) {
        let Some(raw) = self.source.get(span) else {
            return;
        };
        let raw = toml_parser::Raw::new_unchecked(raw.as_str(), encoding, span);
        if encoding.is_some() || !reads_as_word(raw.as_str()) {
            let _ = raw.decode_scalar(&mut (), error);
            return;
        }
        let mut is_wrong = false;
        let _ = raw.decode_scalar(&mut (), &mut |_| is_wrong = true);
        if is_wrong {
            let word = span.start()..span.end();
            let last = self.words.last().map_or(0, |last| last.end);
            let is_first = self.words.is_empty() || self.text[last..word.start].contains('\n');
            let description = if is_first { "" } else { SAME_LINE };
            error.report_error(ParseError::new(description).with_unexpected(span));
            self.words.push(word);
        }
    }
}
