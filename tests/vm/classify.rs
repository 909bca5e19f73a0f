//! The kernel's own verdict: the program `probe` runs the very functions that classify real
//! threads, on made-up ones. If the verifier's view of a loop or a compiler's shortcut changed what
//! they compute, the native comparison would not see it.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ProgramInput};
use twopool_policy::compile::{Input, Role, compile};
use twopool_policy::eval::{Class, thread_key};
use twopool_policy::generate::{policy_text, threads};
use twopool_policy::image::Image;
use twopool_policy::policy::{Policy, Pool};
use twopool_policy::resolve::NoNames;
use twopool_policy::thread::Thread;

use crate::Test;

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/twopool.skel.rs"));
}

pub const TESTS: &[Test] = &[Test {
    name: "classify::the_kernel_judges_as_the_evaluator_does",
    cpus: 1,
    limit_s: 300,
    run: the_kernel_judges_as_the_evaluator_does,
}];

const POLICIES: u64 = 40;
/// `PROBE_BATCH` and `PROBE_PATH_LEN` of bpf/intf.h.
const BATCH: usize = 64;
const PATH_LEN: usize = 512;
const BATCHES: usize = 2;

fn the_kernel_judges_as_the_evaluator_does() {
    let mut storage = std::mem::MaybeUninit::uninit();
    let mut open = skeleton::TwopoolSkelBuilder::default()
        .open(&mut storage)
        .expect("the object is well formed");
    open.maps
        .twopool
        .set_autocreate(false)
        .expect("nothing is loaded yet");
    for mut program in open.open_object_mut().progs_mut() {
        let wanted = program.name() == "probe";
        program.set_autoload(wanted);
    }
    let loaded = open.load().expect("the verifier takes the probe");
    let (mut judged, mut taken) = (0, 0);
    for seed in 0..POLICIES {
        let (policy, image) = compiled(seed);
        publish(&loaded.maps.policy, &image);
        let threads = threads(seed, &policy, BATCH * BATCHES);
        for batch in threads.chunks(BATCH) {
            let classes = probe(&loaded, batch);
            for (thread, class) in batch.iter().zip(classes) {
                let expected = image.classify(thread);
                assert_eq!(
                    class,
                    expected,
                    "seed {seed}: {thread:?}\n{}",
                    policy_text(seed)
                );
                judged += 1;
                taken += u32::from(class.rule != 0);
            }
        }
    }
    // two thousand are promised; and threads that no rule takes would prove little
    assert!(
        judged >= 2000 && taken > judged / 5,
        "{taken} of {judged} met a rule"
    );
}

fn compiled(seed: u64) -> (Policy, Image) {
    let input = Input {
        name: "policy.toml".to_owned(),
        role: Role::Policy,
        bytes: policy_text(seed).into_bytes(),
    };
    let result = compile(&[input], &NoNames);
    let mut image = result.image.expect("generated policies compile");
    image.set_epoch(seed as u32 + 1);
    (result.policy.expect("it has an image"), image)
}

/// As the daemon does: a new inner map, filled, then the slot.
fn publish(slot: &impl MapCore, image: &Image) {
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        map_flags: libbpf_rs::libbpf_sys::BPF_F_MMAPABLE,
        ..Default::default()
    };
    let size = Image::full_len();
    let name = Some("policy_image");
    let map =
        MapHandle::create(MapType::Array, name, 4, size as u32, 1, &options).expect("an inner map");
    let mut value = image.as_bytes().to_vec();
    value.resize(size.next_multiple_of(8), 0);
    let key = 0_u32.to_ne_bytes();
    map.update(&key, &value, MapFlags::ANY).expect("its value");
    let fd = map.as_fd().as_raw_fd().to_ne_bytes();
    slot.update(&key, &fd, MapFlags::ANY).expect("the slot");
}

/// One run of the program over at most `BATCH` threads.
fn probe(skel: &skeleton::TwopoolSkel<'_>, threads: &[Thread]) -> Vec<Class> {
    let maps = &skel.maps;
    for (index, thread) in (0_u32..).zip(threads) {
        maps.probe_threads
            .update(&index.to_ne_bytes(), &probe_thread(thread), MapFlags::ANY)
            .expect("an entry of an array");
    }
    let mut arguments = [0; 8];
    arguments[..4].copy_from_slice(&(threads.len() as u32).to_ne_bytes());
    let output = skel
        .progs
        .probe
        .test_run(ProgramInput {
            context_in: Some(&mut arguments),
            ..ProgramInput::default()
        })
        .expect("the program runs");
    assert_eq!(output.return_value, 0, "busy, or no policy");
    (0..threads.len() as u32)
        .map(|index| {
            let value = maps
                .probe_classes
                .lookup(&index.to_ne_bytes(), MapFlags::ANY)
                .expect("an array can be read")
                .expect("an entry of an array");
            class(&value)
        })
        .collect()
}

/// `struct probe_thread`.
fn probe_thread(thread: &Thread) -> Vec<u8> {
    let mut bytes = vec![0; 56 + PATH_LEN];
    bytes[..thread.thread.len()].copy_from_slice(&thread.thread);
    bytes[16..16 + thread.process.len()].copy_from_slice(&thread.process);
    bytes[32..40].copy_from_slice(&thread.user.to_ne_bytes());
    bytes[40..48].copy_from_slice(&thread.group.to_ne_bytes());
    bytes[48..52].copy_from_slice(&thread_key(thread).to_ne_bytes());
    bytes[52..56].copy_from_slice(&(thread.cgroup.len() as u32).to_ne_bytes());
    bytes[56..56 + thread.cgroup.len()].copy_from_slice(&thread.cgroup);
    bytes
}

/// `struct thread_class`.
fn class(bytes: &[u8]) -> Class {
    let slice_ns = u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"));
    Class {
        pool: Pool::ALL[usize::from(bytes[14])],
        rule: u16::from_ne_bytes([bytes[12], bytes[13]]),
        slice_us: slice_ns / 1000,
        weight: u32::from_ne_bytes(bytes[8..12].try_into().expect("four bytes")),
        hints: bytes[15] & 1 != 0,
    }
}
