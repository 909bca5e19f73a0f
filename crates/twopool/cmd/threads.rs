//! `threads`: every thread with its pool and rule, as the kernel program has it.

use std::fmt::Write;

use serde_json::json;
use twopool_diag::printable;

use super::client::{self, PATIENCE};
use crate::cli::{Format, Global, Threads};
use crate::daemon::protocol::{Kind, Request, ThreadRow};
use crate::exit::{Exit, Failure};
use crate::output;

/// Asks the daemon.
pub fn run(args: &Threads, global: &Global) -> Result<Exit, Failure> {
    let rows: Vec<ThreadRow> =
        client::ask(&global.runtime_dir, &Request::new(Kind::Threads), PATIENCE)?;
    match args.format {
        Format::Human => output::result(&table(&rows))?,
        Format::Json => output::json(&json!({ "format_version": "1", "threads": rows }))?,
    }
    Ok(Exit::Done)
}

fn table(rows: &[ThreadRow]) -> String {
    let mut text = format!(
        "{:>8} {:>8}  {:<15}  {:<10}  {:>5}  RULE\n",
        "TID", "PID", "THREAD", "POOL", "EPOCH"
    );
    for row in rows {
        let rule = match (row.rule, &row.rule_name) {
            (None, _) => "(default)".to_owned(),
            (Some(index), None) => index.to_string(),
            (Some(index), Some(name)) => format!("{index} {}", printable(name)),
        };
        let next = match row.pool == row.next_pool {
            true => String::new(),
            false => format!("  (then {})", row.next_pool),
        };
        let epoch = match row.epoch {
            0 => "-".to_owned(),
            epoch => epoch.to_string(),
        };
        let (thread, pool) = (&row.thread, &row.pool);
        let _ = writeln!(
            text,
            "{:>8} {:>8}  {thread:<15}  {pool:<10}  {epoch:>5}  {rule}{next}",
            row.tid, row.pid
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_where_a_thread_is_and_where_it_will_be() {
        let row = ThreadRow {
            tid: 12,
            pid: 10,
            thread: "srv-1".into(),
            pool: "background".into(),
            rule: Some(2),
            rule_name: Some("rest".into()),
            epoch: 7,
            next_pool: "critical".into(),
        };
        let asleep = ThreadRow {
            pool: "critical".into(),
            rule: None,
            rule_name: None,
            epoch: 0,
            ..row.clone()
        };
        let expected = "     TID      PID  THREAD           POOL        EPOCH  RULE
      12       10  srv-1            background      7  2 rest  (then critical)
      12       10  srv-1            critical        -  (default)
";
        assert_eq!(table(&[row, asleep]), expected);
    }
}
