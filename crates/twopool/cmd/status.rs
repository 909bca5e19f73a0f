//! `status`: what runs, and how the pools and rules fare.

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
        Format::Human => output::result(&status_text(&document))?,
        Format::Json => output::json(&document)?,
    }
    Ok(Exit::Done)
}
