//! The command line: what it accepts and the help that teaches it.
//!
//! Only commands that work are here.

mod check;
mod plan;
mod test;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use twopool_diag::Code;

use crate::exit;

pub use check::{Check, CheckFormat};
pub use plan::{Plan, Snapshot};
pub use test::{Test, TestFormat};

/// Where the policy is unless `--policy` says otherwise.
pub const DEFAULT_POLICY: &str = "/etc/twopool/policy.toml";

const EXAMPLES: &str = "\
Examples:
  twopool check                        is /etc/twopool/policy.toml with its policy.d valid?
  twopool check site.toml              the same for another file
  twopool explain 4711                 which rule takes thread 4711, and why
  twopool explain --thread srv-1 --cgroup /ads.slice
                                       the same for a thread that does not exist yet
  twopool plan /etc/twopool new/       which threads would change under another policy
  twopool run                          be the host's scheduler until told to stop
  twopool reload --wait                apply the policy now and say whether it was taken
  twopool status                       what is running, and how the pools fare
";

/// Declarative two-pool scheduling of Linux threads with sched_ext.
///
/// A policy file says which threads are critical; everything else is background. The scheduler
/// runs in the kernel, and a saved edit of the policy takes effect within a moment.
#[derive(Debug, Parser)]
#[command(name = "twopool", version, after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n{}", exit::help_table()))]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub struct Global {
    /// The policy file.
    #[arg(long, global = true, value_name = "PATH", default_value = DEFAULT_POLICY)]
    pub policy: PathBuf,
    /// Directory of drop-ins [default: `policy.d` beside the policy file].
    #[arg(long, global = true, value_name = "DIR")]
    pub policy_dir: Option<PathBuf>,
    /// How the daemon writes its log to standard error.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Where sockets live; for tests.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        hide = true,
        env = "TWOPOOL_RUNTIME_DIR",
        default_value = "/run/twopool"
    )]
    pub runtime_dir: PathBuf,
    /// Where exit dumps are kept; for tests.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        hide = true,
        env = "TWOPOOL_STATE_DIR",
        default_value = "/var/lib/twopool"
    )]
    pub state_dir: PathBuf,
}

/// Form of the daemon's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line an event, for people and the journal.
    Text,
    /// One JSON object a line.
    Json,
}

/// Form of a command's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON document, whatever the outcome.
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Validate policies without loading them.
    Check(Check),
    /// Run the [[test]] tables of policies.
    Test(Test),
    /// Show the effective policy: every value with the file and line it came from.
    Show(Show),
    /// Say which rule takes a thread, and why each earlier one did not.
    Explain(Explain),
    /// Say which threads another policy would change, and how.
    Plan(Plan),
    /// Write this host's threads as a list for `plan` and `explain` elsewhere.
    Snapshot(Snapshot),
    /// Be the host's scheduler: load, attach, follow the policy until told to stop.
    Run(Run),
    /// Tell the running daemon to read its policy now.
    Reload(Reload),
    /// State of the running daemon, its pools and rules.
    Status(Status),
    /// Every thread with its pool and rule, as the kernel program has it.
    Threads(Threads),
    /// Explain a code that `check` reports, with a wrong and a right example.
    ExplainCode(ExplainCode),
    /// Print the JSON Schema of policy files, for editors.
    Schema,
    /// Turn rules of ananicy or scx_layered into a policy.
    Import(Import),
}

/// `show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  twopool show
  twopool show --policy site.toml      the same for another file
")]
pub struct Show {
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
}

/// `explain`.
#[derive(Debug, Args)]
#[command(
    override_usage = "twopool explain [OPTIONS] <TID|--pid PID|--thread NAME ..|--threads FILE>",
    after_help = "\
A simulated thread is its name and whatever else matters. Defaults: process = thread, cgroup /,
user and group 0, nice 0, not a kernel thread, leader if process and thread are equal, normal, 0.

Examples:
  twopool explain 4711
  twopool explain --pid 4711           every thread of a process
  twopool explain --thread srv-io-3 --process adserver --cgroup /ads.slice/web.service
  twopool explain --threads threads.tsv --format json | jq -r .pool
  twopool explain --policy site.toml --thread srv-1        under another policy
