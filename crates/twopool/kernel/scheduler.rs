//! The scheduler's life cycle in types: `Opened`, `Loaded`, `Ready`, `Attached`.
//!
//! Opened: what this host needs is written into the object. Loaded: the kernel has verified it,
//! and a policy can be published. Ready: one was. Attached: it schedules the host's threads;
//! dropping it gives them back to the kernel. Nothing is pinned, so that the kernel takes over as
//! well when the daemon is killed.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64, Func, Struct};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link, MapHandle, MapMut};
use twopool_policy::image::Image;
use twopool_policy::policy::Pool;

use super::abi::{
    EXIT_DUMP_BYTES, OpenTwopoolSkel, TwopoolSkel, TwopoolSkelBuilder, Variables, types,
};
use super::apply::{PolicySlot, Publish};
use super::counters::{Counters, ThreadReport, read_threads};
use super::ejection::Ejection;
use super::libbpf_log;
use super::preflight::{Host, attach_failure};
use super::topology::{MAX_CPUS, MAX_LLCS, Topology};
use crate::exit::{Exit, Failure};
use crate::host::clock;
use crate::host::saving::save_whole;

/// A runnable thread that waits longer makes the kernel eject the scheduler; it must be above
/// 4.096 s, the overload threshold of 7.3's rescue, and at most 30 s.
const WATCHDOG_MS: u32 = 20_000;

/// `enum scx_ops_flags` members to set where the kernel has them. Their values differ between
/// kernels, so they are looked up by name.
const OPS_FLAGS: [&str; 2] = [
    // Threads that may not migrate go through enqueue, to their CPU's own queue, instead of
    // straight into the kernel's: else they would run ahead of everybody. From 6.14 on.
    "SCX_OPS_ENQ_MIGRATION_DISABLED",
    // A wake of a thread that is still being switched out need not wait for its old CPU. 6.15.
    "SCX_OPS_ALLOW_QUEUED_WAKEUP",
];

/// Ready to be loaded into this host's kernel.
pub struct Opened {
    skel: OpenTwopoolSkel<'static>,
}

impl Opened {
    /// Prepares the object for this host.
    ///
    /// # Errors
    /// The kernel's type information cannot be read.
    pub fn open(host: &Host, topology: &Topology) -> Result<Self, Failure> {
        libbpf_log::start();
        let btf = Btf::from_vmlinux().map_err(|error| {
            Failure::new(
                exit_of(&error),
                "no-btf",
                format!("the kernel's type information cannot be read: {error:#}"),
            )
        })?;
        // The skeleton borrows this for as long as it lives and drops what it put there; a few
        // bytes stay behind at each start and each of the few restarts after an ejection.
        let place = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut skel = TwopoolSkelBuilder::default().open(place).map_err(|error| {
            let message = format!("the scheduler program cannot be opened: {error:#}");
            Failure::new(exit_of(&error), "load-failed", message)
        })?;
        let ops = skel.struct_ops.twopool_mut();
        drop_unknown_members(ops, &btf);
        // Where on_stopping can ask for it, the kernel warns of schedulers that want to be told.
        if has_function(&btf, "scx_bpf_reenqueue_local___v2") {
            ops.cpu_release = ptr::null_mut();
        }
        ops.flags = flags(&btf);
        ops.timeout_ms = WATCHDOG_MS;
        ops.exit_dump_len = EXIT_DUMP_BYTES as u32;
        ops.hotplug_seq = host.hotplug_seq();
        write_topology(
            skel.maps
                .rodata_data
                .as_deref_mut()
                .expect("the object has .rodata"),
            topology,
        );
        write_online(
            skel.maps
                .bss_data
                .as_deref_mut()
                .expect("the object has .bss"),
            topology,
        );
        Ok(Self { skel })
    }

