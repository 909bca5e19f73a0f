//! The one table of exit codes. Documentation and help derive from it.

use std::process::ExitCode;

macro_rules! exits {
    ($($(#[$attribute:meta])* $variant:ident $code:literal $doc:literal;)*) => {
        /// How the program ends. The numbers are public interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Exit { $(#[doc = $doc] $(#[$attribute])* $variant = $code,)* }

        impl Exit {
            /// Every code with its meaning, in order.
            pub const TABLE: &[(u8, &str)] = &[$(($code, $doc),)*];
        }
    };
}

exits! {
    Done 0 "done";
    Rejected 1 "policy rejected, test failed, input malformed, or reload rejected (the old policy stays)";
    Warnings 3 "warnings, with --deny-warnings";
    NoTest 4 "no test ran";
    Usage 64 "wrong usage of the command line";
    NoInput 66 "an input (file, thread) is missing or cannot be read";
    Unavailable 69 "unavailable: kernel without sched_ext, another scheduler attached, daemon not running";
    TimedOut 75 "timed out";
    NotPermitted 77 "not permitted";
    BadPolicy 78 "bad policy at start";
    Ejected 86 "the kernel ejected the scheduler";
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command stopped without a result: one line for people, a code for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Ends the program with this.
    pub exit: Exit,
    /// Stable, lower case with dashes: `daemon-not-running`.
    pub code: &'static str,
    /// Lowercase, no final period.
    pub message: String,
}

impl Failure {
    /// A failure to report.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
        }
    }
}

/// The end of the help text: every exit code.
pub fn help_table() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, doc) in Exit::TABLE {
        text.push_str(&format!("  {code:>2}  {doc}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_lists_every_code() {
        let manual = include_str!("../../docs/operations.md");
        let (_, table) = manual.split_once("## Exit codes").expect("the section");
        let rows: Vec<String> = Exit::TABLE
            .iter()
            .map(|(code, doc)| format!("| {code} | {doc} |"))
            .collect();
        let listed: Vec<&str> = table
            .lines()
            .filter(|line| line.starts_with("| "))
            .skip(1)
            .collect();
        assert_eq!(listed, rows);
    }

    #[test]
    fn codes_are_unique_and_in_order() {
        assert!(Exit::TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
