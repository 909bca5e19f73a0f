//! `[[rule]]` and `[[test]]` as written.

use toml::de::{DeTable, DeValue};
use twopool_diag::{Code, Diagnostic};

use super::read::{Node, Reader, is_plain};
use super::{ConditionOptions, IdOptions, RuleOptions, TestOptions, sched};
use crate::keys::{self, Kind};
use crate::limits::{MAX_ID, MAX_RULE_NAME_BYTES};

impl Reader<'_> {
    pub(super) fn rule(&mut self, table: &DeTable<'_>, node: &Node<'_>) -> RuleOptions {
        let mut rule = RuleOptions {
            name: None,
            pool: None,
            all: ConditionOptions::default(),
            any: None,
            not: None,
            slice_us: None,
            weight: None,
            hints: None,
            header: self.span(node.span()),
        };
        for (name, value) in table {
            let word: &str = name.get_ref();
            let place = self.span(value.span());
            let path = format!("rule.{word}");
            let Some(key) = keys::find(&path).filter(|_| is_plain(word)) else {
                self.unknown("rule", || keys::children("rule"), name);
                continue;
            };
            match word {
                "name" => rule.name = self.rule_name(value),
                "pool" => rule.pool = self.pool(&path, value).map(|p| (p, place)),
                "slice" => rule.slice_us = self.slice(&path, key, value).map(|us| (us, place)),
                "weight" => {
                    let weight = self.weight(&path, key.kind, value);
                    rule.weight = weight.map(|w| (w, place));
                }
                "hints" => rule.hints = self.boolean(&path, value).map(|on| (on, place)),
                "not" => rule.not = self.conditions("rule.not", value),
                "any" => rule.any = self.any(value).map(|list| (list, place)),
                _ => {
                    let short = key.path.trim_start_matches("rule.");
                    self.condition(&mut rule.all, short, key, &path, value);
                }
            }
        }
        if !table.iter().any(|(name, _)| &**name.get_ref() == "pool") {
            self.missing(
                "pool",
                rule.header,
                "write `pool = \"critical\"` or `pool = \"background\"`",
            );
        }
        rule
    }

    fn rule_name(&mut self, node: &Node<'_>) -> Option<super::Text> {
        let text = self.text("rule.name", node)?;
        let bytes = text.value.len();
        if bytes > MAX_RULE_NAME_BYTES {
            self.push(
                Diagnostic::new(
                    Code::LimitExceeded,
                    text.span,
                    "the name of a rule is too long",
                )
                .label(format!("{bytes} bytes; at most {MAX_RULE_NAME_BYTES} fit")),
            );
            return None;
        }
        Some(text)
    }

    fn weight(&mut self, path: &str, kind: Kind, node: &Node<'_>) -> Option<u32> {
        let Kind::Integer { min, max } = kind else {
            unreachable!("a weight is an integer")
        };
        let weight = self.integer(path, node, min, max)?;
        u32::try_from(weight).ok()
    }

    fn any(&mut self, node: &Node<'_>) -> Option<Vec<ConditionOptions>> {
        let DeValue::Array(items) = node.get_ref() else {
            self.wrong_type("rule.any", "a list of tables of conditions", node);
            return None;
        };
        if items.is_empty() {
            self.empty("rule.any", "list", node);
            return None;
        }
        let read: Vec<_> = items
            .iter()
            .map(|item| self.conditions("rule.any", item))
            .collect();
        read.into_iter().collect()
    }

    pub(super) fn test(&mut self, table: &DeTable<'_>, node: &Node<'_>) -> TestOptions {
        let mut test = TestOptions {
            name: None,
            thread: None,
            process: None,
            cgroup: None,
            user: None,
            group: None,
            nice: None,
            kthread: None,
            leader: None,
            sched: None,
            hint: None,
            expect: None,
            pool: None,
            rule: None,
            header: self.span(node.span()),
        };
        let mut has_expectation = false;
        for (name, value) in table {
            let word: &str = name.get_ref();
            let path = format!("test.{word}");
            if word == "expect" {
                has_expectation = true;
                test.expect = Some(self.span(value.span()));
                self.expectation(&mut test, value);
                continue;
            }
            let Some(key) = keys::find(&path).filter(|_| is_plain(word)) else {
                self.unknown("test", || keys::children("test"), name);
                continue;
            };
            match (word, key.kind) {
                ("name", _) => test.name = self.text(&path, value),
                ("thread", _) => test.thread = self.text(&path, value),
                ("process", _) => test.process = self.text(&path, value),
                ("cgroup", _) => test.cgroup = self.text(&path, value),
                ("user", _) => test.user = self.id(&path, value),
                ("group", _) => test.group = self.id(&path, value),
                ("nice", Kind::Integer { min, max }) => {
                    test.nice = self.integer(&path, value, min, max)
                }
                ("hint", Kind::Integer { min, max }) => {
                    test.hint = self.integer(&path, value, min, max)
                }
                ("kthread", _) => test.kthread = self.boolean(&path, value),
                ("leader", _) => test.leader = self.boolean(&path, value),
                ("sched", Kind::Choice(words)) => {
                    test.sched = self.choice(&path, value, words).and_then(sched)
                }
                _ => unreachable!("`{path}` is a key of the table of keys"),
            }
        }
        if !table.iter().any(|(name, _)| &**name.get_ref() == "thread") {
            self.missing(
                "thread",
                test.header,
                "name the thread that the test is about: `thread = \"..\"`",
            );
        }
        if !has_expectation {
            self.missing(
                "expect",
                test.header,
                "say what must come out: `expect = { pool = \"critical\" }`",
            );
        }
        test
    }

    fn expectation(&mut self, test: &mut TestOptions, node: &Node<'_>) {
        let DeValue::Table(table) = node.get_ref() else {
            return self.wrong_type("test.expect", "a table", node);
        };
        let mut has_pool = false;
        for (name, value) in table {
            let word: &str = name.get_ref();
            match word {
                "pool" => {
                    has_pool = true;
                    let place = self.span(value.span());
                    test.pool = self.pool("test.expect.pool", value).map(|p| (p, place));
                }
                "rule" => test.rule = self.text("test.expect.rule", value),
                _ => self.unknown("test.expect", || keys::children("test.expect"), name),
            }
        }
        if !has_pool {
            let place = self.span(node.span());
            self.missing(
                "expect.pool",
                place,
                "write `expect = { pool = \"critical\" }`",
            );
        }
    }

    fn id(&mut self, path: &str, node: &Node<'_>) -> Option<IdOptions> {
        match node.get_ref() {
            DeValue::Integer(_) => {
                let id = self.integer(path, node, 0, MAX_ID)?;
                u64::try_from(id).ok().map(IdOptions::Number)
            }
            DeValue::String(text) if self.refuse_quoted_id(path, text, node) => None,
            _ => {
                let text = self.text_of(path, "a name or an id", node)?;
                Some(IdOptions::Name(text.value))
            }
        }
    }
}
