//! The program from outside: exit code, standard output and standard error of every command that
//! needs no kernel, also on inputs that nobody should have. The real binary, in its own directory.

mod check;
mod check_as;
mod check_formats;
mod codes;
mod daemon;
mod explain;
mod hostile;
mod import;
mod namespaces;
mod near;
mod overlaps;
mod plan;
mod show;
mod snapshot;
mod testing;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Three rules, two tests.
pub const POLICY: &str = r#"version = 1
default = "background"

[[rule]]
name = "debug"
pool = "background"
thread = "srv-debug*"

[[rule]]
name = "request path"
pool = "critical"
process = "adserver"
thread = "srv-*"
user = "root"
slice = "1ms"
weight = 200

[[rule]]
name = "root's own"
pool = "critical"
user = "root"
cgroup = { under = "/ads.slice" }

[[test]]
name = "servers are critical"
thread = "srv-1"
process = "adserver"
expect = { pool = "critical", rule = "request path" }

[[test]]
name = "debugging is not"
thread = "srv-debug-1"
process = "adserver"
expect = { pool = "background", rule = "debug" }
"#;

/// A directory of its own with a policy in it.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// With `policy.toml`.
    pub fn with(policy: &str) -> Self {
        let place = Self::empty();
        place.write("policy.toml", policy);
        place
    }

    /// With nothing.
    pub fn empty() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file below it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        fs::write(path, text).expect("written");
    }

    /// The program with these words as arguments, run here.
    pub fn run(&self, arguments: &str) -> Run {
        self.run_args(&arguments.split_whitespace().collect::<Vec<_>>(), b"")
    }

    /// The same with standard input.
    pub fn run_args(&self, arguments: &[&str], stdin: &[u8]) -> Run {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // A program that ends without reading breaks the pipe; its exit code tells.
        let _ = child.stdin.take().expect("piped").write_all(stdin);
        Run::of(child.wait_with_output().expect("the program ends"))
    }

    /// The program here, without anything of the caller's environment that could reach a daemon.
    pub fn command(&self) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_twopool"))
    }

    /// Another program here, likewise.
    pub fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("TWOPOOL_RUNTIME_DIR", self.path().join("run"))
            .env("TWOPOOL_STATE_DIR", self.path().join("state"))
            .env_remove("RUST_LOG")
            .env_remove("NOTIFY_SOCKET");
        command
    }
}

/// What a run left.
#[derive(Debug)]
pub struct Run {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    /// All of it.
    pub stdout: String,
    /// All of it.
    pub stderr: String,
}

impl Run {
    /// Of a program that ended.
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Checks the exit code, showing everything if it is another one.
    #[track_caller]
    pub fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Standard output as the one JSON document that it must be.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

#[test]
fn help_names_every_command_and_exit_code() {
    let run = Place::empty().run("--help").ends_with(0);
    for word in [
        "check",
        "test",
        "show",
        "explain",
        "plan",
        "snapshot",
        "run",
        "reload",
        "status",
        "threads",
        "explain-code",
        "schema",
        "import",
        "Examples:",
        "Exit codes:",
        "  86  ",
    ] {
        assert!(
            run.stdout.contains(word),
            "{word} is not in\n{}",
            run.stdout
        );
    }
    assert_eq!(run.stderr, "");
}

#[test]
fn version_is_one_line() {
    let run = Place::empty().run("--version").ends_with(0);
    assert_eq!(
        run.stdout,
        format!("twopool {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn wrong_usage_ends_with_64_and_json_stays_json() {
    let place = Place::empty();
    for arguments in [
        "",
        "dance",
        "check --colour",
        "explain",
        "explain 12 --thread x",
        "explain --process x",
        "check --format yaml",
        "plan",
        "plan a b c",
        "plan --witness --threads x a b",
    ] {
        let run = place.run(arguments).ends_with(64);
        assert_eq!(run.stdout, "", "{arguments}");
        assert!(!run.stderr.is_empty(), "{arguments}");
    }
    let run = place.run("explain --format json").ends_with(64);
    assert_eq!(run.json()["error"]["code"], "usage");
    place
        .run("check --format=json --colour")
        .ends_with(64)
        .json();
}
