//! Where the files of a policy are, by the path that a command names or the daemon follows.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use twopool_policy::compile::{Input, Role};
use twopool_policy::dropins::tests_name;

use super::input::{ReadError, STDIN_NAME, TOO_MUCH, drop_in_files, read_input, read_stdin};

/// Where a policy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The policy file; `None`: standard input.
    pub policy: Option<PathBuf>,
    /// The directory of drop-ins.
    pub drop_ins: Option<PathBuf>,
    /// Somebody named that directory: it must exist. The one beside a policy file need not.
    pub is_named: bool,
}

impl Location {
    /// The policy that a PATH of the command line means.
    pub fn of_argument(path: &Path, policy_dir: Option<&Path>) -> Self {
        if path == Path::new("-") {
            return Self {
                policy: None,
                drop_ins: policy_dir.map(Path::to_owned),
                is_named: policy_dir.is_some(),
            };
        }
        let policy = if path.is_dir() {
            path.join("policy.toml")
        } else {
            path.to_owned()
        };
        let beside = policy.parent().unwrap_or(Path::new("")).join("policy.d");
        Self {
            drop_ins: Some(policy_dir.map_or(beside, Path::to_owned)),
            is_named: policy_dir.is_some(),
            policy: Some(policy),
        }
    }

    /// Reads the file of tests beside the policy file; nothing if there is none.
    pub(super) fn read_tests(&self) -> Result<Option<Input>, ReadError> {
        let Some(path) = self.tests() else {
            return Ok(None);
        };
        match read_input(&path, Role::Tests, TOO_MUCH) {
            Err(error) if error.cause.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Where the file of tests is; it need not exist. A policy from standard input has none.
    pub fn tests(&self) -> Option<PathBuf> {
        let policy = self.policy.as_ref()?;
        let name = tests_name(policy.file_name()?.as_bytes())?;
        Some(policy.with_file_name(OsString::from_vec(name)))
    }

    /// Reads the policy file alone.
    pub(super) fn read_policy(&self) -> Result<Input, ReadError> {
        match &self.policy {
            Some(path) => read_input(path, Role::Policy, TOO_MUCH),
            None => Ok(Input {
                name: STDIN_NAME.to_owned(),
                role: Role::Policy,
                bytes: read_stdin()?,
            }),
        }
    }

    /// Its drop-ins, by name in byte order.
    pub fn drop_in_files(&self) -> Result<Vec<PathBuf>, ReadError> {
        match &self.drop_ins {
            Some(directory) => drop_in_files(directory, self.is_named),
            None => Ok(Vec::new()),
        }
    }

    /// The policy file's name for messages.
    pub fn label(&self) -> String {
        self.policy
            .as_ref()
            .map_or_else(|| STDIN_NAME.to_owned(), |path| path.display().to_string())
    }
}
