//! The JSON Schema of a policy file, for editors: made from the table of keys, so that it knows
//! every key, type, range, word and default that the compiler knows.
//!
//! Draft 7, which TOML language servers read. Invariant: what the compiler accepts, the schema
//! accepts; the schema refuses every unknown key, wrong type, unknown word and number out of range.
//! What needs more than one value at a time (limits, rule names of tests) is the compiler's alone.
//! A drop-in is a policy file without the two keys that only the policy file needs, so the schema
//! requires neither.

mod range;

use serde_json::{Map, Value, json};

use crate::keys::{self, KEYS, Key, Kind};
use crate::limits::{MAX_CPU_COUNT, MAX_ID};
use crate::options::show_us;
use crate::policy::Pool;

/// A number in quotes is no user's name.
const QUOTED_NUMBER: &str = "^[-+]?[0-9]+$";

/// What durations and percentages look like, whatever their range.
const DURATION: &str = r"^[0-9]+(\.[0-9]+)?(us|ms|s)$";
const DURATION_OR_OFF: &str = r"^([0-9]+(\.[0-9]+)?(us|ms|s)|off)$";
const PERCENTAGE: &str = "^-?[0-9]+%$";

/// The schema.
pub fn document() -> Value {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "twopool policy",
        "description": "policy language of twopool, version 1",
    });
    merge(&mut schema, table(""));
    schema["definitions"] = definitions();
    schema
}

/// The schema as the text of a file.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).expect("keys are strings");
    text.push('\n');
    text
}

/// A table by the keys that may stand in it.
fn table(section: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for child in keys::children(section) {
        let path = match section {
            "" => child.to_owned(),
            _ => format!("{section}.{child}"),
        };
        if is_required(&path) {
            required.push(json!(child));
        }
        let schema = if keys::LISTS.contains(&path.as_str()) {
            json!({ "type": "array", "items": table(&path) })
        } else if let Some(key) = keys::find(&path) {
            leaf(&path, key)
        } else {
            table(&path)
        };
        properties.insert(child.to_owned(), schema);
    }
    let mut schema = closed(properties);
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema
}

/// A key that must be there, or a table that holds one. A list need not be there, whatever its
/// tables must hold.
fn is_required(path: &str) -> bool {
    !keys::LISTS.contains(&path)
        && KEYS.iter().filter(|key| key.required).any(|key| {
            key.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

/// One key with what it does and its default.
fn leaf(path: &str, key: &Key) -> Value {
    let range = range_of(key.kind).map_or_else(String::new, |range| format!(" ({range})"));
    let mut schema = json!({ "description": format!("{}{range}", key.doc) });
    merge(&mut schema, value(key.kind));
    let is_background = path.starts_with(&format!("pool.{}.", Pool::Background.as_str()));
    let default = match key.background {
        Some(own) if is_background => Some(own),
        _ => key.default,
    };
    if let Some(text) = default {
        schema["default"] = serde_json::from_str(text).expect("defaults are JSON as well as TOML");
    }
    schema
}

/// The range of a value that is written in a string, where no schema can show it to a reader.
fn range_of(kind: Kind) -> Option<String> {
    match kind {
        Kind::Duration {
            min_us,
            max_us,
            off,
        } => {
            let off = if off { ", or \"off\"" } else { "" };
            Some(format!("{} to {}{off}", show_us(min_us), show_us(max_us)))
        }
        Kind::Percent { min, max } => Some(format!("{min}% to {max}%")),
        Kind::Cpus => Some("a count, or a percentage of the online CPUs".to_owned()),
        _ => None,
    }
}

/// What a value of this kind may be.
fn value(kind: Kind) -> Value {
    match kind {
        Kind::Version => json!({ "type": "integer", "enum": [1] }),
        Kind::Pool => words(&Pool::ALL.map(Pool::as_str)),
        Kind::Integer { min, max } => integer(min, max),
        Kind::Duration {
            min_us,
            max_us,
            off,
        } => {
            let form = if off { DURATION_OR_OFF } else { DURATION };
            ranged(form, range::durations(min_us, max_us, off))
        }
        Kind::Percent { min, max } => percent(min, max),
        Kind::Cpus => json!({ "anyOf": [integer(0, MAX_CPU_COUNT), percent(0, 100)] }),
        Kind::Bool | Kind::Flag => json!({ "type": "boolean" }),
        Kind::Choice(choice) => words(choice),
        Kind::Text | Kind::Path => text_value(),
        Kind::Id => json!({ "anyOf": [integer(0, MAX_ID), id_name()] }),
        Kind::Names => reference("names"),
        Kind::Cgroups => reference("cgroups"),
        Kind::Ids => reference("ids"),
        Kind::Numbers { min, max } => {
            one_or_list(json!({ "anyOf": [integer(min, max), bounds(min, max)] }))
        }
        Kind::Words(choice) => one_or_list(words(choice)),
        Kind::Conditions => reference("conditions"),
        Kind::ConditionList => {
            json!({ "type": "array", "minItems": 1, "items": reference("conditions") })
        }
    }
}

/// What several keys share.
fn definitions() -> Value {
    let (min, max) = keys::IDS;
    let id = json!({ "anyOf": [integer(min, max), id_name(), bounds(min, max)] });
    let conditions: Map<String, Value> = KEYS
        .iter()
        .filter(|key| key.kind.is_condition())
        .filter_map(|key| {
            Some((
                key.path.strip_prefix("rule.")?.to_owned(),
                leaf(key.path, key),
            ))
        })
        .collect();
    let mut conditions = closed(conditions);
    conditions["minProperties"] = json!(1);
    json!({
        "names": one_or_list(one_pattern(keys::NAME_FORMS)),
        "cgroups": one_or_list(one_pattern(keys::CGROUP_FORMS)),
        "ids": one_or_list(id),
        "conditions": conditions,
    })
}

/// A string, or a table with exactly one of the forms.
fn one_pattern(forms: &[&str]) -> Value {
    let texts = one_or_list(text_value());
    let forms = forms.iter().map(|form| ((*form).to_owned(), texts.clone()));
    let mut by_form = closed(forms.collect());
    by_form["minProperties"] = json!(1);
    by_form["maxProperties"] = json!(1);
    json!({ "anyOf": [text_value(), by_form] })
}

fn one_or_list(one: Value) -> Value {
    json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
}

fn bounds(min: i64, max: i64) -> Value {
    let bounds = keys::BOUNDS
        .iter()
        .map(|bound| ((*bound).to_owned(), integer(min, max)));
    let mut bounds = closed(bounds.collect());
    bounds["minProperties"] = json!(1);
    bounds
}

/// A table with no keys but these.
fn closed(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn integer(min: i64, max: i64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

fn percent(min: u32, max: u32) -> Value {
    ranged(PERCENTAGE, range::percentages(min.into(), max.into()))
}

/// A string of a form, and within a range. An editor shows the pattern that does not fit: for a
/// wrong form the short one alone.
fn ranged(form: &str, range: String) -> Value {
    json!({
        "type": "string",
        "pattern": form,
        "if": { "pattern": form },
        "then": { "pattern": range },
    })
}

fn text_value() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn id_name() -> Value {
    json!({ "type": "string", "minLength": 1, "not": { "pattern": QUOTED_NUMBER } })
}

/// In draft 7 whatever stands beside a `$ref` is ignored, and a description stands beside it.
fn reference(name: &str) -> Value {
    json!({ "allOf": [{ "$ref": format!("#/definitions/{name}") }] })
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}
