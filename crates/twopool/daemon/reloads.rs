//! The event loop's part that takes a reload from "something may have changed" to its verdict.
//!
//! One reload at a time. What is asked for while one is under way follows it, because the one
//! under way may have read the files before they were saved.

use std::io;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};
use twopool_policy::compile::Compiled;
use twopool_telemetry::ReloadResult;

use super::attaching::Scheduling;
use super::event_loop::Daemon;
use super::protocol::Response;
use super::reload::{Candidate, Job, Outcome};
use crate::host::clock;
use crate::report::Report;

/// Pause between readings of files that could not be read.
const RETRY: Duration = Duration::from_secs(1);

/// A reload that is under way, and who waits for it.
#[derive(Default)]
pub(super) struct Reloading {
    /// The worker has a `Job::Load`.
    pub(super) loading: bool,
    /// Published, not confirmed.
    pub(super) publishing: Option<Candidate>,
    /// Waits for a scheduler that is being attached under the policy before.
    held: Option<Candidate>,
    /// In force, and the worker has a `Job::Prove`: what to answer when that is done.
    proving: Option<ReloadResult>,
    /// The policy of the start: to be attached, then proved. Reloads wait for both.
    start: Option<Start>,
    /// Clients who wait for the outcome of this one.
    waiting: Vec<Sender<Response>>,
    /// Asked for since the reading began: another one must follow, and must not be skipped.
    again: bool,
    waiting_again: Vec<Sender<Response>>,
    /// The files changed since the reading began: another look, which may find nothing new.
    look_again: bool,
}

/// What is left to do for the policy of the start.
enum Start {
    /// To be attached, then to be proved.
    Unproven(Box<Compiled>),
    /// The worker has it as a `Job::Prove`.
    Proving,
}

impl Reloading {
    /// Of a daemon that is about to attach its first policy; `None`: which is proved already.
    pub(super) fn of_start(unproven: Option<Box<Compiled>>) -> Self {
        Self {
            start: unproven.map(Start::Unproven),
            ..Self::default()
        }
    }
}

impl Daemon {
    /// Somebody asks for a reload: it must read what is on disk now.
    pub(super) fn ask_for_reload(&mut self, reply: Option<Sender<Response>>) {
        if self.is_reloading() {
            self.reloading.again = true;
            self.reloading.waiting_again.extend(reply);
            return;
        }
        self.reloading.waiting.extend(reply);
        self.load(None);
    }

    /// Something may have changed: read it, unless it is what was read last.
    pub(super) fn look(&mut self) {
        if self.is_reloading() {
            self.reloading.look_again = true;
        } else {
            self.load(Some(self.policies.seen_hash().to_owned()));
        }
    }

    fn is_reloading(&self) -> bool {
        let Reloading {
            loading,
            publishing,
            held,
            proving,
            start,
            ..
        } = &self.reloading;
        let is_on_its_way = publishing.is_some() || held.is_some();
        *loading || is_on_its_way || proving.is_some() || start.is_some()
    }

    fn load(&mut self, seen: Option<String>) {
        self.reloading.loading = true;
        self.give(Job::Load { seen });
    }

    fn give(&self, job: Job) {
        self.jobs
            .send(job)
            .expect("the worker lives as long as its channel");
    }

    pub(super) fn loaded(&mut self, outcome: Outcome) {
        self.reloading.loading = false;
        if !matches!(outcome, Outcome::Unfinished { .. }) {
            self.retry_at = None;
            if self.trouble.end() {
                info!("the policy can be read again");
            }
        }
        match outcome {
            Outcome::Seen => {
                self.policies.as_before();
                self.settled(None, None, String::new());
            }
            Outcome::Unfinished { message } => self.unfinished(message),
            Outcome::Rejected { hash, report } => self.rejected(hash, report),
            Outcome::Valid(candidate) => self.valid(*candidate),
        }
    }

    /// Nobody's policy: nothing changes, and a lasting state is told once.
    fn unfinished(&mut self, message: String) {
        let asked = !self.reloading.waiting.is_empty();
        if self.trouble.note(Instant::now()) || asked {
            warn!("{message}; the policy in force stays");
            self.policies.fail("no-input", &message, clock::now());
        }
        self.retry_at = Some(Instant::now() + RETRY);
        self.settled(
            asked.then_some(ReloadResult::Rejected),
            None,
            format!("error: {message}\n"),
        );
    }

