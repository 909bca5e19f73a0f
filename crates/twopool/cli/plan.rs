//! Arguments of `plan` and `snapshot`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// `plan`.
#[derive(Debug, Args)]
#[command(
    override_usage = "twopool plan [OPTIONS] [OLD] <NEW>",
    after_help = "\
OLD and NEW are policies as `check` takes them: a file with the policy.d beside it, a directory, or -
for standard input. Without OLD it is the policy in force, which the running daemon tells to root. A
change is another pool, slice or weight; being taken by another rule with the same outcome is none.
Ends with code 2 if something changes, 0 if nothing does.

Examples:
  twopool plan new.toml                             what would change if this were saved
  twopool plan /etc/twopool new/                    which threads of this host would change
  twopool plan --threads web-17.tsv old.toml new.toml
                                                    the same for a host that `snapshot` recorded
  twopool plan --witness old.toml new.toml          on no host at all: an example thread for each
                                                    pair of outcomes that differs
"
)]
pub struct Plan {
    /// The policy that is in force, if it is not the daemon's; and the one that would be.
    #[arg(required = true, num_args = 1..=2, value_names = ["OLD", "NEW"])]
    pub policies: Vec<PathBuf>,
    /// Threads from a TSV file, as `snapshot` writes it; - reads standard input.
    #[arg(long, value_name = "FILE", visible_alias = "snapshot")]
    pub threads: Option<PathBuf>,
    /// Compare the policies themselves: one example thread for each pair of outcomes.
    #[arg(long, conflicts_with = "threads")]
    pub witness: bool,
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
}

/// `snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Threads in real-time and deadline classes are left out: the kernel runs them before ours, whatever
the policy says. Their number goes to standard error.

Examples:
  twopool snapshot --output web-17.tsv
  twopool snapshot | twopool explain --policy new.toml --threads -
")]
pub struct Snapshot {
    /// Write to a file.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// With --output: how to say what was written. The list itself is always TSV.
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        requires = "output"
    )]
    pub format: Format,
}
