//! The worker: reads and compiles policies, and publishes them. Both may take long (a large policy
//! compiles for most of a second, the kernel waits for its readers), so neither happens on the
//! event loop.
//!
//! Invariant: a candidate is what two readings in a row found; a save that is under way is never
//! half a policy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use twopool_diag::Code;
use twopool_policy::compile::{Compiled, Input, compile_unproven};
use twopool_policy::image::Image;

use super::event_loop::Event;
use crate::host::input::{Location, PolicySet, ReadError};
use crate::host::names::HostNames;
use crate::kernel::apply::Publish;
use crate::report::Report;

/// Readings until two in a row are equal, and the pause between them.
const MAX_READINGS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Work for the worker; done in order.
pub enum Job {
    /// Read the policy's files and compile them.
    Load {
        /// A set with this hash needs no look: it was seen and nobody asks for it.
        seen: Option<String>,
    },
    /// Make an image, its epoch set, the policy in force.
    Publish {
        /// Where.
        slot: Arc<dyn Publish>,
        /// What.
        image: Box<Image>,
    },
    /// Prove what `check` proves of a policy that is in force. Comes last: threads need not wait.
    Prove(Box<Compiled>),
}

/// A policy that can be loaded.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Of the set of files.
    pub hash: String,
    /// What it was compiled from, as it was read.
    pub inputs: Vec<Input>,
    /// Their names in effective order.
    pub files: Vec<String>,
    /// Names of the rules in effective order.
    pub rules: Vec<String>,
    /// Compiled; epoch not set.
    pub image: Image,
    /// Warnings, if any; before the proofs only those that cost little.
    pub report: Report,
    /// To be proved when the policy is in force; `None` when that is done.
    pub unproven: Option<Box<Compiled>>,
}

/// What became of `Job::Load`.
#[derive(Debug)]
pub enum Outcome {
    /// The set with the hash that was named.
    Seen,
    /// No complete set: a file is missing, empty, unreadable or keeps changing. Nobody meant this
    /// to be a policy (yet).
    Unfinished {
        /// One line.
        message: String,
    },
    /// Read, and not valid.
    Rejected {
        /// Of the set of files.
        hash: String,
        /// Why.
        report: Report,
    },
    /// Valid.
    Valid(Box<Candidate>),
}

/// Runs until the job channel closes.
pub fn run_worker(location: &Location, jobs: &Receiver<Job>, events: &Sender<Event>) {
    for job in jobs {
        let told = match job {
            Job::Load { seen } => events.send(Event::Loaded(load(location, seen.as_deref()))),
            Job::Publish { slot, image } => events.send(Event::Published(slot.publish(&image))),
            Job::Prove(mut compiled) => {
                // Without its proofs a policy in force is as good; the hook has told of the fault.
                let _ = survive(|| compiled.prove());
                events.send(Event::Proved(Report::of(&compiled, false)))
            }
        };
        if told.is_err() {
            break;
        }
    }
}

/// Reads and compiles the policy of a start. Nobody is in the middle of saving it, and no older one
/// could stay: an empty file is judged like any other.
pub fn load_first(location: &Location) -> Outcome {
    match read_stable(location) {
        Ok(set) => outcome(compile_unproven(&set.inputs, &HostNames), set),
        Err(message) => Outcome::Unfinished { message },
    }
}

/// Reads and compiles the policy.
pub fn load(location: &Location, seen: Option<&str>) -> Outcome {
    let set = match read_stable(location) {
        Ok(set) => set,
        Err(message) => return Outcome::Unfinished { message },
    };
    let hash = set.hash();
    if seen == Some(hash.as_str()) {
        return Outcome::Seen;
    }
    let compiled = match survive(|| compile_unproven(&set.inputs, &HostNames)) {
        Ok(compiled) => compiled,
        Err(message) => return Outcome::Unfinished { message },
    };
    match empty_file(&compiled) {
        Some(name) => Outcome::Unfinished {
            message: format!("{name} is empty"),
        },
        None => outcome(compiled, set),
    }
}

/// A fault of the compiler that one policy brings to light must not end a scheduler that runs well under
/// another one.
fn survive<T>(compile: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(compile)).map_err(|_| {
        "the compiler failed on this policy; that is a fault of twopool, please report it"
            .to_owned()
    })
}

/// A file with nothing but blanks and comments: somebody is in the middle of writing it.
fn empty_file(compiled: &Compiled) -> Option<&str> {
    let kept = compiled.diagnostics.kept();
    let found = kept.iter().find(|found| found.code == Code::EmptyPolicy)?;
    let file = compiled.sources.file(found.span?.file);
    Some(&file.name)
}

