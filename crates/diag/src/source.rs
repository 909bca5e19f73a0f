//! Source texts and places in them.

/// Index of a file in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A half-open range of bytes in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A place as people and editors count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// 1-based line.
    pub line: u32,
    /// 1-based column in characters.
    pub column: u32,
    /// 0-based byte offset in the file.
    pub byte: u32,
}

/// One source text. Bytes that are not UTF-8 are the reader's business: a text here is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// As shown to the user: the path as given, or `<stdin>`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// All texts that diagnostics of one run may point into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a text and returns its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.files.push(SourceFile {
            name: name.into(),
            text: text.into(),
        });
        FileId(u32::try_from(self.files.len() - 1).expect("fewer than 2^32 files"))
    }

    /// The file of an id that `add` returned.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All files in the order they were added.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Line, column and byte of an offset; an offset past the end is the end.
    pub fn position(&self, file: FileId, byte: u32) -> Position {
        let text = &self.file(file).text;
        let mut at = (byte as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        // A byte-order mark is no character of the first line.
        let bom = if before.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let line_start = before.rfind('\n').map_or(bom, |i| i + 1);
        Position {
            line: before.bytes().filter(|b| *b == b'\n').count() as u32 + 1,
            column: before[line_start..].chars().count() as u32 + 1,
            byte: at as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_bytes_stay_those_of_the_file() {
        let mut sources = Sources::default();
        let file = sources.add("p.toml", "\u{feff}a = '\u{f6}'x\r\nb\n");
        let at = |byte| {
            let p = sources.position(file, byte);
            (p.line, p.column, p.byte)
        };
        assert_eq!(at(0), (1, 1, 0));
        assert_eq!(at(3), (1, 1, 3));
        assert_eq!(at(11), (1, 8, 11), "past the two bytes of one letter");
        assert_eq!(at(9), (1, 6, 8), "inside a character is its start");
        assert_eq!(at(14), (2, 1, 14));
        assert_eq!(at(99), (3, 1, 16));
    }
}
