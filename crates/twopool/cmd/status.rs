//! `status`: what runs, and how the pools and rules fare.

use serde_json::Value;
use twopool_diag::printable;
use twopool_telemetry::{Status as Document, status_text};

use super::client::{self, PATIENCE};
use crate::cli::{Format, Global, Status};
use crate::daemon::protocol::{Kind, Request};
use crate::exit::{Exit, Failure};
use crate::output;

/// Asks the daemon.
pub fn run(args: &Status, global: &Global) -> Result<Exit, Failure> {
    let document: Document =
        client::ask(&global.runtime_dir, &Request::new(Kind::Status), PATIENCE)?;
    match args.format {
        Format::Human => output::result(&status_text(&shown(document)))?,
        Format::Json => output::json(&document)?,
    }
    Ok(Exit::Done)
}

/// The status with every name on one line. Its text has lines of its own.
fn shown(mut status: Document) -> Document {
    let one_line = |text: &mut String| *text = printable(text).into_owned();
    status.policy.files.iter_mut().for_each(one_line);
    status
        .rules
        .iter_mut()
        .for_each(|rule| one_line(&mut rule.name));
    for found in status
        .last_reload
        .iter_mut()
        .flat_map(|r| &mut r.diagnostics)
    {
        for place in ["/summary", "/range/filename"] {
            if let Some(Value::String(text)) = found.pointer_mut(place) {
                one_line(text);
            }
        }
    }
    status
}
