//! What is being done, for how long already: standard error tells, standard output is for results.
//!
//! Every step is a line when it begins. On a terminal, while nothing else is printed, the last line
//! says what runs now and since when; it is gone before anything else is printed.
//!
//! One terminal, one status: hence a static.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two drawings; also what a step may take without one.
const PAUSE: Duration = Duration::from_secs(1);
/// Longer lines would wrap on a narrow terminal, and a wrapped line cannot be taken back.
const WIDTH: usize = 79;

static STATUS: Mutex<Status> = Mutex::new(Status {
    step: None,
    detail: None,
    is_drawn: false,
    drawn_at: None,
});

struct Status {
    step: Option<(String, Instant)>,
    detail: Option<(String, Instant)>,
    is_drawn: bool,
    drawn_at: Option<Instant>,
}

/// A step begins; the one before has ended.
pub fn step(message: &str) {
    let mut status = status();
    erase(&mut status);
    eprintln!("==> {message}");
    let now = Instant::now();
    (status.step, status.detail) = (Some((message.to_owned(), now)), None);
    status.drawn_at = Some(now);
}

/// What of the step is being done now.
pub fn detail(text: &str) {
    status().detail = Some((text.to_owned(), Instant::now()));
}

/// Shows the status if it is time. Call often while nothing else may print.
pub fn tick() {
    let mut status = status();
    let is_time = status.drawn_at.is_none_or(|at| at.elapsed() >= PAUSE);
    if !is_time || !std::io::stderr().is_terminal() {
        return;
    }
    // What is being done is newer than the step, which has its line already.
    let Some((what, since)) = status.detail.as_ref().or(status.step.as_ref()) else {
        return;
    };
    // A terminal that went away is no reason to stop.
    let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(what, since.elapsed()));
    (status.is_drawn, status.drawn_at) = (true, Some(Instant::now()));
}

/// Takes the status away. Call before printing anything.
pub fn clear() {
    erase(&mut status());
}

/// Shows the status while something works silently.
pub fn ticking<T>(work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (done, end) = channel::<()>();
        scope.spawn(move || {
            while end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
            clear();
        });
        let result = work();
        drop(done);
        result
    })
}

fn status() -> MutexGuard<'static, Status> {
    STATUS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn erase(status: &mut Status) {
    if status.is_drawn {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
        status.is_drawn = false;
    }
    status.drawn_at = Some(Instant::now());
}

fn line(what: &str, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let since = match (seconds / 60, seconds % 60) {
        (0, seconds) => format!(" ({seconds} s)"),
        (minutes, seconds) => format!(" ({minutes} min {seconds} s)"),
    };
    let room = WIDTH - since.len() - 4;
    let shown: String = match what.chars().count() > room {
        true => what.chars().take(room - 3).chain("...".chars()).collect(),
        false => what.to_owned(),
    };
    format!("... {shown}{since}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_and_since_when_and_never_wraps() {
        assert_eq!(line("x", Duration::from_millis(59_900)), "... x (59 s)");
        assert_eq!(line("x", Duration::from_secs(125)), "... x (2 min 5 s)");
        let long = line(&"ä".repeat(200), Duration::from_secs(100_000));
        assert_eq!(long.chars().count(), WIDTH);
        assert!(long.ends_with("ä... (1666 min 40 s)"), "{long}");
    }

    #[test]
    fn silent_work_gives_its_result() {
        assert_eq!(ticking(|| 7), 7);
    }
}
