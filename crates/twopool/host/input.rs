//! Reads a policy's set of files: the policy file, its tests and its drop-ins.
//!
//! Invariant: never blocks and never reads without bound, whatever a path turns out to be: a FIFO,
//! a device, a directory, a file that grows. A set is read as bytes; what they mean is for
//! `twopool_policy::compile`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use twopool_policy::compile::{Input, Role};
use twopool_policy::dropins::is_dropin;
use twopool_policy::limits::MAX_TEXT_BYTES;

use crate::exit::{Exit, Failure};

pub use super::location::Location;

/// Most drop-ins of one policy; more are a mistake, not a policy.
const MAX_DROP_INS: usize = 1024;

/// Bytes that are read at most, of a file and of a set: one more than is allowed, so that whoever
/// judges them sees and names the limit.
pub(super) const TOO_MUCH: usize = MAX_TEXT_BYTES + 1;

/// How standard input is called in diagnostics.
pub(super) const STDIN_NAME: &str = "<stdin>";

/// One reading of a policy's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySet {
    /// The policy file first, its file of tests, then drop-ins by name in byte order.
    pub inputs: Vec<Input>,
}

/// A file that could not be read.
#[derive(Debug)]
pub struct ReadError {
    /// The file or directory.
    pub path: String,
    /// Why.
    pub cause: io::Error,
}

impl ReadError {
    /// One line for people.
    pub fn message(&self) -> String {
        // The system's own text without its number: "No such file or directory (os error 2)".
        let cause = self.cause.to_string();
        let cause = cause
            .split(" (os error")
            .next()
            .unwrap_or_default()
            .to_owned();
        format!("cannot read {}: {}", self.path, lower_first(&cause))
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        Failure::new(Exit::NoInput, "no-input", error.message())
    }
}

impl PolicySet {
    /// Reads all files of a policy.
    pub fn read(location: &Location) -> Result<Self, ReadError> {
        let mut first = vec![location.read_policy()?];
        first.extend(location.read_tests()?);
        Self::with_drop_ins(first, &location.drop_in_files()?)
    }

    /// Reads drop-ins behind what was read before.
    pub(super) fn with_drop_ins(
        mut inputs: Vec<Input>,
        drop_ins: &[PathBuf],
    ) -> Result<Self, ReadError> {
        let read: usize = inputs.iter().map(|input| input.bytes.len()).sum();
        let mut left = TOO_MUCH.saturating_sub(read);
        for path in drop_ins {
            if left == 0 {
                break; // refused whatever else there is
            }
            let input = read_input(path, Role::DropIn, left)?;
            left -= input.bytes.len();
            inputs.push(input);
        }
        Ok(Self { inputs })
    }

    /// `sha256:` and a hash of the set. One file: what `sha256sum` says of it. Several: what it
    /// says of its own output over them, so that a person can recompute it.
    pub fn hash(&self) -> String {
        if let [only] = self.inputs.as_slice() {
            return format!("sha256:{}", sha256_hex(&only.bytes));
        }
        let manifest: String = self
            .inputs
            .iter()
            .map(|input| format!("{}  {}\n", sha256_hex(&input.bytes), input.name))
            .collect();
        format!("sha256:{}", sha256_hex(manifest.as_bytes()))
    }
}

/// Opens a list of threads, which is as long as it likes: whoever reads it does so by lines.
pub fn open_list(path: &Path) -> Result<File, ReadError> {
    open_regular(path).map_err(|cause| ReadError {
        path: path.display().to_string(),
        cause,
    })
}

/// Reads a plain file, at most so many bytes of it.
pub(super) fn read_at_most(path: &Path, most: usize) -> Result<Vec<u8>, ReadError> {
    let failed = |cause| ReadError {
        path: path.display().to_string(),
        cause,
    };
    let file = open_regular(path).map_err(failed)?;
    read_bounded(file, most).map_err(failed)
}

/// Standard input, likewise.
pub(super) fn read_stdin() -> Result<Vec<u8>, ReadError> {
    read_bounded(io::stdin().lock(), TOO_MUCH).map_err(|cause| ReadError {
        path: "standard input".to_owned(),
        cause,
    })
}

pub(super) fn read_input(path: &Path, role: Role, most: usize) -> Result<Input, ReadError> {
    Ok(Input {
        name: path.display().to_string(),
        role,
        bytes: read_at_most(path, most)?,
    })
}

/// Opens without waiting for a writer of a FIFO, and refuses whatever is not a plain file.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = match kind {
        k if k.is_dir() => "it is a directory",
        k if k.is_fifo() => "it is a pipe; use - to read standard input",
        k if k.is_char_device() || k.is_block_device() => "it is a device",
        _ => "it is not a regular file",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