fn outcome(compiled: Compiled, set: PolicySet) -> Outcome {
    let hash = set.hash();
    let report = Report::of(&compiled, false);
    match (&compiled.policy, &compiled.image) {
        (Some(policy), Some(image)) => Outcome::Valid(Box::new(Candidate {
            hash,
            inputs: set.inputs,
            files: compiled
                .sources
                .files()
                .iter()
                .map(|file| file.name.clone())
                .collect(),
            rules: policy.rules.iter().map(|rule| rule.name.clone()).collect(),
            image: image.clone(),
            report,
            unproven: Some(Box::new(compiled)),
        })),
        _ => Outcome::Rejected { hash, report },
    }
}

/// A set that two readings in a row agree on.
fn read_stable(location: &Location) -> Result<PolicySet, String> {
    let read = || PolicySet::read(location).map_err(|error: ReadError| error.message());
    let mut last = read()?;
    for _ in 1..MAX_READINGS {
        let next = read()?;
        if next == last {
            return Ok(next);
        }
        last = next;
        thread::sleep(PAUSE);
    }
    Err(format!(
        "{} keeps changing while it is read",
        location.label()
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const GOOD: &str = "version = 1\ndefault = \"background\"\n\
        [[rule]]\nname = \"a\"\npool = \"critical\"\nthread = \"x\"\n";

    fn loaded(directory: &Path, seen: Option<&str>) -> Outcome {
        load(&Location::of_argument(directory, None), seen)
    }

    #[test]
    fn a_fault_of_the_compiler_is_no_end() {
        assert_eq!(survive(|| 1), Ok(1));
        let failed = survive(|| -> i32 { panic!("a fault") });
        assert!(failed.expect_err("it failed").contains("please report it"));
    }

    #[test]
    fn a_valid_policy_is_a_candidate_and_is_not_looked_at_twice() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("policy.toml"), GOOD).expect("written");
        let Outcome::Valid(candidate) = loaded(directory.path(), None) else {
            panic!("not valid")
        };
        assert_eq!(candidate.rules, ["a"]);
        assert!(matches!(
            loaded(directory.path(), Some(&candidate.hash)),
            Outcome::Seen
        ));
    }

    #[test]
    fn l03_f07_nothing_missing_or_empty_is_ever_a_policy() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let unfinished = || match loaded(directory.path(), None) {
            Outcome::Unfinished { message } => message,
            other => panic!("{other:?}"),
        };
        assert!(unfinished().contains("no such file"), "{}", unfinished());
        fs::write(directory.path().join("policy.toml"), "").expect("written");
        assert!(
            unfinished().ends_with("policy.toml is empty"),
            "{}",
            unfinished()
        );
        // F07: what an editor or a template writes first.
        fs::write(directory.path().join("policy.toml"), "# todo\n\n").expect("written");
        assert!(
            unfinished().ends_with("policy.toml is empty"),
            "{}",
            unfinished()
        );
        fs::write(directory.path().join("policy.toml"), GOOD).expect("written");
        fs::create_dir(directory.path().join("policy.d")).expect("created");
        fs::write(directory.path().join("policy.d/60-x.toml"), "").expect("written");
        assert!(
            unfinished().ends_with("60-x.toml is empty"),
            "{}",
            unfinished()
        );
    }

    #[test]
    fn f07_at_a_start_an_empty_file_is_a_bad_policy_and_a_missing_one_is_missing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let first = || load_first(&Location::of_argument(directory.path(), None));
        assert!(matches!(first(), Outcome::Unfinished { .. }));
        fs::write(directory.path().join("policy.toml"), "").expect("written");
        let Outcome::Rejected { report, .. } = first() else {
            panic!("not rejected")
        };
        assert_eq!(report.diagnostics()[0]["code"], "empty-policy");
    }

    #[test]
    fn an_invalid_policy_is_rejected_with_its_findings() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(
            directory.path().join("policy.toml"),
            "version = 1\ndefault = \"background\"\nx = 1\n",
        )
        .expect("written");
        let Outcome::Rejected { report, .. } = loaded(directory.path(), None) else {
            panic!("not rejected")
        };
        assert!(!report.valid);
        assert_eq!(report.diagnostics()[0]["code"], "unknown-key");
        assert!(report.text.contains("unknown-key"), "{}", report.text);
    }
}