"
)]
pub struct Explain {
    /// A thread of this host, by its id.
    #[arg(value_name = "TID", value_parser = parse_tid, required_unless_present_any = ["pid", "thread", "threads"], conflicts_with_all = ["pid", "thread", "threads", "Simulated"])]
    pub tid: Option<i32>,
    /// All threads of a process, by its id.
    #[arg(long, value_name = "PID", conflicts_with_all = ["thread", "threads", "Simulated"])]
    pub pid: Option<i32>,
    /// A simulated thread, by its name.
    #[arg(long, value_name = "NAME", conflicts_with = "threads")]
    pub thread: Option<OsString>,
    /// Threads from a TSV file; - reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "Simulated")]
    pub threads: Option<PathBuf>,
    /// Form of the result; with --threads and --pid one JSON object a line.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
    /// What else the simulated thread is.
    #[command(flatten)]
    pub simulated: Simulated,
}

fn parse_tid(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| {
        "a thread id is a number; a simulated thread is --thread NAME, a policy --policy PATH"
            .to_owned()
    })
}

/// Properties of a simulated thread.
#[derive(Debug, Args)]
#[command(next_help_heading = "Simulated thread")]
pub struct Simulated {
    /// Name of its thread group leader.
    #[arg(long, value_name = "NAME", requires = "thread")]
    pub process: Option<OsString>,
    /// Its cgroup v2 path.
    #[arg(long, value_name = "PATH", requires = "thread")]
    pub cgroup: Option<OsString>,
    /// Effective user, name or uid.
    #[arg(long, value_name = "USER", requires = "thread")]
    pub user: Option<String>,
    /// Effective group, name or gid.
    #[arg(long, value_name = "GROUP", requires = "thread")]
    pub group: Option<String>,
    /// Nice value.
    #[arg(long, value_name = "NICE", requires = "thread", allow_hyphen_values = true, value_parser = clap::value_parser!(i8).range(-20..=19))]
    pub nice: Option<i8>,
    /// A kernel thread.
    #[arg(long, value_name = "BOOL", requires = "thread", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub kthread: Option<bool>,
    /// The thread group leader.
    #[arg(long, value_name = "BOOL", requires = "thread", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader: Option<bool>,
    /// Scheduling policy.
    #[arg(long, value_name = "SCHED", requires = "thread")]
    pub sched: Option<SchedArg>,
    /// Hint level.
    #[arg(long, value_name = "LEVEL", requires = "thread", value_parser = clap::value_parser!(u16).range(0..=1023))]
    pub hint: Option<u16>,
}

/// `--sched`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchedArg {
    /// SCHED_NORMAL or SCHED_EXT.
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
}

/// `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs root and a kernel with sched_ext (6.12 or newer). The kernel takes over again when the
daemon ends, however it ends.

  SIGHUP           reads the policy now
  SIGTERM, SIGINT  detach and end
")]
pub struct Run {}

/// `reload`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  twopool reload --wait                ExecReload= of a unit: fails if the policy is rejected
")]
pub struct Reload {
    /// Wait for the verdict; a rejected policy is shown and ends with code 1.
    #[arg(long)]
    pub wait: bool,
    /// Longest wait for an answer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
}

/// `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
}

/// `threads`.
#[derive(Debug, Args)]
pub struct Threads {
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
}

/// `explain-code`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  twopool explain-code                 all codes, one a line
  twopool explain-code never-matches   what it means and how to fix it
")]
pub struct ExplainCode {
    /// A code, as `check` shows it in brackets [default: list them all].
    #[arg(value_name = "CODE", value_parser = PossibleValuesParser::new(Code::ALL.iter().map(|code| code.as_str())), hide_possible_values = true)]
    pub code: Option<String>,
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
}

/// `import`.
#[derive(Debug, Args)]
#[command(after_help = "\
The policy goes to standard output, with a comment at each rule that says where it came from. What
was cut, clashes, means something else or had to be left out goes to standard error. What a policy
cannot say is left out, never said more widely. Ends with code 1 if a line or layer was malformed;
the others are imported all the same.

Examples:
  twopool import ananicy /etc/ananicy.d --output policy.toml
  twopool import scx_layered layers.json | twopool check -
  twopool import scx_layered layers.json --format json | jq '.notes[] | select(.kind == \"left-out\")'
")]
pub struct Import {
    /// Whose rules they are.
    #[arg(value_name = "FROM")]
    pub from: Foreign,
    /// ananicy: the directory of *.rules and *.types; scx_layered: the JSON file, or -.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Write the policy to a file.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Form of the result; json holds the policy and all notes.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
}

/// Whose rules are imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Foreign {
    /// Rules and types of ananicy or ananicy-cpp.
    Ananicy,
    /// Layers of scx_layered.
    #[value(name = "scx_layered")]
    ScxLayered,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
