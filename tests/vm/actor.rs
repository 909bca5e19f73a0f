//! Threads that do what a test says, when it says so, and sleep in between.
//!
//! A test about the next wake needs a thread that certainly does not wake by itself, and a test
//! about ticks one that certainly does not sleep. `guest::Worker` is for load; this is for those.

use crate::guest::{twopool, wait_for, wait_that};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

type Deed = Box<dyn FnOnce() + Send>;

enum Order {
    /// Does something and goes back to sleep.
    Do(Deed),
    /// Spins, doing what comes meanwhile, until told to rest.
    Spin,
}

/// A thread of this process that sleeps until it is told something.
pub struct Actor {
    tid: u32,
    orders: Sender<Order>,
    meanwhile: Sender<Deed>,
    done: Receiver<()>,
    spinning: Arc<AtomicBool>,
}

impl Actor {
    /// Starts one, asleep. It ends when this is dropped.
    pub fn start(name: &str) -> Self {
        let (orders, inbox) = channel();
        let (meanwhile, deeds) = channel();
        let (tell, done) = channel();
        let (introduce, introduced) = channel();
        let spinning = Arc::new(AtomicBool::new(false));
        let flag = spinning.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let tid = rustix::thread::gettid().as_raw_nonzero().get();
                introduce.send(tid).expect("the test waits");
                play(&inbox, &deeds, &tell, &flag);
            })
            .expect("a thread can be started");
        let tid = introduced.recv().expect("the thread says its id");
        let actor = Self {
            tid: tid.unsigned_abs(),
            orders,
            meanwhile,
            done,
            spinning,
        };
        actor.wait_asleep();
        actor
    }

    /// Its thread id.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// Wakes it for this and waits until it sleeps again.
    pub fn run(&self, deed: impl FnOnce() + Send + 'static) {
        self.orders
            .send(Order::Do(Box::new(deed)))
            .expect("the thread listens");
        self.done.recv().expect("it did so without a panic");
        self.wait_asleep();
    }

    /// Wakes it once, for nothing, and waits until it sleeps again.
    pub fn wake(&self) {
        self.run(|| {});
    }

    /// Sets it spinning: from now on it does not sleep.
    pub fn spin(&self) {
        self.spinning.store(true, Ordering::Release);
        self.orders.send(Order::Spin).expect("the thread listens");
    }

    /// Has it do something while it spins, and waits until it is done.
    pub fn run_spinning(&self, deed: impl FnOnce() + Send + 'static) {
        self.meanwhile
            .send(Box::new(deed))
            .expect("the thread listens");
        self.done.recv().expect("it did so without a panic");
    }

    /// Ends the spinning and waits until it sleeps.
    pub fn rest(&self) {
        self.spinning.store(false, Ordering::Release);
        self.done.recv().expect("it spun without a panic");
        self.wait_asleep();
    }

    /// Gives it another name, from outside: it does not wake for that.
    pub fn rename(&self, name: &str) {
        let comm = format!("/proc/self/task/{}/comm", self.tid);
        std::fs::write(comm, name).expect("a thread can be renamed");
    }

    /// CPU time that it has used, in nanoseconds: exact while it sleeps, at most a tick behind
    /// while it runs.
    pub fn cpu_ns(&self) -> u64 {
        let text = self.read("schedstat");
        let first = text.split_ascii_whitespace().next().expect("three numbers");
        first.parse().expect("nanoseconds")
    }

    /// How often it went to sleep.
    pub fn sleeps(&self) -> u64 {
        let status = self.read("status");
        let field = "voluntary_ctxt_switches:";
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        line.expect(field).trim().parse().expect("a count")
    }

    /// Whether it woke since `sleeps` said so much: it may for a signal that it never sees.
    pub fn woke_since(&self, sleeps: u64) -> bool {
        self.wait_asleep();
        self.sleeps() != sleeps
    }

    fn wait_asleep(&self) {
        wait_that("a thread to sleep", || {
            let stat = self.read("stat");
            let (_, after_name) = stat.rsplit_once(')').expect("a name in parentheses");
            after_name.trim_start().starts_with('S')
        });
    }

    fn read(&self, file: &str) -> String {
        let path = format!("/proc/self/task/{}/{file}", self.tid);
        let bytes = std::fs::read(path).expect("the thread is there");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn play(
    orders: &Receiver<Order>,
    meanwhile: &Receiver<Deed>,
    done: &Sender<()>,
    spin: &AtomicBool,
) {
    for order in orders {
        match order {
            Order::Do(deed) => deed(),
            Order::Spin => {
                while spin.load(Ordering::Acquire) {
                    if let Ok(deed) = meanwhile.try_recv() {
                        deed();
                        let _ = done.send(());
                    }
                    (0..1000).for_each(|_| std::hint::spin_loop());
                }
            }
        }
        // Nobody waits any more when the test is over.
        let _ = done.send(());
    }
}

/// Names the calling thread; any bytes but NUL.
pub fn name_self(name: &[u8]) {
    let name = CString::new(name).expect("a name has no NUL");
    rustix::thread::set_name(&name).expect("a thread can be renamed");
}

/// Names this process's leader, and with it the process.
pub fn name_process(name: &[u8]) {
    let path = format!("/proc/self/task/{}/comm", std::process::id());
    std::fs::write(path, name).expect("the leader can be renamed");
}

/// Gives the calling thread an effective user and group; the real ones stay root's, so that it can
/// come back.
pub fn become_user(user: u32, group: u32) {
    let ids = |user: u32, group: u32| {
        let user = rustix::process::Uid::from_raw(user);
        let group = rustix::process::Gid::from_raw(group);
        (user, group)
    };
    let (root, _) = ids(0, 0);
    rustix::thread::set_thread_res_uid(None, root, None).expect("root is the saved user");
    let (user, group) = ids(user, group);
    rustix::thread::set_thread_res_gid(None, group, None).expect("root may change its group");
    rustix::thread::set_thread_res_uid(None, user, None).expect("root may change its user");
}

/// Sets a thread's nice value.
pub fn set_nice(tid: u32, nice: i32) {
    let thread = Some(crate::guest::pid(tid));
    rustix::process::setpriority_process(thread, nice).expect("root may set a nice value");
}

/// Sets a thread's scheduling policy: `libc::SCHED_BATCH` and so on; a real-time one with its lowest
/// priority.
#[allow(unsafe_code, reason = "no safe wrapper of this system call is at hand")]
pub fn set_sched(tid: u32, policy: i32) {
    let is_real_time = policy == libc::SCHED_FIFO || policy == libc::SCHED_RR;
    let parameters = libc::sched_param {
        sched_priority: i32::from(is_real_time),
    };
    let tid = i32::try_from(tid).expect("a thread id");
    // SAFETY: the pointer is to a live sched_param for the length of the call.
    let result = unsafe { libc::sched_setscheduler(tid, policy, &raw const parameters) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// The document that a command of the program answers with; `None` if it fails.
pub fn json_of(arguments: &[&str]) -> Option<serde_json::Value> {
    let (status, stdout, _) = twopool(arguments);
    let document = || serde_json::from_str(&stdout).expect("a JSON document");
    status.success().then(document)
}

/// A row of `twopool threads`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its process.
    pub pid: u32,
    /// Its name; bytes that are not UTF-8 as `\xNN`.
    pub thread: String,
    /// The pool that the scheduler acts on.
    pub pool: String,
    /// The rule that gave it, from 1; 0: the default pool.
    pub rule: u64,
    /// Its name; empty: the default pool.
    pub rule_name: String,
    /// Of the policy that gave it; 0: not classified yet.
    pub epoch: u64,
    /// The pool by the policy in force and the thread as it is now.
    pub next_pool: String,
}

/// All threads, by thread id.
#[track_caller]
pub fn rows() -> BTreeMap<u32, Row> {
    let document = wait_for("an answer to `threads`", || {
        json_of(&["threads", "--format", "json"])
    });
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let rows = document["threads"].as_array().expect("an array of threads");
    rows.iter()
        .map(|row| {
            let parsed = Row {
                pid: number(&row["pid"]) as u32,
                thread: text(&row["thread"]),
                pool: text(&row["pool"]),
                rule: number(&row["rule"]),
                rule_name: text(&row["rule_name"]),
                epoch: number(&row["epoch"]),
                next_pool: text(&row["next_pool"]),
            };
            (number(&row["tid"]) as u32, parsed)
        })
        .collect()
}

/// The row of one thread.
#[track_caller]
pub fn row(tid: u32) -> Row {
    rows().remove(&tid).expect("the thread is ours")
}

/// What `status` says of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Classifications that chose it.
    pub matches: u64,
    /// CPU time of its threads, in nanoseconds.
    pub cpu_ns: u64,
}

/// What `status` says of all rules, by name.
#[track_caller]
pub fn counts() -> BTreeMap<String, Counts> {
    let status = wait_for("the daemon's status", crate::guest::status);
    let rules = status["rules"].as_array().expect("an array of rules");
    rules
        .iter()
        .map(|rule| {
            let name = rule["name"].as_str().expect("a name").to_owned();
            let seconds = rule["cpu_seconds"].as_f64().expect("seconds");
            let counts = Counts {
                matches: rule["matches"].as_u64().expect("a count"),
                cpu_ns: (seconds * 1e9) as u64,
            };
            (name, counts)
        })
        .collect()
}
