//! Arguments of `test`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Format;

/// `test`.
#[derive(Debug, Args)]
#[command(after_help = "\
Tests are the [[test]] tables of the policy, of its drop-ins, and of the file beside it that has its
name: policy.test.toml beside policy.toml. That file holds nothing else. A policy whose tests fail is
neither valid nor loaded. Ends with code 1 if a test fails or too few rules are reached, with 4 if
there is no test.

Examples:
  twopool test
  twopool test --require-coverage 100 site.toml     every rule must take some tested thread
  twopool test --format junit > tests.xml           for a build server
")]
pub struct Test {
    /// Policies to test [default: the one of --policy].
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Fail unless the tests reach at least this percentage of the rules.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub require_coverage: Option<u8>,
    /// Form of the result.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: TestFormat,
}

/// Form of what `test` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub enum TestFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON document, whatever the outcome.
    Json,
    /// One JUnit document, for build servers.
    Junit,
}

impl TestFormat {
    /// How a command that stops without a result is reported.
    pub fn of_failures(self) -> Format {
        match self {
            TestFormat::Json => Format::Json,
            TestFormat::Human | TestFormat::Junit => Format::Human,
        }
    }
}
