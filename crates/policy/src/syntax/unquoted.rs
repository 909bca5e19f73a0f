//! Words without quotes where TOML expects a value: `process = nginx`.
//!
//! The parser goes by the first letter, takes `nginx` for a failed `nan` and `test` for a failed
//! `true`, and says so. What the user needs is the line with its quotes.

use std::ops::Range;

use twopool_diag::{Code, Diagnostic, FileId, Span};

use super::{line_start, span};
use crate::keys::{self, Kind};
use crate::text::toml_string;

/// Bytes of a line that is shown again as it should be.
const MAX_LINE: usize = 120;

/// Whether a bare value that the parser refuses is meant for a text, and no number or date gone
/// wrong.
pub fn reads_as_word(raw: &str) -> bool {
    let is_numeric = |c: char| c.is_ascii_digit() || "_.:+-eEtTzZ ".contains(c);
    match raw.chars().next() {
        None => true,
        _ if raw.ends_with(['"', '\'']) => false,
        Some('0'..='9' | '+' | '-' | '.' | '_') => {
            let is_radix = ["0x", "0o", "0b"]
                .iter()
                .any(|start| raw.starts_with(start));
            !is_radix && !raw.chars().all(is_numeric)
        }
        Some(_) => true,
    }
}

/// What a key takes, as far as quotes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Text,
    Number,
    Boolean,
}

/// The unquoted words of a text.
pub struct Unquoted<'a> {
    file: FileId,
    text: &'a str,
    words: &'a [Range<usize>],
    /// End of the last word that was told of, or stands on the line of one that was.
    told: Option<usize>,
}

impl<'a> Unquoted<'a> {
    /// `words` in order.
    pub fn new(file: FileId, text: &'a str, words: &'a [Range<usize>]) -> Self {
        Self {
            file,
            text,
            words,
            told: None,
        }
    }

    /// Whether an error at this byte is about such a word.
    pub fn is_about(&self, at: usize) -> bool {
        self.word(at).is_some()
    }

    /// The finding for the line of such a word; one for all words of a line.
    pub fn next_line(&mut self, at: usize) -> Option<Diagnostic> {
        let index = self.word(at)?;
        let word = self.words[index].clone();
        let is_same_line = |end: usize| !self.text[end.min(word.start)..word.start].contains('\n');
        let is_told = self.told.is_some_and(is_same_line);
        self.told = Some(word.end);
        if is_told {
            return None;
        }
        let start = line_start(self.text, word.start);
        Some(self.finding(index, word, start))
    }

    fn word(&self, at: usize) -> Option<usize> {
        let index = self.words.partition_point(|word| word.end < at);
        let word = self.words.get(index)?;
        (word.start <= at).then_some(index)
    }

    fn finding(&self, index: usize, word: Range<usize>, start: usize) -> Diagnostic {
        let before = &self.text[start..word.start];
        if word.is_empty() {
            let at = start + before.rfind(['=', '[', ',']).unwrap_or(0);
            return self.error(at..at + 1, "missing value", "no value follows");
        }
        let wanted = wanted(before);
        let found = match wanted {
            Wanted::Text => self.error(word, "a string without quotes", "strings need quotes"),
            Wanted::Number => self.error(word, "not a number", "a number is expected here"),
            Wanted::Boolean => self.error(word, "not a boolean", "true or false is expected here"),
        };
        match self.line(index, start) {
            Some(line) => found.help(format!("write `{line}`")),
            None if wanted == Wanted::Text => found.help(GENERAL),
            None => found,
        }
    }

    fn error(&self, range: Range<usize>, summary: &str, label: &str) -> Diagnostic {
        let place: Span = span(self.file, range.start, range.end);
        Diagnostic::new(Code::Syntax, place, summary).label(label)
    }

    /// The line of a word as it should be, without blanks around it and without a comment behind
    /// the last word.
    fn line(&self, index: usize, start: usize) -> Option<String> {
        let end = self.text[start..]
            .find(['\n', '\r'])
            .map_or(self.text.len(), |at| start + at);
        if end - start > MAX_LINE {
            return None;
        }
        let (mut out, mut from) = (String::new(), start);
        for word in self.words[index..].iter().take_while(|w| w.end <= end) {
            let before = &self.text[start..word.start];
            out.push_str(&self.text[from..word.start]);
            out.push_str(&right(&self.text[word.clone()], wanted(before))?);
            from = word.end;
        }
        let rest = &self.text[from..end];
        out.push_str(rest.split('#').next().unwrap_or(rest));
        Some(out.trim().to_owned())
    }
}

const GENERAL: &str =
    "put the value in quotes: \"..\", or '..' where backslashes stand for themselves";

/// What the key of a value takes, by what precedes the value on its line. A list over several
/// lines is a list of strings.
fn wanted(before: &str) -> Wanted {
    let Some((before, _)) = before.rsplit_once('=') else {
        return Wanted::Text;
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let name = before.trim_end().rsplit(|c| !is_part(c)).next();
    let of_that_name = |path: &str| path.rsplit('.').next() == name;
    let key = keys::KEYS.iter().find(|key| of_that_name(key.path));
    match key.map(|key| key.kind) {
        Some(Kind::Bool | Kind::Flag) => Wanted::Boolean,
        Some(Kind::Version | Kind::Integer { .. } | Kind::Numbers { .. }) => Wanted::Number,
        _ => Wanted::Text,
    }
}

/// What was written behind a key as TOML wants it, if that can be told.
pub fn value(key: &str, raw: &str) -> Option<String> {
    let raw = raw.split(" #").next().unwrap_or(raw).trim_end();
    if raw.is_empty() || raw.len() > MAX_LINE {
        return None;
    }
    if toml::de::DeValue::parse(raw).is_ok() {
        return Some(raw.to_owned());
    }
    reads_as_word(raw).then(|| right(raw, wanted(&format!("{key} = "))))?
}

/// A value as TOML wants it, if that can be told.
fn right(raw: &str, wanted: Wanted) -> Option<String> {
    match wanted {
        Wanted::Number => None,
        Wanted::Boolean => match raw.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" => Some("true".to_owned()),
            "no" | "off" | "false" => Some("false".to_owned()),
            _ => None,
        },
        Wanted::Text => Some(toml_string(raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_gone_wrong_are_no_words() {
        for raw in ["nginx", "3ms", "10%", "9p", "/a.slice", "-x", "1k", "*", ""] {
            assert!(reads_as_word(raw), "{raw}");
        }
        for raw in ["0xzz", "1_", "1.2.3", "2024-13-01", "+-5", "1e", "nginx\""] {
            assert!(!reads_as_word(raw), "{raw}");
        }
    }

    #[test]
    fn what_a_key_takes_is_known_by_its_name() {
        assert!(wanted("thread = ") == Wanted::Text);
        assert!(wanted("not = { nice = ") == Wanted::Number);
        assert!(wanted("kthread=") == Wanted::Boolean);
        assert!(wanted("cgroup = { under = ") == Wanted::Text);
        assert!(wanted("    ") == Wanted::Text);
    }
}
