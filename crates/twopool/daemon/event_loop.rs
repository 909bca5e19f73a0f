//! The event loop: owns the daemon's state and decides. The match is the behaviour.
//!
//! Threads send events; nothing here blocks but the reading of counters. Reading, compiling and
//! publishing policies is the worker's, loading a scheduler the loader's (`attaching`).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::{info, warn};
use twopool_policy::image::Image;
use twopool_policy::policy::Pool;
use twopool_telemetry::{Events, KernelInfo, ReloadResult, State, Status};

use super::attaching::{Gate, Scheduling};
use super::protocol::{Kind, PolicyText, PolicyTexts, Request, Response, ThreadRow, Verdict};
use super::reload::{Candidate, Job, Outcome};
use super::reloads::Reloading;
use super::state::{Policies, Trouble};
use super::status;
use crate::exit::{Exit, Failure};
use crate::host::{clock, priority};
use crate::kernel::accounts::{RuleAccounts, RuleBanks};
use crate::kernel::apply::Publish;
use crate::kernel::counters::{PoolCounters, ThreadReport};
use crate::kernel::ejection::{BackOff, Ejection};
use crate::report::Report;

/// Pause between looks at whether the kernel ejected the scheduler.
const TICK: Duration = Duration::from_millis(250);

/// Everything that can happen to the daemon.
pub enum Event {
    /// The policy's files may have changed.
    FilesChanged,
    /// SIGHUP: read them whatever the file system says.
    Hangup,
    /// A client asks.
    Request {
        /// What.
        request: Request,
        /// Where the answer goes.
        reply: Sender<Response>,
    },
    /// The worker has read the policy.
    Loaded(Outcome),
    /// The worker has published the policy that it was given.
    Published(io::Result<()>),
    /// The worker proved what there is to prove of the policy that was loaded last.
    Proved(Report),
    /// The loader has attached a scheduler, or could not.
    Attached(Result<Box<dyn Scheduler>, Failure>),
    /// End; says who wants it.
    Stop(&'static str),
}

/// The kernel, as far as the daemon knows it. Tests have their own.
pub trait Kernel: Send + Sync {
    /// Loads a scheduler with its first policy, whose epoch is set. Takes seconds on a busy host.
    /// What is returned attaches it, and may be dropped instead.
    fn load(&self, first: &Image) -> Result<Attach, Failure>;
    /// Release, and name of the attached scheduler.
    fn info(&self) -> KernelInfo;
}

/// The last step of a start: until here nothing on the host has changed.
pub type Attach = Box<dyn FnOnce() -> Result<Box<dyn Scheduler>, Failure>>;

/// An attached scheduler. Dropping it detaches, and the kernel's own takes over.
pub trait Scheduler: Send {
    /// Where to publish policies.
    fn slot(&self) -> Arc<dyn Publish>;
    /// Why the kernel ended the scheduler, if it did.
    fn ejection(&self) -> Option<Ejection>;
    /// Counters of rules.
    fn banks(&self) -> &dyn RuleBanks;
    /// Counters of a pool and the CPUs it owns.
    fn pool(&self, pool: Pool) -> io::Result<(PoolCounters, Vec<u32>)>;
    /// What it did since it was attached.
    fn events(&self) -> io::Result<Events>;
    /// All threads of the host.
    fn threads(&self) -> io::Result<Vec<ThreadReport>>;
}

/// The daemon.
pub struct Daemon {
    pub(super) kernel: Arc<dyn Kernel>,
    pub(super) events: Sender<Event>,
    pub(super) jobs: Sender<Job>,
    pub(super) state_directory: PathBuf,
    pub(super) scheduling: Scheduling,
    pub(super) gate: Arc<Gate>,
    pub(super) policies: Policies,
    pub(super) accounts: RuleAccounts,
    pub(super) reloading: Reloading,
    pub(super) trouble: Trouble,
    pub(super) retry_at: Option<Instant>,
    pub(super) back_off: BackOff,
    /// Latest; `None`: never yet.
    pub(super) attached_at: Option<Instant>,
    /// To be called when that is no longer `None`.
    pub(super) ready: Option<Box<dyn FnOnce() + Send>>,
}

/// Whom a daemon sends to.
pub struct Channels {
    /// Its own loop.
    pub events: Sender<Event>,
    /// The worker.
    pub jobs: Sender<Job>,
}

impl Daemon {
    /// A daemon with its first policy, and with nothing attached until it runs. Calls `ready` when
    /// something is, once.
    pub fn new(
        kernel: Arc<dyn Kernel>,
        mut first: Candidate,
        Channels { events, jobs }: Channels,
        state_directory: PathBuf,
        ready: impl FnOnce() + Send + 'static,
    ) -> Self {
        first.image.set_epoch(1);
        Self {
            kernel,
            events,
            jobs,
            state_directory,
            scheduling: Scheduling::Planned(Instant::now()),
            gate: Arc::default(),
            reloading: Reloading::of_start(first.unproven.take()),
            policies: Policies::new(first, clock::now()),
            accounts: RuleAccounts::default(),
            trouble: Trouble::default(),
            retry_at: None,
            back_off: BackOff::new(),
            attached_at: None,
            ready: Some(Box::new(ready)),
        }
    }

