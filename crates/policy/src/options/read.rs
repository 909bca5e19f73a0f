//! From a TOML tree to `Options`: walks the tables by the table of keys and checks every value
//! taken alone.
//!
//! A value that does not fit is reported and left out, so that one run finds all faults of a file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use twopool_diag::{Code, Diagnostic, FileId, Findings, Span};

use super::scalar::quoted_list;
use super::{Options, Setting, Value};
use crate::keys::{self, Key};
use crate::policy::Pool;
use crate::suggest::nearest;
use crate::syntax::{Tree, span};

/// A value with its place, as the parser gives it.
pub(super) type Node<'a> = Spanned<DeValue<'a>>;
/// A key with its place.
pub(super) type Name<'a> = Spanned<Cow<'a, str>>;

/// Reads one file and collects what is wrong with it.
pub(super) struct Reader<'a> {
    pub(super) file: FileId,
    pub(super) text: &'a str,
    root: Option<&'a DeTable<'a>>,
    /// Something may be absent only because it could not be parsed.
    pub(super) broken: bool,
    /// Everything that was wrong, also what `findings` leaves out.
    pub(super) complaints: usize,
    is_guesswork: &'a dyn Fn(&Diagnostic) -> bool,
    findings: Findings,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tree: &'a Tree<'a>, is_guesswork: &'a dyn Fn(&Diagnostic) -> bool) -> Self {
        Self {
            file: tree.file,
            text: tree.text,
            root: Some(&tree.root),
            broken: tree.broken,
            complaints: 0,
            is_guesswork,
            findings: Findings::new(),
        }
    }

    /// The whole file.
    pub(super) fn file(mut self) -> (Options, Findings) {
        let root = self.root.expect("a reader of a tree has its root");
        let mut options = Options {
            file: self.file,
            settings: BTreeMap::new(),
            rules: Vec::new(),
            tests: Vec::new(),
            refused: Vec::new(),
            broken: self.broken,
            empty: root.is_empty() && !self.broken,
        };
        self.section("", root, &mut options);
        (options, self.findings)
    }

    fn section(&mut self, path: &str, table: &DeTable<'_>, options: &mut Options) {
        let allowed = keys::children(path);
        for (name, value) in table {
            let word: &str = name.get_ref();
            if !is_plain(word) || !allowed.contains(&word) {
                self.unknown(path, || allowed.clone(), name);
                continue;
            }
            let full = if path.is_empty() {
                word.to_owned()
            } else {
                format!("{path}.{word}")
            };
            if keys::LISTS.contains(&full.as_str()) {
                self.list(&full, value, options);
            } else if let Some(key) = keys::find(&full) {
                let span = self.span(value.span());
                match self.value(&full, key, value) {
                    Some(value) => {
                        options.settings.insert(full, Setting { value, span });
                    }
                    None => options.refused.push(full),
                }
            } else {
                match value.get_ref() {
                    DeValue::Table(inner) => self.section(&full, inner, options),
                    _ => self.wrong_type(&full, "a table", value),
                }
            }
        }
    }

    fn list(&mut self, name: &str, value: &Node<'_>, options: &mut Options) {
        let DeValue::Array(items) = value.get_ref() else {
            let expected = format!("an array of tables, `[[{name}]]`");
            return self.wrong_type(name, &expected, value);
        };
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(table) if name == "rule" => {
                    let rule = self.rule(table, item);
                    options.rules.push(rule);
                }
                DeValue::Table(table) => {
                    let test = self.test(table, item);
                    options.tests.push(test);
                }
                _ => self.wrong_type(name, "tables", item),
            }
        }
    }

    /// A key that `section` does not have.
    pub(super) fn unknown(
        &mut self,
        section: &str,
        allowed: impl FnOnce() -> Vec<&'static str>,
        name: &Name<'_>,
    ) {
        if self.findings.is_full_of_errors() {
            // Looking for the nearest word is dear, and nobody would read it.
            let place = self.span(name.span());
            return self.push(Diagnostic::new(Code::UnknownKey, place, "unknown key"));
        }
        let word: &str = name.get_ref();
        let place = self.span(name.span());
        if section == "pool" {
            return self.unknown_pool(word, place);
        }
        let (homes, allowed) = (keys::homes(word), allowed());
        let help = match nearest(word, allowed.iter().copied()) {
            _ if !homes.is_empty() => format!("`{word}` belongs into {}", homes.join(" or ")),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", quoted_list(&allowed)),
        };
        let mut diagnostic =
            Diagnostic::new(Code::UnknownKey, place, format!("unknown key `{word}`")).help(help);
        if !section.is_empty() {
            diagnostic = diagnostic.label(format!("not a key of `{section}`"));
        }
        self.push(diagnostic);
    }

    pub(super) fn unknown_pool(&mut self, word: &str, place: Span) {
        let names = Pool::ALL.map(Pool::as_str);
        let help = match nearest(word, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the pools are {}", quoted_list(&names)),
        };
        self.push(
            Diagnostic::new(Code::UnknownPool, place, format!("unknown pool `{word}`")).help(help),
        );
    }

    pub(super) fn missing(&mut self, path: &str, place: Span, help: &str) {
        if !self.broken {
            let summary = format!("missing key `{path}`");
            self.push(Diagnostic::new(Code::MissingKey, place, summary).help(help));
        }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.complaints += 1;
        if !(self.is_guesswork)(&diagnostic) {
            self.findings.push(diagnostic);
        }
    }

    pub(super) fn span(&self, range: Range<usize>) -> Span {
        span(self.file, range.start, range.end)
    }
}

/// Whether a key can be one of ours. A quoted key with a dot inside is not the path that it reads
/// like: `"pool.critical.weight"`.
pub(super) fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.contains(['.', '*'])
}

/// A default of the table of keys.
pub(super) fn default_value(key: &Key, text: &str) -> Value {
    let node = DeValue::parse(text).expect("defaults are TOML");
    let mut reader = Reader {
        file: FileId(0),
        text,
        root: None,
        broken: false,
        complaints: 0,
        is_guesswork: &|_| false,
        findings: Findings::new(),
    };
    reader
        .value(key.path, key, &node)
        .expect("defaults fit their keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_fits_its_key() {
        for (path, key, default) in keys::settings() {
            if let Some(text) = default {
                default_value(key, text);
                assert!(!path.is_empty());
            }
        }
    }
}
