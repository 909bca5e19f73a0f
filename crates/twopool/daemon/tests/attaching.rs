//! Loading takes long on a busy host: what the daemon does meanwhile.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;

use twopool_telemetry::{ReloadResult, State};

use super::files::save_by_rename;
use super::{DEADLINE, Paper, PaperKernel, Running, candidate, stall, text, with_policy};
use crate::daemon::event_loop::{Channels, Daemon, Event};
use crate::daemon::protocol::{Kind, Request};
use crate::daemon::reload::Job;
use crate::exit::{Exit, Failure};

#[test]
fn while_the_first_scheduler_loads_status_answers() {
    let kernel = Arc::new(Paper::default());
    let loading = kernel.loading.lock().expect("unpoisoned");
    let running = Running::start_on(with_policy("first"), Arc::clone(&kernel));
    let status = running.status();
    assert_eq!((status.state, status.policy.epoch), (State::Waiting, 1));
    assert_eq!(kernel.count(), 0);
    drop(loading);
    running.wait_for_status(|status| status.state == State::Attached);
    kernel.wait_for("first");
}

#[test]
fn while_a_scheduler_is_loaded_again_status_answers_and_a_reload_is_not_lost() {
    let running = Running::start();
    let loading = running.kernel.loading.lock().expect("unpoisoned");
    *running.kernel.ejection.lock().expect("unpoisoned") = Some(stall());
    running.wait_for_status(|status| {
        status.state == State::Ejected && *running.kernel.starts.lock().expect("unpoisoned") == 2
    });
    save_by_rename(&running.policy(), &text("meanwhile"));
    let request = Request {
        wait: true,
        ..Request::new(Kind::Reload)
    };
    let (reply, verdict) = channel();
    let ask = Event::Request { request, reply };
    running.events.send(ask).expect("running");
    assert_eq!(running.status().state, State::Ejected);
    assert_eq!(running.kernel.count(), 1);
    drop(loading);
    let verdict = verdict.recv_timeout(DEADLINE).expect("a verdict");
    let verdict = verdict.ok.expect("no refusal");
    // The watcher may have been faster.
    let (applied, unchanged) = (ReloadResult::Applied, ReloadResult::Unchanged);
    assert!([applied.as_str().into(), unchanged.as_str().into()].contains(&verdict["result"]));
    running.kernel.wait_for("meanwhile");
    assert_eq!(running.status().state, State::Attached);
}

#[test]
fn a_stop_does_not_wait_for_loading_and_leaves_nothing_attached() {
    let kernel = Arc::new(Paper::default());
    let loading = kernel.loading.lock().expect("unpoisoned");
    let running = Running::start_on(with_policy("first"), Arc::clone(&kernel));
    assert_eq!(running.stop(), Exit::Done);
    drop(loading);
    // The loader drops the kernel when it is done.
    while Arc::strong_count(&kernel) > 1 {
        thread::yield_now();
    }
    assert_eq!(kernel.count(), 0);
    assert!(!*kernel.is_attached.lock().expect("unpoisoned"));
}

#[test]
fn a_stop_detaches_what_is_attached_and_nobody_has_heard_of_yet() {
    let kernel = Arc::new(Paper::default());
    let attaching = kernel.attaching.lock().expect("unpoisoned");
    let running = Running::start_on(with_policy("first"), Arc::clone(&kernel));
    while !kernel.begins_to_attach.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    // Now the stop comes before the news.
    running
        .events
        .send(Event::Stop("the test"))
        .expect("running");
    drop(attaching);
    let mut running = running;
    assert_eq!(running.end(), Ok(Exit::Done));
    assert_eq!(kernel.count(), 1);
    assert!(!*kernel.is_attached.lock().expect("unpoisoned"));
}

#[test]
fn a_start_that_is_refused_ends_with_the_reason() {
    let kernel = Arc::new(Paper::default());
    let reason = Failure::new(Exit::Temporary, "load-failed", "no memory");
    *kernel.refuses.lock().expect("unpoisoned") = Some(reason.clone());
    let mut running = Running::start_on(with_policy("first"), kernel);
    assert_eq!(running.end(), Err(reason));
}

/// Proofs take up to half a second of CPU time, for which the threads of the host would wait.
#[test]
fn the_policy_of_the_start_is_proved_when_it_is_in_force() {
    let kernel = Arc::new(Paper::default());
    let loading = kernel.loading.lock().expect("unpoisoned");
    let (events, inbox) = channel();
    let (jobs, work) = channel();
    let (on, me) = (Arc::new(PaperKernel(Arc::clone(&kernel))), events.clone());
    let state = tempfile::tempdir().expect("a temporary directory");
    let (ready, told) = channel();
    let channels = Channels { events, jobs };
    let tell = move || ready.send(()).expect("received");
    let daemon = Daemon::new(on, candidate("a"), channels, state.path().into(), tell);
    let daemon = thread::spawn(move || daemon.run(&inbox));
    let (reply, answer) = channel();
    let request = Request::new(Kind::Status);
    me.send(Event::Request { request, reply })
        .expect("received");
    answer.recv_timeout(DEADLINE).expect("an answer");
    assert!(matches!(work.try_recv(), Err(TryRecvError::Empty)));
    drop(loading);
    let job = work.recv_timeout(DEADLINE).expect("a job");
    assert!(matches!(job, Job::Prove(_)));
    told.try_recv().expect("ready before");
    me.send(Event::Stop("the test")).expect("received");
    assert_eq!(daemon.join().expect("no panic"), Ok(Exit::Done));
}

#[test]
fn an_ejection_whose_report_cannot_be_saved_is_survived() {
    let directory = with_policy("first");
    fs::write(directory.path().join("state"), "no directory").expect("written");
    let running = Running::start_in(directory);
    *running.kernel.ejection.lock().expect("unpoisoned") = Some(stall());
    running.wait_for_status(|status| status.state == State::Ejected);
    running.wait_for_status(|status| status.state == State::Attached);
}
