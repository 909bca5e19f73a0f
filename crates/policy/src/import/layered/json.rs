//! The configuration's shape: an array of layers, each with a name, matches and a kind.
//!
//! The array is read layer by layer, so that each one's line is known.

use serde_json::{Map, Value};

use crate::import::json_fault;
use crate::policy::NEUTRAL_WEIGHT;

/// One layer.
#[derive(Debug)]
pub struct Layer {
    /// Its name.
    pub name: String,
    /// What its author says about it.
    pub comment: Option<String>,
    /// Whether it is multiplied at start.
    pub template: bool,
    /// Blocks of matchers: name and argument.
    pub matches: Vec<Vec<(String, Value)>>,
    /// `Confined`, `Grouped` or `Open`.
    pub kind: &'static str,
    /// Whether it preempts others.
    pub preempt: bool,
    /// As it acts: absent and 0 are 100.
    pub weight: u64,
    /// Absent and 0 are the scheduler's.
    pub slice_us: Option<u64>,
    /// Keys of its kind, in their order.
    pub properties: Vec<String>,
}

const KINDS: &[&str] = &["Confined", "Grouped", "Open"];

/// Something at a line, counted from 1.
pub type AtLine<T> = (usize, T);

/// The elements of an array, and the fault that ended the reading, if one did.
pub fn elements(bytes: &[u8]) -> (Vec<AtLine<Value>>, Option<AtLine<String>>) {
    let mut out = Vec::new();
    let mut at = blanks(bytes, 0);
    let line = |at: usize| {
        1 + bytes[..at.min(bytes.len())]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
    };
    if bytes.get(at) != Some(&b'[') {
        return (out, Some((line(at), "not an array of layers".to_owned())));
    }
    at = blanks(bytes, at + 1);
    if bytes.get(at) == Some(&b']') {
        return (out, Some((line(at), "no layer".to_owned())));
    }
    loop {
        let mut values = serde_json::Deserializer::from_slice(&bytes[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => out.push((line(at), value)),
            Some(Err(error)) => {
                let fault = (line(at) + error.line() - 1, json_fault(&error));
                return (out, Some(fault));
            }
            None => return (out, Some((line(at), "the array does not end".to_owned()))),
        }
        at = blanks(bytes, at + values.byte_offset());
        match bytes.get(at) {
            Some(b',') => at = blanks(bytes, at + 1),
            Some(b']') => break,
            _ => {
                return (
                    out,
                    Some((line(at), "neither a comma nor the array's end".to_owned())),
                );
            }
        }
    }
    let end = blanks(bytes, at + 1);
    let fault =
        (end < bytes.len()).then(|| (line(end), "something stands behind the array".to_owned()));
    (out, fault)
}

fn blanks(bytes: &[u8], from: usize) -> usize {
    let more = bytes[from.min(bytes.len())..].iter();
    from + more.take_while(|b| b.is_ascii_whitespace()).count()
}

/// One element as a layer, or what is wrong with it.
pub fn layer(value: &Value) -> Result<Layer, String> {
    let object = value.as_object().ok_or("not an object")?;
    let name = object
        .get("name")
        .and_then(Value::as_str)
        .ok_or("no `name`")?;
    let (kind, properties) = kind(object.get("kind"))?;
    let weight = whole(properties, "weight")?.filter(|weight| *weight > 0);
    let template = object
        .get("template")
        .is_some_and(|template| !template.is_null());
    Ok(Layer {
        name: name.to_owned(),
        comment: object
            .get("comment")
            .and_then(Value::as_str)
            .map(str::to_owned),
        template,
        matches: matches(object.get("matches"))?,
        kind,
        preempt: boolean(properties, "preempt")?,
        weight: weight.unwrap_or(u64::from(NEUTRAL_WEIGHT)),
        slice_us: whole(properties, "slice_us")?.filter(|us| *us > 0),
        properties: properties.keys().cloned().collect(),
    })
}

fn kind(value: Option<&Value>) -> Result<(&'static str, &Map<String, Value>), String> {
    let object = value.and_then(Value::as_object).ok_or("no `kind`")?;
    let found = KINDS
        .iter()
        .find_map(|kind| Some((*kind, object.get(*kind)?)));
    match found {
        Some((kind, Value::Object(properties))) if object.len() == 1 => Ok((kind, properties)),
        _ => Err(format!("`kind` is not exactly one of {}", KINDS.join(", "))),
    }
}

fn matches(value: Option<&Value>) -> Result<Vec<Vec<(String, Value)>>, String> {
    let wrong = "`matches` is not a list of lists of matchers";
    let blocks = value.and_then(Value::as_array).ok_or(wrong)?;
    blocks
        .iter()
        .map(|block| block.as_array().ok_or(wrong)?.iter().map(matcher).collect())
        .collect()
}

fn matcher(value: &Value) -> Result<(String, Value), String> {
    match value
        .as_object()
        .map(|object| object.iter().collect::<Vec<_>>())
    {
        Some(pairs) if pairs.len() == 1 => Ok((pairs[0].0.clone(), pairs[0].1.clone())),
        _ => Err("a matcher is not an object with one key".to_owned()),
    }
}

fn whole(properties: &Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    match properties.get(key) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or(format!("`{key}` is not a whole number")),
    }
}

fn boolean(properties: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match properties.get(key) {
        None => Ok(false),
        Some(value) => value
            .as_bool()
            .ok_or(format!("`{key}` is not true or false")),
    }
}
