//! The command line of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Format;

/// `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each PATH is a policy of its own: a file with the policy.d beside it, a directory that holds
policy.toml, or - for standard input (without drop-ins unless --policy-dir names some).

Examples:
  twopool check
  twopool check --format json site.toml | jq .diagnostics
  twopool check --format github policies/*.toml    in a workflow: shows findings beside the lines
  generate-policy | twopool check -
  twopool check --as /etc/twopool/policy.d/50-x.toml candidate
                                       would the whole policy be valid with this drop-in?
  twopool check --explain-overlaps site.toml       which threads the order of rules decides about
")]
pub struct Check {
    /// Policies to check [default: the one of --policy].
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Check the whole effective policy as it would be with PATH, one file or -, in the place of
    /// DEST, a policy file or drop-in that need not exist yet.
    #[arg(long = "as", value_name = "DEST")]
    pub destination: Option<PathBuf>,
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: CheckFormat,
    /// End with code 3 if there are warnings.
    #[arg(long)]
    pub deny_warnings: bool,
    /// Check against this host too: slices below its tick, rules on cgroups without cgroup v2, and
    /// whether its kernel can run a scheduler (else the code is 69). Needs no root.
    #[arg(long)]
    pub host: bool,
    /// Have this host's kernel verify and load the scheduler, without attaching it. Needs root; the
    /// code is 69 if the kernel refuses.
    #[arg(long)]
    pub kernel: bool,
    /// Show a thread that each rule takes, and one for every two rules of different pools that
    /// claim the same thread.
    #[arg(long)]
    pub explain_overlaps: bool,
}

/// Form of what `check` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub enum CheckFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON document, whatever the outcome.
    Json,
    /// One SARIF 2.1.0 log, for code scanning and editors.
    Sarif,
    /// Workflow commands, which GitHub shows beside the lines.
    Github,
}

impl CheckFormat {
    /// How a command line that makes no sense is reported.
    pub fn of_failures(self) -> Format {
        match self {
            CheckFormat::Json => Format::Json,
            _ => Format::Human,
        }
    }
}
