//! Classification through cgroups with their caches, and through the fingerprint that decides when
//! to do it again: what the kernel program does around the evaluator.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use twopool_native::{Buffer, Cgroup, Fingerprint, Watched};
use twopool_policy::generate::{Random, policy_text, threads};
use twopool_policy::policy::{Pool, Sched};
use twopool_policy::thread::Thread;

/// The cgroup of a path below `root`, with ids from its place in the walk.
fn cgroup_of(root: &Arc<Cgroup>, path: &str, id: u64) -> Arc<Cgroup> {
    path.split('/')
        .filter(|name| !name.is_empty())
        .enumerate()
        .fold(root.clone(), |parent, (depth, name)| {
            parent.child(name, id * 1000 + depth as u64 + 2)
        })
}

#[test]
fn a_path_and_the_cgroup_it_names_give_the_same_class() {
    for seed in 0..60 {
        let (policy, image) = common::policy(&policy_text(seed));
        let buffer = Buffer::with(&image, 1);
        let root = Cgroup::root();
        for (i, mut thread) in threads(seed, &policy, 200).into_iter().enumerate() {
            let Ok(path) = String::from_utf8(thread.cgroup.clone()) else {
                continue;
            };
            // ids beyond 32 bits stand for names that no real thread has
            thread.user &= 0xffff_ffff;
            thread.group &= 0xffff_ffff;
            let cgroup = cgroup_of(&root, &path, i as u64);
            let now = Fingerprint::new(&thread, &cgroup);
            let expected = Some(image.classify(&thread));
            for look in ["first", "cached"] {
                assert_eq!(
                    buffer.classify_in(&cgroup, &now),
                    expected,
                    "{look}: {thread:?}"
                );
            }
        }
    }
}

#[test]
fn a_child_goes_on_from_its_parents_cached_state() {
    let (_, image) = common::policy(
        "version = 1\ndefault = \"background\"\n\
         [[rule]]\npool = \"critical\"\ncgroup = \"/a*/**/*leaf\"\n",
    );
    let buffer = Buffer::with(&image, 1);
    let root = Cgroup::root();
    let parent = root.child("abc", 2);
    let thread = Thread::named(b"t");
    let in_cgroup = |cgroup: &Cgroup| {
        let now = Fingerprint::new(&thread, cgroup);
        buffer.classify_in(cgroup, &now).expect("usable").pool
    };
    assert_eq!(in_cgroup(&parent), Pool::Background);
    assert_eq!(parent.cached_epoch(), 1);
    assert_eq!(in_cgroup(&parent.child("newleaf", 3)), Pool::Critical);
    assert_eq!(in_cgroup(&parent.child("leafless", 4)), Pool::Background);
}

#[test]
fn an_older_image_does_not_replace_what_a_newer_one_cached() {
    let (_, image) = common::policy("version = 1\ndefault = \"background\"\n");
    let (old, new) = (Buffer::with(&image, 7), Buffer::with(&image, 8));
    let cgroup = Cgroup::root().child("a", 2);
    let now = Fingerprint::new(&Thread::named(b"t"), &cgroup);
    for (buffer, cached) in [(&old, 7), (&new, 8), (&old, 8)] {
        buffer.classify_in(&cgroup, &now);
        assert_eq!(cgroup.cached_epoch(), cached);
    }
}

