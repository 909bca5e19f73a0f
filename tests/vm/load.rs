//! Processes that burn CPU time, and how much of it each thread got.

// Topics use what they need.
#![allow(dead_code)]

use crate::guest::{make_cgroup, pid};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process whose threads never sleep; killed when dropped.
pub struct Spinners {
    child: Child,
    tids: Vec<u32>,
}

impl Spinners {
    /// Starts `twopool-load spin` with these arguments; returns once all its threads run.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new("twopool-load")
            .args(["spin", "--until-eof"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("twopool-load can be started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe from the load");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the load says its threads");
        let hello: Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("the load said {line:?}: {e}"));
        let tids = hello["tids"].as_array().expect("thread ids");
        Self {
            tids: tids
                .iter()
                .map(|tid| tid.as_u64().expect("a thread id") as u32)
                .collect(),
            child,
        }
    }

    /// Ids of the spinning threads.
    pub fn tids(&self) -> &[u32] {
        &self.tids
    }

    /// Stops the process where it is.
    pub fn freeze(&self) {
        kill_process(pid(self.child.id()), Signal::STOP).expect("the load can be signalled");
    }

    /// CPU time of the spinning threads so far, in nanoseconds; of one that runs right now, up to
    /// its last tick.
    pub fn cpu_ns(&self) -> u64 {
        let process = self.child.id();
        let one = |tid: &u32| {
            let path = format!("/proc/{process}/task/{tid}/schedstat");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
            let first = text.split_whitespace().next().unwrap_or_default();
            first
                .parse::<u64>()
                .unwrap_or_else(|e| panic!("{path}: {text:?}: {e}"))
        };
        self.tids.iter().map(one).sum()
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// New processes all the time: each moves itself to another cgroup, and ends.
pub struct Churn {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Churn {
    /// A hundred a second, or as many as the machine can start.
    pub fn start() -> Self {
        const THREADS: usize = 4;
        let stop = Arc::new(AtomicBool::new(false));
        let one = |number| {
            let stop = stop.clone();
            let file = make_cgroup(&format!("/churn-{number}")).join("cgroup.procs");
            let script = format!("echo 0 > {}", file.display());
            let pace = Duration::from_millis(10 * THREADS as u64);
            std::thread::spawn(move || {
                let mut started = 0;
                while !stop.load(Ordering::Relaxed) {
                    let next = Instant::now() + pace;
                    let shell = Command::new("/bin/busybox")
                        .args(["sh", "-c", &script])
                        .status();
                    assert!(shell.expect("a shell can be started").success());
                    started += 1;
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                }
                started
            })
        };
        let threads = (0..THREADS).map(one).collect();
        Self { stop, threads }
    }

    /// How many there were.
    pub fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let counts = self.threads.into_iter().map(JoinHandle::join);
        counts.map(|count| count.expect("no panic")).sum()
    }
}
