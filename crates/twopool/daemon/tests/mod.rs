//! The whole daemon on a kernel of paper: real files, real notifications, a real socket, and the
//! real loop and worker. What a real kernel must show is tested in a guest.

mod attaching;
mod ejection;
mod files;
mod texts;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use twopool_policy::image::Image;
use twopool_policy::policy::Pool;
use twopool_policy::thread::Thread;
use twopool_telemetry::{Events, KernelInfo, State, Status};

use super::control::ControlSocket;
use super::event_loop::{Attach, Channels, Daemon, Event, Kernel, Scheduler};
use super::protocol::{Kind, Request, Verdict};
use super::reload::{Candidate, Outcome, load, run_worker};
use super::watch::run_watcher;
use crate::cmd::client;
use crate::exit::{Exit, Failure};
use crate::host::input::Location;
use crate::kernel::accounts::{RuleBanks, RuleCounters};
use crate::kernel::apply::Publish;
use crate::kernel::counters::{PoolCounters, ThreadReport};
use crate::kernel::ejection::Ejection;

/// Longest wait for something that must happen; how long it takes is not judged.
const DEADLINE: Duration = Duration::from_secs(60);

/// A policy that puts threads named `thread` into the critical pool, by the rule `rule THREAD`.
pub fn text(thread: &str) -> String {
    format!(
        "version = 1\ndefault = \"background\"\n\
         [[rule]]\nname = \"rule {thread}\"\npool = \"critical\"\nthread = \"{thread}\"\n"
    )
}

/// The same, compiled; its epoch is not set.
pub fn candidate(thread: &str) -> Candidate {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("policy.toml");
    fs::write(&path, text(thread)).expect("written");
    match load(
        &Location {
            policy: Some(path),
            drop_ins: None,
            is_named: false,
        },
        None,
    ) {
        Outcome::Valid(candidate) => *candidate,
        other => panic!("{other:?}"),
    }
}

/// What a kernel of paper remembers.
#[derive(Default)]
struct Paper {
    published: Mutex<Vec<Image>>,
    news: Condvar,
    starts: Mutex<u32>,
    ejection: Mutex<Option<Ejection>>,
    is_attached: Mutex<bool>,
    /// While it is locked, loading does not come to its end.
    loading: Mutex<()>,
    /// Likewise attaching.
    attaching: Mutex<()>,
    begins_to_attach: AtomicBool,
    refuses: Mutex<Option<Failure>>,
    /// It has no memory for another policy.
    is_full: AtomicBool,
}

impl Paper {
    /// Waits until the policy in force takes a thread of this name, and returns how many policies
    /// were published until then.
    fn wait_for(&self, thread: &str) -> usize {
        let is_in_force = |published: &[Image]| {
            let class = published
                .last()
                .map(|image| image.classify(&Thread::named(thread.as_bytes())));
            class.is_some_and(|class| class.pool == Pool::Critical)
        };
        let published = self.published.lock().expect("unpoisoned");
        let (published, timeout) = self
            .news
            .wait_timeout_while(published, DEADLINE, |published| !is_in_force(published))
            .expect("unpoisoned");
        assert!(
            !timeout.timed_out(),
            "no policy that takes {thread:?} in {DEADLINE:?}"
        );
        published.len()
    }

    fn count(&self) -> usize {
        self.published.lock().expect("unpoisoned").len()
    }
}

impl Publish for Paper {
    fn publish(&self, image: &Image) -> io::Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.published
            .lock()
            .expect("unpoisoned")
            .push(image.clone());
        self.news.notify_all();
        Ok(())
    }
}

struct PaperKernel(Arc<Paper>);

struct PaperScheduler(Arc<Paper>);

impl RuleBanks for Paper {
    fn read(&self, _: usize, _: usize) -> io::Result<RuleCounters> {
        Ok(RuleCounters::default())
    }
    fn clear(&self, _: usize, _: usize) -> io::Result<()> {
        Ok(())
    }
}

impl Kernel for PaperKernel {
    fn load(&self, first: &Image) -> Result<Attach, Failure> {
        let (paper, first) = (Arc::clone(&self.0), first.clone());
        *paper.starts.lock().expect("unpoisoned") += 1;
        drop(paper.loading.lock());
        if let Some(failure) = paper.refuses.lock().expect("unpoisoned").clone() {
            return Err(failure);
        }
        Ok(Box::new(move || {
            paper.begins_to_attach.store(true, Ordering::Relaxed);
            drop(paper.attaching.lock());
            paper.publish(&first).expect("paper is patient");
            *paper.is_attached.lock().expect("unpoisoned") = true;
            Ok(Box::new(PaperScheduler(paper)) as Box<dyn Scheduler>)
        }))
    }
    fn info(&self) -> KernelInfo {
        KernelInfo {
            release: "paper".into(),
            ops: "twopool".into(),
        }
    }
}

