//! scx_layered's layers, judged by code of this file alone: a layer's rules take exactly the threads
//! that its matchers take.

use serde_json::{Value, json};
use twopool_policy::compile::Compiled;
use twopool_policy::generate::{self, Random};
use twopool_policy::import::{NoteKind, Source, layered};
use twopool_policy::thread::Thread;

use crate::{common, folder, layered_sample, read};

/// The name of the rule that takes a thread.
fn rule_of(out: &Compiled, thread: &Thread) -> Option<String> {
    let (policy, image) = (out.policy.as_ref(), out.image.as_ref());
    let class = image.expect("a valid policy").classify(thread);
    let rule = usize::from(class.rule).checked_sub(1)?;
    Some(policy.expect("a valid policy").rules[rule].name.clone())
}

/// Whether a matcher takes a thread; `None`: it is about something that a thread here has not.
fn takes(name: &str, argument: &Value, thread: &Thread) -> Option<bool> {
    let text = argument.as_str().unwrap_or_default();
    let number = argument.as_i64().unwrap_or_default();
    let path = [&thread.cgroup[1..], b"/"].concat();
    let path = String::from_utf8_lossy(&path).into_owned();
    let nice = i64::from(thread.nice);
    Some(match name {
        "CommPrefix" => thread.thread.starts_with(text.as_bytes()),
        "CommPrefixExclude" => !thread.thread.starts_with(text.as_bytes()),
        "PcommPrefix" => thread.process.starts_with(text.as_bytes()),
        "PcommPrefixExclude" => !thread.process.starts_with(text.as_bytes()),
        "CgroupPrefix" => path.starts_with(text),
        "CgroupSuffix" => path.ends_with(text),
        "CgroupContains" => path.contains(text),
        "CgroupRegex" => {
            let directory = format!("/sys/fs/cgroup/{path}");
            regex::Regex::new(text)
                .expect("a regex")
                .is_match(directory.trim_end_matches('/'))
        }
        "NiceAbove" => nice > number,
        "NiceBelow" => nice < number,
        "NiceEquals" => nice == number,
        "UIDEquals" => thread.user == number as u64,
        "GIDEquals" => thread.group == number as u64,
        "IsGroupLeader" => thread.leader == argument.as_bool()?,
        "IsKthread" => thread.kthread == argument.as_bool()?,
        _ => return None,
    })
}

/// Whether a block takes a thread; one with a matcher that is not to be had here takes none.
fn block_takes(block: &Value, thread: &Thread) -> bool {
    block.as_array().expect("a block").iter().all(|matcher| {
        let (name, argument) = matcher
            .as_object()
            .and_then(|m| m.iter().next())
            .expect("a matcher");
        takes(name, argument, thread).unwrap_or(false)
    })
}

/// The name and the `preempt` of the layer that takes a thread.
fn layer_of(layers: &Value, thread: &Thread) -> Option<(String, bool)> {
    let layers = layers.as_array().expect("layers");
    let found = layers.iter().find(|layer| {
        let blocks = layer["matches"].as_array().expect("blocks");
        blocks.iter().any(|block| block_takes(block, thread))
    })?;
    let kind = found["kind"]
        .as_object()
        .and_then(|kind| kind.values().next());
    let preempt = kind.is_some_and(|kind| kind["preempt"] == true);
    Some((found["name"].as_str().expect("a name").to_owned(), preempt))
}

/// Threads near what the sample speaks of.
fn server_threads(count: usize) -> Vec<Thread> {
    let random = &mut Random::new(42);
    let names = [
        "srv-1",
        "srv-debug-3",
        "srv-debu",
        "srv",
        "sr",
        "io-2",
        "io",
        "kworker/0:1",
        "ads",
        "adserver",
        "ad",
        "x",
        "",
    ];
    let paths = [
        "/",
        "/batch.slice",
        "/batch.slice/a",
        "/batch.slicer",
        "/system.slice/job.service",
        "/system.slice/job-7.service",
        "/system.slice/job-7.service/sub",
        "/system.slice/job/x.service",
        "/front",
        "/a/front",
        "/a/front/b",
        "/a/fronts",
        "/ads-12.service",
        "/x/ads-12.service",
        "/ads-12.service/x",
        "/ads-.service",
    ];
    let thread = |random: &mut Random| Thread {
        process: random.pick(&names).as_bytes().to_vec(),
        cgroup: random.pick(&paths).as_bytes().to_vec(),
        user: random.pick(&[0, 1000, 1001]),
        group: random.pick(&[0, 1001]),
        nice: random.pick(&[-20, -1, 0, 1, 19]),
        kthread: random.one_in(3),
        leader: random.one_in(2),
        ..Thread::named(random.pick(&names).as_bytes())
    };
    (0..count).map(|_| thread(random)).collect()
}

