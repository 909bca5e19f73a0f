//! The whole daemon on a kernel of paper: real files, real notifications, a real socket, and the
//! real loop and worker. What a real kernel must show is tested in a guest.

mod ejection;
mod files;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use twopool_policy::image::Image;
use twopool_policy::policy::Pool;
use twopool_policy::thread::Thread;
use twopool_telemetry::{KernelInfo, Status};

use super::control::ControlSocket;
use super::event_loop::{Daemon, Engine, Event};
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
        self.published
            .lock()
            .expect("unpoisoned")
            .push(image.clone());
        self.news.notify_all();
        Ok(())
    }
}

struct PaperEngine(Arc<Paper>);

impl RuleBanks for Paper {
    fn read(&self, _: usize, _: usize) -> io::Result<RuleCounters> {
        Ok(RuleCounters::default())
    }
    fn clear(&self, _: usize, _: usize) -> io::Result<()> {
        Ok(())
    }
}

impl Engine for PaperEngine {
    fn start(&mut self, first: &Image) -> Result<(), Failure> {
        *self.0.starts.lock().expect("unpoisoned") += 1;
        self.0
            .publish(first)
            .map_err(|error| Failure::new(Exit::Unavailable, "x", error.to_string()))
    }
    fn stop(&mut self) {
        *self.0.ejection.lock().expect("unpoisoned") = None;
    }
    fn slot(&self) -> Option<Arc<dyn Publish>> {
        Some(Arc::clone(&self.0) as Arc<dyn Publish>)
    }
    fn ejection(&self) -> Option<Ejection> {
        self.0.ejection.lock().expect("unpoisoned").clone()
    }
    fn banks(&self) -> Option<&dyn RuleBanks> {
        Some(&*self.0)
    }
    fn pool(&self, _: Pool) -> io::Result<(PoolCounters, Vec<u32>)> {
        Ok((PoolCounters::default(), vec![0]))
    }
    fn threads(&self) -> io::Result<Vec<ThreadReport>> {
        Ok(Vec::new())
    }
    fn kernel(&self) -> KernelInfo {
        KernelInfo {
            release: "paper".into(),
            ops: "twopool".into(),
        }
    }
}

/// A running daemon and its directory; `conf/policy.toml` takes threads named `first`.
struct Running {
    directory: tempfile::TempDir,
    kernel: Arc<Paper>,
    events: Sender<Event>,
    daemon: Option<JoinHandle<Exit>>,
    _socket: ControlSocket,
}

impl Running {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let conf = directory.path().join("conf");
        fs::create_dir(&conf).expect("created");
        fs::write(conf.join("policy.toml"), text("first")).expect("written");
        Self::start_in(directory)
    }

    fn start_in(directory: tempfile::TempDir) -> Self {
        let location = Location::of_argument(&directory.path().join("conf/policy.toml"), None);
        let Outcome::Valid(first) = load(&location, None) else {
            panic!("not valid")
        };
        let kernel = Arc::new(Paper::default());
        let (events, inbox) = channel();
        let (jobs, work) = channel();
        let socket = ControlSocket::bind(directory.path()).expect("bound");
        socket.serve(events.clone()).expect("served");
        let engine = PaperEngine(Arc::clone(&kernel));
        let daemon =
            Daemon::start(engine, *first, jobs, directory.path().join("state")).expect("started");
        thread::spawn({
            let (location, events) = (location.clone(), events.clone());
            move || run_worker(&location, &work, &events)
        });
        thread::spawn({
            let events = events.clone();
            move || run_watcher(&location, &events)
        });
        let daemon = thread::spawn(move || daemon.run(&inbox));
        let running = Self {
            directory,
            kernel,
            events,
            daemon: Some(daemon),
            _socket: socket,
        };
        // An answer proves that the watcher's first look, sent before, is behind us or under way.
        running.status();
        running
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
        self.daemon
            .take()
            .expect("started")
            .join()
            .expect("no panic")
    }
}
