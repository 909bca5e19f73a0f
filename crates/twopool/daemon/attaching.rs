//! The event loop's part that gets a scheduler attached, and notices when the kernel ends it.
//!
//! Loading takes half a second of CPU time, or several, and on a busy host a multiple of that to get
//! it: so a thread of its own, the loader, does it, and the loop goes on answering meanwhile.
//!
//! Invariant: once the gate is closed nothing is attached any more, and what was attached before is
//! in an event.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};
use twopool_policy::image::Image;

use super::event_loop::{Daemon, Event, Kernel, Scheduler};
use crate::exit::{Exit, Failure};
use crate::host::clock;
use crate::kernel::ejection::Ejection;

/// Where the daemon stands with the kernel.
pub(super) enum Scheduling {
    /// To be attached at that time.
    Planned(Instant),
    /// The loader is at work.
    UnderWay,
    /// The host's scheduler.
    Attached(Box<dyn Scheduler>),
    /// Told to stop.
    Ended,
}

/// Whether what is loaded may be attached.
#[derive(Default)]
pub(super) struct Gate(Mutex<bool>);

impl Gate {
    /// From here on nothing is attached. Waits for an attach that has begun, not for loading.
    pub(super) fn close(&self) {
        *self.pass() = true;
    }

    fn pass(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loader. A stop does not wait for it: it ends with the process, or at the gate.
fn load_and_attach(kernel: &dyn Kernel, first: &Image, gate: &Gate, events: &Sender<Event>) {
    let loaded = kernel.load(first);
    let is_closed = gate.pass();
    if !*is_closed {
        let attached = loaded.and_then(|attach| attach());
        // While we hold the gate, the loop's end waits; if it is gone, so is what it would own.
        let _ = events.send(Event::Attached(attached));
    }
}

impl Daemon {
    /// Attaches when it is time, and notices an ejection. `Some`: it is enough.
    pub(super) fn watch_kernel(&mut self) -> Option<Exit> {
        match &self.scheduling {
            Scheduling::Attached(scheduler) => {
                let ejection = scheduler.ejection()?;
                self.ejected(&ejection)
            }
            // A policy on its way into the dead scheduler's slot would be missing in the new one.
            Scheduling::Planned(at)
                if *at <= Instant::now() && self.reloading.publishing.is_none() =>
            {
                self.begin_attach()
            }
            _ => None,
        }
    }

    fn begin_attach(&mut self) -> Option<Exit> {
        let first = self.policies.active().candidate.image.clone();
        let (kernel, gate) = (Arc::clone(&self.kernel), Arc::clone(&self.gate));
        let events = self.events.clone();
        self.scheduling = Scheduling::UnderWay;
        let spawned = thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || {
                let work = || load_and_attach(&*kernel, &first, &gate, &events);
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    // A daemon without its loader would wait for ever; a supervisor starts a new one.
                    abort();
                }
            });
        if let Err(error) = spawned {
            let failure = Failure::of_start("a thread", &error);
            // To the loop's own queue, where every other outcome arrives.
            let _ = self.events.send(Event::Attached(Err(failure)));
        }
        None
    }

    /// The host has its scheduler.
    pub(super) fn attached(&mut self, scheduler: Box<dyn Scheduler>) {
        self.scheduling = Scheduling::Attached(scheduler);
        let active = self.policies.active();
        let (epoch, candidate) = (active.epoch, &active.candidate);
        match self.attached_at {
            None => {
                info!(hash = %candidate.hash, rules = candidate.rules.len(), "attached");
            }
            Some(_) => info!(epoch, "attached again"),
        }
        let names = candidate.rules.clone();
        self.open_accounts(epoch, names);
        self.attached_at = Some(Instant::now());
        if let Some(ready) = self.ready.take() {
            ready();
        }
        self.go_on_reloading();
    }

    /// It has none, for this reason. `Some`: and will not get one.
    ///
    /// # Errors
    /// It never had one: whoever started the daemon must know.
    pub(super) fn not_attached(&mut self, failure: Failure) -> Result<Option<Exit>, Failure> {
        if self.attached_at.is_none() {
            return Err(failure);
        }
        error!("attaching again failed: {}", failure.message);
        let end = match failure.exit {
            Exit::Temporary => Exit::Temporary,
            _ => Exit::Ejected,
        };
        let end = self.plan_attach(Duration::ZERO, end);
        self.go_on_reloading();
        Ok(end)
    }

    fn ejected(&mut self, ejection: &Ejection) -> Option<Exit> {
        error!("the kernel ejected the scheduler: {}", ejection.summary());
        ejection.report(&self.state_directory, &clock::now());
        if let Scheduling::Attached(scheduler) = &self.scheduling
            && let Err(error) = self.accounts.close_all(scheduler.banks())
        {
            warn!(%error, "counters of rules are lost");
        }
        if let Some(mut fallback) = self.policies.take_fallback(Instant::now()) {
            warn!("the last reload is taken back: the kernel ejected the scheduler soon after it");
            fallback.image.set_epoch(self.policies.take_epoch());
            self.policies.roll_back(fallback, clock::now());
        }
        let ran = self.attached_at.map_or(Duration::ZERO, |at| at.elapsed());
        self.plan_attach(ran, Exit::Ejected)
    }

    /// Plans the next attempt after a run of `ran`, or ends with `end` if there were enough.
    fn plan_attach(&mut self, ran: Duration, end: Exit) -> Option<Exit> {
        match self.back_off.next(ran) {
            Some(pause) => {
                info!("attaching again in {} s", pause.as_secs());
                self.scheduling = Scheduling::Planned(Instant::now() + pause);
                None
            }
            None => {
                error!("ejected too often; giving up");
                self.scheduling = Scheduling::Ended;
                Some(end)
            }
        }
    }
}
