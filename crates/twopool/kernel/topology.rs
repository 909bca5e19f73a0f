//! The machine's CPUs, cores, last-level caches and nodes, from sysfs.
//!
//! Pure but for reading small files below a root that tests can replace. Possible CPU ids may have
//! holes and may exceed the number of CPUs; a CPU that is offline shows no topology and gets a
//! guess, which only costs locality.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
            return Err(io::Error::other(format!("CPU ids up to {} are supported, this host has {id}", MAX_CPUS - 1)));
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
            let neighbour = cpus.iter().rev().find(|cpu| cpu.node == node).map(|cpu| cpu.llc);
            let llc = match (llc, neighbour) {
                (Some(key), _) => llcs.number(key),
                (None, Some(number)) => number,
                (None, None) => llcs.number((1, u64::from(id))),
            };
            let core = cores.number(core.map_or((1, u64::from(id)), |first| (0, u64::from(first))));
            let llc = llc.min(MAX_LLCS as u32 - 1);
            cpus.push(Cpu { id, online: online.contains(&id), core, llc, node });
        }
        Ok(Self { cpus, distances: nodes.distances })
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
        self.cpus.iter().filter(|cpu| cpu.online).any(|cpu| !seen.insert(cpu.core))
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
        let node_of = |wanted: u32| self.cpus.iter().find(|cpu| cpu.llc == wanted).map_or(0, |cpu| cpu.node);
        let here = node_of(llc);
        let mut order: Vec<u32> = (0..self.llc_count()).collect();
        order.sort_by_key(|other| (*other != llc, self.distance(here, node_of(*other)), *other));
        order
    }

    /// Firmware that tells nothing still leaves "same node" nearer than "another one".
    fn distance(&self, from: u32, to: u32) -> u32 {
        let told = self.distances.get(from as usize).and_then(|row| row.get(to as usize));
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
        let cpus = ids.iter().map(|id| read_list(&file(id, "cpulist")).unwrap_or_default()).collect();
        let distances = ids
            .iter()
            .map(|id| {
                let text = fs::read_to_string(file(id, "distance")).unwrap_or_default();
                text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
            })
            .collect();
        Self { ids, cpus, distances }
    }

    /// The node's list names online CPUs only; an offline CPU's own directory still has a link.
    fn of_cpu(&self, cpu_directory: &Path, cpu: u32) -> u32 {
        let listed = self.cpus.iter().position(|cpus| cpus.contains(&cpu));
        let linked = || self.ids.iter().position(|id| cpu_directory.join(format!("node{id}")).exists());
        listed.or_else(linked).unwrap_or(0) as u32
    }
}

/// A key for the cache of the highest level that a CPU's data goes through; where no cache is
/// told (some VMs), for its package. `None` for an offline CPU.
fn last_level_cache(cpu_directory: &Path) -> Option<(u8, u64)> {
    let mut best: Option<(u32, u32)> = None;
    for index in 0.. {
        let cache = cpu_directory.join(format!("cache/index{index}"));
        let Some(level) = read_word(&cache.join("level")).and_then(|word| word.parse().ok()) else { break };
        if read_word(&cache.join("type")).as_deref() == Some("Instruction") {
            continue;
        }
        if let Some(first) = first_of(&cache.join("shared_cpu_list"))
            && best.is_none_or(|(highest, _)| level > highest)
        {
            best = Some((level, first));
        }
    }
    let package = || read_word(&cpu_directory.join("topology/physical_package_id"))?.parse::<i64>().ok();
    best.map(|(_, first)| (0, u64::from(first))).or_else(|| package().map(|id| (2, id.max(0) as u64)))
}

