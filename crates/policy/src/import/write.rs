//! The text of an imported policy: strings, comments and names of rules that cannot break out of
//! their place, whatever a foreign file holds.

use std::collections::BTreeSet;
use std::fmt::Write;

use twopool_diag::printable;

use crate::limits::MAX_RULE_NAME_BYTES;
use crate::policy::Pool;
use crate::text::{beginning, toml_string};

/// A rule as it will be written.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Lines of comment above it, without `#`.
    pub comments: Vec<String>,
    /// Unique, see `Names`.
    pub name: String,
    /// Its pool.
    pub pool: Pool,
    /// `key = value` lines of its conditions.
    pub conditions: Vec<String>,
    /// `slice`, as a policy writes it.
    pub slice: Option<String>,
    /// `weight`, where it is not the default.
    pub weight: Option<u32>,
}

/// The text of a policy.
#[derive(Debug)]
pub struct Policy {
    text: String,
    rules: usize,
}

impl Policy {
    /// Begins a policy with comments and its two required keys.
    pub fn new(comments: &[String], default: Pool) -> Self {
        let mut text = String::new();
        comments.iter().for_each(|line| comment(&mut text, line));
        let _ = writeln!(text, "\nversion = 1\ndefault = \"{}\"", default.as_str());
        Self { text, rules: 0 }
    }

    /// Comments that stand for themselves: what was left out at this place.
    pub fn remark(&mut self, comments: &[String]) {
        self.text.push('\n');
        comments
            .iter()
            .for_each(|line| comment(&mut self.text, line));
    }

    /// One more rule.
    pub fn rule(&mut self, rule: &Rule) {
        self.remark(&rule.comments);
        let (name, pool) = (toml_string(&rule.name), rule.pool.as_str());
        let _ = writeln!(self.text, "[[rule]]\nname = {name}\npool = \"{pool}\"");
        for line in &rule.conditions {
            self.text.push_str(line);
            self.text.push('\n');
        }
        if let Some(slice) = &rule.slice {
            let _ = writeln!(self.text, "slice = \"{slice}\"");
        }
        if let Some(weight) = rule.weight {
            let _ = writeln!(self.text, "weight = {weight}");
        }
        self.rules += 1;
    }

    /// The text, and how many rules it has.
    pub fn finish(self) -> (String, usize) {
        (self.text, self.rules)
    }
}

fn comment(text: &mut String, line: &str) {
    text.push_str(match line {
        "" => "#",
        _ => "# ",
    });
    text.push_str(&printable(line));
    text.push('\n');
}

/// Several strings as one value: the only one, or a list.
pub fn strings(values: &[String]) -> String {
    match values {
        [only] => toml_string(only),
        _ => {
            let all: Vec<String> = values.iter().map(|value| toml_string(value)).collect();
            format!("[{}]", all.join(", "))
        }
    }
}

/// Names of rules that are taken.
#[derive(Debug, Default)]
pub struct Names(BTreeSet<String>);

impl Names {
    /// A name like the wanted one that no rule has, is not empty and is not too long.
    pub fn unique(&mut self, wanted: &str) -> String {
        let wanted = printable(wanted);
        let wanted = if wanted.is_empty() {
            "unnamed"
        } else {
            &wanted
        };
        for number in 1.. {
            let end = match number {
                1 => String::new(),
                _ => format!(" ({number})"),
            };
            let room = MAX_RULE_NAME_BYTES - end.len();
            let name = format!("{}{end}", beginning(wanted, room));
            if self.0.insert(name.clone()) {
                return name;
            }
        }
        unreachable!("there are more numbers than rules")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_stays_on_its_line() {
        let mut text = String::new();
        comment(&mut text, "a\nversion = 2\r\u{0}");
        assert_eq!(text, "# a\\nversion = 2\\r\\u{0}\n");
    }

    #[test]
    fn names_are_unique_short_and_not_empty() {
        let mut names = Names::default();
        let long = "\u{f6}".repeat(100);
        let all: Vec<String> = ["a", "a", "", "", "a (2)", &long, &long]
            .map(|wanted| names.unique(wanted))
            .into();
        assert_eq!(
            &all[..5],
            ["a", "a (2)", "unnamed", "unnamed (2)", "a (2) (2)"]
        );
        assert!(all.iter().all(|name| name.len() <= MAX_RULE_NAME_BYTES));
        assert!(all[5] != all[6] && all[6].ends_with(" (2)"), "{all:?}");
    }
}
