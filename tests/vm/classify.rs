//! The kernel's classification equals the evaluator's, by which `check` and `explain` judge: on
//! made-up threads, many of them, and on real ones. If the verifier's view of a loop or a compiler's
//! shortcut changed what the kernel program computes, a comparison on the host would not see it.

use std::collections::HashSet;
use std::fmt::Write;

use twopool_policy::generate::{policy_text, threads};
use twopool_policy::image::Image;
use twopool_policy::naive::{self, NaiveRegexes};
use twopool_policy::thread::Thread;

use crate::Test;
use crate::guest::kernel_series;
use crate::probe::{PATH_LEN, Probe, compiled, load_log};

pub const TESTS: &[Test] = &[
    Test {
        name: "classify::the_kernel_judges_as_the_evaluator_does",
        cpus: 1,
        limit_s: 300,
        run: the_kernel_judges_as_the_evaluator_does,
    },
    Test {
        name: "classify::deep_and_wide_cgroup_paths",
        cpus: 1,
        limit_s: 300,
        run: deep_and_wide_cgroup_paths,
    },
    Test {
        name: "classify::t03_names_are_bytes",
        cpus: 1,
        limit_s: 300,
        run: t03_names_are_bytes,
    },
    Test {
        name: "classify::sixteen_thousand_names_and_many_patterns",
        cpus: 1,
        limit_s: 600,
        run: sixteen_thousand_names_and_many_patterns,
    },
    Test {
        name: "classify::what_the_kernel_offers_is_used",
        cpus: 1,
        limit_s: 300,
        run: what_the_kernel_offers_is_used,
    },
];

/// How many of the threads a rule took, after comparing all of them.
#[track_caller]
fn compare(probe: &mut Probe, image: &Image, threads: &[Thread], what: &str) -> usize {
    probe.publish(image);
    let classes = probe.classes(threads);
    assert_eq!(classes.len(), threads.len());
    for (thread, class) in threads.iter().zip(&classes) {
        assert_eq!(*class, image.classify(thread), "{what}: {thread:?}");
    }
    classes.iter().filter(|class| class.rule != 0).count()
}

/// Three judges of 100,000 pairs: rules read as the reference describes them, the image as `check`
/// and `explain` read it, and the kernel program.
fn the_kernel_judges_as_the_evaluator_does() {
    const POLICIES: u64 = 400;
    const THREADS: usize = 256;
    let mut probe = Probe::load();
    let mut taken = 0;
    for seed in 0..POLICIES {
        let text = policy_text(seed);
        let (policy, image) = compiled(&text);
        let threads = threads(seed, &policy, THREADS);
        let regexes = NaiveRegexes::new(&policy);
        for thread in &threads {
            let by_the_rules =
                naive::classify(&policy, &regexes, thread).map_or(0, |rule| rule + 1);
            let rule = usize::from(image.classify(thread).rule);
            assert_eq!(rule, by_the_rules, "seed {seed}: {thread:?}\n{text}");
        }
        taken += compare(
            &mut probe,
            &image,
            &threads,
            &format!("seed {seed}\n{text}"),
        );
    }
    let judged = POLICIES as usize * THREADS;
    // Threads that no rule takes would prove little.
    assert!(taken > judged / 5, "{taken} of {judged} met a rule");
}

fn in_cgroup(path: String) -> Thread {
    Thread {
        cgroup: path.into_bytes(),
        ..Thread::named(b"t")
    }
}

