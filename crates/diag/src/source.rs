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
    index: Index,
}

/// Bytes between two counts of characters.
const BLOCK: usize = 1024;

/// What makes looking up a position cheap: a hostile file has a hundred thousand findings.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Index {
    /// First byte of every line.
    lines: Vec<u32>,
    /// Characters that begin before each block.
    characters: Vec<u32>,
}

impl Index {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1));
        let mut before = 0;
        let characters = text.as_bytes().chunks(BLOCK).map(|block| {
            let here = before;
            before += begun(block);
            here
        });
        Self {
            lines: lines.collect(),
            characters: characters.collect(),
        }
    }

    /// Index of the line that holds a byte.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start as usize <= at) - 1
    }

    /// Characters that begin before a byte.
    fn characters_before(&self, text: &str, at: usize) -> u32 {
        match self.characters.get(at / BLOCK) {
            Some(before) => before + begun(&text.as_bytes()[at / BLOCK * BLOCK..at]),
            // The end of a text that fills its blocks.
            None => text.as_bytes().chunks(BLOCK).next_back().map_or(0, |last| {
                self.characters[self.characters.len() - 1] + begun(last)
            }),
        }
    }
}

/// Characters that begin in some bytes of a text.
fn begun(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() as u32
}

/// All texts that diagnostics of one run may point into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a text and returns its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        self.files.push(SourceFile {
            name: name.into(),
            index: Index::of(&text),
            text,
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
        let SourceFile { text, index, .. } = self.file(file);
        let mut at = (byte as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let line = index.line(at);
        // A byte-order mark is no character of the first line.
        let line_start = match index.lines[line] as usize {
            0 if text.starts_with('\u{feff}') => '\u{feff}'.len_utf8().min(at),
            start => start,
        };
        let characters = |at| index.characters_before(text, at);
        Position {
            line: line as u32 + 1,
            column: characters(at) - characters(line_start) + 1,
            byte: at as u32,
        }
    }

    /// The 1-based line of an offset; an offset past the end is the end.
    pub fn line(&self, file: FileId, byte: u32) -> u32 {
        let SourceFile { text, index, .. } = self.file(file);
        index.line((byte as usize).min(text.len())) as u32 + 1
    }

    /// The bytes of the whole lines that a span touches.
    pub(crate) fn lines_of(&self, span: Span) -> std::ops::Range<usize> {
        let SourceFile { text, index, .. } = self.file(span.file);
        let line = |byte: u32| index.line((byte as usize).min(text.len()));
        let (first, last) = (line(span.start), line(span.end.max(span.start)));
        let end = index.lines.get(last + 1);
        index.lines[first] as usize..end.map_or(text.len(), |end| *end as usize)
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

    #[test]
    fn positions_in_a_long_text_are_those_that_counting_gives() {
        let text =
            "a\u{f6}\u{20ac}\u{1f600}b\n".repeat(3 * BLOCK / 7) + &"\u{20ac}".repeat(2 * BLOCK);
        let mut sources = Sources::default();
        let file = sources.add("p.toml", text.clone());
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let before = &text[..at];
            let line_start = before.rfind('\n').map_or(0, |i| i + 1);
            let found = sources.position(file, at as u32);
            assert_eq!(
                found.line as usize,
                before.matches('\n').count() + 1,
                "{at}"
            );
            assert_eq!(
                found.column as usize,
                before[line_start..].chars().count() + 1,
                "{at}"
            );
        }
        let whole_blocks = sources.add("q.toml", "x".repeat(2 * BLOCK));
        assert_eq!(
            sources.position(whole_blocks, u32::MAX).column as usize,
            2 * BLOCK + 1
        );
    }
}
