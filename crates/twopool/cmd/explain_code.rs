//! `explain-code`: the page about a diagnostic code, from the program itself, so that it fits the
//! version that reported the code.

use std::fmt::Write;

use serde_json::{Value, json};
use twopool_diag::Code;

use crate::cli::{ExplainCode, Format};
use crate::exit::{Exit, Failure};
use crate::output;

/// Explains one code, or lists them all.
pub fn run(args: &ExplainCode) -> Result<Exit, Failure> {
    let asked = args.code.as_deref().and_then(Code::from_name);
    let codes: Vec<Code> = match asked {
        Some(code) => vec![code],
        None => Code::ALL.to_vec(),
    };
    match (args.format, asked) {
        (Format::Json, _) => output::json(&document(&codes))?,
        (Format::Human, Some(code)) => output::result(code.page())?,
        (Format::Human, None) => output::result(&list(&codes))?,
    }
    Ok(Exit::Done)
}

fn list(codes: &[Code]) -> String {
    let mut text = String::new();
    for code in codes {
        let (name, severity) = (code.as_str(), code.severity().as_str());
        let _ = writeln!(text, "{name:<20} {severity:<8} {}", code.summary());
    }
    text
}

fn document(codes: &[Code]) -> Value {
    let codes: Vec<Value> = codes
        .iter()
        .map(|code| {
            json!({
                "code": code.as_str(),
                "severity": code.severity().as_str(),
                "summary": code.summary(),
                "page": code.page(),
            })
        })
        .collect();
    json!({ "format_version": "1", "codes": codes })
}
