//! The event loop: owns the daemon's state and decides. The match is the behaviour.
//!
//! Threads send events; nothing here blocks but the start of a scheduler (half a second) and the
//! reading of counters. Reading, compiling and publishing policies is the worker's.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::{error, info, warn};
use twopool_policy::image::Image;
use twopool_policy::policy::Pool;
use twopool_telemetry::{KernelInfo, ReloadResult, State, Status};

use super::protocol::{Kind, Request, Response, Verdict};
use super::reload::{Candidate, Job, Outcome};
use super::reloads::Reloading;
use super::state::{Policies, Trouble};
use super::status;
use crate::exit::{Exit, Failure};
use crate::host::clock;
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
    /// End; says who wants it.
    Stop(&'static str),
}

/// The kernel side, as far as the loop knows it. Tests have their own.
pub trait Engine {
    /// Loads and attaches a scheduler under its first policy, whose epoch is set.
    fn start(&mut self, first: &Image) -> Result<(), Failure>;
    /// Detaches; the kernel takes over.
    fn stop(&mut self);
    /// Where to publish policies; `None` while stopped, as for all below.
    fn slot(&self) -> Option<Arc<dyn Publish>>;
    /// Why the kernel ended the scheduler, if it did.
    fn ejection(&self) -> Option<Ejection>;
    /// Counters of rules.
    fn banks(&self) -> Option<&dyn RuleBanks>;
    /// Counters of a pool and the CPUs it owns.
    fn pool(&self, pool: Pool) -> io::Result<(PoolCounters, Vec<u32>)>;
    /// All threads of the host.
    fn threads(&self) -> io::Result<Vec<ThreadReport>>;
    /// Release and name of the attached scheduler.
    fn kernel(&self) -> KernelInfo;
}

/// The daemon.
pub struct Daemon<E> {
    pub(super) engine: E,
    pub(super) jobs: Sender<Job>,
    pub(super) state_directory: PathBuf,
    pub(super) state: State,
    pub(super) policies: Policies,
    pub(super) accounts: RuleAccounts,
    pub(super) reloading: Reloading,
    pub(super) trouble: Trouble,
    pub(super) retry_at: Option<Instant>,
    pub(super) back_off: BackOff,
    pub(super) attached_at: Instant,
    pub(super) attach_at: Option<Instant>,
}

impl<E: Engine> Daemon<E> {
    /// Starts the scheduler under its first policy.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn start(
        mut engine: E,
        mut first: Candidate,
        jobs: Sender<Job>,
        state_directory: PathBuf,
    ) -> Result<Self, Failure> {
        first.image.set_epoch(1);
        engine.start(&first.image)?;
        let mut daemon = Self {
            engine,
            jobs,
            state_directory,
            state: State::Attached,
            policies: Policies::new(first, clock::now()),
            accounts: RuleAccounts::default(),
            reloading: Reloading::default(),
            trouble: Trouble::default(),
            retry_at: None,
            back_off: BackOff::new(),
            attached_at: Instant::now(),
            attach_at: None,
        };
        daemon.open_accounts(1, daemon.policies.active().candidate.rules.clone());
        Ok(daemon)
    }

    /// Runs until told to stop or until the kernel has ejected the scheduler too often.
    pub fn run(mut self, events: &Receiver<Event>) -> Exit {
        loop {
            let event = match events.recv_timeout(TICK) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    Some(Event::Stop("the end of all event sources"))
                }
            };
            match event {
                Some(Event::FilesChanged) => self.look(),
                Some(Event::Hangup) => {
                    info!("SIGHUP: reading the policy");
                    self.ask_for_reload(None);
                }
                Some(Event::Request { request, reply }) => self.answer(&request, reply),
                Some(Event::Loaded(outcome)) => self.loaded(outcome),
                Some(Event::Published(result)) => self.published(result),
                Some(Event::Proved(report)) => self.proved(report),
                Some(Event::Stop(who)) => return self.stopped(who),
                None => {}
            }
            if let Some(exit) = self.watch_kernel() {
                return exit;
            }
            self.retry_reading();
        }
    }

    fn stopped(&mut self, who: &str) -> Exit {
        info!("{who}: detaching");
        self.engine.stop();
        Exit::Done
    }

    // ---- requests ----

    fn answer(&mut self, request: &Request, reply: Sender<Response>) {
        let response = match request.request {
            Kind::Status => document(self.status()),
            Kind::Threads => document(
                self.engine
                    .threads()
                    .map(|threads| status::thread_rows(&threads, &self.policies)),
            ),
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
        status::sample(&self.engine, self.state, &self.policies, &self.accounts).map(Status::from)
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

    // ---- the kernel ----

    /// Counters must never cost a reload.
    pub(super) fn open_accounts(&mut self, epoch: u32, names: Vec<String>) {
        if let Some(banks) = self.engine.banks()
            && let Err(error) = self.accounts.open(banks, epoch, names)
        {
            warn!(%error, "counters of rules are not reliable");
        }
    }

    /// Notices an ejection, and attaches again when it is time. `Some`: it is enough.
    fn watch_kernel(&mut self) -> Option<Exit> {
        if let Some(ejection) = self.engine.ejection() {
            return self.ejected(&ejection);
        }
        if self.attach_at.is_some_and(|at| at <= Instant::now())
            && self.reloading.publishing.is_none()
        {
            return self.attach_again();
        }
        None
    }

    fn ejected(&mut self, ejection: &Ejection) -> Option<Exit> {
        error!("the kernel ejected the scheduler: {}", ejection.summary());
        if !ejection.dump.is_empty() {
            info!("the dump begins:\n{}", ejection.dump_head(20));
        }
        match ejection.save(&self.state_directory, &clock::now()) {
            Ok(path) => info!("the whole report is in {}", path.display()),
            Err(error) => warn!(%error, "the report could not be saved"),
        }
        if let Some(banks) = self.engine.banks()
            && let Err(error) = self.accounts.close_all(banks)
        {
            warn!(%error, "counters of rules are lost");
        }
        self.engine.stop();
        self.state = State::Ejected;
        if let Some(mut fallback) = self.policies.take_fallback(Instant::now()) {
            warn!("the last reload is taken back: the kernel ejected the scheduler soon after it");
            fallback.image.set_epoch(self.policies.take_epoch());
            self.policies.roll_back(fallback, clock::now());
        }
        self.plan_attach(self.attached_at.elapsed())
    }

    fn plan_attach(&mut self, ran: Duration) -> Option<Exit> {
        match self.back_off.next(ran) {
            Some(pause) => {
                info!("attaching again in {} s", pause.as_secs());
                self.attach_at = Some(Instant::now() + pause);
                None
            }
            None => {
                error!("ejected too often; giving up");
                Some(Exit::Ejected)
            }
        }
    }

    fn attach_again(&mut self) -> Option<Exit> {
        self.attach_at = None;
        if let Err(failure) = self.engine.start(&self.policies.active().candidate.image) {
            error!("attaching again failed: {}", failure.message);
            return self.plan_attach(Duration::ZERO);
        }
        let active = self.policies.active();
        let (epoch, names) = (active.epoch, active.candidate.rules.clone());
        self.open_accounts(epoch, names);
        self.attached_at = Instant::now();
        self.state = State::Attached;
        info!(epoch, "attached again");
        None
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
