//! The text of a glob to its pieces. Anything that is not closed is refused with its place.

use super::{Fault, Item, Piece};

/// All pieces of a glob.
pub(super) fn parse(text: &str) -> Result<Vec<Item>, Fault> {
    let mut items = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'{' {
            let (piece, next) = alternates(text, at)?;
            items.push(Item { at, piece });
            at = next;
        } else {
            let (piece, next) = simple(text, at)?;
            items.push(Item { at, piece });
            at = next;
        }
    }
    Ok(items)
}

/// A piece other than braces, and where the next one starts.
fn simple(text: &str, at: usize) -> Result<(Piece, usize), Fault> {
    Ok(match text.as_bytes()[at] {
        b'*' => (Piece::Star, at + 1),
        b'?' => (Piece::One, at + 1),
        b'[' => class(text, at)?,
        byte => (Piece::Byte(byte), at + 1),
    })
}

fn alternates(text: &str, open: usize) -> Result<(Piece, usize), Fault> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut current = Vec::new();
    let mut at = open + 1;
    loop {
        match bytes.get(at) {
            None => {
                return Err(Fault {
                    range: open..open + 1,
                    label: "this brace is not closed".to_owned(),
                    help: Some("`[{]` is a literal brace"),
                });
            }
            Some(b'{') => {
                return Err(Fault {
                    range: at..at + 1,
                    label: "a brace inside braces".to_owned(),
                    help: Some(
                        "write the alternatives out; braces do not nest, and `[{]` is a literal brace",
                    ),
                });
            }
            Some(b'}') => {
                all.push(current);
                return Ok((Piece::Alternates(all), at + 1));
            }
            Some(b',') => {
                all.push(std::mem::take(&mut current));
                at += 1;
            }
            Some(_) => {
                let (piece, next) = simple(text, at)?;
                current.push(Item { at, piece });
                at = next;
            }
        }
    }
}

/// `[a-z]`, `[!a-z]`; a `]` right after the opening is a member, and so is a `-` at either end.
fn class(text: &str, open: usize) -> Result<(Piece, usize), Fault> {
    let bytes = text.as_bytes();
    let mut at = open + 1;
    let negated = bytes.get(at) == Some(&b'!');
    at += usize::from(negated);
    let first = at;
    let mut set = Box::new([false; 256]);
    loop {
        let Some(&low) = bytes.get(at) else {
            return Err(Fault {
                range: open..open + 1,
                label: "this bracket is not closed".to_owned(),
                help: Some("`[[]` is a literal bracket"),
            });
        };
        if low == b']' && at > first {
            break;
        }
        if !low.is_ascii() {
            let len = text[at..].chars().next().map_or(1, char::len_utf8);
            return Err(Fault {
                range: at..at + len,
                label: format!("a class holds single bytes; this is {len} bytes"),
                help: Some("use alternatives in braces: `{\u{e4},\u{f6}}`"),
            });
        }
        let is_range =
            bytes.get(at + 1) == Some(&b'-') && bytes.get(at + 2).is_some_and(|b| *b != b']');
        let high = if is_range { bytes[at + 2] } else { low };
        let next = at + if is_range { 3 } else { 1 };
        if !high.is_ascii() || high < low {
            let end = (next..=text.len())
                .find(|e| text.is_char_boundary(*e))
                .unwrap_or(text.len());
            return Err(Fault {
                range: at..end,
                label: "this range holds nothing".to_owned(),
                help: None,
            });
        }
        set[usize::from(low)..=usize::from(high)].fill(true);
        at = next;
    }
    if negated {
        set.iter_mut().for_each(|b| *b = !*b);
    }
    Ok((Piece::Class(set), at + 1))
}
