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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_as_text() {
        assert_eq!(escape(b"srv-1"), "srv-1");
        assert_eq!(escape("t\u{f6}".as_bytes()), "t\u{f6}");
        assert_eq!(escape(b"t\xc3"), r"t\xc3");
        assert_eq!(escape(br"a\x2d"), r"a\\x2d");
        assert_eq!(escape(b"a\nb\x1b"), r"a\x0ab\x1b");
    }
}
