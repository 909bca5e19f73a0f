//! Strings and where their characters stand, for messages that point into a pattern.

use std::ops::Range;

use toml::de::DeValue;
use twopool_diag::{Code, Diagnostic, Span};

use super::Text;
use super::read::{Node, Reader};
use crate::syntax::span;

impl Reader<'_> {
    /// A string that is not empty.
    pub(super) fn text(&mut self, path: &str, node: &Node<'_>) -> Option<Text> {
        self.text_of(path, "a string", node)
    }

    pub(super) fn text_of(&mut self, path: &str, expected: &str, node: &Node<'_>) -> Option<Text> {
        let DeValue::String(value) = node.get_ref() else {
            self.no_text(path, expected, node);
            return None;
        };
        let place = self.span(node.span());
        if value.is_empty() {
            self.push(Diagnostic::new(
                Code::InvalidValue,
                place,
                format!("`{path}` has an empty string"),
            ));
            return None;
        }
        if value.contains('\0') {
            let summary = format!("`{path}` has a NUL byte");
            self.push(
                Diagnostic::new(Code::InvalidValue, place, summary)
                    .label("no name or path holds one"),
            );
            return None;
        }
        Some(self.located(value, place))
    }

    /// A value that is no string where one is needed: `thread = 1000`.
    fn no_text(&mut self, path: &str, expected: &str, node: &Node<'_>) {
        let help = match node.get_ref() {
            DeValue::Array(_) | DeValue::Table(_) => None,
            _ => Some(format!("write \"{}\" in quotes", self.source(node))),
        };
        self.wrong_type_help(path, expected, node, help);
    }

    fn located(&self, value: &str, place: Span) -> Text {
        let source = &self.text[place.start as usize..place.end as usize];
        let quotes = source
            .bytes()
            .take_while(|b| matches!(b, b'"' | b'\''))
            .count()
            .min(3);
        let quotes = if quotes == 2 { 1 } else { quotes };
        let body = source
            .get(quotes..source.len().saturating_sub(quotes))
            .unwrap_or("");
        let escape = (source.starts_with('"'))
            .then(|| pattern_escape(body))
            .flatten();
        // CRLF in a file must leave no trace in a value that spans lines.
        let value = if quotes == 3 {
            value.replace("\r\n", "\n")
        } else {
            value.to_owned()
        };
        Text {
            verbatim_at: (body == value).then_some(place.start + quotes as u32),
            escape: escape.map(|r| {
                let at = place.start as usize + quotes;
                span(self.file, at + r.start, at + r.end)
            }),
            value,
            span: place,
        }
    }
}

/// The first escape of a double-quoted string that people mean for a unit name or a regex, while
/// TOML turns it into another character: `\x2d` into `-`, `\b` into backspace.
fn pattern_escape(body: &str) -> Option<Range<usize>> {
    let bytes = body.as_bytes();
    let mut i = 0;
    while i + 1 < bytes.len() {
        if bytes[i] != b'\\' {
            i += 1;
            continue;
        }
        match bytes[i + 1] {
            b'x' => return Some(i..(i + 4).min(bytes.len())),
            b'b' | b'f' | b'e' => return Some(i..i + 2),
            _ => i += 2,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_that_change_a_pattern_are_suspicious() {
        assert_eq!(pattern_escape(r"app\x2dx"), Some(3..7));
        assert_eq!(pattern_escape(r"\\x2d"), None);
        assert_eq!(pattern_escape(r"a\bb"), Some(1..3));
        assert_eq!(pattern_escape(r"a\tb\nc"), None);
    }
}
