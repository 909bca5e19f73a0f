//! The control socket: takes requests, hands them to the event loop, returns its answers.
//!
//! Each connection has a thread of its own and bounded patience, so that no client holds the loop
//! or another client. Anybody may ask; only root may change something. A socket that a killed
//! daemon left behind is taken over: the lock beside it, which the kernel gives up with its
//! holder, tells whether one still runs.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tracing::{debug, warn};

use super::event_loop::Event;
use super::protocol::{MAX_REQUEST_BYTES, Refusal, Request, Response, VERSION};
use crate::exit::{Exit, Failure};

/// Name of the socket in the runtime directory.
pub const SOCKET_NAME: &str = "control.sock";
/// Connections served at once; more are told to come again.
const MAX_CONNECTIONS: usize = 16;
/// Patience with a client that does not send or does not read.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);
/// Patience with the loop; a reload that waits is answered within it or not at all.
const LOOP_PATIENCE: Duration = Duration::from_secs(120);

/// The bound socket; dropping it removes it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    // Held for as long as the daemon lives.
    _lock: File,
}

impl ControlSocket {
    /// Takes the runtime directory and the socket in it.
    ///
    /// # Errors
    /// Another daemon runs, or the directory cannot be used.
    pub fn bind(runtime_directory: &Path) -> Result<Self, Failure> {
        let failed = |what: &str, error: io::Error| {
            let exit = match error.kind() {
                io::ErrorKind::PermissionDenied => Exit::NotPermitted,
                _ => Exit::Unavailable,
            };
            Failure::new(
                exit,
                "control-socket",
                format!("cannot {what} in {}: {error}", runtime_directory.display()),
            )
        };
        fs::create_dir_all(runtime_directory)
            .map_err(|error| failed("create the control socket", error))?;
        let lock = File::create(runtime_directory.join("lock"))
            .map_err(|error| failed("create the lock", error))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Failure::new(
                Exit::Unavailable,
                "already-running",
                "another twopool daemon is running",
            ));
        }
        let path = runtime_directory.join(SOCKET_NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("replace the old socket", error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&path)
            .map_err(|error| failed("create the control socket", error))?;
        // Who may ask is decided by the peer's credentials, not by the file's mode.
        fs::set_permissions(&path, Permissions::from_mode(0o666))
            .map_err(|error| failed("open the socket", error))?;
        Ok(Self {
            listener,
            path,
            _lock: lock,
        })
    }

    /// Serves clients on threads of their own until the process ends.
    pub fn serve(&self, events: Sender<Event>) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let open = Arc::new(AtomicUsize::new(0));
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    match stream {
                        Ok(stream) => accept(stream, &open, &events),
                        Err(error) => {
                            // Out of descriptors, most likely: without a pause this would spin.
                            warn!(%error, "a control connection failed");
                            thread::sleep(Duration::from_millis(100));
                        }
                    }
                }
            })?;
        Ok(())
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Gone already is as good; the lock file stays, or two daemons could each lock their own.
        let _ = fs::remove_file(&self.path);
    }
}

fn accept(stream: UnixStream, open: &Arc<AtomicUsize>, events: &Sender<Event>) {
    if open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
        open.fetch_sub(1, Ordering::Relaxed);
        let _ = send(
            &stream,
            &Response::refuse("busy", "too many clients at once"),
        );
        return;
    }
    let (open_here, events) = (Arc::clone(open), events.clone());
    let served = thread::Builder::new()
        .name("client".to_owned())
        .spawn(move || {
            if let Err(error) = serve_client(&stream, &events) {
                debug!(%error, "a control client went away");
            }
            open_here.fetch_sub(1, Ordering::Relaxed);
        });
    if let Err(error) = served {
        open.fetch_sub(1, Ordering::Relaxed);
        warn!(%error, "no thread for a control client");
    }
}

/// Answers one line after the other until the client closes, errs or dawdles.
fn serve_client(stream: &UnixStream, events: &Sender<Event>) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = lines
            .by_ref()
            .take(MAX_REQUEST_BYTES)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && read as u64 == MAX_REQUEST_BYTES {
            // The rest of it would be taken for the next request.
            return send(
                stream,
                &Response::refuse("bad-request", "the request is too long"),
            );
        }
        let response = match parse(&line) {
            Ok(request) if request.request.changes() && !may_change(stream) => {
                Response::refuse("not-permitted", "only root may do this")
            }
            Ok(request) => ask_loop(request, events),
            Err(refusal) => Response::from(refusal),
        };
        send(stream, &response)?;
    }
}

