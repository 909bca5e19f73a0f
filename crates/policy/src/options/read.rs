//! From a TOML tree to `Options`: walks the tables by the table of keys and checks every value
//! taken alone.
//!
//! A value that does not fit is reported and left out, so that one run finds all faults of a file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};
use twopool_diag::{Code, Diagnostic, FileId, Span};

use super::scalar::{self, Fault, quoted_list};
use super::{Options, Setting, Text, Value};
use crate::keys::{self, Key, Kind, nearest};
use crate::limits::MAX_CPU_COUNT;
use crate::policy::{Cpus, Pool};
use crate::syntax::{Tree, span};

/// A value with its place, as the parser gives it.
pub(super) type Node<'a> = Spanned<DeValue<'a>>;
/// A key with its place.
pub(super) type Name<'a> = Spanned<Cow<'a, str>>;

/// Reads one file and collects what is wrong with it.
pub(super) struct Reader<'a> {
    pub(super) file: FileId,
    text: &'a str,
    root: Option<&'a DeTable<'a>>,
    /// Something may be absent only because it could not be parsed.
    pub(super) broken: bool,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tree: &'a Tree<'a>) -> Self {
        Self {
            file: tree.file,
            text: tree.text,
            root: Some(&tree.root),
            broken: tree.broken,
            diagnostics: Vec::new(),
        }
    }

    /// The whole file.
    pub(super) fn file(mut self) -> (Options, Vec<Diagnostic>) {
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
        (options, self.diagnostics)
    }

    fn section(&mut self, path: &str, table: &DeTable<'_>, options: &mut Options) {
        for (name, value) in table {
            let word: &str = name.get_ref();
            let full = if path.is_empty() {
                word.to_owned()
            } else {
                format!("{path}.{word}")
            };
            if keys::LISTS.contains(&full.as_str()) {
                self.list(&full, value, options);
            } else if let Some(key) = keys::find(&full).filter(|_| !full.contains('*')) {
                let span = self.span(value.span());
                match self.value(&full, key, value) {
                    Some(value) => {
                        options.settings.insert(full, Setting { value, span });
                    }
                    None => options.refused.push(full),
                }
            } else if !keys::children(&full).is_empty() {
                match value.get_ref() {
                    DeValue::Table(inner) => self.section(&full, inner, options),
                    _ => self.wrong_type(&full, "a table", value),
                }
            } else {
                self.unknown(path, &keys::children(path), name);
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

    /// A value by the kind of its key.
    pub(super) fn value(&mut self, path: &str, key: &Key, node: &Node<'_>) -> Option<Value> {
        match key.kind {
            Kind::Version => self.version(node),
            Kind::Pool => self.pool(path, node).map(Value::Pool),
            Kind::Integer { min, max } => self.integer(path, node, min, max).map(Value::Integer),
            Kind::Duration {
                min_us,
                max_us,
                off,
            } => self.duration(path, node, min_us, max_us, off),
            Kind::Percent { min, max } => self.percent(path, node, min, max).map(Value::Percent),
            Kind::Cpus => self.cpus(path, node).map(Value::Cpus),
            Kind::Bool | Kind::Flag => self.boolean(path, node).map(Value::Bool),
            Kind::Choice(words) => self.choice(path, node, words).map(Value::Word),
            Kind::Text | Kind::Path => self.text(path, node).map(Value::Text),
            Kind::Cgroups => self
                .patterns(path, node, keys::CGROUP_FORMS)
                .map(Value::Cgroups),
            Kind::Id
            | Kind::Names
            | Kind::Ids
            | Kind::Numbers { .. }
            | Kind::Words(_)
            | Kind::Conditions
            | Kind::ConditionList => unreachable!("`{path}` stands in [[rule]] and [[test]] alone"),
        }
    }

    fn version(&mut self, node: &Node<'_>) -> Option<Value> {
        let version = self.any_integer("version", node)?;
        if version == 1 {
            return Some(Value::Integer(1));
        }
        self.push(
            Diagnostic::new(
                Code::InvalidValue,
                self.span(node.span()),
                "unknown version of the policy language",
            )
            .label(format!("version {version}"))
            .help("write `version = 1`"),
        );
        None
    }

    pub(super) fn pool(&mut self, path: &str, node: &Node<'_>) -> Option<Pool> {
        let text = self.string(path, "a pool's name", node)?;
        let found = Pool::ALL.into_iter().find(|p| p.as_str() == text);
        if found.is_none() {
            let place = self.span(node.span());
            self.unknown_pool(text, place);
        }
        found
    }

    fn unknown_pool(&mut self, word: &str, place: Span) {
        let names = Pool::ALL.map(Pool::as_str);
        let help = match nearest(word, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the pools are {}", quoted_list(&names)),
        };
        self.push(
            Diagnostic::new(Code::UnknownPool, place, format!("unknown pool `{word}`")).help(help),
        );
    }

    pub(super) fn integer(
        &mut self,
        path: &str,
        node: &Node<'_>,
        min: i64,
        max: i64,
    ) -> Option<i64> {
        let value = self.any_integer(path, node)?;
        if (min..=max).contains(&value) {
            return Some(value);
        }
        self.out_of_range(path, node, format!("not within {min} to {max}"));
        None
    }

    fn any_integer(&mut self, path: &str, node: &Node<'_>) -> Option<i64> {
        match node.get_ref() {
            DeValue::Integer(digits) => Some(saturate(digits)),
            _ => {
                self.wrong_type(path, "an integer", node);
                None
            }
        }
    }

    fn duration(
        &mut self,
        path: &str,
        node: &Node<'_>,
        min: u64,
        max: u64,
        off: bool,
    ) -> Option<Value> {
        if let DeValue::Integer(digits) = node.get_ref() {
            let help = format!("write a unit: \"{digits}ms\"");
            self.wrong_type_help(path, "a duration with a unit", node, Some(help));
            return None;
        }
        let expected = if off {
            "a duration or \"off\""
        } else {
            "a duration"
        };
        let text = self.string(path, expected, node)?;
        if off && text == "off" {
            return Some(Value::Off);
        }
        let us = self.check(path, "a duration", node, scalar::duration_us(text))?;
        if (min..=max).contains(&us) {
            return Some(Value::Micros(us));
        }
        let (min, max) = (scalar::show_us(min), scalar::show_us(max));
        self.out_of_range(path, node, format!("not within {min} to {max}"));
        None
    }

    /// A slice, for the keys that stand in `[[rule]]`.
    pub(super) fn slice(&mut self, path: &str, key: &Key, node: &Node<'_>) -> Option<u64> {
        match self.value(path, key, node)? {
            Value::Micros(us) => Some(us),
            _ => None,
        }
    }

    fn percent(&mut self, path: &str, node: &Node<'_>, min: u32, max: u32) -> Option<u32> {
        if let DeValue::Integer(digits) = node.get_ref() {
            let help = format!("write \"{digits}%\"");
            self.wrong_type_help(path, "a percentage", node, Some(help));
            return None;
        }
        let text = self.string(path, "a percentage", node)?;
        let number = self.check(path, "a percentage", node, scalar::percent(text))?;
        match u32::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Some(number),
            _ => {
                self.out_of_range(path, node, format!("not within {min} % to {max} %"));
                None
            }
        }
    }

    fn cpus(&mut self, path: &str, node: &Node<'_>) -> Option<Cpus> {
        match node.get_ref() {
            DeValue::Integer(_) => {
                let count = self.integer(path, node, 0, MAX_CPU_COUNT)?;
                Some(Cpus::Count(count as u32))
            }
            DeValue::String(_) => self.percent(path, node, 0, 100).map(Cpus::Percent),
            _ => {
                self.wrong_type(path, "a count of CPUs or a percentage", node);
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, path: &str, node: &Node<'_>) -> Option<bool> {
        match node.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            DeValue::String(text) if matches!(&**text, "true" | "false") => {
                let help = Some(format!("write {text} without quotes"));
                self.wrong_type_help(path, "true or false", node, help);
                None
            }
            _ => {
                self.wrong_type(path, "true or false", node);
                None
            }
        }
    }

    pub(super) fn choice(
        &mut self,
        path: &str,
        node: &Node<'_>,
        words: &'static [&'static str],
    ) -> Option<&'static str> {
        let text = self.string(path, "a string", node)?;
        self.check(path, "a known word", node, scalar::word(text, words))
    }

    /// A string that is not empty.
    pub(super) fn text(&mut self, path: &str, node: &Node<'_>) -> Option<Text> {
        self.text_of(path, "a string", node)
    }

    pub(super) fn text_of(&mut self, path: &str, expected: &str, node: &Node<'_>) -> Option<Text> {
        let value = self.string(path, expected, node)?;
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

    fn string<'n>(&mut self, path: &str, expected: &str, node: &'n Node<'_>) -> Option<&'n str> {
        match node.get_ref() {
            DeValue::String(text) => Some(text),
            _ => {
                self.wrong_type(path, expected, node);
                None
            }
        }
    }

    fn check<T>(
        &mut self,
        path: &str,
        what: &str,
        node: &Node<'_>,
        read: Result<T, Fault>,
    ) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(fault) => {
                let summary = format!("`{path}` needs {what}");
                let diagnostic =
                    Diagnostic::new(Code::InvalidValue, self.span(node.span()), summary)
                        .label(fault.label);
                self.push(match fault.help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
                None
            }
        }
    }

    fn out_of_range(&mut self, path: &str, node: &Node<'_>, label: String) {
        let summary = format!("`{path}` is out of range");
        self.push(Diagnostic::new(Code::OutOfRange, self.span(node.span()), summary).label(label));
    }

    pub(super) fn wrong_type(&mut self, path: &str, expected: &str, node: &Node<'_>) {
        self.wrong_type_help(path, expected, node, None);
    }

    pub(super) fn wrong_type_help(
        &mut self,
        path: &str,
        expected: &str,
        node: &Node<'_>,
        help: Option<String>,
    ) {
        let summary = format!("`{path}` needs {expected}");
        let label = format!("this is {}", type_name(node.get_ref()));
        let diagnostic =
            Diagnostic::new(Code::InvalidType, self.span(node.span()), summary).label(label);
        self.push(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }

    /// A key that `section` does not have.
    pub(super) fn unknown(&mut self, section: &str, allowed: &[&'static str], name: &Name<'_>) {
        let word: &str = name.get_ref();
        let place = self.span(name.span());
        if section == "pool" {
            return self.unknown_pool(word, place);
        }
        let homes = keys::homes(word);
        let help = match nearest(word, allowed.iter().copied()) {
            _ if !homes.is_empty() => format!("`{word}` belongs into {}", homes.join(" or ")),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", quoted_list(allowed)),
        };
        let mut diagnostic =
            Diagnostic::new(Code::UnknownKey, place, format!("unknown key `{word}`")).help(help);
        if !section.is_empty() {
            diagnostic = diagnostic.label(format!("not a key of `{section}`"));
        }
        self.push(diagnostic);
    }

    pub(super) fn missing(&mut self, path: &str, place: Span, help: &str) {
        if !self.broken {
            let summary = format!("missing key `{path}`");
            self.push(Diagnostic::new(Code::MissingKey, place, summary).help(help));
        }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn span(&self, range: Range<usize>) -> Span {
        span(self.file, range.start, range.end)
    }
}

/// Digits as a number; beyond 64 bits the nearest end, which no range includes.
fn saturate(digits: &DeInteger<'_>) -> i64 {
    let text = digits.as_str();
    let end = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    i64::from_str_radix(text, digits.radix()).unwrap_or(end)
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
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

/// A default of the table of keys.
pub(super) fn default_value(key: &Key, text: &str) -> Value {
    let node = DeValue::parse(text).expect("defaults are TOML");
    let mut reader = Reader {
        file: FileId(0),
        text,
        root: None,
        broken: false,
        diagnostics: Vec::new(),
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

    #[test]
    fn only_escapes_that_change_a_pattern_are_suspicious() {
        assert_eq!(pattern_escape(r"app\x2dx"), Some(3..7));
        assert_eq!(pattern_escape(r"\\x2d"), None);
        assert_eq!(pattern_escape(r"a\bb"), Some(1..3));
        assert_eq!(pattern_escape(r"a\tb\nc"), None);
    }
}