/// As many components as fit, one component as long as may be, and what ends just short of either.
fn deep_and_wide_cgroup_paths() {
    let (_, image) = compiled(
        r#"
version = 1
default = "background"
[[rule]]
pool = "critical"
cgroup = "/**/leaf"
[[rule]]
pool = "critical"
cgroup = { regex = "(/d)+/e" }
[[rule]]
pool = "critical"
cgroup = "/w*w/**"
"#,
    );
    let wide = |length: usize| format!("/w{}w", "x".repeat(length - 2));
    let paths = [
        ("/d".repeat(PATH_LEN / 2), 0),
        (format!("{}/e", "/d".repeat(PATH_LEN / 2 - 1)), 2),
        (format!("{}/leaf", "/d".repeat((PATH_LEN - 5) / 2)), 1),
        (wide(255), 3),
        (format!("{}{}", wide(255), wide(255)), 3),
        (format!("{}/leaf", wide(255)), 1),
        (format!("/x{}", wide(255)), 0),
        (format!("{}y/leaf", wide(254)), 1),
        (format!("{}y", wide(254)), 0),
        ("/".to_owned(), 0),
    ];
    let threads: Vec<Thread> = paths
        .iter()
        .map(|(path, _)| in_cgroup(path.clone()))
        .collect();
    for (thread, (path, rule)) in threads.iter().zip(&paths) {
        assert_eq!(image.classify(thread).rule, *rule, "{path}");
    }
    let taken = compare(&mut Probe::load(), &image, &threads, "paths");
    assert_eq!(taken, paths.iter().filter(|(_, rule)| *rule != 0).count());
}

/// A name that the kernel cut in the middle of a character, and bytes that are no text at all.
fn t03_names_are_bytes() {
    let (_, image) = compiled(
        r#"
version = 1
default = "background"
[[rule]]
pool = "critical"
thread = { exact = "process-name-t\u00f6\u00f6" }
[[rule]]
pool = "critical"
thread = { regex = '\xff+x?' }
[[rule]]
pool = "critical"
thread = "a?b"
"#,
    );
    let names: [(&[u8], u16); 7] = [
        (b"process-name-t\xc3", 1),
        (b"process-name-t", 0),
        (b"process-name-t\xc2", 0),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            2,
        ),
        (b"\xffx", 2),
        (b"a\x80b", 3),
        (b"a\xc3\xb6b", 0),
    ];
    let threads: Vec<Thread> = names.iter().map(|(name, _)| Thread::named(name)).collect();
    for (thread, (name, rule)) in threads.iter().zip(names) {
        assert_eq!(image.classify(thread).rule, rule, "{name:x?}");
    }
    compare(&mut Probe::load(), &image, &threads, "bytes");
}

/// The size of policy that is promised: every table of the image is in use, and large.
fn sixteen_thousand_names_and_many_patterns() {
    let (_, image) = compiled(&large_policy());
    let mut threads = Vec::new();
    for i in 0..256 {
        let name = match i % 4 {
            0 => format!("n{:05}", i * 62),
            1 => format!("x{i}has{:02}y", i % 80),
            2 => format!("pre{:02}-{i}", i % 80),
            _ => format!("{i}-suf{:02}", i % 80),
        };
        let cgroup = match i % 3 {
            0 => format!("/a/x{:02}.service/b{i}", i % 70),
            1 => format!("/top/u{:02}/c", i % 70),
            _ => format!("/k/p{i}/d-{i}.scope"),
        };
        threads.push(Thread {
            cgroup: cgroup.into_bytes(),
            ..Thread::named(name.as_bytes())
        });
    }
    let taken = compare(&mut Probe::load(), &image, &threads, "large");
    assert!(
        (128..256).contains(&taken),
        "{taken} of 256: all or none prove little"
    );
}

/// 16,000 exact names, 190 patterns of names and 120 of cgroups, each kind in a rule of its own.
fn large_policy() -> String {
    let mut text = "version = 1\ndefault = \"background\"\n".to_owned();
    let mut rule = |condition: &str, patterns: Vec<String>| {
        let list = patterns.join(", ");
        writeln!(
            text,
            "[[rule]]\npool = \"critical\"\n{condition} = [{list}]"
        )
        .expect("a string takes every write");
    };
    let each = |count: usize, pattern: fn(usize) -> String| (0..count).map(pattern).collect();
    rule(
        "cgroup",
        each(60, |i| format!("\"/**/x{i:02}.service/**\"")),
    );
    rule(
        "cgroup",
        each(60, |i| format!("{{ under = \"/top/u{i:02}\" }}")),
    );
    rule("thread", each(16_000, |i| format!("\"n{i:05}\"")));
    rule("thread", each(60, |i| format!("\"*has{i:02}*\"")));
    rule(
        "thread",
        each(60, |i| format!("{{ prefix = \"pre{i:02}\" }}")),
    );
    rule("thread", each(60, |i| format!("\"*suf{i:02}\"")));
    rule(
        "process",
        each(10, |i| format!("{{ regex = \"^(n|x)[0-9]*{i}$\" }}")),
    );
    text
}