    /// Has the kernel verify and load it.
    ///
    /// # Errors
    /// It refuses; its verdict is in the message, the whole log in a file in `state_directory`.
    pub fn load(self, state_directory: &Path) -> Result<Loaded, Failure> {
        let skel = self
            .skel
            .load()
            .map_err(|error| load_failure(&error, state_directory))?;
        let handle = |map: &MapMut<'_>| {
            MapHandle::try_from(map)
                .map_err(|error| Failure::new(exit_of(&error), "load-failed", format!("{error:#}")))
        };
        let slot = Arc::new(PolicySlot::new(handle(&skel.maps.policy)?));
        let counters = Counters::new(
            handle(&skel.maps.pool_stats)?,
            handle(&skel.maps.rule_stats)?,
            handle(&skel.maps.event_stats)?,
        );
        Ok(Loaded {
            skel,
            slot,
            counters,
        })
    }
}

/// In the kernel, without a policy.
pub struct Loaded {
    skel: TwopoolSkel<'static>,
    slot: Arc<PolicySlot>,
    counters: Counters,
}

impl Loaded {
    /// Publishes the first policy, whose epoch must be set.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn publish(self, first: &Image) -> Result<Ready, Failure> {
        let failed = |exit, code, message| Failure::new(exit, code, message);
        self.slot.publish(first).map_err(|error| {
            let message = format!("the kernel refused the policy: {error}");
            failed(Exit::of(&error), "load-failed", message)
        })?;
        let threads = self.skel.progs.dump_tasks.attach().map_err(|error| {
            let message = format!("the thread list is not available: {error:#}");
            failed(exit_of(&error), "attach-failed", message)
        })?;
        Ok(Ready {
            loaded: self,
            threads,
        })
    }
}

/// In the kernel with a policy, scheduling nothing yet.
pub struct Ready {
    loaded: Loaded,
    threads: Link,
}

impl Ready {
    /// Takes over the host's threads.
    ///
    /// # Errors
    /// The kernel refuses, most often because another scheduler is attached.
    pub fn attach(self, host: &Host) -> Result<Attached, Failure> {
        let Loaded {
            mut skel,
            slot,
            counters,
        } = self.loaded;
        let link = skel
            .maps
            .twopool
            .attach_struct_ops()
            .map_err(|error| attach_failure(host, errno_of(&error), &format!("{error:#}")))?;
        let variables = Variables::of(skel.maps.bss_data.as_deref().expect("the object has .bss"));
        Ok(Attached {
            _link: link,
            threads: self.threads,
            variables,
            slot,
            counters,
            _skel: skel,
        })
    }
}

/// Scheduling the host's threads. Fields drop in order: the link first, which detaches.
pub struct Attached {
    _link: Link,
    threads: Link,
    variables: Variables,
    slot: Arc<PolicySlot>,
    counters: Counters,
    _skel: TwopoolSkel<'static>,
}

impl Attached {
    /// Where to publish policies.
    pub fn slot(&self) -> Arc<PolicySlot> {
        Arc::clone(&self.slot)
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Why the kernel ended it, if it did.
    pub fn ejection(&self) -> Option<Ejection> {
        self.variables
            .exit_report()
            .map(|report| Ejection::decode(&report))
    }

    /// The online CPUs that a pool owns, ascending.
    pub fn owned_cpus(&self, pool: Pool) -> Vec<u32> {
        let (owned, online) = (self.variables.owned(pool), self.variables.online());
        let has = |cpu: &u32| {
            (owned[*cpu as usize / 64] & online[*cpu as usize / 64]) >> (cpu % 64) & 1 == 1
        };
        (0..MAX_CPUS as u32).filter(has).collect()
    }

    /// Every thread of the host as the kernel program has it.
    pub fn threads(&self) -> io::Result<Vec<ThreadReport>> {
        read_threads(Iter::new(&self.threads).map_err(io::Error::other)?)
    }
}

/// Sets members of the operations to zero that this kernel does not have: libbpf leaves those out
/// when it loads, and refuses any other value.
fn drop_unknown_members(ops: &mut types::sched_ext_ops, btf: &Btf<'_>) {
    macro_rules! pointers {
        ($($member:ident)*) => {
            $(if !has_member(btf, "sched_ext_ops", stringify!($member).trim_start_matches("r#")) {
                ops.$member = ptr::null_mut();
            })*
        };
    }
    pointers! {
        select_cpu enqueue dequeue dispatch tick runnable running stopping quiescent r#yield set_weight
        set_cpumask update_idle cpu_acquire cpu_release init_task exit_task enable disable dump dump_cpu
        dump_task cpu_online cpu_offline init exit
    }
}

/// Has this kernel's struct such a member?
fn has_member(btf: &Btf<'_>, kind: &str, member: &str) -> bool {
    btf.type_by_name::<Struct<'_>>(kind).is_some_and(|kind| {
        kind.iter()
            .any(|field| field.name == Some(OsStr::new(member)))
    })
}

