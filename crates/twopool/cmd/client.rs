//! Talks to the running daemon.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::daemon::control::SOCKET_NAME;
use crate::daemon::protocol::{Refusal, Request, Response};
use crate::exit::{Exit, Failure};

/// Patience of commands without an option for it.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the daemon of a runtime directory, and waits at most `patience` for the whole answer.
///
/// # Errors
/// No daemon runs there, it refuses, it does not answer in time.
pub fn ask<T: DeserializeOwned>(
    runtime_directory: &Path,
    request: &Request,
    patience: Duration,
) -> Result<T, Failure> {
    let deadline = Instant::now() + patience;
    let stream = UnixStream::connect(runtime_directory.join(SOCKET_NAME))
        .map_err(|error| not_reached(&error))?;
    let line = exchange(&stream, request, deadline).map_err(|error| lost(&error, patience))?;
    let response: Response = serde_json::from_slice(&line).map_err(|_| garbled())?;
    if let Some(refusal) = response.error {
        return Err(refused(refusal));
    }
    serde_json::from_value(response.ok.unwrap_or_default()).map_err(|_| garbled())
}

fn exchange(mut stream: &UnixStream, request: &Request, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(request).expect("our documents have string keys");
    line.push(b'\n');
    // A daemon that is busy says so and closes; its answer is worth more than the failed write.
    let written = stream.write_all(&line);
    let mut reader = BufReader::new(stream);
    let mut answer = Vec::new();
    while answer.last() != Some(&b'\n') {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let part = reader.fill_buf()?;
        if part.is_empty() {
            written?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let taken = part
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(part.len(), |end| end + 1);
        answer.extend_from_slice(&part[..taken]);
        reader.consume(taken);
    }
    Ok(answer)
}

fn not_reached(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::new(
            Exit::NotPermitted,
            "not-permitted",
            "the daemon's socket may not be opened",
        ),
        _ => Failure::new(
            Exit::Unavailable,
            "daemon-not-running",
            "no twopool daemon is running",
        ),
    }
}

fn lost(error: &io::Error, patience: Duration) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Failure::new(
            Exit::Temporary,
            "timed-out",
            format!("the daemon did not answer within {} s", patience.as_secs()),
        ),
        _ => Failure::new(
            Exit::Unavailable,
            "daemon-stopped",
            "the daemon stopped before it answered",
        ),
    }
}

fn garbled() -> Failure {
    Failure::new(
        Exit::Unavailable,
        "bad-answer",
        "the daemon's answer is not understood; is it another version?",
    )
}

fn refused(refusal: Refusal) -> Failure {
    let (exit, code) = match refusal.code.as_str() {
        "not-permitted" => (Exit::NotPermitted, "not-permitted"),
        "timed-out" => (Exit::Temporary, "timed-out"),
        "busy" => (Exit::Unavailable, "busy"),
        "stopping" => (Exit::Unavailable, "daemon-stopped"),
        _ => (Exit::Unavailable, "refused"),
    };
    Failure::new(exit, code, refusal.message)
}