fn read_bounded(source: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The drop-ins of a directory by name; none if it does not exist and need not.
pub(super) fn drop_in_files(directory: &Path, must_exist: bool) -> Result<Vec<PathBuf>, ReadError> {
    let failed = |cause| ReadError {
        path: directory.display().to_string(),
        cause,
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {
            return Ok(Vec::new());
        }
        other => other.map_err(failed)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path
            .file_name()
            .is_some_and(|name| is_dropin(name.as_bytes()))
            && !is_masked(&path)
        {
            paths.push(path);
        }
        if paths.len() > MAX_DROP_INS {
            return Err(failed(io::Error::other(format!(
                "it holds more than {MAX_DROP_INS} drop-ins"
            ))));
        }
    }
    paths.sort();
    Ok(paths)
}

/// A link to /dev/null switches a drop-in off.
fn is_masked(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null"))
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in names {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            fs::write(path, text).expect("written");
        }
        directory
    }

    fn names(set: &PolicySet) -> Vec<&str> {
        set.inputs
            .iter()
            .map(|input| input.name.rsplit('/').next().expect("a name"))
            .collect()
    }

    #[test]
    fn drop_ins_are_toml_files_without_a_leading_dot_by_name() {
        let directory = files(&[
            ("policy.toml", "p"),
            ("policy.d/90-z.toml", "z"),
            ("policy.d/10-a.toml", "a"),
            ("policy.d/.10-a.toml.swp", "swap"),
            ("policy.d/.hidden.toml", "hidden"),
            ("policy.d/notes.txt", "notes"),
        ]);
        std::os::unix::fs::symlink("/dev/null", directory.path().join("policy.d/20-off.toml"))
            .expect("linked");
        let location = Location::of_argument(directory.path(), None);
        let set = PolicySet::read(&location).expect("readable");
        assert_eq!(names(&set), ["policy.toml", "10-a.toml", "90-z.toml"]);
    }

    #[test]
    fn the_tests_of_a_policy_are_in_the_file_that_has_its_name() {
        let directory = files(&[("a.toml", "p"), ("a.test.toml", "t"), ("b.test.toml", "t")]);
        let read = |name: &str| {
            let location = Location::of_argument(&directory.path().join(name), None);
            let set = PolicySet::read(&location).expect("readable");
            let names = names(&set).join(" ");
            (
                names,
                set.inputs
                    .iter()
                    .map(|input| input.role)
                    .collect::<Vec<_>>(),
            )
        };
        let expected = (
            "a.toml a.test.toml".to_owned(),
            vec![Role::Policy, Role::Tests],
        );
        assert_eq!(read("a.toml"), expected);
        assert_eq!(
            read("a.test.toml"),
            ("a.test.toml".to_owned(), vec![Role::Policy])
        );
    }

    #[test]
    fn one_file_hashes_as_sha256sum_says() {
        let directory = files(&[("policy.toml", "abc")]);
        let set =
            PolicySet::read(&Location::of_argument(directory.path(), None)).expect("readable");
        assert_eq!(
            set.hash(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn the_hash_sees_content_and_names_of_drop_ins() {
        let hash = |name: &str, text: &str| {
            let directory = files(&[("policy.toml", "p"), (name, text)]);
            let mut set =
                PolicySet::read(&Location::of_argument(directory.path(), None)).expect("readable");
            for input in &mut set.inputs {
                input.name = input.name.rsplit('/').next().expect("a name").to_owned();
            }
            set.hash()
        };
        assert_ne!(hash("policy.d/a.toml", "x"), hash("policy.d/a.toml", "y"));
        assert_ne!(hash("policy.d/a.toml", "x"), hash("policy.d/b.toml", "x"));
        assert_eq!(hash("policy.d/a.toml", "x"), hash("policy.d/a.toml", "x"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_the_reason() {
        let directory = files(&[("dir.toml/x", "")]);
        let read = |name: &str| {
            read_at_most(&directory.path().join(name), TOO_MUCH).expect_err("not readable")
        };
        let error = read("none.toml");
        assert!(
            error
                .message()
                .ends_with("none.toml: no such file or directory"),
            "{}",
            error.message()
        );
        let error = read("dir.toml");
        assert!(
            error.message().ends_with("dir.toml: it is a directory"),
            "{}",
            error.message()
        );
    }

    #[test]
    fn a_large_file_is_read_to_one_byte_past_the_limit() {
        let directory = files(&[]);
        let path = directory.path().join("large.toml");
        File::create(&path)
            .and_then(|file| file.set_len(1 << 40))
            .expect("a sparse file");
        assert_eq!(
            read_at_most(&path, TOO_MUCH).expect("readable").len(),
            MAX_TEXT_BYTES + 1
        );
    }

    #[test]
    fn a_set_is_read_to_one_byte_past_the_limit_however_many_files_it_has() {
        let directory = files(&[("policy.toml", "p"), ("policy.d/1.toml", "")]);
        for name in ["1", "2", "3"] {
            File::create(directory.path().join(format!("policy.d/{name}.toml")))
                .and_then(|file| file.set_len(3 << 20))
                .expect("a sparse file");
        }
        let set =
            PolicySet::read(&Location::of_argument(directory.path(), None)).expect("readable");
        let total: usize = set.inputs.iter().map(|input| input.bytes.len()).sum();
        assert_eq!(total, MAX_TEXT_BYTES + 1);
    }
}