impl Scheduler for PaperScheduler {
    fn slot(&self) -> Arc<dyn Publish> {
        Arc::clone(&self.0) as Arc<dyn Publish>
    }
    fn ejection(&self) -> Option<Ejection> {
        self.0.ejection.lock().expect("unpoisoned").clone()
    }
    fn banks(&self) -> &dyn RuleBanks {
        &*self.0
    }
    fn pool(&self, _: Pool) -> io::Result<(PoolCounters, Vec<u32>)> {
        Ok((PoolCounters::default(), vec![0]))
    }
    fn events(&self) -> io::Result<Events> {
        Ok(Events::default())
    }
    fn threads(&self) -> io::Result<Vec<ThreadReport>> {
        Ok(Vec::new())
    }
}

impl Drop for PaperScheduler {
    fn drop(&mut self) {
        *self.0.ejection.lock().expect("unpoisoned") = None;
        *self.0.is_attached.lock().expect("unpoisoned") = false;
    }
}

/// Why the kernel ends a scheduler whose threads do not get to run.
fn stall() -> Ejection {
    Ejection {
        kind: 1026,
        exit_code: 0,
        reason: "runnable task stall".into(),
        message: "x".into(),
        dump: "the dump".into(),
    }
}

/// A running daemon and its directory; `conf/policy.toml` takes threads named `first`.
struct Running {
    directory: tempfile::TempDir,
    kernel: Arc<Paper>,
    events: Sender<Event>,
    daemon: Option<JoinHandle<Result<Exit, Failure>>>,
    _socket: ControlSocket,
}

/// A directory whose `conf/policy.toml` takes threads named `thread`.
fn with_policy(thread: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let conf = directory.path().join("conf");
    fs::create_dir(&conf).expect("created");
    fs::write(conf.join("policy.toml"), text(thread)).expect("written");
    directory
}

impl Running {
    fn start() -> Self {
        Self::start_in(with_policy("first"))
    }

    /// Attached.
    fn start_in(directory: tempfile::TempDir) -> Self {
        let running = Self::start_on(directory, Arc::default());
        running.wait_for_status(|status| status.state == State::Attached);
        running
    }

    fn start_on(directory: tempfile::TempDir, kernel: Arc<Paper>) -> Self {
        let location = Location::of_argument(&directory.path().join("conf/policy.toml"), None);
        let Outcome::Valid(first) = load(&location, None) else {
            panic!("not valid")
        };
        let (events, inbox) = channel();
        let (jobs, work) = channel();
        let socket = ControlSocket::bind(directory.path()).expect("bound");
        socket.serve(events.clone()).expect("served");
        let on = Arc::new(PaperKernel(Arc::clone(&kernel)));
        let channels = Channels {
            events: events.clone(),
            jobs,
        };
        let daemon = Daemon::new(on, *first, channels, directory.path().join("state"), || ());
        thread::spawn({
            let (location, events) = (location.clone(), events.clone());
            move || run_worker(&location, &work, &events)
        });
        thread::spawn({
            let events = events.clone();
            move || run_watcher(&location, &events)
        });
        let daemon = thread::spawn(move || daemon.run(&inbox));
        Self {
            directory,
            kernel,
            events,
            daemon: Some(daemon),
            _socket: socket,
        }
    }

    fn conf(&self) -> PathBuf {
        self.directory.path().join("conf")
    }

    fn policy(&self) -> PathBuf {
        self.conf().join("policy.toml")
    }

    fn reload(&self) -> Verdict {
        let request = Request {
            wait: true,
            ..Request::new(Kind::Reload)
        };
        client::ask(self.directory.path(), &request, DEADLINE).expect("a verdict")
    }

    fn status(&self) -> Status {
        client::ask(self.directory.path(), &Request::new(Kind::Status), DEADLINE).expect("a status")
    }

    /// Waits until the daemon's status is as wanted.
    fn wait_for_status(&self, wanted: impl Fn(&Status) -> bool) -> Status {
        let start = Instant::now();
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            assert!(start.elapsed() < DEADLINE, "still {status:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop(mut self) -> Exit {
        self.events.send(Event::Stop("the test")).expect("running");
        self.end().expect("no failure")
    }

    /// Waits for its end.
    fn end(&mut self) -> Result<Exit, Failure> {
        let daemon = self.daemon.take().expect("started");
        daemon.join().expect("no panic")
    }
}