    fn rejected(&mut self, hash: String, report: Report) {
        error!(
            "the policy is rejected, the one in force stays:\n{}",
            report.text.trim_end()
        );
        self.policies
            .reject(hash, report.diagnostics(), clock::now());
        self.settled(
            Some(ReloadResult::Rejected),
            Some(report.document),
            report.text,
        );
    }

    fn valid(&mut self, mut candidate: Candidate) {
        if self.policies.is_active(&candidate) {
            info!("the policy is unchanged");
            self.policies
                .keep(candidate.report.diagnostics(), clock::now());
            return self.prove(candidate.unproven, ReloadResult::Unchanged);
        }
        candidate.image.set_epoch(self.policies.take_epoch());
        self.put_in_force(candidate);
    }

    fn put_in_force(&mut self, candidate: Candidate) {
        match &self.scheduling {
            Scheduling::Attached(scheduler) => {
                let slot = scheduler.slot();
                self.open_accounts(candidate.image.epoch(), candidate.rules.clone());
                self.give(Job::Publish {
                    slot,
                    image: Box::new(candidate.image.clone()),
                });
                self.reloading.publishing = Some(candidate);
            }
            Scheduling::UnderWay => self.reloading.held = Some(candidate),
            // Ejected: the next scheduler starts under it.
            Scheduling::Planned(_) | Scheduling::Ended => self.applied(candidate),
        }
    }

    /// The kernel has a scheduler, or none for a while: what waited for that goes on.
    pub(super) fn go_on_reloading(&mut self) {
        if let Some(candidate) = self.reloading.held.take() {
            self.put_in_force(candidate);
        }
        match self.reloading.start.take() {
            Some(Start::Unproven(compiled)) => {
                self.reloading.start = Some(Start::Proving);
                self.give(Job::Prove(compiled));
            }
            other => self.reloading.start = other,
        }
    }

    pub(super) fn published(&mut self, result: io::Result<()>) {
        let candidate = self
            .reloading
            .publishing
            .take()
            .expect("only this loop has policies published");
        match result {
            Ok(()) => self.applied(candidate),
            Err(error) => {
                let message = format!("the kernel did not take the policy: {error}");
                error!("{message}; the one in force stays");
                self.policies.fail("load-failed", &message, clock::now());
                self.settled(
                    Some(ReloadResult::Rejected),
                    None,
                    format!("error: {message}\n"),
                );
            }
        }
    }

    fn applied(&mut self, mut candidate: Candidate) {
        info!(epoch = candidate.image.epoch(), hash = %candidate.hash, rules = candidate.rules.len(), "policy applied");
        let unproven = candidate.unproven.take();
        self.policies.apply(candidate, clock::now(), Instant::now());
        self.prove(unproven, ReloadResult::Applied);
    }

    fn prove(&mut self, unproven: Option<Box<Compiled>>, result: ReloadResult) {
        self.reloading.proving = Some(result);
        self.give(Job::Prove(
            unproven.expect("a policy is proved once, after it was loaded"),
        ));
    }

    pub(super) fn proved(&mut self, report: Report) {
        let result = self.reloading.proving.take();
        let is_start = self.reloading.start.take().is_some();
        if report.warnings > 0 && (is_start || result == Some(ReloadResult::Applied)) {
            warn!("the policy has warnings:\n{}", report.text.trim_end());
        }
        self.policies.found(report.diagnostics());
        self.settled(result, Some(report.document), report.text);
    }

    /// A reload is over: tells who waited, and starts the next one if one was asked for.
    fn settled(
        &mut self,
        result: Option<ReloadResult>,
        check: Option<serde_json::Value>,
        text: String,
    ) {
        let response = Response::ok(self.verdict(result, check, text));
        for reply in self.reloading.waiting.drain(..) {
            let _ = reply.send(response.clone());
        }
        let last = std::mem::take(&mut self.reloading);
        if last.again {
            self.reloading.waiting = last.waiting_again;
            self.load(None);
        } else if last.look_again {
            self.look();
        }
    }

    pub(super) fn retry_reading(&mut self) {
        if self.trouble.is_on()
            && !self.is_reloading()
            && self.retry_at.is_some_and(|at| at <= Instant::now())
        {
            self.retry_at = None;
            self.look();
        }
    }
}
