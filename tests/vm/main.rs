//! Tests that need a kernel with sched_ext and the right to replace its scheduler.
//!
//! They run in a guest that `cargo xtask test` boots; on any other machine they are listed as not
//! run. Each test is a process of its own, so that a failed one leaves no thread behind; between
//! tests every other process of the guest is killed and the kernel's own scheduler is back.

// Tests act on the machine.
#![allow(clippy::disallowed_methods)]
#![allow(missing_docs)]

mod actor;
mod basics;
mod check;
mod classify;
mod cpu;
mod crowd;
mod daemon;
mod follow;
mod guest;
mod harness;
mod light;
mod load;
mod machine;
mod moves;
mod names;
mod pressure;
mod probe;
mod reload;
mod schedule;
mod shares;
mod start;
mod status;

use std::process::ExitCode;

/// One test.
pub struct Test {
    /// Unique, as `topic::what_holds`.
    pub name: &'static str,
    /// Fewest CPUs that it makes sense on.
    pub cpus: usize,
    /// Wall-clock limit in seconds; emulation on a busy host is slow, so it is generous.
    pub limit_s: u64,
    /// Panics if what it claims does not hold.
    pub run: fn(),
}

/// All topics, in the order in which they run. A topic is a file with its `TESTS`.
const TOPICS: &[&[Test]] = &[
    basics::TESTS,
    check::TESTS,
    classify::TESTS,
    crowd::TESTS,
    follow::TESTS,
    moves::TESTS,
    names::TESTS,
    schedule::TESTS,
    shares::TESTS,
    light::TESTS,
    machine::TESTS,
    reload::TESTS,
    daemon::TESTS,
    pressure::TESTS,
    start::TESTS,
    status::TESTS,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = &arguments[..]
        && flag == harness::RUN_ONE
    {
        harness::run_here(name);
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if arguments.iter().any(|argument| argument == "--list") {
        for test in harness::selected(&filters) {
            println!("{}: test", test.name);
        }
        return ExitCode::SUCCESS;
    }
    if std::env::var_os("TWOPOOL_GUEST").is_none() {
        harness::report_not_run(&filters);
        return ExitCode::SUCCESS;
    }
    harness::run_all(&filters)
}
