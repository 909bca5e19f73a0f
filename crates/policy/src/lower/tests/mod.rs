//! From policy text to verdicts, and the limits on the way.

mod limits;

use twopool_diag::Diagnostic;

use crate::compile::{Compiled, Input, Role, compile};
use crate::generate::{Random, policy_text, threads};
use crate::image::{FIELDS, Image, offset, size};
use crate::naive::{self, NaiveRegexes};
use crate::policy::{Pool, Sched};
use crate::resolve::NoNames;
use crate::thread::Thread;

fn compiled(rules: &str) -> Compiled {
    let text = format!("version = 1\ndefault = \"background\"\n{rules}");
    let input = Input {
        name: "p.toml".to_owned(),
        role: Role::Policy,
        bytes: text.into_bytes(),
    };
    compile(&[input], &NoNames)
}

fn image(rules: &str) -> Image {
    let compiled = compiled(rules);
    compiled
        .image
        .unwrap_or_else(|| panic!("{rules}\n{:?}", compiled.diagnostics))
}

/// The only error of rules that cannot be loaded.
fn error(rules: &str) -> Diagnostic {
    let compiled = compiled(rules);
    assert!(compiled.image.is_none());
    let [error] = compiled.diagnostics.kept() else {
        panic!("not one finding: {:?}", compiled.diagnostics)
    };
    error.clone()
}

fn rule(conditions: &str) -> String {
    format!("[[rule]]\npool = \"critical\"\n{conditions}\n")
}

fn named(name: &str) -> Thread {
    Thread::named(name.as_bytes())
}

fn at(path: &str) -> Thread {
    Thread {
        cgroup: path.as_bytes().to_vec(),
        ..named("x")
    }
}

fn taken(image: &Image, thread: &Thread) -> bool {
    image.classify(thread).rule != 0
}

#[test]
fn the_first_matching_rule_gives_pool_slice_weight_and_hints() {
    let image = image(
        r#"
        [pool.background]
        slice = "30ms"
        [[rule]]
        pool = "critical"
        thread = "a*"
        slice = "1ms"
        weight = 300
        hints = true
        [[rule]]
        pool = "background"
        thread = "*"
        "#,
    );
    let class = image.classify(&named("ab"));
    assert_eq!(
        (class.pool, class.rule, class.slice_us),
        (Pool::Critical, 1, 1_000)
    );
    assert_eq!((class.weight, class.hints), (300, true));
    let class = image.classify(&named("b"));
    assert_eq!(
        (class.pool, class.rule, class.slice_us),
        (Pool::Background, 2, 30_000)
    );
    assert_eq!((class.weight, class.hints), (100, false));
}

#[test]
fn without_a_match_the_default_pool_takes_the_thread() {
    let image = image(&rule("nice = -5"));
    let class = image.classify(&named("x"));
    assert_eq!(
        (class.pool, class.rule, class.slice_us),
        (Pool::Background, 0, 20_000)
    );
}

#[test]
fn any_and_not_about_the_same_dimension_are_three_questions_to_one_value() {
    let image = image(&rule(
        r#"
        thread = "*-srv-*"
        any = [ { thread = "a*" }, { thread = "b*", nice = -1 }, { leader = false } ]
        not = { thread = "*-debug", process = "p" }
        "#,
    ));
    let thread = |name: &str, nice: i8, leader: bool, process: &str| Thread {
        nice,
        leader,
        process: process.as_bytes().to_vec(),
        ..named(name)
    };
    assert!(taken(&image, &thread("a-srv-1", 0, true, "p")));
    assert!(!taken(&image, &thread("c-srv-1", 0, true, "p")));
    assert!(taken(&image, &thread("c-srv-1", 0, false, "p")));
    assert!(!taken(&image, &thread("b-srv-1", 0, true, "p")));
    assert!(taken(&image, &thread("b-srv-1", -1, true, "p")));
    assert!(!taken(&image, &thread("a-srv-debug", 0, true, "p")));
    assert!(
        taken(&image, &thread("a-srv-debug", 0, true, "q")),
        "`not` fails only as a whole"
    );
}

#[test]
fn numbers_and_flags_are_negated_at_compile_time() {
    let image = image(&rule(
        r#"not = { user = { min = 1000, max = 1999 }, kthread = true, sched = ["batch", "idle"], hint = { min = 512 } }"#,
    ));
    let all = Thread {
        user: 1999,
        kthread: true,
        sched: Sched::Idle,
        hint: 512,
        ..named("x")
    };
    assert!(!taken(&image, &all));
    for one_differs in [
        Thread {
            user: 2000,
            ..all.clone()
        },
        Thread {
            user: 999,
            ..all.clone()
        },
        Thread {
            kthread: false,
            ..all.clone()
        },
        Thread {
            sched: Sched::Normal,
            ..all.clone()
        },
        Thread {
            hint: 511,
            ..all.clone()
        },
    ] {
        assert!(taken(&image, &one_differs), "{one_differs:?}");
    }
}