#[test]
fn threads_of_the_server_sample_are_in_the_rules_of_their_layers() {
    let layers: Value =
        serde_json::from_slice(&read(&folder().join("layered/server.json"), "").bytes)
            .expect("JSON");
    let imported = layered_sample("server.json");
    let out = common::compiled(&imported.policy);
    let policy = out.policy.as_ref().expect("valid");
    let mut seen = std::collections::BTreeMap::new();
    let mut threads = server_threads(20_000);
    threads.extend(generate::threads(7, policy, 20_000));
    for thread in threads {
        let (layer, preempt) = layer_of(&layers, &thread).expect("the last layer takes everything");
        let rule = rule_of(&out, &thread).expect("and so does its rule");
        let of_rule = rule.split(" (").next().expect("a name");
        assert_eq!(of_rule, layer, "{thread:?}\n{}", imported.policy);
        let found = policy
            .rules
            .iter()
            .find(|r| r.name == rule)
            .expect("the rule");
        assert_eq!(found.pool.as_str() == "critical", preempt, "{rule}");
        *seen.entry(rule).or_insert(0) += 1;
    }
    // Every rule had threads to take, so that none is right by never being asked.
    assert_eq!(seen.len(), policy.rules.len(), "{seen:?}");
}

/// What is left out makes a rule take fewer threads, never others.
#[test]
fn no_rule_of_the_partial_sample_takes_a_thread_that_its_layer_would_not() {
    let layers: Value =
        serde_json::from_slice(&read(&folder().join("layered/partial.json"), "").bytes)
            .expect("JSON");
    let out = common::compiled(&layered_sample("partial.json").policy);
    let policy = out.policy.as_ref().expect("valid");
    for thread in generate::threads(3, policy, 20_000) {
        let rule = rule_of(&out, &thread).expect("the last rule takes everything");
        let name = rule.split(" (").next().expect("a name");
        let layer = layers
            .as_array()
            .expect("layers")
            .iter()
            .find(|l| l["name"] == name);
        let blocks = layer.expect("a layer of that name")["matches"]
            .as_array()
            .expect("blocks")
            .clone();
        assert!(
            blocks.iter().any(|block| block_takes(block, &thread)),
            "{rule}: {thread:?}"
        );
    }
}

/// A text of these pieces.
fn text(random: &mut Random, pieces: &[&str], most: usize) -> String {
    (0..random.below(most + 1))
        .map(|_| random.pick(pieces))
        .collect()
}

fn random_matcher(random: &mut Random) -> Value {
    let name = text(random, &["a", "b", "-"], 3);
    let path = text(random, &["a", "b", "/", "a/", "b/"], 3);
    let regexes = [
        "a",
        "b$",
        "a/b",
        "^/sys/fs/cgroup/a",
        "^/sys/fs/cgroup/b$",
        "[^a]b",
        "/b+/",
        "(a|b)b",
        "b.a",
    ];
    let nice = random.below(42) as i64 - 21;
    match random.below(15) {
        0 => json!({ "CommPrefix": name }),
        1 | 2 => json!({ "CommPrefixExclude": name }),
        3 => json!({ "PcommPrefix": name }),
        4 | 5 => json!({ "PcommPrefixExclude": name }),
        6 | 7 => json!({ "CgroupPrefix": path }),
        8 | 9 => json!({ "CgroupSuffix": path }),
        10 => json!({ "CgroupContains": path }),
        11 => json!({ "CgroupRegex": random.pick(&regexes) }),
        12 => json!({ "NiceAbove": nice }),
        13 => json!({ "NiceBelow": nice }),
        _ => json!({ "IsGroupLeader": random.one_in(2) }),
    }
}

fn random_thread(random: &mut Random) -> Thread {
    let components = ["a", "b", "ab", "ba", "b-", "aab"];
    let depth = random.below(4);
    let path: Vec<&str> = (0..depth).map(|_| random.pick(&components)).collect();
    Thread {
        process: text(random, &["a", "b", "-", "\u{f6}"], 4).into_bytes(),
        cgroup: format!("/{}", path.join("/")).into_bytes(),
        nice: random.below(40) as i8 - 20,
        leader: random.one_in(2),
        ..Thread::named(text(random, &["a", "b", "-", "\u{f6}"], 4).as_bytes())
    }
}

#[test]
fn a_random_block_takes_what_its_matchers_take_or_is_left_out() {
    let random = &mut Random::new(2026);
    let (mut said, mut never, mut left_out) = (0, 0, 0);
    for _ in 0..600 {
        let count = 1 + random.below(3);
        let block: Vec<Value> = (0..count).map(|_| random_matcher(random)).collect();
        let block = Value::Array(block);
        let layers = json!([
            { "name": "it", "matches": [block], "kind": { "Open": { "preempt": true } } },
            { "name": "rest", "matches": [[]], "kind": { "Open": {} } },
        ]);
        let imported = layered::import(&Source {
            name: "l.json".to_owned(),
            bytes: layers.to_string().into_bytes(),
        });
        assert!(!imported.is_malformed(), "{block}: {:?}", imported.notes);
        let out = common::compiled(&imported.policy);
        assert!(
            out.is_valid(),
            "{block}\n{}\n{}",
            imported.policy,
            common::report(&out)
        );
        let note = imported
            .notes
            .iter()
            .find(|note| note.kind == NoteKind::LeftOut);
        match note {
            Some(note) if !note.text.contains("takes no thread") => {
                left_out += 1;
                continue;
            }
            Some(_) => never += 1,
            None => said += 1,
        }
        for _ in 0..100 {
            let thread = random_thread(random);
            let is_taken = rule_of(&out, &thread).as_deref() == Some("it");
            let expected = block_takes(&block, &thread);
            assert_eq!(
                is_taken, expected,
                "{block}\n{thread:?}\n{}",
                imported.policy
            );
        }
    }
    assert!(
        said > 200 && never > 20,
        "{said} said, {never} never, {left_out} left out"
    );
}
