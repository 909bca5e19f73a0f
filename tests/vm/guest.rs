//! What tests do to the guest: the daemon, threads, cgroups and what the kernel says of sched_ext.
//!
//! Everything that waits polls for a condition up to a generous deadline; nothing waits for a time.

// Topics use what they need.
#![allow(dead_code)]

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The policy that `Daemon` loads.
pub const POLICY: &str = "/etc/twopool/policy.toml";
/// Where the daemon has its socket.
pub const RUNTIME: &str = "/run/twopool";
/// Where it keeps reports of ejections.
pub const STATE: &str = "/var/lib/twopool";
/// What the daemon writes to standard error.
pub const DAEMON_LOG: &str = "/tmp/twopool.log";
/// Long enough for anything that happens soon, on an emulated machine under load.
pub const SOON: Duration = Duration::from_secs(60);
const CGROUPS: &str = "/sys/fs/cgroup";

/// Asks until there is an answer or the time is up.
pub fn wait_until<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Like `wait_until` for `SOON`, but panics with `what` when the time is up.
#[track_caller]
pub fn wait_for<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    wait_until(SOON, ask).unwrap_or_else(|| panic!("still waiting for: {what}"))
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_that(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// A file of /sys/kernel/sched_ext, trimmed; empty where it does not exist (`root/ops` while no
/// scheduler is attached).
pub fn sched_ext(file: &str) -> String {
    std::fs::read_to_string(Path::new("/sys/kernel/sched_ext").join(file))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The series of the running kernel, such as (7, 3).
pub fn kernel_series() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("osrelease");
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|n| n.parse().expect("a number in the kernel's release"));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Replaces a file as a careful editor does: by rename(2).
pub fn save(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    let mut name = path.file_name().expect("a file name").to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    std::fs::write(&new, text).unwrap_or_else(|e| panic!("{}: {e}", new.display()));
    std::fs::rename(&new, path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Runs a command of the program to its end.
pub fn twopool(arguments: &[&str]) -> (ExitStatus, String, String) {
    let out = Command::new("twopool")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("twopool can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status, text(&out.stdout), text(&out.stderr))
}

fn twopool_json(arguments: &[&str]) -> Option<Value> {
    let (status, stdout, _) = twopool(arguments);
    status
        .success()
        .then(|| serde_json::from_str(&stdout).ok())?
}

/// A running `twopool run`, killed when dropped.
pub struct Daemon {
    child: Child,
}

impl Daemon {
    /// Saves the policy, starts the daemon and waits until it is attached.
    #[track_caller]
    pub fn start(policy: &str) -> Self {
        save(POLICY, policy);
        Self::start_with(&["run"])
    }

    /// Starts the program with these arguments and waits until it is attached.
    #[track_caller]
    pub fn start_with(arguments: &[&str]) -> Self {
        let mut daemon = Self::spawn(arguments);
        wait_for("twopool to attach", || {
            if let Some(status) = daemon.child.try_wait().expect("wait for the daemon") {
                panic!("twopool ended: {status}\n{}", daemon.log());
            }
            let attached = sched_ext("state") == "enabled" && sched_ext("root/ops") == "twopool";
            (attached && status()?["state"] == "attached").then_some(())
        });
        daemon
    }

    /// Starts the program without waiting for anything.
    pub fn spawn(arguments: &[&str]) -> Self {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(DAEMON_LOG)
            .expect("a log file");
        let child = Command::new("twopool")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("twopool can be started");
        Self { child }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(pid(self.child.id()), signal).expect("the daemon can be signalled");
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True until the process has ended.
    pub fn is_running(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("wait for the daemon")
            .is_none()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("twopool to end", || {
            self.child.try_wait().expect("wait for the daemon")
        })
    }

    /// Ends it as systemd would and waits.
    #[track_caller]
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Replaces the policy and waits until the daemon has dealt with exactly that file content:
    /// the epoch grew.
    #[track_caller]
    pub fn reload(&self, policy: &str) {
        let before = epoch();
        save(POLICY, policy);
        wait_that("the new policy to be in force", || epoch() > before);
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(DAEMON_LOG).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `twopool status --format json`; `None` when no daemon answers.
pub fn status() -> Option<Value> {
    twopool_json(&["status", "--format", "json"])
}

/// The epoch of the policy in force.
#[track_caller]
pub fn epoch() -> u64 {
    wait_for("the daemon's status", || {
        status()?["policy"]["epoch"].as_u64()
    })
}

/// One thread as the kernel program has classified it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// `critical` or `background`.
    pub pool: String,
    /// Index of the rule from 1; 0 is the default pool.
    pub rule: u64,
    /// Of the policy that classified it.
    pub epoch: u64,
}

/// What the kernel program holds of every thread that it has classified, by thread id; `None` when
/// no daemon answers.
pub fn classes() -> Option<BTreeMap<u32, Class>> {
    let document = twopool_json(&["threads", "--format", "json"])?;
    let rows = document["threads"].as_array()?;
    let class = |row: &Value| {
        let class = Class {
            pool: row["pool"].as_str()?.to_owned(),
            rule: row["rule"].as_u64().unwrap_or(0),
            epoch: row["epoch"].as_u64()?,
        };
        Some((u32::try_from(row["tid"].as_u64()?).ok()?, class))
    };
    Some(rows.iter().filter_map(class).collect())
}

/// What the kernel program holds of a thread; `None` while it has not classified it.
pub fn class_of(tid: u32) -> Option<Class> {
    classes()?.remove(&tid)
}

/// Waits until the kernel program has a thread in that pool.
#[track_caller]
pub fn wait_for_pool(tid: u32, pool: &str) {
    wait_that(&format!("thread {tid} to be {pool}"), || {
        class_of(tid).is_some_and(|class| class.pool == pool)
    });
}

/// What a worker thread does until it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Never sleeps.
    Spin,
    /// Sleeps for 5 ms, does next to nothing, again.
    Nap,
}

/// A named thread of this process.
pub struct Worker {
    tid: u32,
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    handle: Option<std::thread::JoinHandle<()>>,
}

impl Worker {
    /// Starts one; `setup` runs first, in the new thread.
    pub fn start_with(name: &str, work: Work, setup: impl FnOnce() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicU64::new(0));
        let (tell, told) = std::sync::mpsc::channel();
        let (stopped, counter) = (stop.clone(), rounds.clone());
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                setup();
                tell.send(rustix::thread::gettid()).expect("the test waits");
                while !stopped.load(Ordering::Relaxed) {
                    counter.fetch_add(1, Ordering::Relaxed);
                    match work {
                        Work::Spin => (0..1000).for_each(|_| std::hint::spin_loop()),
                        Work::Nap => std::thread::sleep(Duration::from_millis(5)),
                    }
                }
            })
            .expect("a thread can be started");
        let tid = told.recv().expect("the thread says its id");
        Self {
            tid: tid.as_raw_nonzero().get().unsigned_abs(),
            stop,
            rounds,
            handle: Some(handle),
        }
    }

    /// Starts one.
    pub fn start(name: &str, work: Work) -> Self {
        Self::start_with(name, work, || {})
    }

    /// Its thread id.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// How often it went round: grows while it makes progress.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Gives it another name.
    pub fn rename(&self, name: &str) {
        let comm = format!("/proc/self/task/{}/comm", self.tid);
        std::fs::write(comm, name).expect("a thread can be renamed");
    }

    /// Panics unless it makes progress soon.
    #[track_caller]
    pub fn assert_progress(&self) {
        let before = self.rounds();
        wait_that("a thread to make progress", || self.rounds() > before);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(handle) = self.handle.take() {
            // Its panic has been printed already.
            let _ = handle.join();
        }
    }
}

/// A cgroup below the root, made with its parents.
pub fn make_cgroup(path: &str) -> PathBuf {
    let dir = Path::new(CGROUPS).join(path.trim_start_matches('/'));
    std::fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    dir
}

/// Moves a whole process.
pub fn move_to_cgroup(process: u32, path: &str) {
    let file = make_cgroup(path).join("cgroup.procs");
    std::fs::write(&file, process.to_string())
        .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
}

/// Removes all cgroups, deepest first, as far as they are empty.
pub fn remove_cgroups() {
    fn remove_below(dir: &Path) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove_below(&entry.path());
                // A process that is still dying keeps its cgroup; the next round takes it.
                let _ = std::fs::remove_dir(entry.path());
            }
        }
    }
    remove_below(Path::new(CGROUPS));
}

/// Kills all processes of the guest but the first, this one and its ancestors.
pub fn kill_everything_else() {
    let mut spared = vec![1];
    let mut next = Some(std::process::id());
    while let Some(process) = next.filter(|process| *process > 1) {
        spared.push(process);
        next = parent_of(process);
    }
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let is_kernel_thread = std::fs::read_link(entry.path().join("exe")).is_err();
        if !spared.contains(&process) && !is_kernel_thread {
            // It may be gone by now.
            let _ = kill_process(pid(process), Signal::KILL);
        }
    }
}

fn parent_of(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// A process id for rustix.
pub fn pid(process: u32) -> Pid {
    i32::try_from(process)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process id")
}
