//! Names as real threads have them: what the kernel made of a name, and what /proc shows of one, are not
//! always what was written.

use crate::Test;
use crate::actor::{Actor, Row, json_of, name_self, row, rows};
use crate::guest::{Daemon, POLICY, wait_for, wait_for_pool};
use std::collections::BTreeMap;

pub const TESTS: &[Test] = &[
    Test {
        name: "names::t03_a_name_that_is_cut_inside_a_character",
        cpus: 1,
        limit_s: 300,
        run: t03_a_name_that_is_cut_inside_a_character,
    },
    Test {
        name: "names::t11_a_kernel_worker_has_no_suffix",
        cpus: 1,
        limit_s: 300,
        run: t11_a_kernel_worker_has_no_suffix,
    },
];

/// Pool and rule that the dry run finds for a thread of this guest.
fn explained(tid: u32) -> (String, u64) {
    let arguments = [
        "explain",
        &tid.to_string(),
        "--policy",
        POLICY,
        "--format",
        "json",
    ];
    let document = json_of(&arguments).expect("an explanation");
    assert_eq!(document["kernel"]["agrees"], true, "{document}");
    let pool = document["pool"].as_str().expect("a pool");
    (
        pool.to_owned(),
        document["rule"]["index"].as_u64().unwrap_or(0),
    )
}

fn acted_on(row: &Row) -> (String, u64) {
    (row.pool.clone(), row.rule)
}

/// Compared as text, half a character would be no name at all, or another one.
fn t03_a_name_that_is_cut_inside_a_character() {
    let _daemon = Daemon::start(
        r#"
version = 1
default = "background"
[[rule]]
name = "cut"
pool = "critical"
thread = "process-name-töö"
"#,
    );
    let cut = Actor::start("before");
    cut.run(|| name_self("process-name-töö".as_bytes()));
    cut.spin();
    wait_for_pool(cut.tid(), "critical");
    let row = row(cut.tid());
    assert_eq!((row.rule, &row.thread[..]), (1, "process-name-t\\xc3"));
    assert_eq!(explained(cut.tid()), acted_on(&row));
}

/// Has a work item done on each CPU.
fn make_work() {
    std::fs::read("/proc/sys/vm/stat_refresh").expect("the kernel refreshes its statistics");
}

/// Workers of the kernel whose names /proc shows with the work that they do or did last.
fn busy_workers() -> Option<BTreeMap<u32, String>> {
    make_work();
    let worker = |tid| {
        let shown = std::fs::read_to_string(format!("/proc/{tid}/comm")).ok()?;
        let (name, _work) = shown.trim_end().split_once(['-', '+'])?;
        // Not a rescuer, `kworker/R-xfs`: that is all its name.
        let is_worker = name.starts_with("kworker/") && name.contains(':');
        is_worker.then(|| (tid, name.to_owned()))
    };
    let found: BTreeMap<u32, String> = rows().into_keys().filter_map(worker).collect();
    (!found.is_empty()).then_some(found)
}

/// The work is the kernel's guess at the moment of reading; the scheduler does not see it.
fn t11_a_kernel_worker_has_no_suffix() {
    let daemon = Daemon::start("version = 1\ndefault = \"background\"\n");
    let workers = wait_for("workers that show their work", busy_workers);
    println!("{workers:?}");
    let names: Vec<String> = workers.values().map(|name| format!("{name:?}")).collect();
    daemon.reload(&format!(
        r#"
version = 1
default = "background"
[[rule]]
name = "workers"
pool = "critical"
thread = [{}]
kthread = true
"#,
        names.join(", ")
    ));
    let (tid, row) = wait_for("one of them to run again", || {
        make_work();
        let runs = |(tid, row): &(u32, Row)| workers.contains_key(tid) && row.epoch == 2;
        rows().into_iter().find(runs)
    });
    assert_eq!(acted_on(&row), ("critical".to_owned(), 1), "{row:?}");
    assert_eq!(row.thread, workers[&tid]);
    assert_eq!(explained(tid), acted_on(&row));
}