/// Threads of several images hammer one cache. A torn row would give a class that no image gives.
#[test]
fn no_class_is_made_of_two_images() {
    const ROUNDS: u32 = 300_000;
    let images: Vec<_> = (0..4)
        .map(|i| {
            // each image sends the path to a rule of another number
            let rules: String = (0..4 * i + 1)
                .map(|_| "[[rule]]\npool = \"critical\"\ncgroup = \"/never\"\n")
                .collect();
            let text = format!(
                "version = 1\ndefault = \"background\"\n{rules}\
                 [[rule]]\npool = \"critical\"\ncgroup = {{ under = \"/hot\" }}\n"
            );
            common::policy(&text).1
        })
        .collect();
    let cgroup = Cgroup::root().child("hot", 2).child("path", 3);
    let thread = Thread::named(b"t");
    let now = Fingerprint::new(&thread, &cgroup);
    let failed = AtomicBool::new(false);
    let epochs = AtomicU32::new(1);
    std::thread::scope(|scope| {
        for (worker, image) in images.iter().enumerate() {
            let (cgroup, failed, epochs) = (&cgroup, &failed, &epochs);
            scope.spawn(move || {
                let mut buffer = Buffer::with(image, 1);
                let expected = 4 * worker as u16 + 2;
                for _ in 0..ROUNDS {
                    // always the newest: a worker that falls behind would never touch the cache
                    buffer.set_epoch(epochs.fetch_add(1, Ordering::Relaxed));
                    for _ in 0..4 {
                        let class = buffer.classify_in(cgroup, &now).expect("usable");
                        if class.rule != expected {
                            failed.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert!(
        !failed.into_inner(),
        "a class came from another image's row"
    );
}

fn watched_policy(epoch: u32) -> Buffer {
    let (_, image) = common::policy(
        "version = 1\ndefault = \"background\"\n\
         [[rule]]\npool = \"critical\"\nthread = \"hot-*\"\n\
         [[rule]]\npool = \"critical\"\nprocess = \"hotproc\"\n\
         [[rule]]\npool = \"critical\"\ncgroup = { under = \"/hot\" }\n\
         [[rule]]\npool = \"critical\"\nuser = 1000\n\
         [[rule]]\npool = \"critical\"\ngroup = 1000\n\
         [[rule]]\npool = \"critical\"\nnice = { max = -1 }\n\
         [[rule]]\npool = \"critical\"\nsched = \"batch\"\n\
         [[rule]]\npool = \"critical\"\nsched = \"idle\"\n\
         [[rule]]\npool = \"critical\"\nkthread = true\n\
         [[rule]]\npool = \"critical\"\nleader = true\n",
    );
    Buffer::with(&image, epoch)
}

/// Each property of a thread that a rule can name is part of the fingerprint: a change is seen at
/// the next look, and so is the change back.
#[test]
fn every_change_is_seen_at_the_next_look() {
    let buffer = watched_policy(1);
    let root = Cgroup::root();
    let (cold, hot) = (root.child("cold", 2), root.child("hot", 3));
    let plain = Thread {
        leader: false,
        ..Thread::named(b"plain")
    };
    let with = |change: fn(&mut Thread)| {
        let mut thread = plain.clone();
        change(&mut thread);
        thread
    };
    let changes = [
        ("rename", with(|t| t.thread = b"hot-1".to_vec()), &cold),
        (
            "leader's rename",
            with(|t| t.process = b"hotproc".to_vec()),
            &cold,
        ),
        ("cgroup move", plain.clone(), &hot),
        ("setuid", with(|t| t.user = 1000), &cold),
        ("setgid", with(|t| t.group = 1000), &cold),
        ("nice", with(|t| t.nice = -5), &cold),
        ("batch", with(|t| t.sched = Sched::Batch), &cold),
        ("idle", with(|t| t.sched = Sched::Idle), &cold),
        ("kernel thread", with(|t| t.kthread = true), &cold),
        ("leader", with(|t| t.leader = true), &cold),
    ];
    let mut watched = Watched::default();
    let before = Fingerprint::new(&plain, &cold);
    assert!(
        watched.refresh(Some(&buffer), &cold, &before),
        "the first look"
    );
    assert_eq!(watched.class().rule, 0);
    for (rule, (what, thread, cgroup)) in (1..).zip(changes) {
        let after = Fingerprint::new(&thread, cgroup);
        assert!(watched.refresh(Some(&buffer), cgroup, &after), "{what}");
        assert_eq!(watched.class().rule, rule, "{what}");
        assert!(
            !watched.refresh(Some(&buffer), cgroup, &after),
            "{what}: nothing new"
        );
        assert!(
            watched.refresh(Some(&buffer), &cold, &before),
            "{what}: back"
        );
        assert_eq!(watched.class().rule, 0, "{what}: back");
    }
}

#[test]
fn a_new_epoch_is_reported_even_if_the_class_stays() {
    let cold = Cgroup::root().child("cold", 2);
    let now = Fingerprint::new(&Thread::named(b"plain"), &cold);
    let mut watched = Watched::default();
    for epoch in [1, 2] {
        let buffer = watched_policy(epoch);
        assert!(watched.refresh(Some(&buffer), &cold, &now));
        assert!(!watched.refresh(Some(&buffer), &cold, &now));
        assert_eq!(watched.epoch(), epoch);
    }
}

#[test]
fn without_an_image_a_thread_is_background_and_says_so() {
    let cold = Cgroup::root().child("cold", 2);
    let now = Fingerprint::new(&Thread::named(b"hot-1"), &cold);
    let mut watched = Watched::default();
    assert!(watched.refresh(None, &cold, &now));
    assert_eq!(
        (watched.epoch(), watched.class().pool),
        (0, Pool::Background)
    );
    assert!(
        watched.refresh(Some(&watched_policy(1)), &cold, &now),
        "healed by a policy"
    );
    assert_eq!((watched.epoch(), watched.class().pool), (1, Pool::Critical));
}

/// Names are the bytes before the first NUL, whatever the kernel left after it.
#[test]
fn bytes_after_the_first_nul_do_not_count() {
    let (_, image) = common::policy(
        "version = 1\ndefault = \"background\"\n\
         [[rule]]\npool = \"critical\"\nthread = [\"exact\", \"*glob\"]\n",
    );
    let buffer = Buffer::with(&image, 1);
    let random = &mut Random::new(1);
    for name in ["exact", "my-glob", "glob"] {
        for cut in 0..=15 {
            let mut bytes = name.as_bytes().to_vec();
            bytes.truncate(cut);
            let matches = bytes.len() == name.len();
            bytes.push(0);
            while bytes.len() < 15 {
                bytes.push(random.next_u64() as u8);
            }
            let thread = Thread {
                thread: bytes,
                ..Thread::named(b"p")
            };
            let class = buffer.classify(&thread).expect("usable");
            assert_eq!(class.rule != 0, matches, "{name} {cut}");
        }
    }
}
