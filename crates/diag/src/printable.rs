//! Text for a terminal. Names come from whoever started a thread or wrote a file; none of them may
//! move the cursor, colour the screen, forge a line or turn the reading direction.
//!
//! Programs read JSON, which stays exact: only renderers for people call this.

use std::borrow::Cow;

/// One line's worth of text: control characters and directional overrides as escapes (`\n`,
/// `\u{202e}`), everything else as it is.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_dangerous)
}

/// Text of several lines, likewise; newlines stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_dangerous(c))
}

/// Rendered text, whose own escape sequences stay: what it was made of has none left.
pub(crate) fn printable_styled(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !matches!(c, '\n' | '\x1b') && is_dangerous(c))
}

fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, must: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&must) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match must(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_is_left() {
        let dangerous = "\x1b[31m\u{9b}\u{7f}\u{202e}\u{2066}\u{2069}\r\t\n\0";
        let shown = printable(dangerous);
        assert_eq!(
            shown,
            "\\u{1b}[31m\\u{9b}\\u{7f}\\u{202e}\\u{2066}\\u{2069}\\r\\t\\n\\u{0}"
        );
        assert_eq!(printable_lines("a\x07\nb"), "a\\u{7}\nb");
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        let text = "srv-1 \\x2d \u{f6} \u{5d0}\u{5d1} \u{1f600}";
        assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
    }
}