#[test]
fn the_root_cgroup_has_a_row_of_its_own() {
    for (cgroup, root, below) in [
        (r#"cgroup = "/""#, true, false),
        (r#"cgroup = "/**""#, true, true),
        (r#"cgroup = "/*""#, false, true),
        (r#"cgroup = { under = "/" }"#, true, true),
        (r#"cgroup = { regex = ".*" }"#, true, true),
        (r#"cgroup = { regex = "/.+" }"#, false, true),
        (r#"cgroup = { regex = "(?:/a)*/?" }"#, true, true),
        (r#"cgroup = { regex = "^$" }"#, false, false),
        (r#"not = { cgroup = "/" }"#, false, true),
        (
            r#"any = [ { cgroup = "/a/**" }, { cgroup = "/" } ]"#,
            true,
            true,
        ),
        ("kthread = false", true, true),
    ] {
        let image = image(&rule(cgroup));
        assert_eq!(taken(&image, &at("/")), root, "{cgroup} on the root");
        assert_eq!(taken(&image, &at("/a")), below, "{cgroup} on /a");
    }
}

#[test]
fn a_full_table_of_exact_names_finds_each_and_no_other() {
    let list = |range: std::ops::Range<usize>| {
        let names: Vec<String> = range.map(|i| format!("\"n{i:05}\"")).collect();
        names.join(", ")
    };
    let image = image(&format!(
        "{}{}",
        rule(&format!("thread = [{}]", list(0..8192))),
        rule(&format!("process = [{}]", list(8192..16384)))
    ));
    for i in (0..8192).step_by(37).chain([0, 8191]) {
        let thread = Thread {
            process: b"p".to_vec(),
            ..named(&format!("n{i:05}"))
        };
        assert_eq!(image.classify(&thread).rule, 1, "{i}");
        let process = format!("n{:05}", i + 8192).into_bytes();
        let thread = Thread {
            process,
            ..named("t")
        };
        assert_eq!(image.classify(&thread).rule, 2, "{i}");
    }
    for absent in [
        "", "n", "n0000", "n000000", "n16384", "m00000", "o00000", "n08192",
    ] {
        let thread = Thread {
            process: b"n00000".to_vec(),
            ..named(absent)
        };
        assert!(!taken(&image, &thread), "{absent}");
    }
}

#[test]
fn a_name_ends_at_its_first_nul() {
    let image = image(&rule(r#"thread = ["abc", "x*z"]"#));
    assert!(taken(&image, &named("abc\0def")));
    assert!(taken(&image, &named("xyz\0q")));
    assert!(!taken(&image, &named("xy\0z")));
}

/// A random policy; not every one is valid.
fn generated(seed: u64) -> Compiled {
    let input = Input {
        name: "p".to_owned(),
        role: Role::Policy,
        bytes: policy_text(seed).into_bytes(),
    };
    compile(&[input], &NoNames)
}

#[test]
fn the_same_policy_always_gives_the_same_bytes() {
    for seed in 0..20 {
        let (one, other) = (generated(seed), generated(seed));
        assert_eq!(one.image, other.image, "seed {seed}");
    }
}

#[test]
fn the_image_decides_as_the_rules_read() {
    let mut valid = 0;
    for seed in 0..150 {
        let compiled = generated(seed);
        let (Some(policy), Some(image)) = (compiled.policy, compiled.image) else {
            continue;
        };
        valid += 1;
        let regexes = NaiveRegexes::new(&policy);
        for thread in threads(seed, &policy, 60) {
            let expected = naive::classify(&policy, &regexes, &thread).map_or(0, |i| i + 1);
            assert_eq!(
                usize::from(image.classify(&thread).rule),
                expected,
                "{seed}: {thread:?}"
            );
        }
    }
    assert!(valid > 75, "only {valid} of the generated policies compile");
}

#[test]
fn damaged_images_are_read_without_panic() {
    let mut random = Random::new(9);
    for seed in 0..40 {
        let compiled = generated(seed);
        let (Some(policy), Some(image)) = (compiled.policy, compiled.image) else {
            continue;
        };
        for thread in threads(seed, &policy, 20) {
            let mut bytes = image.as_bytes().to_vec();
            for _ in 0..1 + random.below(200) {
                let at = offset::WORDS + random.below(bytes.len() - offset::WORDS);
                bytes[at] = random.next_u64() as u8;
            }
            bytes.truncate(offset::WORDS + random.below(bytes.len() - offset::WORDS));
            let class = Image::from_bytes(bytes).classify(&thread);
            assert!(usize::from(class.rule) < crate::image::RULE_SLOTS);
        }
    }
}

#[test]
fn the_layout_has_no_gaps_and_the_header_says_how_much_is_used() {
    let mut end = 0;
    for (name, offset, size) in FIELDS {
        assert_eq!(*offset, end, "{name}");
        end = offset + size;
    }
    assert_eq!(end, size::POLICY_IMAGE);
    let mut image = image(&rule(r#"thread = "a*""#));
    let used = image.u32_at(offset::POOL_USED) as usize;
    assert_eq!(image.as_bytes().len(), offset::POOL + 8 * used);
    image.set_epoch(7);
    assert_eq!((image.epoch(), image.as_bytes()[offset::EPOCH]), (7, 7));
}
