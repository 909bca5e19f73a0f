//! Where each key of a text was given first, for `duplicate-key`.
//!
//! The TOML tree cannot tell: it holds one place a key, and not always the first. So the parser's
//! events are walked once more, and only when a duplicate was found.
//!
//! Invariant: time and memory are linear in the text. A key is a node below its table's node, so
//! that a long header costs its length once and not for each of its keys, and nesting ends where
//! the parser proper ends it.

use std::collections::HashMap;

use toml_parser::parser::{Event, EventKind, RecursionGuard, parse_document};

use crate::text::beginning;

/// As deep as the parser of the tree goes; the walk recurses with the text.
pub const MAX_DEPTH: u32 = 80;
/// Components of a key's name that a message shows, the last ones: no key of ours has more.
const MAX_SHOWN: usize = 8;
/// Bytes of one component that a message shows.
const MAX_SHOWN_BYTES: usize = 64;

/// The root of all keys.
const ROOT: u32 = 0;

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step<'a> {
    Key(&'a str),
    /// The n-th table of an array.
    Nth(usize),
    /// The n-th inline table of the text.
    Inline(usize),
}

#[derive(Debug)]
struct Node<'a> {
    parent: u32,
    step: Step<'a>,
    first: usize,
}

/// First places of all keys.
#[derive(Default)]
pub struct Firsts<'a> {
    nodes: Vec<Node<'a>>,
    children: HashMap<(u32, Step<'a>), u32>,
    node_at: HashMap<usize, u32>,
}

impl<'a> Firsts<'a> {
    /// Walks a text.
    pub fn of(text: &'a str) -> Self {
        let tokens = toml_parser::Source::new(text).lex().into_vec();
        let mut walk = Walk::new();
        let mut receiver = |event: Event| walk.event(text, event);
        let mut bounded = RecursionGuard::new(&mut receiver, MAX_DEPTH);
        parse_document(&tokens, &mut bounded, &mut ());
        walk.firsts
    }

    /// The dotted name and the first place of the key that is given at a byte offset. Of a name
    /// that is longer than any of ours, the end.
    pub fn lookup(&self, at: usize) -> Option<(String, usize)> {
        let id = *self.node_at.get(&at)?;
        let steps = std::iter::successors(Some(id), |id| Some(self.nodes[*id as usize].parent))
            .take_while(|id| *id != ROOT);
        let words = steps.filter_map(|id| match self.nodes[id as usize].step {
            Step::Key(word) => Some(shown(word)),
            Step::Nth(_) | Step::Inline(_) => None,
        });
        let mut name: Vec<String> = words.take(MAX_SHOWN).collect();
        name.reverse();
        Some((name.join("."), self.nodes[id as usize].first))
    }

    /// The node below another one; `at` is its first place if it is new.
    fn child(&mut self, parent: u32, step: Step<'a>, at: usize) -> u32 {
        let nodes = &mut self.nodes;
        *self.children.entry((parent, step)).or_insert_with(|| {
            nodes.push(Node {
                parent,
                step,
                first: at,
            });
            nodes.len() as u32 - 1
        })
    }
}

/// A component of a key, cut where it is longer than any of ours.
fn shown(word: &str) -> String {
    match word.len() {
        0..=MAX_SHOWN_BYTES => word.to_owned(),
        _ => format!("{}..", beginning(word, MAX_SHOWN_BYTES)),
    }
}

struct Walk<'a> {
    firsts: Firsts<'a>,
    /// The table of the current header, then the inline tables that are open.
    tables: Vec<u32>,
    /// The key whose value is being read.
    last_key: u32,
    /// Components of the key being read, with their places.
    key: Vec<(&'a str, usize)>,
    in_array_header: bool,
    /// Tables so far of each array of tables.
    arrays: HashMap<u32, usize>,
    inline_tables: usize,
}

impl<'a> Walk<'a> {
    fn new() -> Self {
        let mut firsts = Firsts::default();
        let root = firsts.child(ROOT, Step::Nth(0), 0);
        Self {
            firsts,
            tables: vec![root],
            last_key: root,
            key: Vec::new(),
            in_array_header: false,
            arrays: HashMap::new(),
            inline_tables: 0,
        }
    }

    fn event(&mut self, text: &'a str, event: Event) {
        let span = event.span();
        match event.kind() {
            kind @ (EventKind::StdTableOpen | EventKind::ArrayTableOpen) => {
                self.key.clear();
                self.in_array_header = kind == EventKind::ArrayTableOpen;
            }
            EventKind::StdTableClose | EventKind::ArrayTableClose => self.close_header(),
            EventKind::SimpleKey => {
                let word = text[span.start()..span.end()].trim_matches(['"', '\'']);
                self.key.push((word, span.start()));
            }
            EventKind::KeyValSep => {
                let base = self.tables.last().copied().unwrap_or(ROOT);
                self.last_key = self.descend(base);
            }
            EventKind::InlineTableOpen => {
                self.inline_tables += 1;
                let step = Step::Inline(self.inline_tables);
                let table = self.firsts.child(self.last_key, step, span.start());
                self.tables.push(table);
            }
            EventKind::InlineTableClose if self.tables.len() > 1 => {
                let closed = self.tables.pop().unwrap_or(ROOT);
                self.last_key = self.firsts.nodes[closed as usize].parent;
            }
            _ => {}
        }
    }

    fn close_header(&mut self) {
        let mut table = self.descend(ROOT);
        if self.in_array_header {
            let n = self.arrays.entry(table).or_insert(0);
            *n += 1;
            let step = Step::Nth(*n);
            table = self.firsts.child(table, step, 0);
        }
        self.tables = vec![table];
    }

    /// Walks the components of the key just read below `base`, into the last table of each array.
    fn descend(&mut self, base: u32) -> u32 {
        let mut node = base;
        let key = std::mem::take(&mut self.key);
        for (i, (word, at)) in key.iter().enumerate() {
            node = self.firsts.child(node, Step::Key(word), *at);
            if i + 1 == key.len() {
                self.firsts.node_at.insert(*at, node);
            } else if let Some(n) = self.arrays.get(&node) {
                node = self.firsts.child(node, Step::Nth(*n), *at);
            }
        }
        node
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
    fn a_long_header_costs_its_length_once() {
        let header = "h".repeat(100_000);
        let keys: String = (0..20_000).map(|i| format!("a{i}=1\n")).collect();
        let text = format!("[{header}]\n{keys}a1=1\n");
        let (name, first) = first_of_last(&text, "a1=").expect("found");
        assert_eq!(name, format!("{}...a1", &header[..64]));
        assert_eq!(first, text.find("a1=").unwrap());
        // Each key as a whole path would be two gigabytes.
        let firsts = Firsts::of(&text);
        assert_eq!(firsts.nodes.len(), 1 + 1 + 20_000);
    }

    #[test]
    fn nesting_ends_before_the_stack_does() {
        for open in ["[", "{x="] {
            let text = format!("a=1\na=1\nb={}", open.repeat(200_000));
            assert_eq!(Firsts::of(&text).lookup(4), Some(("a".into(), 0)));
        }
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
