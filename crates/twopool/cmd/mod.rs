//! One file for each command: what it reads, what it prints, how it ends.

pub mod check;
pub mod client;
pub mod explain;
pub mod explain_code;
mod explain_list;
pub mod import;
mod in_kernel;
mod near;
pub mod plan;
mod plan_view;
pub mod reload;
pub mod run;
pub mod schema;
pub mod show;
pub mod snapshot;
pub mod status;
pub mod test;
mod test_junit;
mod thread_list;
pub mod threads;

use std::path::PathBuf;

use twopool_policy::compile::{Compiled, compile, compile_unproven};

use crate::cli::{Format, Global};
use crate::exit::{Exit, Failure};
use crate::host::input::{Location, PolicySet};
use crate::host::names::HostNames;
use crate::output;
use crate::report::Report;

/// The policies that a list of PATHs means; without any, the one of `--policy`.
fn locations(paths: &[PathBuf], global: &Global) -> Vec<Location> {
    let named = if paths.is_empty() {
        std::slice::from_ref(&global.policy)
    } else {
        paths
    };
    named
        .iter()
        .map(|path| Location::of_argument(path, global.policy_dir.as_deref()))
        .collect()
}

/// Reads and compiles one policy. An invalid one is not a failure.
fn read_and_compile(location: &Location) -> Result<Compiled, Failure> {
    Ok(compile(&PolicySet::read(location)?.inputs, &HostNames))
}

/// The policy of `--policy`, if it is valid; else its document is the command's result. Warnings of
/// a valid one are not shown, so nothing is proved.
fn valid_policy(global: &Global, format: Format) -> Result<Result<Compiled, Exit>, Failure> {
    let location = Location::of_argument(&global.policy, global.policy_dir.as_deref());
    valid_policy_at(&location, format)
}

/// The same for any policy.
fn valid_policy_at(location: &Location, format: Format) -> Result<Result<Compiled, Exit>, Failure> {
    judge(&PolicySet::read(location)?, format)
}

/// The same for a policy that was read.
fn judge(set: &PolicySet, format: Format) -> Result<Result<Compiled, Exit>, Failure> {
    let compiled = compile_unproven(&set.inputs, &HostNames);
    if compiled.is_valid() {
        return Ok(Ok(compiled));
    }
    let report = Report::of(&compiled, output::stderr_colour());
    output::findings(&report);
    if format == Format::Json {
        output::json(&report.document)?;
    }
    Ok(Err(Exit::Rejected))
}
