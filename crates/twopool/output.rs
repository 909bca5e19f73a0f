//! Results to standard output, errors to standard error, and what happens when nobody reads them.
//!
//! Invariant: what people read cannot act on their terminal; with `--format json` standard output
//! holds exactly one JSON document (or one a line), whatever the outcome.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use serde_json::json;
use twopool_diag::printable_lines;

use crate::cli::Format;
use crate::exit::{Exit, Failure};
use crate::report::Report;

/// Writes a result for people.
pub fn result(text: &str) -> Result<(), Failure> {
    exactly(&printable_lines(text))
}

/// Writes a result as it is.
fn exactly(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    written(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

/// What became of writing to standard output. A reader that went away (`| head`) is not an error of
/// ours.
pub fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Exit::Unavailable,
            "output",
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Writes one JSON document and a newline.
pub fn json(document: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(document).expect("our documents have string keys");
    text.push('\n');
    exactly(&text)
}

/// Writes to standard error; where even that fails there is nobody left to tell.
pub fn error_text(text: &str) {
    let _ = io::stderr()
        .lock()
        .write_all(printable_lines(text).as_bytes());
}

/// Writes findings, whose renderer leaves no controls but its own colours.
pub fn findings(report: &Report) {
    let _ = io::stderr().lock().write_all(report.text.as_bytes());
}

/// Reports why a command stopped, and returns its exit.
pub fn failure(failure: &Failure, format: Format) -> Exit {
    error_text(&format!("error: {}\n", failure.message));
    if format == Format::Json {
        // A failing standard output was reported above if it is what failed.
        let _ = json_error(failure.code, &failure.message);
    }
    failure.exit
}

/// The document of a command that has no result.
pub fn json_error(code: &str, message: &str) -> Result<(), Failure> {
    json(&json!({
        "format_version": "1",
        "error": { "code": code, "message": message },
    }))
}

/// Whether diagnostics on standard error may be coloured.
pub fn stderr_colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
