//! `run` without what it needs, and its clients without a daemon or with a strange one.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use rustix::fs::{FlockOperation, flock};

use crate::{POLICY, Place};

#[test]
fn without_a_daemon_its_clients_end_with_69() {
    let place = Place::empty();
    for command in ["status", "threads", "reload", "reload --wait"] {
        let run = place.run(command).ends_with(69);
        assert_eq!(run.stderr, "error: no twopool daemon is running\n");
        let run = place.run(&format!("{command} --format json")).ends_with(69);
        assert_eq!(run.json()["error"]["code"], "daemon-not-running");
    }
}

#[test]
fn a_socket_that_a_killed_daemon_left_is_no_daemon() {
    let place = Place::empty();
    std::fs::create_dir(place.path().join("run")).expect("created");
    drop(UnixListener::bind(place.path().join("run/control.sock")).expect("bound"));
    place.run("status").ends_with(69);
}

/// Answers one request with this line, or not at all.
fn strange_daemon(place: &Place, answer: Option<&'static str>) -> thread::JoinHandle<String> {
    std::fs::create_dir_all(place.path().join("run")).expect("created");
    let path = place.path().join("run/control.sock");
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(path).expect("bound");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut request = String::new();
        BufReader::new(stream.try_clone().expect("cloned"))
            .read_line(&mut request)
            .expect("a request");
        match answer {
            Some(line) => stream.write_all(line.as_bytes()).expect("written"),
            // The client ends first: its end of the stream closes.
            None => drop(BufReader::new(stream).read_line(&mut String::new())),
        }
        request
    })
}

#[test]
fn a_daemon_that_does_not_answer_ends_in_75() {
    let place = Place::empty();
    let daemon = strange_daemon(&place, None);
    let run = place
        .run("reload --wait --timeout 1 --format json")
        .ends_with(75);
    assert_eq!(run.json()["error"]["code"], "timed-out");
    assert_eq!(
        daemon.join().expect("no panic"),
        "{\"version\":1,\"request\":\"reload\",\"wait\":true}\n"
    );
}

#[test]
fn refusals_and_nonsense_have_their_exit_codes() {
    let place = Place::empty();
    for (answer, code) in [
        (
            "{\"version\":1,\"error\":{\"code\":\"not-permitted\",\"message\":\"only root may do this\"}}\n",
            77,
        ),
        (
            "{\"version\":1,\"error\":{\"code\":\"busy\",\"message\":\"too many clients at once\"}}\n",
            69,
        ),
        ("{\"version\":1,\"ok\":{}}\n", 69),
        ("what?\n", 69),
        ("", 69),
    ] {
        let daemon = strange_daemon(&place, Some(answer));
        place.run("reload --wait").ends_with(code);
        daemon.join().expect("no panic");
    }
}

#[test]
fn a_rejected_reload_shows_why_and_ends_with_1() {
    let place = Place::empty();
    let answer = "{\"version\":1,\"ok\":{\"result\":\"rejected\",\"epoch\":7,\"hash\":\"sha256:x\",\
                  \"check\":null,\"text\":\"error: it is bad\\n\"}}\n";
    let daemon = strange_daemon(&place, Some(answer));
    let run = place.run("reload --wait").ends_with(1);
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("rejected, epoch 7 stays\n", "error: it is bad\n")
    );
    daemon.join().expect("no panic");
    let daemon = strange_daemon(&place, Some(answer));
    let document = place.run("reload --wait --format json").ends_with(1).json();
    assert_eq!(
        (&document["result"], &document["policy"]["epoch"]),
        (&"rejected".into(), &7.into())
    );
    daemon.join().expect("no panic");
}

/// On a host that could run the scheduler this must not: a test does not take a machine over.
#[test]
fn k08_run_names_what_is_missing_and_check_still_works() {
    let place = Place::with(POLICY);
    if std::path::Path::new("/sys/kernel/sched_ext").exists() {
        eprintln!("skipped: this host has sched_ext");
        return;
    }
    let run = place.run("run --policy policy.toml");
    let root = rustix::process::geteuid().is_root();
    let (code, reason) = if root {
        (69, "CONFIG_SCHED_CLASS_EXT")
    } else {
        (77, "needs root")
    };
    let run = run.ends_with(code);
    assert!(run.stderr.contains(reason), "{}", run.stderr);
    assert!(!place.path().join("run").exists());
    place.run("check policy.toml").ends_with(0);
    place
        .run("explain --policy policy.toml --thread x")
        .ends_with(0);
}

/// All else that stands in the way of a second daemon is the first one's doing, and a policy with
/// mistakes is not why it does not start.
#[test]
fn a_second_daemon_says_first_that_another_one_runs() {
    let place = Place::with("version = 1\nnonsense\n");
    std::fs::create_dir(place.path().join("run")).expect("created");
    let lock = File::create(place.path().join("run/lock")).expect("created");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let run = place.run("run --policy policy.toml").ends_with(69);
    assert!(
        run.stderr
            .starts_with("error: another twopool daemon is running"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}
