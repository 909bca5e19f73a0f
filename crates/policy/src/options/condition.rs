//! Conditions as written: patterns on names and cgroups, numbers and ranges, words.

use toml::de::{DeTable, DeValue};
use twopool_diag::{Code, Diagnostic};

use super::read::{Node, Reader};
use super::scalar::quoted_list;
use super::{ConditionOptions, Form, NumberItem, Numbers, PatternOptions, sched};
use crate::keys::{self, Key, Kind};
use crate::policy::Sched;
use crate::suggest::nearest;

impl Reader<'_> {
    /// One condition into its place. `key` must be a condition of the table of keys.
    pub(super) fn condition(
        &mut self,
        into: &mut ConditionOptions,
        name: &'static str,
        key: &Key,
        path: &str,
        node: &Node<'_>,
    ) {
        into.spans.insert(name, self.span(node.span()));
        match (name, key.kind) {
            ("thread", _) => into.thread = self.patterns(path, node, keys::NAME_FORMS),
            ("process", _) => into.process = self.patterns(path, node, keys::NAME_FORMS),
            ("cgroup", _) => into.cgroup = self.patterns(path, node, keys::CGROUP_FORMS),
            ("user", _) => into.user = self.numbers(path, node, keys::IDS, true),
            ("group", _) => into.group = self.numbers(path, node, keys::IDS, true),
            ("nice", Kind::Numbers { min, max }) => {
                into.nice = self.numbers(path, node, (min, max), false)
            }
            ("hint", Kind::Numbers { min, max }) => {
                into.hint = self.numbers(path, node, (min, max), false)
            }
            ("kthread", _) => into.kthread = self.boolean(path, node),
            ("leader", _) => into.leader = self.boolean(path, node),
            ("sched", Kind::Words(words)) => into.sched = self.scheds(path, node, words),
            _ => unreachable!("`{name}` is not a condition"),
        }
    }

    /// A table that holds conditions alone: `not`, or one of `any`.
    pub(super) fn conditions(&mut self, path: &str, node: &Node<'_>) -> Option<ConditionOptions> {
        let DeValue::Table(table) = node.get_ref() else {
            self.wrong_type(path, "a table of conditions", node);
            return None;
        };
        if table.is_empty() {
            self.empty(path, "table", node);
            return None;
        }
        let mut conditions = ConditionOptions::default();
        for (name, value) in table {
            let word: &str = name.get_ref();
            let key = keys::find(&format!("rule.{word}")).filter(|k| k.kind.is_condition());
            match key {
                Some(key) => {
                    let short = key.path.trim_start_matches("rule.");
                    self.condition(
                        &mut conditions,
                        short,
                        key,
                        &format!("{path}.{word}"),
                        value,
                    );
                }
                None if matches!(word, "not" | "any") => {
                    let place = self.span(name.span());
                    self.push(
                        Diagnostic::new(Code::UnknownKey, place, format!("unknown key `{word}`"))
                            .label(format!("not inside `{path}`"))
                            .help("`not` and `any` hold plain conditions only; split the rule in two instead"),
                    );
                }
                None => self.unknown(path, keys::conditions, name),
            }
        }
        Some(conditions)
    }

    /// A pattern, or a list of patterns. `forms` are the forms that the dimension has.
    pub(super) fn patterns(
        &mut self,
        path: &str,
        node: &Node<'_>,
        forms: &'static [&'static str],
    ) -> Option<Vec<PatternOptions>> {
        let mut out = Vec::new();
        let before = self.complaints;
        match node.get_ref() {
            DeValue::Array(items) => {
                if items.is_empty() {
                    self.empty(path, "list", node);
                }
                for item in items.iter() {
                    self.pattern(path, item, forms, &mut out);
                }
            }
            _ => self.pattern(path, node, forms, &mut out),
        }
        (self.complaints == before && !out.is_empty()).then_some(out)
    }

    fn pattern(
        &mut self,
        path: &str,
        node: &Node<'_>,
        forms: &'static [&'static str],
        out: &mut Vec<PatternOptions>,
    ) {
        match node.get_ref() {
            DeValue::Table(table) => self.pattern_table(path, node, table, forms, out),
            _ => {
                let expected = format!("a string or a table with one of {}", quoted_list(forms));
                if let Some(text) = self.text_of(path, &expected, node) {
                    out.push(PatternOptions {
                        form: Form::Bare,
                        text,
                    });
                }
            }
        }
    }

    fn pattern_table(
        &mut self,
        path: &str,
        node: &Node<'_>,
        table: &DeTable<'_>,
        forms: &'static [&'static str],
        out: &mut Vec<PatternOptions>,
    ) {
        let mut known = 0;
        for (name, value) in table {
            let word: &str = name.get_ref();
            let form = if forms.contains(&word) {
                form_of(word)
            } else {
                None
            };
            let Some(form) = form else {
                let place = self.span(name.span());
                self.push(
                    Diagnostic::new(Code::UnknownKey, place, format!("unknown key `{word}`"))
                        .label(format!("not a form of `{path}`"))
                        .help(form_help(word, forms)),
                );
                continue;
            };
            known += 1;
            let items = match value.get_ref() {
                DeValue::Array(items) if items.is_empty() => {
                    self.empty(&format!("{path}.{word}"), "list", value);
                    continue;
                }
                DeValue::Array(items) => items.iter().collect(),
                _ => vec![value],
            };
            for item in items {
                if let Some(text) = self.text_of(
                    &format!("{path}.{word}"),
                    "a string or a list of strings",
                    item,
                ) {
                    out.push(PatternOptions { form, text });
                }
            }
        }
        if table.is_empty() {
            self.empty(path, "table", node);
        } else if known > 1 {
            let place = self.span(node.span());
            self.push(
                Diagnostic::new(
                    Code::InvalidValue,
                    place,
                    format!("`{path}` has a table with several forms"),
                )
                .label(format!("exactly one of {}", quoted_list(forms)))
                .help("write a list: [{ .. }, { .. }]"),
            );
        }
    }

    fn numbers(
        &mut self,
        path: &str,
        node: &Node<'_>,
        range: (i64, i64),
        names: bool,
    ) -> Option<Numbers> {
        let before = self.complaints;
        let mut items = Vec::new();
        match node.get_ref() {
            DeValue::Array(list) => {
                if list.is_empty() {
                    self.empty(path, "list", node);
                }
                for item in list.iter() {
                    items.extend(self.number(path, item, range, names));
                }
            }
            _ => items.extend(self.number(path, node, range, names)),
        }
        let whole = self.complaints == before && !items.is_empty();
        whole.then(|| Numbers {
            items,
            span: self.span(node.span()),
        })
    }

    fn number(
        &mut self,
        path: &str,
        node: &Node<'_>,
        (min, max): (i64, i64),
        names: bool,
    ) -> Option<NumberItem> {
        match node.get_ref() {
            DeValue::Integer(_) => self.integer(path, node, min, max).map(NumberItem::One),
            DeValue::Table(table) => self.range(path, node, table, (min, max)),
            DeValue::String(text) if names => {
                if self.refuse_quoted_id(path, text, node) {
                    return None;
                }
                self.text(path, node).map(NumberItem::Name)
            }
            _ => {
                let expected = match names {
                    true => "a name, an id, a range or a list",
                    false => "a number, a range or a list",
                };
                self.no_number(path, expected, node);
                None
            }
        }
    }

    fn range(
        &mut self,
        path: &str,
        node: &Node<'_>,
        table: &DeTable<'_>,
        (least, most): (i64, i64),
    ) -> Option<NumberItem> {
        let before = self.complaints;
        let (mut min, mut max) = (None, None);
        for (name, value) in table {
            let word: &str = name.get_ref();
            let inner = format!("{path}.{word}");
            match word {
                "min" => min = self.integer(&inner, value, least, most),
                "max" => max = self.integer(&inner, value, least, most),
                _ => self.unknown(path, || keys::BOUNDS.to_vec(), name),
            }
        }
        if table.is_empty() {
            self.empty(path, "table", node);
        }
        if let (Some(low), Some(high)) = (min, max)
            && low > high
        {
            let place = self.span(node.span());
            self.push(
                Diagnostic::new(
                    Code::InvalidValue,
                    place,
                    format!("`{path}` has an empty range"),
                )
                .label(format!("min {low} is above max {high}")),
            );
        }
        (self.complaints == before).then_some(NumberItem::Range(min, max))
    }

    fn scheds(
        &mut self,
        path: &str,
        node: &Node<'_>,
        words: &'static [&'static str],
    ) -> Option<Vec<Sched>> {
        let before = self.complaints;
        let mut out = Vec::new();
        match node.get_ref() {
            DeValue::Array(list) => {
                if list.is_empty() {
                    self.empty(path, "list", node);
                }
                for item in list.iter() {
                    out.extend(self.choice(path, item, words).and_then(sched));
                }
            }
            DeValue::String(_) => out.extend(self.choice(path, node, words).and_then(sched)),
            _ => {
                let help = format!("the words are {}", quoted_list(words));
                self.wrong_type_help(path, "a word or a list of words", node, Some(help));
            }
        }
        (self.complaints == before).then_some(out)
    }

    pub(super) fn empty(&mut self, path: &str, what: &str, node: &Node<'_>) {
        let place = self.span(node.span());
        self.push(
            Diagnostic::new(
                Code::InvalidValue,
                place,
                format!("`{path}` has an empty {what}"),
            )
            .help("leave the key out to ask nothing"),
        );
    }
}

fn form_of(word: &str) -> Option<Form> {
    Some(match word {
        "exact" => Form::Exact,
        "prefix" => Form::Prefix,
        "under" => Form::Under,
        "glob" => Form::Glob,
        "regex" => Form::Regex,
        _ => return None,
    })
}

fn form_help(word: &str, forms: &'static [&'static str]) -> String {
    let has = |form| forms.contains(&form);
    match word {
        "prefix" if has("under") => "write `under` for a cgroup and everything below it".to_owned(),
        "under" if has("prefix") => "`under` is for cgroups; names have `prefix`".to_owned(),
        "suffix" => "write a glob: \"*..\"".to_owned(),
        "contains" => "write a glob: \"*..*\"".to_owned(),
        _ => match nearest(word, forms.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the forms are {}", quoted_list(forms)),
        },
    }
}
