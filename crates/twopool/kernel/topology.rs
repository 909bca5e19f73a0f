//! The machine's CPUs, cores, last-level caches and nodes, from sysfs.
//!
//! Pure but for reading small files below a root that tests can replace. Possible CPU ids may have
//! holes and may exceed the number of CPUs; a CPU that is offline shows no topology and gets a
//! guess, which only costs locality.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Most last-level caches that the kernel program tells apart; `MAX_LLCS` in `bpf/intf.h`.
pub const MAX_LLCS: usize = 64;
/// Possible CPU ids that the kernel program serves; `MAX_CPUS` in `bpf/intf.h`.
pub const MAX_CPUS: usize = 1024;

/// One possible CPU. Numbers of cores, caches and nodes are dense, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    /// The kernel's id.
    pub id: u32,
    /// In use now.
    pub online: bool,
    /// Unique in the machine.
    pub core: u32,
    /// Below `MAX_LLCS`; caches beyond share the last number.
    pub llc: u32,
    /// NUMA node.
    pub node: u32,
}

/// All possible CPUs, ascending by id, and how far nodes are from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Ascending by id.
    pub cpus: Vec<Cpu>,
    /// By dense node number: distances as firmware tells them, 10 = itself.
    pub distances: Vec<Vec<u32>>,
}

impl Topology {
    /// Reads `ROOT/sys/devices/system`.
    ///
    /// # Errors
    /// The CPU lists cannot be read or there are CPU ids from `MAX_CPUS` on.
    pub fn read(root: &Path) -> io::Result<Self> {
        let system = root.join("sys/devices/system");
        let possible = read_list(&system.join("cpu/possible"))?;
        let online: BTreeSet<u32> = read_list(&system.join("cpu/online"))?.into_iter().collect();
        if let Some(id) = possible.iter().find(|id| **id as usize >= MAX_CPUS) {
            return Err(io::Error::other(format!(
                "CPU ids up to {} are supported, this host has {id}",
                MAX_CPUS - 1
            )));
        }
        let nodes = Nodes::read(&system.join("node"));
        let mut cores = Numbering::default();
        let mut llcs = Numbering::default();
        let mut cpus: Vec<Cpu> = Vec::with_capacity(possible.len());
        for id in possible {
            let directory = system.join(format!("cpu/cpu{id}"));
            let node = nodes.of_cpu(&directory, id);
            let core = first_of(&directory.join("topology/core_cpus_list"))
                .or_else(|| first_of(&directory.join("topology/thread_siblings_list")));
            let llc = last_level_cache(&directory);
            // An offline CPU most likely belongs where its lower neighbour does.
            let neighbour = cpus
                .iter()
                .rev()
                .find(|cpu| cpu.node == node)
                .map(|cpu| cpu.llc);
            let llc = match (llc, neighbour) {
                (Some(key), _) => llcs.number(key),
                (None, Some(number)) => number,
                (None, None) => llcs.number((1, u64::from(id))),
            };
            let core = cores.number(core.map_or((1, u64::from(id)), |first| (0, u64::from(first))));
            let llc = llc.min(MAX_LLCS as u32 - 1);
            cpus.push(Cpu {
                id,
                online: online.contains(&id),
                core,
                llc,
                node,
            });
        }
        Ok(Self {
            cpus,
            distances: nodes.distances,
        })
    }

    /// Highest possible id and one; at least 1.
    pub fn id_limit(&self) -> u32 {
        self.cpus.last().map_or(1, |cpu| cpu.id + 1)
    }

    /// Caches told apart; at least 1.
    pub fn llc_count(&self) -> u32 {
        self.cpus.iter().map(|cpu| cpu.llc + 1).max().unwrap_or(1)
    }

    /// Whether some core has several threads online.
    pub fn has_smt(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.cpus
            .iter()
            .filter(|cpu| cpu.online)
            .any(|cpu| !seen.insert(cpu.core))
    }

    /// Possible CPUs so that neighbours share as much as they can: by node, cache, core.
    pub fn growth_order(&self) -> Vec<u32> {
        let mut order = self.cpus.clone();
        order.sort_by_key(|cpu| (cpu.node, cpu.llc, cpu.core, cpu.id));
        order.iter().map(|cpu| cpu.id).collect()
    }

