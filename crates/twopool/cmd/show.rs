//! `show`: the effective policy, every value with the file and line it came from.

use std::fmt::Write;

use serde_json::{Value, json};
use twopool_diag::{Sources, Span, printable};
use twopool_policy::compile::{Compiled, Setting};

use super::valid_policy;
use crate::cli::{Format, Global, Show};
use crate::exit::{Exit, Failure};
use crate::output;

/// Shows the policy of `--policy`.
pub fn run(args: &Show, global: &Global) -> Result<Exit, Failure> {
    let compiled = match valid_policy(global, args.format)? {
        Ok(compiled) => compiled,
        Err(exit) => return Ok(exit),
    };
    match args.format {
        Format::Human => output::result(&text(&compiled))?,
        Format::Json => output::json(&document(&compiled))?,
    }
    Ok(Exit::Done)
}

fn text(compiled: &Compiled) -> String {
    let width = compiled
        .settings
        .iter()
        .map(assignment)
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
        .min(60);
    let mut text = String::new();
    for setting in &compiled.settings {
        let origin = setting.origin.map_or_else(
            || "default".to_owned(),
            |span| place(&compiled.sources, span),
        );
        let _ = writeln!(text, "{:<width$}  # {origin}", assignment(setting));
    }
    text
}

fn assignment(setting: &Setting) -> String {
    printable(&format!("{} = {}", setting.path, setting.value)).into_owned()
}

fn place(sources: &Sources, span: Span) -> String {
    format!(
        "{}:{}",
        printable(&sources.file(span.file).name),
        sources.position(span.file, span.start).line
    )
}

fn document(compiled: &Compiled) -> Value {
    let origin = |span: Option<Span>| match span {
        None => Value::Null,
        Some(span) => json!({
            "filename": compiled.sources.file(span.file).name,
            "line": compiled.sources.position(span.file, span.start).line,
        }),
    };
    let settings: Vec<Value> = compiled
        .settings
        .iter()
        .map(|setting| json!({ "path": setting.path, "value": setting.value, "origin": origin(setting.origin) }))
        .collect();
    let files: Vec<&str> = compiled
        .sources
        .files()
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    json!({ "format_version": "1", "files": files, "settings": settings })
}
