//! What a block asks of one name: prefixes that it has, and prefixes that it has not.

use std::collections::BTreeMap;

use super::block::Verdict;
use crate::text::push_hex;
use crate::text::toml_string;
use crate::thread::NAME_BYTES;

/// The questions as they were read.
#[derive(Debug, Default)]
pub struct Name {
    prefixes: Vec<String>,
    excluded: Vec<String>,
}

/// The same without what says nothing. A name that can exist fits it.
#[derive(Debug, PartialEq, Eq)]
pub struct Settled {
    /// How the name begins.
    pub prefix: Option<String>,
    /// How it does not begin. Each of them begins with `prefix` and is longer.
    pub excluded: Vec<String>,
}

impl Name {
    /// The name begins so.
    pub fn prefix(&mut self, text: &str) {
        self.prefixes.push(text.to_owned());
    }

    /// The name does not begin so.
    pub fn exclude(&mut self, text: &str) {
        self.excluded.push(text.to_owned());
    }

    /// All questions as one prefix and what follows from the others, or why no name fits them.
    pub fn settled(&self) -> Result<Settled, Verdict> {
        let never = |text: String| Err(Verdict::Never(text));
        let mut prefix = "";
        for next in &self.prefixes {
            if next.starts_with(prefix) {
                prefix = next;
            } else if !prefix.starts_with(next.as_str()) {
                return never(format!("no name begins with `{prefix}` and `{next}`"));
            }
        }
        if prefix.len() > NAME_BYTES {
            return never(format!(
                "`{prefix}` is longer than the {NAME_BYTES} bytes of a name"
            ));
        }
        let mut excluded: Vec<String> = Vec::new();
        for next in &self.excluded {
            if prefix.starts_with(next.as_str()) {
                return never(format!(
                    "no name begins with `{prefix}` but not with `{next}`"
                ));
            }
            // What no name begins with, or none that begins with the prefix, excludes nothing.
            if next.len() <= NAME_BYTES && next.starts_with(prefix) && !excluded.contains(next) {
                excluded.push(next.clone());
            }
        }
        Ok(Settled {
            prefix: (!prefix.is_empty()).then(|| prefix.to_owned()),
            excluded,
        })
    }
}

impl Settled {
    /// As one pattern: the prefix, and then anything but the rest of what is excluded.
    pub fn as_regex(&self) -> String {
        let prefix = self.prefix.as_deref().unwrap_or("").as_bytes();
        let tails: Vec<&[u8]> = self
            .excluded
            .iter()
            .map(|text| &text.as_bytes()[prefix.len()..])
            .collect();
        let regex = format!("{}{}", literal(prefix), none_of(&tails));
        format!("{{ regex = {} }}", toml_string(&regex))
    }
}

/// A regex of what begins with none of these, none of which is empty: nothing, or a byte that none
/// begins with, or a byte that some begin with and what begins with none of their rests.
fn none_of(texts: &[&[u8]]) -> String {
    let mut by_first: BTreeMap<u8, Vec<&[u8]>> = BTreeMap::new();
    for text in texts {
        by_first.entry(text[0]).or_default().push(&text[1..]);
    }
    let mut heads = String::new();
    for byte in by_first.keys() {
        match byte.is_ascii_alphanumeric() {
            true => heads.push(char::from(*byte)),
            false => push_hex(&mut heads, *byte),
        }
    }
    let mut all = vec![format!("[^{heads}].*")];
    for (byte, rests) in by_first {
        if rests.iter().all(|rest| !rest.is_empty()) {
            all.push(format!("{}{}", literal(&[byte]), none_of(&rests)));
        }
    }
    format!("(?:{})?", all.join("|"))
}

/// Bytes as a regex on bytes that people can read.
pub fn literal(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'-' | b'_' | b'/' | b':' | b'@' | b' ' => out.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(*byte)),
            byte if byte.is_ascii_punctuation() && *byte != b'\'' => {
                out.extend(['\\', char::from(*byte)]);
            }
            byte => push_hex(&mut out, *byte),
        }
    }
    out
}
