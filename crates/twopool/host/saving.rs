//! Files that are there whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file of the daemon's own directory, which is made if it is missing. A full disk leaves
/// nothing behind, least of all an empty file that looks like a report.
///
/// # Errors
/// There is no such file now, or the one from before.
pub fn save_whole(directory: &Path, name: &str, contents: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    // One name for all: what a killed daemon left is overwritten by the next.
    let (path, unfinished) = (directory.join(name), directory.join(".unfinished"));
    let written = fs::write(&unfinished, contents).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        // Nothing to remove is as good.
        let _ = fs::remove_file(&unfinished);
    }
    written.map(|()| path)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Names of what is in a directory, sorted.
    pub(crate) fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("readable");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_whole_and_alone() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let inner = directory.path().join("made");
        fs::create_dir(&inner).expect("made");
        fs::write(inner.join(".unfinished"), "of a killed daemon").expect("written");
        let path = save_whole(&inner, "a.txt", b"whole").expect("saved");
        assert_eq!(fs::read(path).expect("readable"), b"whole");
        assert_eq!(names(&inner), ["a.txt"]);
    }

    #[test]
    fn what_cannot_be_finished_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // A directory cannot be replaced by a file: the last step fails.
        fs::create_dir(directory.path().join("a.txt")).expect("made");
        save_whole(directory.path(), "a.txt", b"x").expect_err("in the way");
        assert_eq!(names(directory.path()), ["a.txt"]);
    }
}
