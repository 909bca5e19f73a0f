//! The control socket: takes requests, hands them to the event loop, returns its answers.
//!
//! Each connection has a thread of its own and bounded patience, so that no client holds the loop
//! or another client; `slots` says who may be connected. Anybody may ask; only root may change
//! something. A socket that a killed
//! daemon left behind is taken over: the lock beside it, which the kernel gives up with its
//! holder, tells whether one still runs.

use std::collections::HashMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use tracing::{debug, warn};

use super::event_loop::Event;
use super::protocol::{MAX_REQUEST_BYTES, Refusal, Request, Response, VERSION};
use super::slots::Slots;
use crate::exit::{Exit, Failure};
use crate::host::priority;

/// Name of the socket in the runtime directory.
pub const SOCKET_NAME: &str = "control.sock";
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
                _ => Exit::of(&error),
            };
            Failure::new(
                exit,
                "control-socket",
                format!("cannot {what} in {}: {error}", runtime_directory.display()),
            )
        };
        fs::create_dir_all(runtime_directory)
            .map_err(|error| failed("create the control socket", error))?;
        let lock =
            lock_file(runtime_directory, true).map_err(|error| failed("create the lock", error))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(already_running());
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

    /// Whether a daemon runs in a runtime directory, for a start to say so before anything else
    /// that may stand in its way: most of that is the other daemon's doing.
    ///
    /// # Errors
    /// One does.
    pub fn probe(runtime_directory: &Path) -> Result<(), Failure> {
        match lock_file(runtime_directory, false) {
            Ok(lock) if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() => {
                Err(already_running())
            }
            // No lock, or none for this user, who will be told why by what comes next.
            _ => Ok(()),
        }
    }

    /// Serves clients on threads of their own until the process ends.
    pub fn serve(&self, events: Sender<Event>) -> io::Result<()> {
        self.serve_as(events, peer_of)
    }

    fn serve_as(&self, events: Sender<Event>, peer: fn(&UnixStream) -> Peer) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let server = Arc::new(Server {
            events,
            peer,
            connected: Mutex::default(),
        });
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                // And so do its clients, which anybody may be.
                priority::step_back();
                for stream in listener.incoming() {
                    match stream {
                        Ok(stream) => accept(stream, &server),
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

/// The lock of a runtime directory. Nobody else may open it: whoever can read a file can hold a
/// lock on it, and keep the daemon from starting.
fn lock_file(runtime_directory: &Path, create: bool) -> io::Result<File> {
    let path = runtime_directory.join("lock");
    let mut options = File::options();
    let lock = options.write(true).create(create).mode(0o600).open(path)?;
    if create {
        // A file that is there already keeps its mode otherwise.
        lock.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(lock)
}

fn already_running() -> Failure {
    Failure::new(
        Exit::Unavailable,
        "already-running",
        "another twopool daemon is running",
    )
}

/// What the threads of all connections share.
struct Server {
    events: Sender<Event>,
    /// Who is at the other end; tests have their own.
    peer: fn(&UnixStream) -> Peer,
    connected: Mutex<Connected>,
}

#[derive(Default)]
struct Connected {
    slots: Slots,
    streams: HashMap<u64, Arc<UnixStream>>,
}

impl Server {
    fn connected(&self) -> MutexGuard<'_, Connected> {
        // A thread that panicked left no half-made change: every change is one call.
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a connection, if there is one; who lost it is disconnected.
    fn admit(&self, stream: &Arc<UnixStream>, peer: Peer) -> Option<u64> {
        let mut connected = self.connected();
        let admitted = connected.slots.admit(peer.other(), Instant::now())?;
        if let Some(dropped) = admitted
            .dropped
            .and_then(|id| connected.streams.remove(&id))
        {
            // Ends its thread's reading or writing. Closed already is as good.
            let _ = dropped.shutdown(Shutdown::Both);
        }
        connected.streams.insert(admitted.id, Arc::clone(stream));
        Some(admitted.id)
    }

    fn release(&self, id: u64) {
        let mut connected = self.connected();
        connected.slots.release(id);
        connected.streams.remove(&id);
    }

    fn set_idle(&self, id: u64, since: Option<Instant>) {
        self.connected().slots.set_idle(id, since);
    }
}

fn accept(stream: UnixStream, server: &Arc<Server>) {
    let (peer, stream) = ((server.peer)(&stream), Arc::new(stream));
    let Some(id) = server.admit(&stream, peer) else {
        let _ = send(
            &stream,
            &Response::refuse("busy", "too many clients at once"),
        );
        return;
    };
    let here = Arc::clone(server);
    let served = thread::Builder::new()
        .name("client".to_owned())
        .spawn(move || {
            if let Err(error) = serve_client(&stream, id, peer, &here) {
                debug!(%error, "a control client went away");
            }
            here.release(id);
        });
    if let Err(error) = served {
        server.release(id);
        warn!(%error, "no thread for a control client");
    }
}

/// Answers one line after the other until the client closes, errs or dawdles.
fn serve_client(stream: &UnixStream, id: u64, peer: Peer, server: &Server) -> io::Result<()> {
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
            Ok(request) if request.request.is_for_root() && peer != Peer::Root => {
                Response::refuse("not-permitted", "only root may do this")
            }
            Ok(request) => {
                server.set_idle(id, None);
                let response = ask_loop(request, &server.events);
                server.set_idle(id, Some(Instant::now()));
                response
            }
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

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// Root, or whoever runs the daemon (which is root outside of tests).
    Root,
    /// Another user, by uid.
    Other(u32),
}

impl Peer {
    fn other(self) -> Option<u32> {
        match self {
            Peer::Root => None,
            Peer::Other(uid) => Some(uid),
        }
    }
}

/// By the credentials that the kernel took when the peer connected. Nobody is whom it cannot name.
fn peer_of(stream: &UnixStream) -> Peer {
    match rustix::net::sockopt::socket_peercred(stream) {
        Ok(peer) if peer.uid.is_root() || peer.uid == rustix::process::geteuid() => Peer::Root,
        Ok(peer) => Peer::Other(peer.uid.as_raw()),
        Err(_) => Peer::Other(u32::MAX),
    }
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
mod tests;