    /// All caches from one's point of view: itself, then by distance of their nodes, then by
    /// number.
    pub fn llcs_from(&self, llc: u32) -> Vec<u32> {
        let node_of = |wanted: u32| {
            self.cpus
                .iter()
                .find(|cpu| cpu.llc == wanted)
                .map_or(0, |cpu| cpu.node)
        };
        let here = node_of(llc);
        let mut order: Vec<u32> = (0..self.llc_count()).collect();
        order.sort_by_key(|other| (*other != llc, self.distance(here, node_of(*other)), *other));
        order
    }

    /// Firmware that tells nothing still leaves "same node" nearer than "another one".
    fn distance(&self, from: u32, to: u32) -> u32 {
        let told = self
            .distances
            .get(from as usize)
            .and_then(|row| row.get(to as usize));
        told.copied().unwrap_or(if from == to { 10 } else { 20 })
    }
}

/// Gives dense numbers to keys in the order they are first met.
#[derive(Debug, Default)]
struct Numbering {
    numbers: BTreeMap<(u8, u64), u32>,
}

impl Numbering {
    /// Keys carry a tag, so that what was read and what was guessed cannot be confused.
    fn number(&mut self, key: (u8, u64)) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(key).or_insert(next)
    }
}

/// NUMA nodes by their dense numbers.
#[derive(Debug, Default)]
struct Nodes {
    ids: Vec<u32>,
    cpus: Vec<Vec<u32>>,
    distances: Vec<Vec<u32>>,
}

impl Nodes {
    /// A kernel without NUMA has no such directory: everything is node 0.
    fn read(directory: &Path) -> Self {
        let ids = read_list(&directory.join("online")).unwrap_or_default();
        let file = |id: &u32, name: &str| directory.join(format!("node{id}/{name}"));
        let cpus = ids
            .iter()
            .map(|id| read_list(&file(id, "cpulist")).unwrap_or_default())
            .collect();
        let distances = ids
            .iter()
            .map(|id| {
                let text = fs::read_to_string(file(id, "distance")).unwrap_or_default();
                text.split_ascii_whitespace()
                    .filter_map(|word| word.parse().ok())
                    .collect()
            })
            .collect();
        Self {
            ids,
            cpus,
            distances,
        }
    }

    /// The node's list names online CPUs only; an offline CPU's own directory still has a link.
    fn of_cpu(&self, cpu_directory: &Path, cpu: u32) -> u32 {
        let listed = self.cpus.iter().position(|cpus| cpus.contains(&cpu));
        let linked = || {
            self.ids
                .iter()
                .position(|id| cpu_directory.join(format!("node{id}")).exists())
        };
        listed.or_else(linked).unwrap_or(0) as u32
    }
}

/// A key for the cache of the highest level that a CPU's data goes through; where no cache is
/// told (some VMs), for its package. `None` for an offline CPU.
fn last_level_cache(cpu_directory: &Path) -> Option<(u8, u64)> {
    let mut best: Option<(u32, u32)> = None;
    for index in 0.. {
        let cache = cpu_directory.join(format!("cache/index{index}"));
        let Some(level) = read_word(&cache.join("level")).and_then(|word| word.parse().ok()) else {
            break;
        };
        if read_word(&cache.join("type")).as_deref() == Some("Instruction") {
            continue;
        }
        if let Some(first) = first_of(&cache.join("shared_cpu_list"))
            && best.is_none_or(|(highest, _)| level > highest)
        {
            best = Some((level, first));
        }
    }
    let package = || {
        read_word(&cpu_directory.join("topology/physical_package_id"))?
            .parse::<i64>()
            .ok()
    };
    best.map(|(_, first)| (0, u64::from(first)))
        .or_else(|| package().map(|id| (2, id.max(0) as u64)))
}

fn read_word(path: &Path) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn first_of(path: &Path) -> Option<u32> {
    read_list(path).ok()?.first().copied()
}

fn read_list(path: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(path)?;
    parse_list(text.trim()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} holds no list of CPUs", path.display()),
        )
    })
}

/// A list as the kernel writes it: `0-3,8`; may be empty. Ascending and without repeats.
fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut ids = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse::<u32>().ok()?);
        // No list of CPUs is longer; a mangled file must not make us count to 2^32.
        if last - u32::min(first, last) > 1 << 16 {
            return None;
        }
        ids.extend(first..=last);
    }
    Some(ids.into_iter().collect())
}

#[cfg(test)]
mod tests;
