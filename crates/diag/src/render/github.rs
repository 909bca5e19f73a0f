//! Findings as workflow commands, which GitHub shows beside the lines of a change.
//!
//! Invariant: one command a line, whatever a policy holds: nothing in it can end the line or begin
//! another command.

use std::fmt::Write;

use super::json::DiagnosticJson;
use super::sarif::{Checked, message};

/// The commands of some policies: errors first, since only the first ten of a step are shown.
/// `missing`: inputs and abilities of the host that are not there, each in one line.
pub fn github(checked: &[Checked], missing: &[String]) -> String {
    let mut out = String::new();
    for text in missing {
        let _ = writeln!(out, "::error title=twopool::{}", data(text));
    }
    for severity in ["error", "warning"] {
        for policy in checked {
            let found = policy.found.iter().filter(|d| d.severity == severity);
            found.for_each(|d| command(&mut out, policy, d));
        }
    }
    for policy in checked.iter().filter(|policy| policy.omitted > 0) {
        let text = format!(
            "{}: {} more findings are not listed",
            policy.name, policy.omitted
        );
        let _ = writeln!(out, "::warning title=omitted::{}", data(&text));
    }
    out
}

fn command(out: &mut String, policy: &Checked, d: &DiagnosticJson) {
    let file = d
        .range
        .as_ref()
        .map_or(&policy.name, |range| &range.filename);
    let _ = write!(out, "::{} file={}", d.severity, property(file));
    if let Some(range) = &d.range {
        let (start, end) = (range.start, range.end);
        let _ = write!(out, ",line={},endLine={}", start.line, end.line);
        // Columns of a range over several lines are refused.
        if start.line == end.line {
            let _ = write!(out, ",col={},endColumn={}", start.column, end.column);
        }
    }
    let _ = writeln!(out, ",title={}::{}", property(d.code), data(&message(d)));
}

/// The text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a command's property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
