//! Where each key of a text was given first, for `duplicate-key`.
//!
//! The TOML tree cannot tell: it holds one place a key, and not always the first. So the parser's
//! events are walked once more, and only when a duplicate was found.

use std::collections::HashMap;

use toml_parser::parser::{Event, EventKind, parse_document};

/// First places by full path. Components `#N` tell the tables of an array and inline tables apart.
#[derive(Default)]
pub struct Firsts {
    first: HashMap<String, usize>,
    path_at: HashMap<usize, String>,
}

impl Firsts {
    /// Walks a text.
    pub fn of(text: &str) -> Self {
        let tokens = toml_parser::Source::new(text).lex().into_vec();
        let mut walk = Walk {
            tables: vec![String::new()],
            ..Walk::default()
        };
        let mut receiver = |event: Event| walk.event(text, event);
        parse_document(&tokens, &mut receiver, &mut ());
        walk.firsts
    }

    /// The dotted name and the first place of the key that is given at a byte offset.
    pub fn lookup(&self, at: usize) -> Option<(String, usize)> {
        let path = self.path_at.get(&at)?;
        let name: Vec<&str> = path.split('.').filter(|p| !p.starts_with('#')).collect();
        Some((name.join("."), *self.first.get(path)?))
    }

    fn note(&mut self, path: &str, at: usize) {
        self.first.entry(path.to_owned()).or_insert(at);
        self.path_at.insert(at, path.to_owned());
    }
}

#[derive(Default)]
struct Walk {
    firsts: Firsts,
    /// The table of the current header, then the inline tables that are open.
    tables: Vec<String>,
    /// The key whose value is being read.
    last_key: String,
    /// Components of the key being read, with their places.
    key: Vec<(String, usize)>,
    in_array_header: bool,
    /// Tables so far of each array of tables.
    arrays: HashMap<String, usize>,
    inline_tables: usize,
}

impl Walk {
    fn event(&mut self, text: &str, event: Event) {
        let span = event.span();
        match event.kind() {
            kind @ (EventKind::StdTableOpen | EventKind::ArrayTableOpen) => {
                self.key.clear();
                self.in_array_header = kind == EventKind::ArrayTableOpen;
            }
            EventKind::StdTableClose | EventKind::ArrayTableClose => self.close_header(),
            EventKind::SimpleKey => {
                let word = text[span.start()..span.end()].trim_matches(['"', '\'']);
                self.key.push((word.to_owned(), span.start()));
            }
            EventKind::KeyValSep => {
                let base = self.tables.last().cloned().unwrap_or_default();
                self.last_key = self.descend(base);
            }
            EventKind::InlineTableOpen => {
                self.inline_tables += 1;
                self.tables
                    .push(format!("{}.#{}", self.last_key, self.inline_tables));
            }
            EventKind::InlineTableClose if self.tables.len() > 1 => {
                let closed = self.tables.pop().unwrap_or_default();
                self.last_key = closed
                    .rsplit_once(".#")
                    .map_or(String::new(), |(key, _)| key.to_owned());
            }
            _ => {}
        }
    }

    fn close_header(&mut self) {
        let mut path = self.descend(String::new());
        if self.in_array_header {
            let n = self.arrays.entry(path.clone()).or_insert(0);
            *n += 1;
            path = format!("{path}.#{n}");
        }
        self.tables = vec![path];
    }

    /// Walks the components of the key just read below `base`, into the last table of each array.
    fn descend(&mut self, base: String) -> String {
        let mut path = base;
        let key = std::mem::take(&mut self.key);
        for (i, (word, at)) in key.iter().enumerate() {
            path = if path.is_empty() {
                word.clone()
            } else {
                format!("{path}.{word}")
            };
            if i + 1 == key.len() {
                self.firsts.note(&path, *at);
                continue;
            }
            self.firsts.first.entry(path.clone()).or_insert(*at);
            if let Some(n) = self.arrays.get(&path) {
                path = format!("{path}.#{n}");
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_of_last(text: &str, word: &str) -> Option<(String, usize)> {
        Firsts::of(text).lookup(text.rfind(word).expect("the word is in the text"))
    }

    #[test]
    fn a_key_and_a_table_given_twice_find_their_first_place() {
        assert_eq!(
            first_of_last("a = 1\nb = 2\na = 3\n", "a"),
            Some(("a".into(), 0))
        );
        assert_eq!(
            first_of_last("pool.critical.weight = 1\n[pool.critical]\n", "critical"),
            Some(("pool.critical".into(), 5))
        );
        assert_eq!(
            first_of_last("[pool.critical]\nweight = 1\n[pool.critical]\n", "critical"),
            Some(("pool.critical".into(), 6))
        );
    }

    #[test]
    fn tables_of_an_array_and_inline_tables_are_told_apart() {
        let text = "[[rule]]\npool = 'a'\n[[rule]]\npool = 'b'\n";
        assert_eq!(
            first_of_last(text, "pool"),
            Some(("rule.pool".into(), text.rfind("pool").unwrap()))
        );
        let text = "[[rule]]\nany = [{ nice = 1 }, { nice = 2, nice = 3 }]\n";
        let second = text.find("nice = 2").unwrap();
        assert_eq!(
            first_of_last(text, "nice"),
            Some(("rule.any.nice".into(), second))
        );
    }
}
