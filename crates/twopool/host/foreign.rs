//! Reads rule sets of other tools: one file, or a tree of files by their endings.
//!
//! Invariant: bounded in files, depth and bytes, whatever a directory turns out to hold. Links to
//! directories are not followed, so that no tree is without end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use twopool_policy::import::Source;

use super::input::{ReadError, TOO_MUCH, read_at_most, read_stdin};
use crate::exit::{Exit, Failure};

/// Endings of the files that ananicy reads.
const ENDINGS: &[&str] = &["rules", "types", "cgroups"];
/// Most files of a tree.
const MAX_FILES: usize = 10_000;
/// Most bytes of a tree.
const MAX_BYTES: usize = 64 << 20;
/// Deepest directory.
const MAX_DEPTH: usize = 32;

/// A file, or standard input for `-`.
pub fn file(path: &Path) -> Result<Source, Failure> {
    let (name, bytes) = if path == Path::new("-") {
        ("<stdin>".to_owned(), read_stdin()?)
    } else {
        (
            path.to_string_lossy().into_owned(),
            read_at_most(path, TOO_MUCH)?,
        )
    };
    if bytes.len() == TOO_MUCH {
        return Err(too_much(&name, "is larger than any policy may be"));
    }
    Ok(Source { name, bytes })
}

/// ananicy's files below a directory in the order of their paths, which are relative to it.
pub fn rule_files(directory: &Path) -> Result<Vec<Source>, Failure> {
    let shown = directory.to_string_lossy();
    let mut paths = Vec::new();
    walk(directory, 0, &mut paths)?;
    if paths.is_empty() {
        let message = format!("{shown} holds no file that ends in .rules, .types or .cgroups");
        return Err(Failure::new(Exit::NoInput, "no-input", message));
    }
    if paths.len() > MAX_FILES {
        return Err(too_much(
            &shown,
            &format!("holds more than {MAX_FILES} files of rules"),
        ));
    }
    paths.sort();
    let mut left = MAX_BYTES;
    let mut sources = Vec::new();
    for path in paths {
        let bytes = read_at_most(&path, left)?;
        left -= bytes.len();
        if left == 0 {
            return Err(too_much(
                &shown,
                &format!("holds {MAX_BYTES} bytes of rules or more"),
            ));
        }
        let name = path.strip_prefix(directory).unwrap_or(&path);
        sources.push(Source {
            name: name.to_string_lossy().into_owned(),
            bytes,
        });
    }
    Ok(sources)
}

fn walk(directory: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |cause: io::Error| ReadError {
        path: directory.display().to_string(),
        cause,
    };
    if depth > MAX_DEPTH {
        return Err(too_much(
            &directory.to_string_lossy(),
            "is too deep in its tree",
        ));
    }
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(&path, depth + 1, paths)?;
        } else if path
            .extension()
            .is_some_and(|found| ENDINGS.iter().any(|e| found == *e))
        {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            break; // refused whatever else there is
        }
    }
    Ok(())
}

fn too_much(name: &str, what: &str) -> Failure {
    Failure::new(Exit::Rejected, "too-large", format!("{name} {what}"))
}
