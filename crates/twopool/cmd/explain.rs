//! `explain`: which rule takes a thread, and why each earlier one did not.

use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use serde_json::json;
use twopool_policy::compile::Compiled;
use twopool_policy::explain::{Explanation, explain};
use twopool_policy::image::Image;
use twopool_policy::limits::MAX_TEXT_BYTES;
use twopool_policy::naive::NaiveRegexes;
use twopool_policy::policy::{Policy, Sched};
use twopool_policy::resolve::{group_id, user_id};
use twopool_policy::thread::{Thread, cut};
use twopool_policy::tsv;

use super::valid_policy;
use crate::cli::{Explain, Format, Global, SchedArg, Simulated};
use crate::exit::{Exit, Failure};
use crate::host::input::{read_file, read_stdin};
use crate::host::names::HostNames;
use crate::host::procfs::read_thread;
use crate::output;

/// Explains one thread or a file of them under the policy of `--policy`.
pub fn run(args: &Explain, global: &Global) -> Result<Exit, Failure> {
    let compiled = match valid_policy(global, args.format)? {
        Ok(compiled) => compiled,
        Err(exit) => return Ok(exit),
    };
    let judge = Judge::of(compiled);
    let mut threads = Vec::new();
    if let Some(tid) = args.tid {
        threads.push(real_thread(tid)?);
    } else if let Some(name) = &args.thread {
        threads.push(simulated_thread(
            name.as_bytes(),
            &args.simulated,
            &judge.policy,
        )?);
    } else if let Some(file) = &args.threads {
        threads = match read_threads(file)? {
            Ok(threads) => threads,
            Err(message) => return malformed(&message, args.format),
        };
    }
    let text: String = threads
        .iter()
        .map(|thread| judge.explain(thread))
        .map(|explanation| match args.format {
            Format::Json => {
                serde_json::to_string(&explanation).expect("our documents have string keys") + "\n"
            }
            Format::Human if args.threads.is_some() => summary_line(&explanation),
            Format::Human => explanation.human(),
        })
        .collect();
    output::result(&text)?;
    Ok(Exit::Done)
}

/// A valid policy, ready to judge.
struct Judge {
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

    fn explain(&self, thread: &Thread) -> Explanation {
        explain(
            &self.policy,
            &self.regexes,
            thread,
            self.image.classify(thread),
        )
    }
}

fn real_thread(tid: i32) -> Result<Thread, Failure> {
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
        thread.cgroup = normalised(&path.clone().into_vec());
    }
    let id = |text: &str, by_name: fn(&Policy, &str) -> u64| {
        text.parse::<u32>()
            .map_or_else(|_| by_name(policy, text), u64::from)
    };
    if let Some(user) = &args.user {
        thread.user = id(user, |policy, name| user_id(policy, &HostNames, name));
    }
    if let Some(group) = &args.group {
        thread.group = id(group, |policy, name| group_id(policy, &HostNames, name));
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

/// `a/b/` and `/a/b` are the same cgroup.
fn normalised(path: &[u8]) -> Vec<u8> {
    let parts = path
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty());
    let joined: Vec<u8> = parts.flat_map(|part| [b"/", part].concat()).collect();
    if joined.is_empty() {
        b"/".to_vec()
    } else {
        joined
    }
}

/// The threads of a TSV file; the inner error is a malformed file.
fn read_threads(file: &Path) -> Result<Result<Vec<Thread>, String>, Failure> {
    let (name, bytes) = match file == Path::new("-") {
        true => ("<stdin>".to_owned(), read_stdin()?),
        false => (file.display().to_string(), read_file(file)?),
    };
    if bytes.len() > MAX_TEXT_BYTES {
        let message = format!("{name}: more than {MAX_TEXT_BYTES} bytes; split the list");
        return Ok(Err(message));
    }
    Ok(tsv::read(&bytes).map_err(|errors| {
        errors
            .iter()
            .map(|error| format!("{name}:{}: {}", error.line, error.message))
            .collect::<Vec<_>>()
            .join("\n")
    }))
}

fn malformed(message: &str, format: Format) -> Result<Exit, Failure> {
    for line in message.lines() {
        output::error_text(&format!("error: {line}\n"));
    }
    if format == Format::Json {
        output::json(&json!({
            "format_version": "1",
            "error": { "code": "malformed-input", "message": message },
        }))?;
    }
    Ok(Exit::Rejected)
}

/// One line a thread, as wide as it must be: pool, thread, rule.
fn summary_line(explanation: &Explanation) -> String {
    let rule = explanation
        .rule
        .as_ref()
        .map_or("(default)", |rule| rule.name.as_str());
    let thread = &explanation.thread;
    format!(
        "{:<10}  {:<15}  {:<15}  {rule}\n",
        explanation.pool, thread.thread, thread.process
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g01_spellings_of_one_cgroup() {
        for path in ["/a/b", "a/b", "a/b/", "//a//b"] {
            assert_eq!(normalised(path.as_bytes()), b"/a/b", "{path}");
        }
        assert_eq!(normalised(b""), b"/");
        assert_eq!(normalised(b"/"), b"/");
    }
}
