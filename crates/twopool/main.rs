//! The twopool program: declarative two-pool scheduling of Linux threads with sched_ext.
//!
//! Reads files, the clock, /proc and the kernel; everything that can be decided without them is
//! decided in `twopool-policy`.

mod cli;
mod cmd;
mod daemon;
mod exit;
mod host;
mod kernel;
mod output;
mod report;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use cli::{Cli, Command, Format};
use exit::{Exit, Failure};

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => dispatch(&cli).into(),
        Err(error) => usage(&error).into(),
    }
}

fn dispatch(cli: &Cli) -> Exit {
    let global = &cli.global;
    let (result, format) = match &cli.command {
        Command::Check(args) => (cmd::check::run(args, global), args.format.of_failures()),
        Command::Test(args) => (cmd::test::run(args, global), args.format.of_failures()),
        Command::Show(args) => (cmd::show::run(args, global), args.format),
        Command::Explain(args) => (cmd::explain::run(args, global), args.format),
        Command::Plan(args) => (cmd::plan::run(args, global), args.format),
        Command::Snapshot(args) => (cmd::snapshot::run(args), args.format),
        Command::Run(args) => (cmd::run::run(args, global), Format::Human),
        Command::Reload(args) => (cmd::reload::run(args, global), args.format),
        Command::Status(args) => (cmd::status::run(args, global), args.format),
        Command::Threads(args) => (cmd::threads::run(args, global), args.format),
        Command::ExplainCode(args) => (cmd::explain_code::run(args), args.format),
        Command::Schema => (cmd::schema::run(), Format::Human),
        Command::Import(args) => (cmd::import::run(args), args.format),
    };
    result.unwrap_or_else(|failure| output::failure(&failure, format))
}

/// clap's own exit codes are not ours, and a program that asked for JSON gets JSON.
fn usage(error: &clap::Error) -> Exit {
    let text = error.render();
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return output::result(&text.to_string())
            .map_or_else(|failure| failure.exit, |()| Exit::Done);
    }
    if !wants_json() {
        output::error_text(&text.to_string());
        if is_stray_path(error) {
            output::error_text("\n  tip: this command takes its policy as '--policy PATH'\n");
        }
        return Exit::Usage;
    }
    let text = text.to_string();
    let first = text.lines().next().unwrap_or_default();
    let failure = Failure::new(Exit::Usage, "usage", first.trim_start_matches("error: "));
    output::failure(&failure, Format::Json)
}

/// `show site.toml`: a policy where the command takes no path.
fn is_stray_path(error: &clap::Error) -> bool {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    error.kind() == ErrorKind::UnknownArgument && argument.ends_with(".toml")
}

/// Whether `--format json` is among the arguments, which clap could not parse.
fn wants_json() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.iter().any(|argument| argument == "--format=json")
        || arguments
            .windows(2)
            .any(|pair| pair == ["--format", "json"])
}
