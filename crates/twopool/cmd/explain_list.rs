//! `explain --threads`: a list of threads, one line or one JSON object each.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use twopool_diag::printable;
use twopool_policy::text::escape;
use twopool_policy::thread::Thread;

use super::explain::Judge;
use super::thread_list::ThreadList;
use crate::cli::Format;
use crate::exit::{Exit, Failure};
use crate::output;

/// Explains every thread of a file, or of standard input.
pub(super) fn run(file: &Path, format: Format, judge: &Judge) -> Result<Exit, Failure> {
    let mut list = match ThreadList::open(file, format)? {
        Ok(list) => list,
        Err(exit) => return Ok(exit),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    list.each(|thread| line(&mut out, &thread, format, judge))?;
    output::written(out.flush())?;
    Ok(Exit::Done)
}

fn line(out: &mut impl Write, thread: &Thread, format: Format, judge: &Judge) -> io::Result<()> {
    if format == Format::Json {
        serde_json::to_writer(&mut *out, &judge.explain(thread))?;
        return out.write_all(b"\n");
    }
    let (pool, rule) = judge.verdict(thread);
    let (name, process) = (escape(&thread.thread), escape(&thread.process));
    writeln!(
        out,
        "{pool:<10}  {:<15}  {:<15}  {}",
        printable(&name),
        printable(&process),
        printable(rule.unwrap_or("(default)"))
    )
}
