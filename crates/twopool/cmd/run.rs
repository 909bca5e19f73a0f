//! `run`: the daemon, from preflight to the end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::cli::{Global, LogFormat, Run};
use crate::daemon::control::ControlSocket;
use crate::daemon::event_loop::{Channels, Daemon, Event};
use crate::daemon::reload::{Candidate, Outcome, load_first, run_worker};
use crate::daemon::{signals, watch};
use crate::exit::{Exit, Failure};
use crate::host::input::Location;
use crate::host::priority;
use crate::kernel::engine::SchedExt;
use crate::kernel::preflight::{Host, Obstacle};
use crate::output;

/// Runs until told to stop.
pub fn run(_: &Run, global: &Global) -> Result<Exit, Failure> {
    start_log(global.log_format);
    let host = Host::new("/");
    let obstacle = host.obstacle();
    // First, for most that may stand in the way is the other daemon's doing.
    ControlSocket::probe(&global.runtime_dir)
        .map_err(|failure| with_attached(failure, obstacle.as_ref()))?;
    if let Some(obstacle) = obstacle {
        return Err(obstacle.failure());
    }
    // Before any thread is started, for they inherit it.
    if let Err(error) = priority::raise() {
        warn!(%error, "not urgent to the kernel: on a busy host, loading and reloading take longer");
    }
    let (events, inbox) = channel();
    // From here on a signal is an event: a half-started daemon ends cleanly too.
    signals::serve(events.clone()).map_err(|error| Failure::of_start("signals", &error))?;
    let location =
        absolute(global).map_err(|error| Failure::of_start("the policy's path", &error))?;
    let first = match first_policy(&location)? {
        Ok(candidate) => candidate,
        Err(exit) => return Ok(exit),
    };
    if let Some(who) = asked_to_end(&inbox, &events) {
        info!("{who}: nothing was attached");
        return Ok(Exit::Done);
    }
    let socket = ControlSocket::bind(&global.runtime_dir)?;
    let (jobs, work) = channel();
    spawn("worker", events.clone(), {
        let location = location.clone();
        move |events| run_worker(&location, &work, &events)
    })?;
    spawn("watch", events.clone(), {
        let location = location.clone();
        move |events| watch::run_watcher(&location, &events)
    })?;
    socket
        .serve(events.clone())
        .map_err(|error| Failure::of_start("the control socket", &error))?;
    info!(policy = %location.label(), "loading the scheduler");
    let kernel = SchedExt::new(host, global.state_dir.clone());
    let ready = || tell_supervisor(&[sd_notify::NotifyState::Ready]);
    let channels = Channels { events, jobs };
    let daemon = Daemon::new(
        Arc::new(kernel),
        first,
        channels,
        global.state_dir.clone(),
        ready,
    );
    let exit = daemon.run(&inbox)?;
    tell_supervisor(&[sd_notify::NotifyState::Stopping]);
    Ok(exit)
}

/// Who wants the daemon to end that has hardly begun. Other events are for its loop.
fn asked_to_end(inbox: &Receiver<Event>, events: &Sender<Event>) -> Option<&'static str> {
    let so_far: Vec<Event> = inbox.try_iter().collect();
    for event in so_far {
        match event {
            Event::Stop(who) => return Some(who),
            other => events.send(other).expect("the receiver is at hand"),
        }
    }
    None
}

/// Another daemon runs: names what is attached as well, which people know from `/sys`.
fn with_attached(failure: Failure, obstacle: Option<&Obstacle>) -> Failure {
    match obstacle {
        Some(Obstacle::Attached { name }) if !name.is_empty() => Failure {
            message: format!(
                "{}; a sched_ext scheduler is attached: {name}",
                failure.message
            ),
            ..failure
        },
        _ => failure,
    }
}

/// The policy of the start; the inner error: it is not valid.
fn first_policy(location: &Location) -> Result<Result<Candidate, Exit>, Failure> {
    match load_first(location) {
        Outcome::Valid(candidate) => Ok(Ok(*candidate)),
        Outcome::Rejected { report, .. } => {
            output::error_text(&report.text);
            output::error_text(&format!("error: {} is not valid\n", location.label()));
            Ok(Err(Exit::BadPolicy))
        }
        Outcome::Unfinished { message } => Err(Failure::new(Exit::NoInput, "no-input", message)),
        Outcome::Seen => unreachable!("no hash was named"),
    }
}

/// Notifications come with absolute paths, whatever the daemon's arguments were.
fn absolute(global: &Global) -> io::Result<Location> {
    let absolute = |path: PathBuf| std::path::absolute(path);
    let location = Location::of_argument(&global.policy, global.policy_dir.as_deref());
    Ok(Location {
        policy: location.policy.map(absolute).transpose()?,
        drop_ins: location.drop_ins.map(absolute).transpose()?,
        is_named: location.is_named,
    })
}

fn spawn(
    name: &str,
    events: Sender<Event>,
    body: impl FnOnce(Sender<Event>) + Send + 'static,
) -> Result<(), Failure> {
    let spawned = thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || body(events));
    spawned
        .map(drop)
        .map_err(|error| Failure::of_start("a thread", &error))
}

/// Without a supervisor there is nobody to tell.
fn tell_supervisor(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!(%error, "the supervisor was not told");
    }
}

/// Logs to standard error; `RUST_LOG` chooses what, information and worse by default.
fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false);
    match format {
        LogFormat::Text => log.with_ansi(output::stderr_colour()).init(),
        LogFormat::Json => log.json().init(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_it_to_end_early_is_heard_and_a_reload_is_not_lost() {
        let (events, inbox) = channel();
        events.send(Event::Hangup).expect("open");
        assert_eq!(asked_to_end(&inbox, &events), None);
        events.send(Event::Stop("SIGTERM")).expect("open");
        assert_eq!(asked_to_end(&inbox, &events), Some("SIGTERM"));
        events.send(Event::Hangup).expect("open");
        assert_eq!(asked_to_end(&inbox, &events), None);
        assert!(matches!(inbox.try_recv(), Ok(Event::Hangup)));
    }
}
