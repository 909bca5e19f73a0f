//! Rules as `show` prints them: every value in effect, as TOML, with its place.

use twopool_diag::Span;

use super::rules::item_text;
use super::settings::Setting;
use crate::options::{
    ConditionOptions, Form, NumberItem, Numbers, PatternOptions, RuleOptions, show_us,
};
use crate::policy::{Policy, Rule};
use crate::text::toml_string;

/// One rule, value by value. `index` counts from 1.
pub fn show(
    index: usize,
    written: &RuleOptions,
    rule: &Rule,
    policy: &Policy,
    out: &mut Vec<Setting>,
) {
    let mut push = |key: &str, value: String, origin: Option<Span>| {
        out.push(Setting {
            path: format!("rule[{index}].{key}"),
            value,
            origin,
        });
    };
    push(
        "name",
        toml_string(&rule.name),
        written.name.as_ref().map(|n| n.span),
    );
    push(
        "pool",
        format!("\"{}\"", rule.pool.as_str()),
        written.pool.map(|(_, span)| span),
    );
    for (key, value, span) in shown_conditions(&written.all) {
        push(key, value, Some(span));
    }
    if let Some(not) = &written.not {
        for (key, value, span) in shown_conditions(not) {
            push(&format!("not.{key}"), value, Some(span));
        }
    }
    for (i, table) in written
        .any
        .iter()
        .flat_map(|(tables, _)| tables)
        .enumerate()
    {
        for (key, value, span) in shown_conditions(table) {
            push(&format!("any[{i}].{key}"), value, Some(span));
        }
    }
    let slice = rule
        .slice_us
        .unwrap_or(policy.pools[rule.pool as usize].slice_us);
    push(
        "slice",
        format!("\"{}\"", show_us(slice)),
        written.slice_us.map(|(_, span)| span),
    );
    push(
        "weight",
        rule.weight.to_string(),
        written.weight.map(|(_, span)| span),
    );
    push(
        "hints",
        rule.hints.to_string(),
        written.hints.map(|(_, span)| span),
    );
}

fn shown_conditions(c: &ConditionOptions) -> Vec<(&'static str, String, Span)> {
    let mut out = Vec::new();
    let mut push = |key: &'static str, value: Option<String>| {
        if let (Some(value), Some(span)) = (value, c.spans.get(key)) {
            out.push((key, value, *span));
        }
    };
    push("thread", c.thread.as_deref().map(patterns_text));
    push("process", c.process.as_deref().map(patterns_text));
    push("cgroup", c.cgroup.as_deref().map(patterns_text));
    push("user", c.user.as_ref().map(numbers_text));
    push("group", c.group.as_ref().map(numbers_text));
    push("nice", c.nice.as_ref().map(numbers_text));
    push("kthread", c.kthread.map(|on| on.to_string()));
    push("leader", c.leader.map(|on| on.to_string()));
    push(
        "sched",
        c.sched
            .as_ref()
            .map(|list| listed(list.iter().map(|s| format!("\"{}\"", s.as_str())))),
    );
    push("hint", c.hint.as_ref().map(numbers_text));
    out
}

/// Patterns as TOML would write them.
pub fn patterns_text(patterns: &[PatternOptions]) -> String {
    listed(patterns.iter().map(|p| {
        let text = toml_string(&p.text.value);
        match p.form {
            Form::Bare => text,
            Form::Exact => format!("{{ exact = {text} }}"),
            Form::Prefix => format!("{{ prefix = {text} }}"),
            Form::Under => format!("{{ under = {text} }}"),
            Form::Glob => format!("{{ glob = {text} }}"),
            Form::Regex => format!("{{ regex = {text} }}"),
        }
    }))
}

fn numbers_text(numbers: &Numbers) -> String {
    listed(numbers.items.iter().map(|item| match item {
        NumberItem::Name(text) => toml_string(&text.value),
        other => item_text(other),
    }))
}

fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.len() == 1 {
        items[0].clone()
    } else {
        format!("[{}]", items.join(", "))
    }
}
