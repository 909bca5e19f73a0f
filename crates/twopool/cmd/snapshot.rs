//! `snapshot`: this host's threads as a list that `explain` and `plan` read elsewhere.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;
use twopool_policy::tsv;

use crate::cli::{Format, Snapshot};
use crate::exit::{Exit, Failure};
use crate::host::namespaces::Hidden;
use crate::host::threads::HostThreads;
use crate::output;

/// Writes the list to standard output or a file.
pub fn run(args: &Snapshot) -> Result<Exit, Failure> {
    let found = host_threads()?;
    let list = tsv::write(&found.threads);
    let Some(path) = &args.output else {
        // The list holds names as they are; it is for programs, so nothing is made printable.
        let mut stdout = io::stdout().lock();
        output::written(stdout.write_all(&list).and_then(|()| stdout.flush()))?;
        return Ok(Exit::Done);
    };
    fs::write(path, list).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(Exit::Unavailable, "output", message)
    })?;
    if args.format == Format::Json {
        output::json(&json!({
            "format_version": "1",
            "threads": found.threads.len(),
            "other_class": found.other_class,
            "unreadable": found.unreadable,
        }))?;
    }
    Ok(Exit::Done)
}

/// All threads of this host; says on standard error which are not among them.
///
/// # Errors
/// They cannot be listed, or not as the scheduler sees them.
pub(super) fn host_threads() -> Result<HostThreads, Failure> {
    if let Some(reason) = Hidden::from_us(Path::new("/proc")).reason() {
        let message = format!("{reason}: list the threads on the host");
        return Err(Failure::new(Exit::NoInput, "no-input", message));
    }
    let found = HostThreads::read(Path::new("/proc")).map_err(|error| {
        let message = format!("the threads of this host cannot be listed: {error}");
        Failure::new(Exit::NoInput, "no-input", message)
    })?;
    for (count, what) in [
        (
            found.other_class,
            "in real-time or deadline classes, which are not scheduled by us",
        ),
        (found.unreadable, "that cannot be read"),
    ] {
        if count > 0 {
            output::error_text(&format!("note: without {count} threads {what}\n"));
        }
    }
    Ok(found)
}