/// Has this kernel such a function for programs?
fn has_function(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Func<'_>>(name).is_some()
}

/// The flags of `OPS_FLAGS` that this kernel has.
fn flags(btf: &Btf<'_>) -> u64 {
    OPS_FLAGS
        .iter()
        .filter_map(|name| enum_value(btf, "scx_ops_flags", name))
        .fold(0, |all, flag| all | flag)
}

/// A member of a kernel enum; `None` if this kernel does not have it.
fn enum_value(btf: &Btf<'_>, kind: &str, member: &str) -> Option<u64> {
    let wanted = Some(OsStr::new(member));
    if let Some(found) = btf.type_by_name::<Enum<'_>>(kind) {
        return found
            .iter()
            .find(|item| item.name == wanted)
            .map(|item| item.value as u64);
    }
    let found = btf.type_by_name::<Enum64<'_>>(kind)?;
    found
        .iter()
        .find(|item| item.name == wanted)
        .map(|item| item.value as u64)
}

fn write_topology(rodata: &mut types::rodata, topology: &Topology) {
    let cpu_llc: &mut [u16; MAX_CPUS] = &mut rodata.cpu_llc;
    let llc_order: &mut [[u16; MAX_LLCS]; MAX_LLCS] = &mut rodata.llc_order;
    for cpu in &topology.cpus {
        let id = cpu.id as usize;
        cpu_llc[id] = cpu.llc as u16;
        rodata.cpu_core[id] = cpu.core as u16;
        rodata.llc_cpus[cpu.llc as usize][id / 64] |= 1 << (id % 64);
    }
    let order = topology.growth_order();
    for (place, id) in rodata.cpu_order.iter_mut().zip(&order) {
        *place = *id as u16;
    }
    for llc in 0..topology.llc_count() {
        let row = llc_order[llc as usize].iter_mut();
        row.zip(topology.llcs_from(llc))
            .for_each(|(place, other)| *place = other as u16);
    }
    rodata.nr_cpus = topology.id_limit();
    rodata.nr_cpu_words = topology.id_limit().div_ceil(64);
    rodata.nr_llcs = topology.llc_count();
    rodata.nr_ordered = order.len() as u32;
    rodata.smt_active = topology.has_smt();
    if let Some(tick_ns) = clock::tick_ns() {
        rodata.tick_ns = tick_ns;
    }
}

/// The program keeps this current itself once it is attached; a change in between is caught by
/// `hotplug_seq`, which makes the kernel refuse to attach.
fn write_online(bss: &mut types::bss, topology: &Topology) {
    for cpu in topology.cpus.iter().filter(|cpu| cpu.online) {
        bss.online[cpu.id as usize / 64] |= 1 << (cpu.id % 64);
        bss.nr_online += 1;
    }
}

/// One line that says why the kernel refused the program, and where the whole log is.
fn load_failure(error: &libbpf_rs::Error, state_directory: &Path) -> Failure {
    let log = libbpf_log::take();
    let verdict = libbpf_log::verdict(&log).unwrap_or("it gave no reason");
    let mut message = format!("the kernel refused the scheduler program: {verdict} ({error:#})");
    message += &match save_whole(state_directory, "load.log", log.as_bytes()) {
        Ok(path) => format!("; the whole log is in {}", path.display()),
        Err(error) => format!("; the whole log could not be saved: {error}"),
    };
    Failure::new(exit_of(error), "load-failed", message)
}

fn exit_of(error: &libbpf_rs::Error) -> Exit {
    Exit::of(&io::Error::from_raw_os_error(errno_of(error)))
}

/// The system's error number at the bottom of a chain; 0 if there is none.
fn errno_of(error: &libbpf_rs::Error) -> i32 {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut errno = 0;
    while let Some(current) = cause {
        if let Some(code) = current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            errno = code;
        }
        cause = current.source();
    }
    errno
}
