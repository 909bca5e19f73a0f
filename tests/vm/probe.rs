//! The program `probe`, loaded into this kernel without scheduling anything: the very functions
//! that classify real threads, on made-up ones.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, PrintLevel, ProgramInput, set_print};
use twopool_policy::compile::{Input, Role, compile};
use twopool_policy::eval::{Class, thread_key};
use twopool_policy::image::Image;
use twopool_policy::policy::{Policy, Pool};
use twopool_policy::resolve::Names;
use twopool_policy::thread::Thread;

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

/// `PROBE_BATCH` of bpf/intf.h: threads in one run.
pub const BATCH: usize = 64;
/// `PROBE_PATH_LEN` of bpf/intf.h: longest cgroup path.
pub const PATH_LEN: usize = 512;

/// The users and groups of the guest, as its /etc/passwd and /etc/group have them.
pub struct GuestNames;

impl Names for GuestNames {
    fn user(&self, name: &str) -> Option<u32> {
        (name == "root").then_some(0)
    }
    fn group(&self, name: &str) -> Option<u32> {
        (name == "root").then_some(0)
    }
}

/// Compiles one policy; panics with its diagnostics if it is not valid.
pub fn compiled(text: &str) -> (Policy, Image) {
    let input = Input {
        name: "policy.toml".to_owned(),
        role: Role::Policy,
        bytes: text.as_bytes().to_vec(),
    };
    let result = compile(&[input], &GuestNames);
    match (result.policy, result.image) {
        (Some(policy), Some(image)) => (policy, image),
        _ => panic!("{:#?}\n{text}", result.diagnostics),
    }
}

static LOG: Mutex<String> = Mutex::new(String::new());

/// What libbpf says while it loads the program: which symbols it resolved, among other things.
pub fn load_log() -> String {
    LOG.lock().expect("nobody panics with it").clone()
}

/// The loaded program.
pub struct Probe {
    skel: skeleton::TwopoolSkel<'static>,
    epoch: u32,
}

impl Probe {
    /// Has the kernel verify and load it. No policy is published yet.
    pub fn load() -> Self {
        set_print(Some((PrintLevel::Debug, |_, message| {
            LOG.lock()
                .expect("nobody panics with it")
                .push_str(&message);
        })));
        // A test is a process: what the skeleton borrows may live as long.
        let storage = Box::leak(Box::new(std::mem::MaybeUninit::uninit()));
        let mut open = skeleton::TwopoolSkelBuilder::default()
            .open(storage)
            .expect("the object is well formed");
        open.maps
            .twopool
            .set_autocreate(false)
            .expect("nothing is loaded yet");
        for mut program in open.open_object_mut().progs_mut() {
            let wanted = program.name() == "probe";
            program.set_autoload(wanted);
        }
        let skel = open.load().expect("the verifier takes the probe");
        Self { skel, epoch: 0 }
    }

    /// Publishes a policy as the daemon does: a new inner map, filled, then the slot.
    pub fn publish(&mut self, image: &Image) {
        self.epoch += 1;
        let mut image = image.clone();
        image.set_epoch(self.epoch);
        let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
            map_flags: libbpf_rs::libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        let size = Image::full_len();
        let name = Some("policy_image");
        let map = MapHandle::create(MapType::Array, name, 4, size as u32, 1, &options)
            .expect("an inner map");
        let mut value = image.as_bytes().to_vec();
        value.resize(size.next_multiple_of(8), 0);
        let key = 0_u32.to_ne_bytes();
        map.update(&key, &value, MapFlags::ANY).expect("its value");
        let fd = map.as_fd().as_raw_fd().to_ne_bytes();
        let slot = &self.skel.maps.policy;
        slot.update(&key, &fd, MapFlags::ANY).expect("the slot");
    }

    /// The classes that the kernel gives to threads, in any number of runs of the program.
    pub fn classes(&self, threads: &[Thread]) -> Vec<Class> {
        let batches = threads.chunks(BATCH);
        batches.flat_map(|batch| self.run(batch)).collect()
    }

    fn run(&self, threads: &[Thread]) -> Vec<Class> {
        let maps = &self.skel.maps;
        for (index, thread) in (0_u32..).zip(threads) {
            maps.probe_threads
                .update(&index.to_ne_bytes(), &probe_thread(thread), MapFlags::ANY)
                .expect("an entry of an array");
        }
        let mut arguments = [0; 8];
        arguments[..4].copy_from_slice(&(threads.len() as u32).to_ne_bytes());
        let output = self
            .skel
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
