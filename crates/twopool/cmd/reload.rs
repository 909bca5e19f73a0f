//! `reload`: tells the running daemon to read its policy now.

use std::time::Duration;

use serde_json::json;
use twopool_telemetry::ReloadResult;

use super::client;
use crate::cli::{Format, Global, Reload};
use crate::daemon::protocol::{Kind, Request, Verdict};
use crate::exit::{Exit, Failure};
use crate::output;

/// Asks the daemon; with `--wait` the outcome decides.
pub fn run(args: &Reload, global: &Global) -> Result<Exit, Failure> {
    let request = Request {
        wait: args.wait,
        ..Request::new(Kind::Reload)
    };
    let verdict: Verdict = client::ask(
        &global.runtime_dir,
        &request,
        Duration::from_secs(args.timeout),
    )?;
    output::error_text(&verdict.text);
    match args.format {
        Format::Human => output::result(&line(&verdict))?,
        Format::Json => output::json(&json!({
            "format_version": "1",
            "result": verdict.result.map_or("requested", ReloadResult::as_str),
            "policy": { "epoch": verdict.epoch, "hash": verdict.hash },
            "check": verdict.check,
        }))?,
    }
    Ok(match verdict.result {
        Some(ReloadResult::Rejected | ReloadResult::RolledBack) => Exit::Rejected,
        _ => Exit::Done,
    })
}

fn line(verdict: &Verdict) -> String {
    let epoch = verdict.epoch;
    match verdict.result {
        None => "the daemon reads the policy now\n".to_owned(),
        Some(ReloadResult::Applied) => format!("applied as epoch {epoch}\n"),
        Some(ReloadResult::Unchanged) => format!("unchanged, epoch {epoch}\n"),
        Some(ReloadResult::Rejected) => format!("rejected, epoch {epoch} stays\n"),
        Some(ReloadResult::RolledBack) => format!("taken back, epoch {epoch} stays\n"),
    }
}
