//! `[[rule]]` tables of all files to the ordered rules of a policy.

use std::collections::{HashMap, HashSet};

use twopool_diag::{Code, Diagnostic, Sources, Span};

use super::{Context, limit};
use crate::limits::{
    MAX_ALTERNATIVES, MAX_EXACT_NAMES, MAX_PATTERNS, MAX_RULE_NAME_BYTES, MAX_RULES,
};
use crate::options::{ConditionOptions, NumberItem, Numbers, Options, PatternOptions, RuleOptions};
use crate::pattern;
use crate::policy::{
    At, CgroupCondition, Conditions, NEUTRAL_WEIGHT, NameCondition, NumberCondition, Pattern,
    PatternKind, Pool, Rule,
};

/// Nice values are stored from 0, so that all numbers of a condition are unsigned.
const NICE_OFFSET: i64 = 20;

impl Context<'_> {
    pub(super) fn rules(&mut self, files: &[Options], sources: &Sources) -> Vec<Rule> {
        let mut rules = Vec::new();
        let mut names: HashMap<String, Span> = HashMap::new();
        for file in files {
            let stem = stem(&sources.file(file.file).name);
            for (i, options) in file.rules.iter().enumerate() {
                let name = match &options.name {
                    Some(name) => name.value.clone(),
                    None => format!("{stem}:{}", i + 1),
                };
                let place = options.name.as_ref().map_or(options.header, |n| n.span);
                self.unique(&mut names, &name, place);
                let rule = self.rule(options, name);
                rules.push(rule);
            }
        }
        self.limits(&rules);
        rules
    }

    fn unique(&mut self, names: &mut HashMap<String, Span>, name: &str, place: Span) {
        if let Some(first) = names.get(name) {
            self.diagnostics.push(
                Diagnostic::new(
                    Code::DuplicateName,
                    place,
                    format!("duplicate rule name `{name}`"),
                )
                .label("given again here")
                .related(*first, "first given here"),
            );
            return;
        }
        if name.len() > MAX_RULE_NAME_BYTES {
            self.diagnostics.push(
                Diagnostic::new(Code::LimitExceeded, place, "the name of a rule is too long")
                    .label(format!(
                        "`{name}` has {} bytes; at most {MAX_RULE_NAME_BYTES} fit",
                        name.len()
                    ))
                    .help("give the rule a `name`"),
            );
        }
        names.insert(name.to_owned(), place);
    }

    fn rule(&mut self, options: &RuleOptions, name: String) -> Rule {
        let all = self.conditions(&options.all);
        let any = options.any.iter().flat_map(|(tables, _)| tables);
        let any = any.map(|table| self.conditions(table)).collect();
        let not = options.not.as_ref().map(|table| self.conditions(table));
        Rule {
            name,
            // A rule without a pool was reported; what stands here is never used.
            pool: options.pool.map_or(Pool::Background, |(pool, _)| pool),
            all,
            any,
            not,
            slice_us: options.slice_us.map(|(us, _)| us),
            weight: options.weight.map_or(NEUTRAL_WEIGHT, |(weight, _)| weight),
            hints: options.hints.is_some_and(|(on, _)| on),
            at: At(Some(
                options.name.as_ref().map_or(options.header, |n| n.span),
            )),
        }
    }

    fn conditions(&mut self, options: &ConditionOptions) -> Conditions {
        Conditions {
            thread: self.names_of(options.thread.as_deref()),
            process: self.names_of(options.process.as_deref()),
            cgroup: options
                .cgroup
                .as_deref()
                .and_then(|patterns| self.cgroups(patterns))
                .map(|patterns| CgroupCondition { patterns }),
            user: options
                .user
                .as_ref()
                .map(|numbers| self.ids(numbers, false)),
            group: options
                .group
                .as_ref()
                .map(|numbers| self.ids(numbers, true)),
            nice: options
                .nice
                .as_ref()
                .map(|numbers| plain(numbers, (-20, 19), NICE_OFFSET)),
            kthread: options.kthread,
            leader: options.leader,
            sched: options.sched.clone(),
            hint: options
                .hint
                .as_ref()
                .map(|numbers| plain(numbers, (0, crate::limits::MAX_HINT), 0)),
        }
    }

    fn names_of(&mut self, options: Option<&[PatternOptions]>) -> Option<NameCondition> {
        let patterns: Vec<Pattern> = options?
            .iter()
            .filter_map(|o| pattern::name(o, &mut self.diagnostics))
            .collect();
        (!patterns.is_empty()).then_some(NameCondition { patterns })
    }

    pub(super) fn cgroups(&mut self, options: &[PatternOptions]) -> Option<Vec<Pattern>> {
        let patterns: Vec<Pattern> = options
            .iter()
            .filter_map(|o| pattern::cgroup(o, &mut self.diagnostics))
            .collect();
        (!patterns.is_empty()).then_some(patterns)
    }

    fn ids(&mut self, numbers: &Numbers, is_group: bool) -> NumberCondition {
        let mut ranges = Vec::new();
        for item in &numbers.items {
            ranges.push(match item {
                NumberItem::Name(text) => {
                    let id = self.id(text, is_group);
                    (id, id)
                }
                other => bounds(other, (0, i64::from(u32::MAX)), 0),
            });
        }
        NumberCondition {
            ranges,
            texts: numbers.items.iter().map(item_text).collect(),
            at: At(Some(numbers.span)),
        }
    }

    /// Each limit with its count and the first rule or pattern that does not fit.
    fn limits(&mut self, rules: &[Rule]) {
        if rules.len() > MAX_RULES {
            let first = rules[MAX_RULES].at.0;
            self.diagnostics
                .push(limit(rules.len(), MAX_RULES, "rules", first));
        }
        let mut alternatives = Count::new(MAX_ALTERNATIVES);
        let mut patterns = Count::new(MAX_PATTERNS);
        let mut exact = Count::new(MAX_EXACT_NAMES);
        let mut seen: HashSet<&[u8]> = HashSet::new();
        for rule in rules {
            let negated = rule.not.as_ref().map_or(1, asked);
            alternatives.add(rule.any.len().max(1) * negated, rule.at.0);
            for conditions in rule.tables() {
                for pattern in conditions.names() {
                    if pattern.kind != PatternKind::Exact {
                        patterns.add(1, pattern.at.0);
                    } else if seen.insert(&pattern.bytes) {
                        exact.add(1, pattern.at.0);
                    }
                }
                for pattern in conditions.patterns("cgroup") {
                    patterns.add(1, pattern.at.0);
                }
            }
        }
        self.diagnostics.extend(
            alternatives.finish("alternatives (tables of `any` times conditions of `not`)"),
        );
        self.diagnostics.extend(patterns.finish("patterns"));
        self.diagnostics.extend(exact.finish("exact names"));
    }
}

