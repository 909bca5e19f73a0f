//! The control socket from a client's side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use super::*;
use crate::daemon::protocol::Kind;
use crate::daemon::slots::MAX_PER_USER;

/// A served socket whose loop answers every request with its own name.
fn served() -> (tempfile::TempDir, ControlSocket) {
    served_as(peer_of)
}

fn served_as(peer: fn(&UnixStream) -> Peer) -> (tempfile::TempDir, ControlSocket) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = ControlSocket::bind(directory.path()).expect("bound");
    let (events, requests): (_, Receiver<Event>) = channel();
    socket.serve_as(events, peer).expect("served");
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

/// One uid holds everything that it can get; it is told apart by its first connections.
#[test]
fn silent_clients_of_a_user_keep_nobody_else_waiting() {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let peer = |_: &UnixStream| match CONNECTIONS.fetch_add(1, Ordering::SeqCst) {
        0..99 => Peer::Other(1000),
        99 => Peer::Other(1001),
        _ => Peer::Root,
    };
    let (directory, _socket) = served_as(peer);
    let path = directory.path().join(SOCKET_NAME);
    let mut silent: Vec<UnixStream> = (0..99)
        .map(|_| UnixStream::connect(&path).expect("connected"))
        .collect();
    let line = b"{\"version\":1,\"request\":\"status\"}\n";
    for _ in ["another user", "root"] {
        assert_eq!(ask(directory.path(), line).ok, Some("status".into()));
    }
    let reload = b"{\"version\":1,\"request\":\"reload\"}\n";
    assert_eq!(ask(directory.path(), reload).ok, Some("reload".into()));
    // All but the last few have lost their connection, without any patience running out.
    let mut nothing = [0];
    for stream in silent.drain(..99 - MAX_PER_USER) {
        let mut stream = stream;
        assert_eq!(stream.read(&mut nothing).expect("closed"), 0);
    }
    drop(silent);
}

#[test]
fn only_root_may_change_anything() {
    let (directory, _socket) = served_as(|_| Peer::Other(1000));
    let reload = b"{\"version\":1,\"request\":\"reload\"}\n";
    assert_eq!(code(ask(directory.path(), reload)), "not-permitted");
}

#[test]
fn k12_a_stale_socket_is_taken_over_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    drop(UnixListener::bind(directory.path().join(SOCKET_NAME)).expect("a socket nobody serves"));
    let socket = ControlSocket::bind(directory.path()).expect("taken over");
    let refused = ControlSocket::bind(directory.path()).expect_err("one is running");
    assert_eq!(
        (refused.exit, refused.code),
        (Exit::Unavailable, "already-running")
    );
    let probed = ControlSocket::probe(directory.path()).expect_err("one is running");
    assert_eq!(probed, refused);
    let lock = directory.path().join("lock");
    let mode = fs::metadata(lock).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "anybody could hold the lock");
    drop(socket);
    assert_eq!(ControlSocket::probe(directory.path()), Ok(()));
    assert!(!directory.path().join(SOCKET_NAME).exists());
    ControlSocket::bind(directory.path()).expect("free again");
}
