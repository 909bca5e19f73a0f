//! Names and paths are bytes; people and JSON need text.

use std::fmt::Write;

use twopool_diag::printable;

/// Bytes as text without loss: valid UTF-8 as it is, any other byte as `\xNN`, a backslash as `\\`.
/// Control characters are escaped too, so that a name cannot move a terminal's cursor.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        push_hex(&mut out, byte);
                    }
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            push_hex(&mut out, *byte);
        }
    }
    out
}

/// Appends `\xNN`, which a byte regex reads as that byte.
pub fn push_hex(out: &mut String, byte: u8) {
    write!(out, "\\x{byte:02x}").expect("a string takes every write");
}

/// A value as a TOML string: in double quotes, or in single ones where that saves escapes. What
/// could act on a terminal is escaped, so that the policy may be printed as it is.
pub fn toml_string(value: &str) -> String {
    let is_plain = printable(value) == value;
    if is_plain && !value.contains(['"', '\\']) {
        return format!("\"{value}\"");
    }
    if is_plain && !value.contains('\'') {
        return format!("'{value}'");
    }
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) > 0xFFFF => {
                push_escape(&mut out, format_args!("\\U{:08X}", u32::from(c)))
            }
            c => push_escape(&mut out, format_args!("\\u{:04X}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

fn push_escape(out: &mut String, escape: std::fmt::Arguments<'_>) {
    out.write_fmt(escape).expect("a string takes every write");
}

fn is_printable(c: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    printable(text) == text
}

/// Whether a text is digits, perhaps behind a sign: a number and nobody's name.
pub fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The beginning of a text: at most so many bytes, in whole characters.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rfind(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_whole_characters() {
        let all: Vec<&str> = (0..5).map(|most| beginning("t\u{f6}x", most)).collect();
        assert_eq!(all, ["", "t", "t", "t\u{f6}", "t\u{f6}x"]);
        assert_eq!(beginning("", 3), "");
    }

    #[test]
    fn strings_read_back_as_themselves() {
        let hostile = [
            "srv-1",
            "a\"b",
            "a\\b",
            "a'b\\",
            "a\nb",
            "\u{7f}\u{0}\t",
            "''' \"\"\" \\",
            "\u{9b}t\u{f6}",
            "\u{202e}\u{2066}",
            "\u{e0001}\u{1f600}",
        ];
        for value in hostile {
            let text = format!("x = {}", toml_string(value));
            assert_eq!(printable(&text), text);
            let table: toml::Table =
                toml::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(table["x"].as_str(), Some(value));
        }
    }

    #[test]
    fn numbers_are_told_from_names() {
        assert!(
            ["0", "-1", "+7", "00", "99999999999999999999"]
                .iter()
                .all(|text| is_number(text))
        );
        assert!(
            !["", "-", "--1", "1a", "a", " 1"]
                .iter()
                .any(|text| is_number(text))
        );
    }

    #[test]
    fn every_byte_survives_as_text() {
        assert_eq!(escape(b"srv-1"), "srv-1");
        assert_eq!(escape("t\u{f6}".as_bytes()), "t\u{f6}");
        assert_eq!(escape(b"t\xc3"), r"t\xc3");
        assert_eq!(escape(br"a\x2d"), r"a\\x2d");
        assert_eq!(escape(b"a\nb\x1b"), r"a\x0ab\x1b");
    }
}