fn parse(line: &[u8]) -> Result<Request, Refusal> {
    let request: Request = serde_json::from_slice(line).map_err(|error| {
        Refusal::new(
            "bad-request",
            format!("the request is not understood: {error}"),
        )
    })?;
    if request.version != VERSION {
        let message = format!(
            "the daemon speaks version {VERSION} of the control protocol, not {}",
            request.version
        );
        return Err(Refusal::new("bad-version", message));
    }
    Ok(request)
}

/// Root, or whoever runs the daemon (which is root outside of tests).
fn may_change(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

fn ask_loop(request: Request, events: &Sender<Event>) -> Response {
    let (reply, answer) = channel();
    if events.send(Event::Request { request, reply }).is_err() {
        return Response::refuse("stopping", "the daemon is stopping");
    }
    answer
        .recv_timeout(LOOP_PATIENCE)
        .unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => {
                Response::refuse("timed-out", "the daemon did not answer in time")
            }
            RecvTimeoutError::Disconnected => {
                Response::refuse("stopping", "the daemon is stopping")
            }
        })
}

fn send(mut stream: &UnixStream, response: &Response) -> io::Result<()> {
    let mut line = serde_json::to_vec(response).expect("our documents have string keys");
    line.push(b'\n');
    stream.write_all(&line)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Receiver;

    use super::*;
    use crate::daemon::protocol::Kind;

    /// A served socket whose loop answers every request with its own name.
    fn served() -> (tempfile::TempDir, ControlSocket) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = ControlSocket::bind(directory.path()).expect("bound");
        let (events, requests): (_, Receiver<Event>) = channel();
        socket.serve(events).expect("served");
        thread::spawn(move || {
            for event in requests {
                if let Event::Request { request, reply } = event {
                    let _ = reply.send(Response::ok(request.request));
                }
            }
        });
        (directory, socket)
    }

    fn ask(directory: &Path, line: &[u8]) -> Response {
        let mut stream = UnixStream::connect(directory.join(SOCKET_NAME)).expect("connected");
        // A daemon that refuses at once may have closed its end already.
        let _ = stream.write_all(line);
        let mut answer = String::new();
        BufReader::new(stream)
            .read_line(&mut answer)
            .expect("an answer");
        serde_json::from_str(&answer).expect("a response")
    }

    fn code(response: Response) -> String {
        response.error.expect("a refusal").code
    }

    #[test]
    fn a_request_reaches_the_loop_and_its_answer_the_client() {
        let (directory, _socket) = served();
        let line = serde_json::to_vec(&Request::new(Kind::Status)).expect("serialises");
        assert_eq!(
            ask(directory.path(), &[&line[..], b"\n"].concat()).ok,
            Some("status".into())
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let (directory, _socket) = served();
        assert_eq!(code(ask(directory.path(), b"hello\n")), "bad-request");
        assert_eq!(
            code(ask(
                directory.path(),
                b"{\"version\":1,\"request\":\"dance\"}\n"
            )),
            "bad-request"
        );
        assert_eq!(
            code(ask(
                directory.path(),
                b"{\"version\":2,\"request\":\"status\"}\n"
            )),
            "bad-version"
        );
        assert_eq!(
            code(ask(directory.path(), &[b'x'; MAX_REQUEST_BYTES as usize])),
            "bad-request"
        );
    }

    #[test]
    fn silent_clients_do_not_keep_others_from_being_told() {
        let (directory, _socket) = served();
        let path = directory.path().join(SOCKET_NAME);
        let silent: Vec<UnixStream> = (0..MAX_CONNECTIONS)
            .map(|_| UnixStream::connect(&path).expect("connected"))
            .collect();
        assert_eq!(
            code(ask(
                directory.path(),
                b"{\"version\":1,\"request\":\"status\"}\n"
            )),
            "busy"
        );
        drop(silent);
    }

    #[test]
    fn k12_a_stale_socket_is_taken_over_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        drop(
            UnixListener::bind(directory.path().join(SOCKET_NAME)).expect("a socket nobody serves"),
        );
        let socket = ControlSocket::bind(directory.path()).expect("taken over");
        let refused = ControlSocket::bind(directory.path()).expect_err("one is running");
        assert_eq!(
            (refused.exit, refused.code),
            (Exit::Unavailable, "already-running")
        );
        drop(socket);
        assert!(!directory.path().join(SOCKET_NAME).exists());
        ControlSocket::bind(directory.path()).expect("free again");
    }
}
