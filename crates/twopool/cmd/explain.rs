//! `explain`: which rule takes a thread, and why each earlier one did not.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};
use twopool_diag::printable;
use twopool_policy::compile::Compiled;
use twopool_policy::explain::{Explanation, explain, explain_partly};
use twopool_policy::image::Image;
use twopool_policy::limits::MAX_ID;
use twopool_policy::naive::NaiveRegexes;
use twopool_policy::policy::{Policy, Sched};
use twopool_policy::resolve::{group_id, user_id};
use twopool_policy::text::{escape, is_number};
use twopool_policy::thread::{Thread, cgroup_path, cut};

use super::in_kernel::{Found, InKernel};
use super::near::{self, NearMiss, near_misses};
use super::{explain_list, judge};
use crate::cli::{Explain, Format, Global, SchedArg, Simulated};
use crate::exit::{Exit, Failure};
use crate::host::input::{Location, PolicySet};
use crate::host::names::HostNames;
use crate::host::namespaces::Hidden;
use crate::host::procfs::{Seen, read_thread};
use crate::host::threads::thread_ids;
use crate::output;

/// Explains one thread or a file of them under the policy of `--policy`.
pub fn run(args: &Explain, global: &Global) -> Result<Exit, Failure> {
    let location = Location::of_argument(&global.policy, global.policy_dir.as_deref());
    let set = PolicySet::read(&location)?;
    let compiled = match judge(&set, args.format)? {
        Ok(compiled) => compiled,
        Err(exit) => return Ok(exit),
    };
    let judge = Judge::of(compiled);
    let thread = if let Some(file) = &args.threads {
        return explain_list::run(file, args.format, &judge);
    } else if let Some(pid) = args.pid {
        return process(pid, args.format, &judge, &Running::of(&set, global));
    } else if let Some(tid) = args.tid {
        let seen = real_thread(tid)?;
        return real(&seen, args.format, &judge, &Running::of(&set, global)).map(|()| Exit::Done);
    } else {
        let name = args.thread.as_deref().unwrap_or_default();
        simulated_thread(name.as_bytes(), &args.simulated, &judge.policy)?
    };
    let title = args.thread.as_deref().unwrap_or_default().as_bytes();
    let (explanation, near) = judge.explain_near(&thread, title);
    match args.format {
        Format::Json => output::json(&document(&explanation, &near, None))?,
        Format::Human => output::result(&(explanation.human() + &near::human(&near)))?,
    }
    Ok(Exit::Done)
}

/// What a real thread is judged by beside the policy: what we cannot see of it, the running kernel
/// program, and the policy that this is compared by.
struct Running {
    hidden: Hidden,
    hash: String,
    kernel: Option<InKernel>,
}

impl Running {
    fn of(judged: &PolicySet, global: &Global) -> Self {
        let hidden = Hidden::from_us(Path::new("/proc"));
        Self {
            hidden,
            hash: judged.hash(),
            // By its ids the daemon means other threads than we do.
            kernel: InKernel::ask(global).filter(|_| !hidden.tids),
        }
    }

    fn find(&self, explanation: &Explanation) -> Option<Found<'_>> {
        self.kernel.as_ref()?.find(&self.hash, explanation)
    }
}

/// Explains all threads of a process: one after another, in JSON one a line.
fn process(pid: i32, format: Format, judge: &Judge, running: &Running) -> Result<Exit, Failure> {
    // The number of a thread that leads no process has the same list in /proc.
    let leader = real_thread(pid)?.thread.leader;
    let tids = thread_ids(Path::new("/proc"), pid).unwrap_or_default();
    if !leader || tids.is_empty() {
        let message = format!("there is no process {pid}");
        return Err(Failure::new(Exit::NoInput, "no-thread", message));
    }
    let mut first = true;
    for tid in tids {
        // One that has ended since is no thread of the process any more.
        let Ok(seen) = real_thread(tid) else { continue };
        if !std::mem::take(&mut first) && format == Format::Human {
            output::result("\n")?;
        }
        real(&seen, format, judge, running)?;
    }
    Ok(Exit::Done)
}

/// Explains a thread of this host; also says if it is none of ours.
fn real(seen: &Seen, format: Format, judge: &Judge, running: &Running) -> Result<(), Failure> {
    let title = seen.command_line.as_slice();
    let (explanation, near) = match running.hidden.reason() {
        None => judge.explain_near(&seen.thread, title),
        Some(_) => (
            judge.explain_partly(&seen.thread, running.hidden),
            Vec::new(),
        ),
    };
    let found = running.find(&explanation);
    if format == Format::Json {
        let mut document = document(&explanation, &near, seen.other_class);
        if let Some(found) = found {
            document["kernel"] = json!(found);
        }
        return output::json(&document);
    }
    let mut text = human(&explanation, seen.other_class) + &near::human(&near);
    if let Some(reason) = running.hidden.reason() {
        text += &format!("\nnote: {reason}\n");
    }
    text += &found
        .map(|found| found.human(explanation.pool.is_some()))
        .unwrap_or_default();
    if !title.is_empty() {
        let title = escape(title);
        text.push_str(&format!(
            "\ncommand line, which rules do not see: {}\n",
            printable(&title)
        ));
    }
    output::result(&text)
}

