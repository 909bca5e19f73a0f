//! Threads that burn CPU time, and how much each got over a window of a fixed length.
//!
//! `requests` starts its background load through this command too, as a process of its own that ends
//! with its parent: its standard input is a pipe, and its end is the signal.

use crate::clock;
use crate::place::{self, Place};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Arguments of `spin`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Their names; the last N becomes the number, from 0
    #[arg(long, default_value = "spin-N", value_name = "PATTERN")]
    pub name: String,
    #[command(flatten)]
    pub place: Place,
    /// Length of the window
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Time to wait before the window
    #[arg(long, default_value_t = 0.5)]
    pub settle: f64,
    /// Burn this long, then sleep; 0: never sleep
    #[arg(long, default_value_t = 0)]
    pub burn_us: u64,
    /// Sleep this long between burns
    #[arg(long, default_value_t = 1000)]
    pub sleep_us: u64,
    /// Print the thread ids, then spin until standard input ends
    #[arg(long, hide = true)]
    pub until_eof: bool,
}

/// Result of `spin`.
#[derive(Debug, Serialize)]
struct Report {
    window_s: f64,
    cpus: f64,
    threads: Vec<ThreadReport>,
}

#[derive(Debug, Serialize)]
struct ThreadReport {
    name: String,
    tid: u32,
    cpu_ns: u64,
}

/// First line of a spinning child.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    tids: Vec<u32>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    args.place.enter()?;
    let tids = start_threads(args)?;
    if args.until_eof {
        crate::print(&Hello { tids })?;
        std::io::stdin().lock().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    let process = std::process::id();
    clock::sleep_until_ns(clock::now_ns() + (args.settle * 1e9) as u64);
    let (begin, before) = (clock::now_ns(), cpu_times(process, &tids)?);
    clock::sleep_until_ns(begin + (args.seconds * 1e9) as u64);
    let (end, after) = (clock::now_ns(), cpu_times(process, &tids)?);
    let threads: Vec<ThreadReport> = tids
        .iter()
        .enumerate()
        .map(|(i, tid)| ThreadReport {
            name: place::numbered(&args.name, i),
            tid: *tid,
            cpu_ns: after[i] - before[i],
        })
        .collect();
    let total: u64 = threads.iter().map(|thread| thread.cpu_ns).sum();
    crate::print(&Report {
        window_s: (end - begin) as f64 / 1e9,
        cpus: total as f64 / (end - begin) as f64,
        threads,
    })
}

/// The threads run until the process ends.
fn start_threads(args: &Args) -> Result<Vec<u32>> {
    let (tell, told) = std::sync::mpsc::channel();
    for number in 0..args.threads {
        let tell = tell.clone();
        let (burn, sleep) = (args.burn_us * 1000, args.sleep_us * 1000);
        std::thread::Builder::new()
            .name(place::numbered(&args.name, number))
            .spawn(move || {
                let tid = rustix::thread::gettid().as_raw_nonzero().get();
                if tell.send((number, tid.unsigned_abs())).is_err() {
                    return;
                }
                loop {
                    if burn == 0 {
                        clock::burn_a_little();
                    } else {
                        clock::burn_ns(burn);
                        clock::sleep_until_ns(clock::now_ns() + sleep);
                    }
                }
            })
            .context("cannot start a thread")?;
    }
    drop(tell);
    let mut tids: Vec<(usize, u32)> = told.iter().take(args.threads).collect();
    tids.sort_unstable();
    Ok(tids.into_iter().map(|(_, tid)| tid).collect())
}

/// CPU time of threads in nanoseconds, from /proc/PID/task/TID/schedstat: of a thread that runs
/// right now, up to its last tick.
pub fn cpu_times(process: u32, tids: &[u32]) -> Result<Vec<u64>> {
    tids.iter()
        .map(|tid| {
            let path = format!("/proc/{process}/task/{tid}/schedstat");
            let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
            let first = text.split_whitespace().next().unwrap_or_default();
            first.parse().with_context(|| format!("{path}: `{text}`"))
        })
        .collect()
}

/// A spinning child process.
#[derive(Debug)]
pub struct Spinner {
    child: Child,
    stdin: Option<ChildStdin>,
    tids: Vec<u32>,
}

impl Spinner {
    /// Starts one with these arguments of `spin`, and returns once all its threads have run.
    pub fn start(arguments: &[String]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["spin", "--until-eof"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the background load")?;
        let stdin = child.stdin.take();
        let stdout = child
            .stdout
            .take()
            .context("no pipe from the background load")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if line.is_empty() {
            bail!("the background load did not start: {}", child.wait()?);
        }
        let hello: Hello = serde_json::from_str(&line)?;
        Ok(Self {
            child,
            stdin,
            tids: hello.tids,
        })
    }

    /// Its process id.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ids of its spinning threads.
    pub fn tids(&self) -> &[u32] {
        &self.tids
    }

    /// CPU time of all its threads so far, in nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64> {
        Ok(cpu_times(self.child.id(), &self.tids)?.iter().sum())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Its threads may not let it notice the end of its input for a while.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