    /// Attaches, and runs until told to stop or until the kernel has ejected the scheduler too
    /// often.
    ///
    /// # Errors
    /// The first scheduler cannot be attached.
    pub fn run(mut self, events: &Receiver<Event>) -> Result<Exit, Failure> {
        loop {
            if let Some(end) = self.watch_kernel() {
                return Ok(end);
            }
            self.retry_reading();
            let event = match events.recv_timeout(TICK) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the daemon itself may send"),
            };
            match event {
                Event::FilesChanged => self.look(),
                Event::Hangup => {
                    info!("SIGHUP: reading the policy");
                    self.ask_for_reload(None);
                }
                Event::Request { request, reply } => self.answer(&request, reply),
                Event::Loaded(outcome) => self.loaded(outcome),
                Event::Published(result) => self.published(result),
                Event::Proved(report) => self.proved(report),
                Event::Attached(Ok(scheduler)) => self.attached(scheduler),
                Event::Attached(Err(failure)) => {
                    if let Some(end) = self.not_attached(failure)? {
                        return Ok(end);
                    }
                }
                Event::Stop(who) => return Ok(self.stopped(who, events)),
            }
        }
    }

    fn stopped(&mut self, who: &str, events: &Receiver<Event>) -> Exit {
        info!("{who}: detaching");
        self.gate.close();
        self.scheduling = Scheduling::Ended;
        // A scheduler that was attached before the gate closed is among what nobody will read.
        while events.try_recv().is_ok() {}
        Exit::Done
    }

    pub(super) fn scheduler(&self) -> Option<&dyn Scheduler> {
        match &self.scheduling {
            Scheduling::Attached(scheduler) => Some(&**scheduler),
            _ => None,
        }
    }

    fn state(&self) -> State {
        match self.scheduling {
            Scheduling::Attached(_) => State::Attached,
            _ if self.attached_at.is_some() => State::Ejected,
            _ => State::Waiting,
        }
    }

    // ---- requests ----

    fn answer(&mut self, request: &Request, reply: Sender<Response>) {
        let response = match request.request {
            // Anybody may ask, and can make that a lot of work.
            Kind::Status => priority::at_leisure(|| document(self.status())),
            Kind::Threads => priority::at_leisure(|| document(self.thread_rows())),
            Kind::Policy => priority::at_leisure(|| Response::ok(self.policy_texts())),
            Kind::Reload if request.wait => return self.ask_for_reload(Some(reply)),
            Kind::Reload => {
                self.ask_for_reload(None);
                Response::ok(self.verdict(None, None, String::new()))
            }
        };
        // A client that went away needs no answer.
        let _ = reply.send(response);
    }

    fn status(&self) -> io::Result<Status> {
        let daemon = status::daemon(self.state(), self.kernel.info(), &self.policies);
        status::sample(daemon, self.scheduler(), &self.policies, &self.accounts).map(Status::from)
    }

    fn thread_rows(&self) -> io::Result<Vec<ThreadRow>> {
        let nothing = || io::Error::other("the scheduler is not attached");
        let threads = self.scheduler().ok_or_else(nothing)?.threads()?;
        Ok(status::thread_rows(&threads, &self.policies))
    }

    fn policy_texts(&self) -> PolicyTexts {
        let active = self.policies.active();
        PolicyTexts {
            epoch: active.epoch,
            hash: active.candidate.hash.clone(),
            files: active
                .candidate
                .inputs
                .iter()
                .map(PolicyText::from)
                .collect(),
        }
    }

    pub(super) fn verdict(
        &self,
        result: Option<ReloadResult>,
        check: Option<serde_json::Value>,
        text: String,
    ) -> Verdict {
        let active = self.policies.active();
        Verdict {
            result,
            epoch: active.epoch,
            hash: active.candidate.hash.clone(),
            check,
            text,
        }
    }

    /// Counters must never cost a reload.
    pub(super) fn open_accounts(&mut self, epoch: u32, names: Vec<String>) {
        if let Scheduling::Attached(scheduler) = &self.scheduling
            && let Err(error) = self.accounts.open(scheduler.banks(), epoch, names)
        {
            warn!(%error, "counters of rules are not reliable");
        }
    }
}

fn document(result: io::Result<impl Serialize>) -> Response {
    match result {
        Ok(document) => Response::ok(document),
        Err(error) => {
            Response::refuse("unavailable", format!("the kernel did not answer: {error}"))
        }
    }
}
