//! One value by the kind of its key: its type, its range, its words.
//!
//! A value that does not fit is reported and becomes `None`.

use toml::de::{DeInteger, DeValue};
use twopool_diag::{Code, Diagnostic};

use super::Value;
use super::read::{Node, Reader};
use super::scalar::{self, Fault};
use crate::keys::{self, Key, Kind};
use crate::limits::{MAX_CPU_COUNT, MAX_ID};
use crate::policy::{Cpus, Pool};
use crate::text::is_number;

impl Reader<'_> {
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
        let DeValue::String(text) = node.get_ref() else {
            let help = format!(
                "the pools are {}",
                scalar::quoted_list(&Pool::ALL.map(Pool::as_str))
            );
            self.wrong_type_help(path, "a pool's name", node, Some(help));
            return None;
        };
        let found = Pool::ALL.into_iter().find(|p| p.as_str() == text);
        if found.is_none() {
            let place = self.span(node.span());
            self.unknown_pool(text, place);
        }
        found
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

    /// Refuses a number in quotes where a name may stand: no user is called `1000`, and `-1` is
    /// nobody's name but an id that does not exist.
    pub(super) fn refuse_quoted_id(&mut self, path: &str, text: &str, node: &Node<'_>) -> bool {
        if !is_number(text) {
            return false;
        }
        match text.parse::<i64>() {
            Ok(id @ 0..=MAX_ID) => {
                let help = Some(format!("write {id} without quotes"));
                self.wrong_type_help(path, "an id as a number, or a name", node, help);
            }
            _ => self.out_of_range(path, node, format!("not within 0 to {MAX_ID}")),
        }
        true
    }

    fn any_integer(&mut self, path: &str, node: &Node<'_>) -> Option<i64> {
        match node.get_ref() {
            DeValue::Integer(digits) => Some(saturate(digits)),
            _ => {
                self.no_number(path, "an integer", node);
                None
            }
        }
    }

    /// A value that is no integer where one is needed: often one in quotes, or a float.
    pub(super) fn no_number(&mut self, path: &str, expected: &str, node: &Node<'_>) {
        let help = match node.get_ref() {
            DeValue::String(text) if is_number(text) => Some(format!(
                "write {} without quotes",
                text.trim_start_matches('+')
            )),
            DeValue::Float(float) => {
                let whole = float
                    .as_str()
                    .strip_suffix(".0")
                    .filter(|text| is_number(text));
                whole.map(|whole| format!("write {whole}"))
            }
            _ => None,
        };
        self.wrong_type_help(path, expected, node, help);
    }

    fn duration(
        &mut self,
        path: &str,
        node: &Node<'_>,
        min: u64,
        max: u64,
        off: bool,
    ) -> Option<Value> {
        if let DeValue::Integer(_) | DeValue::Float(_) = node.get_ref() {
            let number = self.source(node);
            let help = match number {
                "0" if off => "write \"0us\", or \"off\" for never".to_owned(),
                _ => format!("write a unit: \"{number}ms\""),
            };
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
            other => {
                let help = match other {
                    DeValue::String(text) => match &**text {
                        "true" | "yes" | "on" => Some("write true without quotes"),
                        "false" | "no" | "off" => Some("write false without quotes"),
                        _ => None,
                    },
                    DeValue::Integer(digits) => match digits.as_str() {
                        "0" => Some("write false"),
                        "1" => Some("write true"),
                        _ => None,
                    },
                    _ => None,
                };
                self.wrong_type_help(path, "true or false", node, help.map(str::to_owned));
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
        let DeValue::String(text) = node.get_ref() else {
            let help = format!("one of {}", scalar::quoted_list(words));
            self.wrong_type_help(path, "a word", node, Some(help));
            return None;
        };
        self.check(path, "a known word", node, scalar::word(text, words))
    }

    /// A value as it is written.
    pub(super) fn source(&self, node: &Node<'_>) -> &str {
        self.text.get(node.span()).unwrap_or_default()
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
