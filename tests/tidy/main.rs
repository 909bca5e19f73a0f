//! Rules about the text of this repository that no compiler checks.
//!
//! A rule that has exceptions keeps them in a list that may only get shorter: an entry that is no
//! longer needed fails the test too.

// Tests act on the machine.
#![allow(clippy::disallowed_methods)]

mod documents;
mod size;
mod text;

use std::path::Path;

const SOURCES: &[&str] = &["rs", "h", "c", "sh"];
const TEXTS: &[&str] = &["rs", "h", "c", "sh", "toml", "md"];
const SKIPPED_DIRS: &[&str] = &["target", ".git", "ui"];

struct File {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(extensions: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    let mut dirs = vec![root().to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                let name = entry.file_name();
                if !SKIPPED_DIRS.iter().any(|skipped| name == *skipped) {
                    dirs.push(path);
                }
            } else if has_extension(&path, extensions) {
                // A file that an editor is replacing right now may be gone.
                let Ok(text) = std::fs::read_to_string(&path) else {
                    continue;
                };
                let path = path.strip_prefix(root()).expect("below the root");
                let path = path.to_string_lossy().into_owned();
                found.push(File { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "the walk found no file");
    found
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| extensions.contains(&extension))
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
