//! One line of an ananicy file: blank, a comment, or a JSON object that describes a program, a type
//! or a cgroup. What it describes is told by its keys, not by the file's name, as ananicy-cpp does.

use serde_json::{Map, Value};

use crate::import::json_fault;

/// A line that holds an object.
#[derive(Debug)]
pub struct Parsed {
    /// What it describes.
    pub line: Line,
    /// What it says about CPU time.
    pub facts: Facts,
    /// Its keys that are about something else.
    pub dropped: Vec<String>,
}

/// What a line describes.
#[derive(Debug)]
pub enum Line {
    /// A rule for the processes of this name.
    Program {
        /// Full name of the executable.
        name: String,
        /// Its type, if it has one.
        kind: Option<String>,
        /// A key that asks for more than a name.
        narrowed: Option<String>,
    },
    /// Values that rules of this type have.
    Type(String),
    /// A cgroup with a quota.
    Cgroup,
}

/// Values that are about CPU time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// -20..=19.
    pub nice: Option<i8>,
    /// -20..=19.
    pub latency_nice: Option<i8>,
    /// Scheduling class.
    pub sched: Option<Sched>,
}

/// A scheduling class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sched {
    /// SCHED_NORMAL, also called other.
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
    RealTime,
}

impl Facts {
    /// These values, and those of a type where there are none.
    pub fn over(&self, of_type: &Facts) -> Facts {
        Facts {
            nice: self.nice.or(of_type.nice),
            latency_nice: self.latency_nice.or(of_type.latency_nice),
            sched: self.sched.or(of_type.sched),
        }
    }
}

/// Keys that say what the line is about.
const SUBJECTS: &[&str] = &["name", "type"];
/// Keys with values about CPU time.
const FACTS: &[&str] = &["nice", "latency_nice", "sched"];
/// Keys that narrow a rule to some of the processes of its name.
const NARROWING: &[&str] = &["cmdlines", "cmdline", "exe"];
/// Keys that twopool has no business with, and why.
const DROPPED: &[(&str, &str)] = &[
    ("ioclass", "twopool does not set I/O priorities"),
    ("ionice", "twopool does not set I/O priorities"),
    ("oom_score_adj", "twopool does not touch the OOM killer"),
    ("rtprio", "twopool sets no real-time priorities"),
    (
        "cgroup",
        "twopool moves no process; a rule can match a cgroup that exists",
    ),
    (
        "CPUQuota",
        "quotas are the cgroup's own: cpu.max, or CPUQuota= of its unit",
    ),
];

/// Why a key is dropped.
pub fn why_dropped(key: &str) -> &'static str {
    let known = DROPPED.iter().find(|(known, _)| *known == key);
    known.map_or("not a key of ananicy's that twopool knows", |(_, why)| why)
}

/// Reads a line without its newline; `None`: it holds nothing. Errors say what is wrong.
pub fn parse(bytes: &[u8]) -> Result<Option<Parsed>, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err("not UTF-8".to_owned());
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let object = object(text)?;
    let facts = facts(&object)?;
    let kind = optional(&object, "type")?;
    let narrowed = NARROWING.iter().find(|key| object.contains_key(**key));
    let line = match optional(&object, "name")? {
        Some(name) => Line::Program {
            name,
            kind,
            narrowed: narrowed.map(|key| (*key).to_owned()),
        },
        None => match kind {
            Some(kind) => Line::Type(kind),
            None if optional(&object, "cgroup")?.is_some() => Line::Cgroup,
            None => return Err("none of `name`, `type` and `cgroup` is there".to_owned()),
        },
    };
    let is_subject =
        |key: &str| SUBJECTS.contains(&key) || (matches!(line, Line::Cgroup) && key == "cgroup");
    let dropped = object
        .keys()
        .filter(|key| {
            let key = key.as_str();
            !is_subject(key) && !FACTS.contains(&key) && !NARROWING.contains(&key)
        })
        .cloned()
        .collect();
    Ok(Some(Parsed {
        line,
        facts,
        dropped,
    }))
}

/// The object that a line begins with. Behind it may be a comma or a comment.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let first = values.next().unwrap_or(Ok(Value::Null));
    let object = match first {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err("not a JSON object".to_owned()),
        Err(error) => {
            return Err(format!(
                "{} at column {}",
                json_fault(&error),
                error.column()
            ));
        }
    };
    let rest = text[values.byte_offset()..].trim_start();
    if rest.is_empty() || rest.starts_with(['#', ',']) {
        return Ok(object);
    }
    Err("something stands behind the object".to_owned())
}

fn facts(object: &Map<String, Value>) -> Result<Facts, String> {
    let sched = match optional(object, "sched")?.as_deref() {
        None => None,
        Some("normal" | "other") => Some(Sched::Normal),
        Some("batch") => Some(Sched::Batch),
        Some("idle") => Some(Sched::Idle),
        Some("fifo" | "rr" | "deadline") => Some(Sched::RealTime),
        Some(other) => return Err(format!("`sched` knows no class `{other}`")),
    };
    Ok(Facts {
        nice: nice(object, "nice")?,
        latency_nice: nice(object, "latency_nice")?,
        sched,
    })
}

fn nice(object: &Map<String, Value>, key: &str) -> Result<Option<i8>, String> {
    let Some(value) = object.get(key) else {
        return Ok(None);
    };
    match value.as_i64().and_then(|number| i8::try_from(number).ok()) {
        Some(number @ -20..=19) => Ok(Some(number)),
        _ => Err(format!("`{key}` is not an integer from -20 to 19")),
    }
}

/// A string that a name can be.
fn optional(object: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Err(format!("`{key}` is empty")),
        Some(Value::String(text)) if text.contains('\0') => Err(format!("`{key}` has a NUL byte")),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` is not a string")),
    }
}
