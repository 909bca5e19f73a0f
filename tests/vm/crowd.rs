//! Real threads with names, users, nice values and cgroups of all kinds, as the running scheduler
//! classifies them, beside what the evaluator and `explain` say of the same. What is made up here
//! reaches the kernel program through the kernel itself: its copy of a name, its credentials, its
//! way of telling a cgroup's path.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use twopool_policy::generate::{policy_text, threads};
use twopool_policy::image::Image;
use twopool_policy::policy::Sched;
use twopool_policy::thread::Thread;

use crate::Test;
use crate::actor::{
    Actor, Row, become_user, json_of, name_process, name_self, rows, set_nice, set_sched,
};
use crate::guest::{Daemon, epoch};
use crate::probe::compiled;

pub const TESTS: &[Test] = &[
    Test {
        name: "crowd::real_threads_are_classified_as_explained",
        cpus: 1,
        limit_s: 600,
        run: real_threads_are_classified_as_explained,
    },
    Test {
        name: "crowd::deep_and_wide_real_cgroups",
        cpus: 1,
        limit_s: 300,
        run: deep_and_wide_real_cgroups,
    },
];

/// Seeds of policies with a dozen rules at most, of all kinds.
const SEEDS: [u64; 2] = [1, 3];
const ACTORS: usize = 32;
/// Places that the whole process goes through under each policy: a cgroup and a leader's name.
const PLACES: usize = 3;

fn real_threads_are_classified_as_explained() {
    let mut daemon: Option<Daemon> = None;
    let actors: Vec<Actor> = (0..ACTORS).map(|_| Actor::start("unnamed")).collect();
    let (mut judged, mut taken) = (0, 0);
    for seed in SEEDS {
        let text = policy_text(seed);
        let (policy, image) = compiled(&text);
        match &daemon {
            None => daemon = Some(Daemon::start(&text)),
            Some(daemon) => daemon.reload(&text),
        }
        let parts: Vec<Thread> = threads(seed, &policy, ACTORS)
            .into_iter()
            .map(real)
            .collect();
        for (actor, part) in actors.iter().zip(&parts) {
            take_part(actor, part);
        }
        for place in &parts[..PLACES] {
            name_process(&place.process);
            enter(&place.cgroup);
            actors.iter().for_each(Actor::wake);
            let now = rows();
            let expected = parts.iter().map(|part| Thread {
                process: place.process.clone(),
                cgroup: place.cgroup.clone(),
                ..part.clone()
            });
            for (actor, thread) in actors.iter().zip(expected) {
                taken += u32::from(judge(&image, &now[&actor.tid()], &thread, &text) != 0);
                judged += 1;
            }
        }
        explain_agrees(&actors);
    }
    assert!(taken > judged / 5, "{taken} of {judged} met a rule");
}

/// A thread that this process could have: not the kernel's, not the leader, no hints, an id that
/// some user has (the highest number means nobody), and a name that a file takes whole.
fn real(thread: Thread) -> Thread {
    let id = |id: u64| (id & 0xffff_ffff).min(0xffff_fffe);
    let process = match thread.process.is_empty() {
        true => b"p".to_vec(),
        false => thread.process,
    };
    Thread {
        process,
        user: id(thread.user),
        group: id(thread.group),
        kthread: false,
        leader: false,
        hint: 0,
        ..thread
    }
}

fn take_part(actor: &Actor, part: &Thread) {
    let sched = match part.sched {
        Sched::Normal => libc::SCHED_OTHER,
        Sched::Batch => libc::SCHED_BATCH,
        Sched::Idle => libc::SCHED_IDLE,
    };
    set_sched(actor.tid(), sched);
    set_nice(actor.tid(), part.nice.into());
    let (name, user, group) = (part.thread.clone(), part.user as u32, part.group as u32);
    actor.run(move || {
        name_self(&name);
        become_user(user, group);
    });
}

/// Moves this whole process.
fn enter(cgroup: &[u8]) {
    let below = cgroup.strip_prefix(b"/").expect("a path of a cgroup");
    let dir = Path::new("/sys/fs/cgroup").join(OsStr::from_bytes(below));
    fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let file = dir.join("cgroup.procs");
    fs::write(&file, "0").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// The rule, after comparing the kernel's answer with the evaluator's.
#[track_caller]
fn judge(image: &Image, row: &Row, thread: &Thread, text: &str) -> u64 {
    let expected = image.classify(thread);
    assert_eq!(
        (row.pool.as_str(), row.rule),
        (expected.pool.as_str(), u64::from(expected.rule)),
        "{row:?}\n{thread:?}\n{text}"
    );
    row.rule
}

/// `explain` reads /proc for what the kernel program reads from the thread itself.
fn explain_agrees(actors: &[Actor]) {
    let now = rows();
    for actor in actors.iter().step_by(6) {
        let tid = actor.tid().to_string();
        let document =
            json_of(&["explain", &tid, "--format", "json"]).expect("the thread is there");
        let row = &now[&actor.tid()];
        assert_eq!(row.epoch, epoch());
        assert_eq!(document["pool"], row.pool.as_str(), "{document}");
        let rule = document["rule"]["index"].as_u64().unwrap_or(0);
        assert_eq!(rule, row.rule, "{document}");
    }
}

/// The kernel program never sees a path but walks it name by name; the limit is the file system's.
fn deep_and_wide_real_cgroups() {
    let text = r#"
version = 1
default = "background"
[[rule]]
pool = "critical"
cgroup = "/**/twopool-leaf"
[[rule]]
pool = "critical"
cgroup = { regex = "(/d)+/e" }
[[rule]]
pool = "critical"
cgroup = "/w*w/**"
"#;
    let (_, image) = compiled(text);
    let _daemon = Daemon::start(text);
    let actor = Actor::start("walker");
    let wide = |from: char| format!("/{from}{}w", "x".repeat(253));
    let places = [
        (format!("{}/e", "/d".repeat(200)), 2),
        (format!("{}/f", "/d".repeat(200)), 0),
        (wide('w').repeat(15), 3),
        (format!("{}/twopool-leaf", wide('v').repeat(15)), 1),
        (wide('v').repeat(15), 0),
        ("/".to_owned(), 0),
    ];
    for (path, rule) in places {
        enter(path.as_bytes());
        actor.wake();
        let thread = Thread {
            process: b"p".to_vec(),
            cgroup: path.into_bytes(),
            ..Thread::named(b"walker")
        };
        assert_eq!(judge(&image, &rows()[&actor.tid()], &thread, text), rule);
    }
}