fn human(explanation: &Explanation, other_class: Option<&str>) -> String {
    match other_class {
        None => explanation.human(),
        Some(class) => format!(
            "{class}: this class is not scheduled by us. If it were a normal thread:\n{}",
            explanation.human()
        ),
    }
}

/// The public document with its near misses, and `other_class` for a thread that is none of ours.
fn document(explanation: &Explanation, near: &[NearMiss], other_class: Option<&str>) -> Value {
    let mut document = serde_json::to_value(explanation).expect("our documents have string keys");
    document["near_misses"] = json!(near);
    if let Some(class) = other_class {
        document["other_class"] = class.into();
    }
    document
}

/// A valid policy, ready to judge.
pub(super) struct Judge {
    policy: Policy,
    image: Image,
    regexes: NaiveRegexes,
}

impl Judge {
    fn of(compiled: Compiled) -> Self {
        let (policy, image) = compiled
            .policy
            .zip(compiled.image)
            .expect("a valid policy has both");
        Self {
            regexes: NaiveRegexes::new(&policy),
            policy,
            image,
        }
    }

    /// Everything about one thread.
    pub(super) fn explain(&self, thread: &Thread) -> Explanation {
        explain(
            &self.policy,
            &self.regexes,
            thread,
            self.image.classify(thread),
        )
    }

    /// The same as far as it can be known.
    fn explain_partly(&self, thread: &Thread, hidden: Hidden) -> Explanation {
        explain_partly(&self.policy, &self.regexes, thread, hidden.unknown())
    }

    /// Everything, and the rules that would take it under the name that people may know.
    fn explain_near(&self, thread: &Thread, title: &[u8]) -> (Explanation, Vec<NearMiss>) {
        let explanation = self.explain(thread);
        let taken = explanation.rule.as_ref().map(|rule| rule.index - 1);
        let near = near_misses(&self.policy, &self.regexes, thread, taken, title);
        (explanation, near)
    }

    /// Pool and rule of one thread, without the reasons.
    pub(super) fn verdict(&self, thread: &Thread) -> (&'static str, Option<&str>) {
        let class = self.image.classify(thread);
        let rule = usize::from(class.rule).checked_sub(1);
        let rule = rule.and_then(|index| self.policy.rules.get(index));
        (class.pool.as_str(), rule.map(|rule| rule.name.as_str()))
    }
}

fn real_thread(tid: i32) -> Result<Seen, Failure> {
    read_thread(Path::new("/proc"), tid).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            Exit::NoInput,
            "no-thread",
            format!("there is no thread {tid}"),
        ),
        _ => Failure::new(
            Exit::NoInput,
            "no-thread",
            format!("thread {tid} cannot be read: {error}"),
        ),
    })
}

fn simulated_thread(name: &[u8], args: &Simulated, policy: &Policy) -> Result<Thread, Failure> {
    let mut thread = Thread::named(name);
    if let Some(process) = &args.process {
        thread.process = cut(process.as_bytes()).to_vec();
    }
    thread.leader = args.leader.unwrap_or(thread.process == thread.thread);
    if let Some(path) = &args.cgroup {
        thread.cgroup = cgroup_path(path.as_bytes());
    }
    let id = |text: &str, by_name: fn(&Policy, &str) -> u64| match text.parse::<i64>() {
        Ok(id @ 0..=MAX_ID) => Ok(id as u64),
        _ if !is_number(text) => Ok(by_name(policy, text)),
        _ => Err(Failure::new(
            Exit::Usage,
            "usage",
            format!("{text} is no id: not within 0 to {MAX_ID}"),
        )),
    };
    if let Some(user) = &args.user {
        thread.user = id(user, |policy, name| user_id(policy, &HostNames, name))?;
    }
    if let Some(group) = &args.group {
        thread.group = id(group, |policy, name| group_id(policy, &HostNames, name))?;
    }
    thread.nice = args.nice.unwrap_or(0);
    thread.kthread = args.kthread.unwrap_or(false);
    thread.hint = args.hint.unwrap_or(0);
    thread.sched = match args.sched {
        None | Some(SchedArg::Normal) => Sched::Normal,
        Some(SchedArg::Batch) => Sched::Batch,
        Some(SchedArg::Idle) => Sched::Idle,
    };
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use twopool_policy::compile::{Input, Role, compile};

    use super::*;

    /// Who reads `critical` of a real-time thread looks for a fault of the scheduler.
    #[test]
    fn a_thread_of_another_class_is_told_to_be_none_of_ours() {
        let input = Input {
            name: "p.toml".to_owned(),
            role: Role::Policy,
            bytes: b"version = 1\ndefault = \"critical\"\n".to_vec(),
        };
        let judge = Judge::of(compile(&[input], &HostNames));
        let explanation = judge.explain(&Thread::named(b"irq/9-acpi"));
        let text = human(&explanation, Some("SCHED_FIFO"));
        let first = text.lines().next().expect("a line");
        assert!(
            first.starts_with("SCHED_FIFO: this class is not scheduled by us."),
            "{text}"
        );
        assert!(!human(&explanation, None).contains("not scheduled by us"));
        assert_eq!(
            document(&explanation, &[], Some("SCHED_RR"))["other_class"],
            "SCHED_RR"
        );
        assert_eq!(document(&explanation, &[], None).get("other_class"), None);
    }
}
