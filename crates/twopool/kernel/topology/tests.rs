//! Recorded machines: what sysfs says of them, and what is made of it.

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
    let ids: Vec<(u32, bool, u32)> = topology
        .cpus
        .iter()
        .map(|cpu| (cpu.id, cpu.online, cpu.llc))
        .collect();
    assert_eq!(
        ids,
        [(0, true, 0), (2, true, 0), (3, false, 0), (9, true, 1)]
    );
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
    assert_eq!(
        topology.cpus.iter().map(|cpu| cpu.llc).collect::<Vec<_>>(),
        [0, 0, 1, 1]
    );
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
    let error =
        Topology::read(tree("cpu/possible 0-2000\ncpu/online 0").path()).expect_err("too many");
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
