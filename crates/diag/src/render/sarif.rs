//! Findings as a SARIF 2.1.0 log, which code scanners and editors read.
//!
//! Invariant: the log is complete: what could not be read and what is not listed are notifications
//! of the run, since a reader sees no exit code.

use serde_json::{Value, json};

use super::json::{DiagnosticJson, RangeJson};
use crate::Code;

/// The schema of the version that is written.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Findings of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The policy file, as shown to the user.
    pub name: String,
    /// What was found.
    pub found: Vec<DiagnosticJson>,
    /// Findings that are counted and not listed.
    pub omitted: usize,
}

/// The log of some policies. `missing`: inputs and abilities of the host that are not
/// there, each in one line.
pub fn sarif(checked: &[Checked], missing: &[String], version: &str) -> Value {
    let codes = codes(checked);
    let rules: Vec<Value> = codes.iter().map(|code| rule(*code)).collect();
    let results: Vec<Value> = checked
        .iter()
        .flat_map(|policy| policy.found.iter().map(|d| result(policy, d, &codes)))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "twopool", "semanticVersion": version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": missing.is_empty(),
                "toolExecutionNotifications": notifications(checked, missing),
            }],
            "results": results,
        }],
    })
}

/// The codes that were found, in the order of their table.
fn codes(checked: &[Checked]) -> Vec<Code> {
    let is_found = |code: &Code| {
        let mut all = checked.iter().flat_map(|policy| &policy.found);
        all.any(|d| d.code == code.as_str())
    };
    Code::ALL.iter().copied().filter(is_found).collect()
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.as_str(),
        "shortDescription": { "text": code.summary() },
        "help": { "text": code.page(), "markdown": code.page() },
        "defaultConfiguration": { "level": code.severity().as_str() },
    })
}

fn result(policy: &Checked, d: &DiagnosticJson, codes: &[Code]) -> Value {
    let place = match &d.range {
        Some(range) => physical(range),
        // Readers drop a result without a file.
        None => json!({ "artifactLocation": { "uri": uri(&policy.name) } }),
    };
    let mut result = json!({
        "ruleId": d.code,
        "ruleIndex": codes.iter().position(|code| code.as_str() == d.code),
        "level": d.severity,
        "message": { "text": message(d) },
        "locations": [{ "physicalLocation": place }],
    });
    if !d.related.is_empty() {
        let related = d.related.iter().enumerate();
        let related = related.map(|(id, related)| {
            json!({
                "id": id,
                "physicalLocation": physical(&related.range),
                "message": { "text": related.message },
            })
        });
        result["relatedLocations"] = related.collect();
    }
    result
}

/// Summary and detail.
pub(super) fn message(d: &DiagnosticJson) -> String {
    match d.detail.as_str() {
        "" => d.summary.clone(),
        detail => format!("{}\n{detail}", d.summary),
    }
}

fn physical(range: &RangeJson) -> Value {
    json!({
        "artifactLocation": { "uri": uri(&range.filename) },
        "region": {
            "startLine": range.start.line,
            "startColumn": range.start.column,
            "endLine": range.end.line,
            "endColumn": range.end.column,
        },
    })
}

fn notifications(checked: &[Checked], missing: &[String]) -> Vec<Value> {
    let missing = missing
        .iter()
        .map(|text| json!({ "level": "error", "message": { "text": text } }));
    let omitted = checked.iter().filter(|policy| policy.omitted > 0);
    let omitted = omitted.map(|policy| {
        let text = format!(
            "{}: {} more findings are not listed",
            policy.name, policy.omitted
        );
        json!({ "level": "warning", "message": { "text": text } })
    });
    missing.chain(omitted).collect()
}

/// A path as a reference: absolute ones as `file:`, relative ones relative to wherever the reader
/// thinks the sources are.
fn uri(path: &str) -> String {
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        // What a path segment may hold, but for the colon, which would read as a scheme.
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        assert_eq!(uri("policy.d/50-x.toml"), "policy.d/50-x.toml");
        assert_eq!(uri("/etc/a b/p.toml"), "file:///etc/a%20b/p.toml");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
        assert_eq!(uri("c:50%\u{f6}.toml"), "c%3A50%25%C3%B6.toml");
    }
}
