//! `plan`: which threads another policy would change. Judges with the images that the kernel would
//! get, so that what is planned is what happens.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use twopool_policy::compile::{Compiled, Input, compile_unproven};
use twopool_policy::eval::Class;
use twopool_policy::image::Image;
use twopool_policy::policy::Policy;
use twopool_policy::proof::{self, Outcome};
use twopool_policy::thread::Thread;

use super::client::{self, PATIENCE};
use super::plan_view::{Change, ClassView, Move, human, witnesses};
use super::snapshot::host_threads;
use super::thread_list::ThreadList;
use super::valid_policy_at;
use crate::cli::{Format, Global, Plan};
use crate::daemon::protocol::{Kind, PolicyTexts, Request};
use crate::exit::{Exit, Failure};
use crate::host::input::Location;
use crate::host::names::HostNames;
use crate::output;

/// Threads of a group that people see.
const MOST_EXAMPLES: usize = 4;

/// Compares two policies on this host's threads, a list of threads, or on no thread at all.
pub fn run(args: &Plan, global: &Global) -> Result<Exit, Failure> {
    if global.policy_dir.is_some() {
        let message = "--policy-dir does not say of which policy; each one's is beside it";
        return Err(Failure::new(Exit::Usage, "usage", message));
    }
    let (old, new) = match args.policies.as_slice() {
        [new] => (Ok(running(global)?), new),
        [old, new, ..] => (side(old, args.format)?, new),
        [] => unreachable!("one is required"),
    };
    let old = match old {
        Ok(side) => side,
        Err(exit) => return Ok(exit),
    };
    let new = match side(new, args.format)? {
        Ok(side) => side,
        Err(exit) => return Ok(exit),
    };
    if args.witness {
        return by_proof(&old, &new, args.format);
    }
    let threads = match &args.threads {
        None => Threads::Host(host_threads()?.threads),
        Some(path) => match ThreadList::open(path, args.format)? {
            Ok(list) => Threads::List(list),
            Err(exit) => return Ok(exit),
        },
    };
    by_threads(&old, &new, threads, args.format)
}

/// A valid policy.
struct Side {
    policy: Policy,
    image: Image,
}

impl Side {
    /// `None` for a policy that is not valid.
    fn of(compiled: Compiled) -> Option<Self> {
        let (policy, image) = compiled.policy.zip(compiled.image)?;
        Some(Self { policy, image })
    }

    fn view(&self, class: Class) -> ClassView<'_> {
        let index = usize::from(class.rule).checked_sub(1);
        ClassView::new(&self.policy, Outcome::of(class), index)
    }
}

/// The policy that the daemon has put in force, from the texts that it was compiled from.
fn running(global: &Global) -> Result<Side, Failure> {
    let request = Request::new(Kind::Policy);
    let texts: PolicyTexts = client::ask(&global.runtime_dir, &request, PATIENCE)?;
    let inputs: Vec<Input> = texts.files.into_iter().map(Input::from).collect();
    let compiled = compile_unproven(&inputs, &HostNames);
    Side::of(compiled).ok_or_else(|| {
        let message =
            "the policy in force is not valid for this program; is the daemon of another version?";
        Failure::new(Exit::Unavailable, "bad-answer", message)
    })
}

/// The policy that an argument means; an invalid one's document is the command's result.
fn side(path: &Path, format: Format) -> Result<Result<Side, Exit>, Failure> {
    let valid = valid_policy_at(&Location::of_argument(path, None), format)?;
    Ok(valid.map(|compiled| Side::of(compiled).expect("it is valid")))
}

/// Where threads come from.
enum Threads {
    Host(Vec<Thread>),
    List(ThreadList),
}

impl Threads {
    /// Gives them all; an error of `each` is one of writing to standard output.
    fn each(&mut self, mut each: impl FnMut(&Thread) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Threads::Host(threads) => output::written(threads.iter().try_for_each(each)),
            Threads::List(list) => list.each(|thread| each(&thread)),
        }
    }
}

/// What the old policy and the new one make of a thread, if it is not the same.
fn change(old: &Side, new: &Side, thread: &Thread) -> Option<(Class, Class)> {
    let (from, to) = (old.image.classify(thread), new.image.classify(thread));
    (Outcome::of(from) != Outcome::of(to)).then_some((from, to))
}

fn by_threads(
    old: &Side,
    new: &Side,
    mut threads: Threads,
    format: Format,
) -> Result<Exit, Failure> {
    let mut total = 0;
    let mut changes: BTreeMap<(u16, u16), Change> = BTreeMap::new();
    threads.each(|thread| {
        total += 1;
        if let Some((from, to)) = change(old, new, thread) {
            let (from_view, to_view) = (old.view(from), new.view(to));
            let entry = changes.entry((from.rule, to.rule));
            let change = entry.or_insert_with(|| Change::new(from_view, to_view));
            change.count += 1;
            if change.examples.len() < MOST_EXAMPLES {
                change.examples.push(thread.clone());
            }
        }
        Ok(())
    })?;
    match format {
        Format::Human => output::result(&human(total, &changes))?,
        Format::Json => document(old, new, total, threads)?,
    }
    Ok(exit(!changes.is_empty()))
}

/// The JSON document, move by move: there may be more of them than fit into memory.
fn document(old: &Side, new: &Side, total: usize, mut threads: Threads) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let head = format!(r#"{{"format_version":"1","threads":{total},"moves":["#);
    output::written(out.write_all(head.as_bytes()))?;
    let mut first = true;
    threads.each(|thread| match change(old, new, thread) {
        None => Ok(()),
        Some((from, to)) => {
            let item = Move::new(thread, old.view(from), new.view(to));
            separated(&mut first, &mut out, &item)
        }
    })?;
    output::written(out.write_all(b"]}\n").and_then(|()| out.flush()))
}

fn separated(first: &mut bool, out: &mut impl Write, item: &Move<'_>) -> io::Result<()> {
    if !std::mem::take(first) {
        out.write_all(b",")?;
    }
    Ok(serde_json::to_writer(out, item)?)
}

fn by_proof(old: &Side, new: &Side, format: Format) -> Result<Exit, Failure> {
    let found = proof::diff((&old.policy, &old.image), (&new.policy, &new.image));
    let view = witnesses(&old.policy, &new.policy, &found);
    match format {
        Format::Human => output::result(&view.human())?,
        Format::Json => output::json(&view)?,
    }
    // What could not be decided may be a change, and no change must end with 0.
    Ok(exit(!found.found.is_empty() || found.undecided > 0))
}

fn exit(changes: bool) -> Exit {
    match changes {
        true => Exit::Changes,
        false => Exit::Done,
    }
}