/// Kernel functions that the program can do without, and the series that first has each. Their
/// absence changes behaviour silently, so a mistake in a declaration must not look like absence.
const KFUNCS: &[(&str, (u32, u32))] = &[
    ("bpf_iter_scx_dsq_new", (6, 12)),
    ("bpf_iter_scx_dsq_next", (6, 12)),
    ("bpf_iter_scx_dsq_destroy", (6, 12)),
    ("scx_bpf_dsq_move", (6, 13)),
    ("scx_bpf_dsq_insert", (6, 13)),
    ("scx_bpf_dsq_insert_vtime", (6, 13)),
    ("scx_bpf_dsq_move_to_local", (6, 13)),
    ("scx_bpf_now", (6, 14)),
    ("scx_bpf_dsq_insert___v2", (6, 19)),
    ("__scx_bpf_dsq_insert_vtime", (6, 19)),
    ("scx_bpf_task_set_slice", (6, 19)),
    ("scx_bpf_reenqueue_local___v2", (6, 19)),
    ("scx_bpf_dsq_move_to_local___v2", (7, 1)),
];

/// The others that the program calls: every kernel has them, or old ones alone.
const OTHER_KFUNCS: &[&str] = &[
    "scx_bpf_create_dsq",
    "scx_bpf_kick_cpu",
    "scx_bpf_test_and_clear_cpu_idle",
    "scx_bpf_get_idle_cpumask",
    "scx_bpf_get_idle_smtmask",
    "scx_bpf_put_idle_cpumask",
    "scx_bpf_task_cpu",
    "bpf_cgroup_ancestor",
    "bpf_cgroup_release",
    "scx_bpf_dispatch",
    "scx_bpf_dispatch_vtime",
    "scx_bpf_consume",
    "scx_bpf_dispatch_from_dsq",
    "scx_bpf_reenqueue_local",
];

fn what_the_kernel_offers_is_used() {
    if matches!(kernel_series(), (7, 1 | 2)) {
        println!("skipped: builds of 7.1 and 7.2 describe some kernel functions wrongly");
        return;
    }
    let _probe = Probe::load();
    let log = load_log();
    let resolved: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("resolved to "))
        .filter_map(|line| line.split('\'').nth(1))
        .collect();
    println!("resolved: {resolved:?}");
    let is_resolved = |name: &str| {
        let variant = |symbol: &&&str| symbol.strip_prefix(name).is_some_and(is_flavour);
        resolved.iter().any(|symbol| variant(&symbol))
    };
    let btf = std::fs::read("/sys/kernel/btf/vmlinux").expect("the kernel has BTF");
    let known: HashSet<&[u8]> = btf.split(|byte| *byte == 0).collect();
    let is_known = |name: &str| known.contains(name.as_bytes());
    for (name, since) in KFUNCS {
        if kernel_series() >= *since {
            assert!(is_known(name), "this kernel should have {name}");
        }
    }
    let all = KFUNCS.iter().map(|(name, _)| name).chain(OTHER_KFUNCS);
    for name in all {
        assert_eq!(is_resolved(name), is_known(name), "{name}: {resolved:?}");
    }
}

/// libbpf drops what follows the last `___`: our names for two prototypes of one function.
fn is_flavour(suffix: &str) -> bool {
    suffix.is_empty()
        || suffix
            .strip_prefix("___")
            .is_some_and(|flavour| !flavour.contains("___"))
}