fn read_word(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn first_of(path: &PathBuf) -> Option<u32> {
    read_list(path).ok()?.first().copied()
}

fn read_list(path: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(path)?;
    parse_list(text.trim())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{} holds no list of CPUs", path.display())))
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
mod tests {
    use super::*;

    /// A recorded sysfs: each line is a path below `sys/devices/system` and its content.
    fn tree(lines: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (path, content) = line.split_once(' ').unwrap_or((line, ""));
            let path = root.path().join("sys/devices/system").join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            fs::write(path, format!("{content}\n")).expect("written");
        }
        root
    }

    fn cpu_lines(id: u32, siblings: &str, cache: &str) -> String {
        format!(
            "cpu/cpu{id}/topology/core_cpus_list {siblings}
             cpu/cpu{id}/topology/physical_package_id 0
             cpu/cpu{id}/cache/index0/level 1
             cpu/cpu{id}/cache/index0/type Data
             cpu/cpu{id}/cache/index0/shared_cpu_list {siblings}
             cpu/cpu{id}/cache/index1/level 1
             cpu/cpu{id}/cache/index1/type Instruction
             cpu/cpu{id}/cache/index1/shared_cpu_list {siblings}
             cpu/cpu{id}/cache/index2/level 3
             cpu/cpu{id}/cache/index2/type Unified
             cpu/cpu{id}/cache/index2/shared_cpu_list {cache}\n"
        )
    }

    /// Two sockets of two cores of two threads, numbered as x86 firmware does: siblings far apart.
    fn two_sockets() -> tempfile::TempDir {
        let mut lines = String::from(
            "cpu/possible 0-7
             cpu/online 0-7
             node/online 0-1
             node/node0/cpulist 0-1,4-5
             node/node0/distance 10 21
             node/node1/cpulist 2-3,6-7
             node/node1/distance 21 10\n",
        );
        for id in 0..8 {
            let siblings = format!("{},{}", id % 4, id % 4 + 4);
            let cache = if id % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
            lines += &cpu_lines(id, &siblings, cache);
        }
        tree(&lines)
    }

    #[test]
    fn two_sockets_with_siblings_far_apart() {
        let topology = Topology::read(two_sockets().path()).expect("readable");
        let column = |get: fn(&Cpu) -> u32| topology.cpus.iter().map(get).collect::<Vec<_>>();
        assert_eq!(column(|cpu| cpu.core), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(column(|cpu| cpu.llc), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(column(|cpu| cpu.node), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(topology.growth_order(), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert!(topology.has_smt());
        assert_eq!((topology.id_limit(), topology.llc_count()), (8, 2));
    }

    #[test]
    fn nearer_nodes_come_first() {
        let mut lines = String::from("cpu/possible 0-2\ncpu/online 0-2\nnode/online 0,2,5\n");
        for (id, node, distances) in [(0, 0, "10 40 20"), (1, 2, "40 10 30"), (2, 5, "20 30 10")] {
            lines += &cpu_lines(id, &id.to_string(), &id.to_string());
            lines += &format!("node/node{node}/cpulist {id}\nnode/node{node}/distance {distances}\n");
        }
        let topology = Topology::read(tree(&lines).path()).expect("readable");
        assert_eq!(topology.llcs_from(0), [0, 2, 1]);
        assert_eq!(topology.llcs_from(1), [1, 2, 0]);
    }

    #[test]
    fn holes_in_the_ids_and_an_offline_cpu() {
        let lines = format!(
            "cpu/possible 0,2-3,9\ncpu/online 0,2,9\n{}{}{}",
            cpu_lines(0, "0", "0,2"),
            cpu_lines(2, "2", "0,2"),
            cpu_lines(9, "9", "9")
        );
        let topology = Topology::read(tree(&lines).path()).expect("readable");
        let ids: Vec<(u32, bool, u32)> = topology.cpus.iter().map(|cpu| (cpu.id, cpu.online, cpu.llc)).collect();
        assert_eq!(ids, [(0, true, 0), (2, true, 0), (3, false, 0), (9, true, 1)]);
        assert_eq!(topology.id_limit(), 10);
        assert!(!topology.has_smt());
    }

    #[test]
    fn without_caches_a_package_stands_for_one() {
        let mut lines = String::from("cpu/possible 0-3\ncpu/online 0-3\n");
        for id in 0..4 {
            lines += &format!("cpu/cpu{id}/topology/core_cpus_list {id}\n");
            lines += &format!("cpu/cpu{id}/topology/physical_package_id {}\n", id / 2);
        }
        let topology = Topology::read(tree(&lines).path()).expect("readable");
        assert_eq!(topology.cpus.iter().map(|cpu| cpu.llc).collect::<Vec<_>>(), [0, 0, 1, 1]);
    }

    #[test]
    fn caches_beyond_the_limit_share_the_last() {
        let mut lines = String::from("cpu/possible 0-99\ncpu/online 0-99\n");
        for id in 0..100 {
            lines += &cpu_lines(id, &id.to_string(), &id.to_string());
        }
        let topology = Topology::read(tree(&lines).path()).expect("readable");
        assert_eq!(topology.llc_count() as usize, MAX_LLCS);
        assert_eq!(topology.cpus[99].llc as usize, MAX_LLCS - 1);
    }

    #[test]
    fn too_high_an_id_is_an_error_that_names_it() {
        let error = Topology::read(tree("cpu/possible 0-2000\ncpu/online 0").path()).expect_err("too many");
        assert!(error.to_string().contains("up to 1023"), "{error}");
    }

    #[test]
    fn lists_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-2,7"), Some(vec![0, 1, 2, 7]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("0-4294967295"), None);
        assert_eq!(parse_list("x"), None);
    }

    #[test]
    fn this_host_can_be_read() {
        let topology = Topology::read(Path::new("/")).expect("this host");
        assert!(topology.cpus.iter().any(|cpu| cpu.online));
    }
}
