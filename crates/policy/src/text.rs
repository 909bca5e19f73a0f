//! Names and paths are bytes; people and JSON need text.

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
    use std::fmt::Write;
    write!(out, "\\x{byte:02x}").expect("a string takes every write");
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