/// How many questions a table asks.
fn asked(c: &Conditions) -> usize {
    let all = [
        c.thread.is_some(),
        c.process.is_some(),
        c.cgroup.is_some(),
        c.user.is_some(),
        c.group.is_some(),
        c.nice.is_some(),
        c.kthread.is_some(),
        c.leader.is_some(),
        c.sched.is_some(),
        c.hint.is_some(),
    ];
    all.iter().filter(|is_asked| **is_asked).count().max(1)
}

struct Count {
    most: usize,
    count: usize,
    first: Option<Option<Span>>,
}

impl Count {
    fn new(most: usize) -> Self {
        Self {
            most,
            count: 0,
            first: None,
        }
    }

    fn add(&mut self, n: usize, place: Option<Span>) {
        self.count += n;
        if self.count > self.most && self.first.is_none() {
            self.first = Some(place);
        }
    }

    fn finish(self, what: &str) -> Option<Diagnostic> {
        self.first
            .map(|first| limit(self.count, self.most, what, first))
    }
}

/// The name of a file without its directories and `.toml`, for rules without a name.
fn stem(name: &str) -> &str {
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.strip_suffix(".toml").unwrap_or(last);
    last.trim_matches(['<', '>'])
}

fn plain(numbers: &Numbers, range: (i64, i64), offset: i64) -> NumberCondition {
    NumberCondition {
        ranges: numbers
            .items
            .iter()
            .map(|item| bounds(item, range, offset))
            .collect(),
        texts: numbers.items.iter().map(item_text).collect(),
        at: At(Some(numbers.span)),
    }
}

fn bounds(item: &NumberItem, (least, most): (i64, i64), offset: i64) -> (u64, u64) {
    let (min, max) = match item {
        NumberItem::One(value) => (*value, *value),
        NumberItem::Range(min, max) => (min.unwrap_or(least), max.unwrap_or(most)),
        NumberItem::Name(_) => unreachable!("names are resolved by the caller"),
    };
    let shift = |value: i64| u64::try_from(value + offset).unwrap_or(0);
    (shift(min), shift(max))
}

/// An alternative of a number as a policy would write it.
pub(super) fn item_text(item: &NumberItem) -> String {
    match item {
        NumberItem::One(value) => value.to_string(),
        NumberItem::Range(Some(min), Some(max)) => format!("{{ min = {min}, max = {max} }}"),
        NumberItem::Range(Some(min), None) => format!("{{ min = {min} }}"),
        NumberItem::Range(None, Some(max)) => format!("{{ max = {max} }}"),
        NumberItem::Range(None, None) => "{}".to_owned(),
        NumberItem::Name(text) => text.value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_without_a_name_are_called_after_their_file() {
        assert_eq!(stem("/etc/twopool/policy.d/10-ads.toml"), "10-ads");
        assert_eq!(stem("policy.toml"), "policy");
        assert_eq!(stem("<stdin>"), "stdin");
    }
}
