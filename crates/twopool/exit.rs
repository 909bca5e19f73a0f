//! The one table of exit codes. Documentation and help derive from it.

use std::io;
use std::process::ExitCode;

use rustix::io::Errno;

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
    Changes 2 "`plan` found changes";
    Warnings 3 "warnings, with --deny-warnings";
    NoTest 4 "no test ran";
    Usage 64 "wrong usage of the command line";
    NoInput 66 "an input (file, thread) is missing or cannot be read";
    Unavailable 69 "unavailable: kernel without sched_ext, another scheduler attached, daemon not running";
    Temporary 75 "timed out; of `run`: the host is short of something for now (room, memory, threads), a later start may work";
    NotPermitted 77 "not permitted";
    BadPolicy 78 "bad policy at start";
    Ejected 86 "the kernel ejected the scheduler";
}

impl Exit {
    /// What a start ends with that the system refused something. A supervisor tries again on
    /// `Temporary` and leaves everything else to people.
    pub fn of(error: &io::Error) -> Exit {
        const PASSING: [Errno; 8] = [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::NOMEM,
            Errno::NFILE,
            Errno::MFILE,
            Errno::AGAIN,
            Errno::INTR,
            Errno::BUSY,
        ];
        match Errno::from_io_error(error) {
            Some(errno) if PASSING.contains(&errno) => Exit::Temporary,
            _ => Exit::Unavailable,
        }
    }
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

impl Failure {
    /// Something that a start needs could not be set up.
    pub fn of_start(what: &str, error: &io::Error) -> Self {
        let message = format!("{what} cannot be set up: {error}");
        Self::new(Exit::of(error), "start-failed", message)
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

    /// A supervisor that restarts on a bad policy would do it for ever; one that does not restart
    /// after a full disk leaves the host without its policy until somebody looks.
    #[test]
    fn the_unit_restarts_on_what_may_pass_and_on_nothing_else() {
        let unit = include_str!("../../examples/systemd/twopool.service");
        let prevented = unit
            .lines()
            .find_map(|line| line.strip_prefix("RestartPreventExitStatus="))
            .expect("the setting");
        let prevented: Vec<u8> = prevented
            .split(' ')
            .map(|code| code.parse().expect("a code"))
            .collect();
        // 0 is no failure; these three are not ends of `run`.
        let others = [Exit::Done, Exit::Changes, Exit::Warnings, Exit::NoTest];
        let others = others.map(|exit| exit as u8);
        let expected: Vec<u8> = Exit::TABLE
            .iter()
            .map(|(code, _)| *code)
            .filter(|code| !others.contains(code) && *code != Exit::Temporary as u8)
            .collect();
        assert_eq!(prevented, expected);
    }

    #[test]
    fn what_the_host_is_short_of_passes_and_what_it_lacks_does_not() {
        let of = |errno: Errno| Exit::of(&io::Error::from(errno));
        for passing in [Errno::NOSPC, Errno::NOMEM, Errno::MFILE, Errno::AGAIN] {
            assert_eq!(of(passing), Exit::Temporary, "{passing}");
        }
        for lasting in [Errno::ROFS, Errno::NOTDIR, Errno::NOSYS, Errno::PERM] {
            assert_eq!(of(lasting), Exit::Unavailable, "{lasting}");
        }
        assert_eq!(Exit::of(&io::Error::other("x")), Exit::Unavailable);
    }

    #[test]
    fn codes_are_unique_and_in_order() {
        assert!(Exit::TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
