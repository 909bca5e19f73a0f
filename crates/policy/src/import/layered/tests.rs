//! What each matcher becomes, and what is said where it becomes nothing.

use serde_json::{Value, json};

use super::*;

fn block_of(matchers: Value) -> Verdict {
    let value = json!({ "name": "x", "matches": [matchers], "kind": { "Open": {} } });
    let layer = json::layer(&value).expect("a layer");
    block::read(&layer.matches[0])
}

fn conditions(matchers: Value) -> Vec<String> {
    match block_of(matchers.clone()) {
        Verdict::Block(block) => block.lines(),
        other => panic!("{matchers}: {other:?}"),
    }
}

fn imported(value: &Value) -> Imported {
    import(&Source {
        name: "l.json".to_owned(),
        bytes: serde_json::to_vec_pretty(value).expect("JSON"),
    })
}

#[test]
fn each_matcher_with_a_counterpart_has_its_condition() {
    let table = [
        (
            json!([{"CommPrefix": "srv-"}]),
            r#"thread = { prefix = "srv-" }"#,
        ),
        (
            json!([{"PcommPrefix": "ads"}]),
            r#"process = { prefix = "ads" }"#,
        ),
        (
            json!([{"CommPrefixExclude": "ab"}]),
            r#"not = { thread = { prefix = "ab" } }"#,
        ),
        (
            json!([{"CgroupPrefix": "a.slice/"}]),
            r#"cgroup = { under = "/a.slice" }"#,
        ),
        (
            json!([{"CgroupPrefix": "a.slice/b"}]),
            r"cgroup = { regex = '/a\.slice/b.*' }",
        ),
        (
            json!([{"CgroupPrefix": "/"}]),
            r#"cgroup = { exact = "/" }"#,
        ),
        (
            json!([{"CgroupSuffix": ".service/"}]),
            r"cgroup = { regex = '/.*\.service' }",
        ),
        (
            json!([{"CgroupContains": "docker"}]),
            r#"cgroup = { regex = "/.*docker.*" }"#,
        ),
        (
            json!([{"CgroupContains": "/x/"}]),
            r#"cgroup = { regex = "/.*/x(?:/.*)?" }"#,
        ),
        (
            json!([{"CgroupPrefix": "a/b"}, {"CgroupSuffix": "b/"}]),
            r#"cgroup = { regex = "/(?:a/b.*b|a/b)" }"#,
        ),
        (json!([{"NiceAbove": 0}]), "nice = { min = 1 }"),
        (json!([{"NiceBelow": 0}]), "nice = { max = -1 }"),
        (json!([{"NiceAbove": -6}, {"NiceBelow": -4}]), "nice = -5"),
        (json!([{"NiceEquals": 5}]), "nice = 5"),
        (json!([{"UIDEquals": 1000}]), "user = 1000"),
        (json!([{"GIDEquals": 0}]), "group = 0"),
        (json!([{"IsGroupLeader": false}]), "leader = false"),
        (json!([{"IsKthread": true}]), "kthread = true"),
    ];
    for (matchers, expected) in table {
        assert_eq!(conditions(matchers.clone()), [expected], "{matchers}");
    }
}

#[test]
fn matchers_that_ask_nothing_become_nothing() {
    for matcher in [
        json!({"CommPrefix": ""}),
        json!({"CgroupPrefix": ""}),
        json!({"CgroupSuffix": "/"}),
        json!({"CgroupContains": "/"}),
        json!({"NiceAbove": -21}),
        json!({"NiceBelow": 20}),
        json!({"CommPrefixExclude": "longer-than-a-name"}),
    ] {
        assert_eq!(conditions(json!([matcher])), [""; 0], "{matcher}");
    }
}

#[test]
fn a_block_that_takes_no_thread_is_told_from_one_that_cannot_be_said() {
    for matchers in [
        json!([{"CommPrefix": "longer-than-a-name"}]),
        json!([{"CommPrefix": "a"}, {"CommPrefix": "b"}]),
        json!([{"CommPrefix": "ab"}, {"CommPrefixExclude": "a"}]),
        json!([{"CommPrefixExclude": ""}]),
        json!([{"CgroupPrefix": "/a"}]),
        json!([{"CgroupPrefix": "a/../b/"}]),
        json!([{"CgroupSuffix": "a"}]),
        json!([{"CgroupContains": "a//b"}]),
        json!([{"CgroupPrefix": "/"}, {"CgroupSuffix": "a/"}]),
        json!([{"NiceAbove": 19}]),
        json!([{"NiceAbove": 3}, {"NiceEquals": 3}]),
        json!([{"UIDEquals": 1}, {"UIDEquals": 2}]),
        json!([{"GIDEquals": 4294967295_i64}]),
        json!([{"IsKthread": true}, {"IsKthread": false}]),
    ] {
        assert!(
            matches!(block_of(matchers.clone()), Verdict::Never(_)),
            "{matchers}"
        );
    }
    for matchers in [
        json!([{"PIDEquals": 1}]),
        json!([{"CommPrefix": "a"}, {"AvgRuntime": [1, 2]}]),
        json!([{"CgroupPrefix": "a/"}, {"CgroupContains": "b"}]),
        json!([{"CgroupRegex": "a\\b"}]),
    ] {
        assert!(
            matches!(block_of(matchers.clone()), Verdict::Inexpressible(_)),
            "{matchers}"
        );
    }
    for matchers in [
        json!([{"CommPrefx": "a"}]),
        json!([{"UIDEquals": "root"}]),
        json!([{"CgroupRegex": "("}]),
    ] {
        assert!(
            matches!(block_of(matchers.clone()), Verdict::Malformed(_)),
            "{matchers}"
        );
    }
}

#[test]
fn names_excluded_for_thread_and_process_are_not_one_not() {
    let lines = conditions(json!([{"CommPrefixExclude": "a"}, {"PcommPrefixExclude": "bc"}]));
    assert_eq!(
        lines,
        [
            "process = { regex = \"(?:[^b].*|b(?:[^c].*)?)?\" }",
            "not = { thread = { prefix = \"a\" } }",
        ]
    );
}

#[test]
fn a_search_becomes_a_pattern_only_where_the_mount_point_does_not_matter() {
    let regex = |text: &str| block_of(json!([{ "CgroupRegex": text }]));
    for (text, expected) in [
        ("docker-", r"cgroup = { regex = '.*(?u:(?:docker\-)).*' }"),
        (
            "^/sys/fs/cgroup/web",
            "cgroup = { regex = \"(?u:(?:/web)).*\" }",
        ),
        (
            ".service",
            r"cgroup = { regex = '.*(?u:(?:[\x{0}-\x{9}\x{b}-\x{10ffff}](?:service))).*' }",
        ),
        ("x$", "cgroup = { regex = \".*(?u:x)\" }"),
    ] {
        match regex(text) {
            Verdict::Block(block) => assert_eq!(block.lines(), [expected]),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in [
        "cgroup",
        "^docker",
        "p/web",
        "/",
        "a*",
        "^/sys/fs/cgroup",
        "^/sys/fs/cgroup/",
        "a|^b",
        "./service",
    ] {
        assert!(matches!(regex(text), Verdict::Inexpressible(_)), "{text}");
    }
}

#[test]
fn a_layer_that_loses_a_block_keeps_the_others_and_one_that_loses_all_has_no_rule() {
    let out = imported(&json!([
        { "name": "half", "matches": [[{"CommPrefix": "a"}], [{"TGIDEquals": 7}]], "kind": { "Open": {} } },
        { "name": "none", "matches": [[{"UsedGpuPid": true}]], "kind": { "Open": { "preempt": true } } },
        { "name": "template", "template": {"CgroupSuffix": "x"}, "matches": [[]], "kind": { "Open": {} } },
        { "name": "rest", "matches": [[]], "kind": { "Grouped": { "util_range": [0.5, 0.6], "weight": 300 } } },
    ]));
    assert_eq!((out.read, out.kept, out.rules), (4, 2, 2), "{}", out.policy);
    let left_out: Vec<&str> = out
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::LeftOut)
        .map(|note| note.text.as_str())
        .collect();
    assert!(
        left_out[0].contains("`half`: block 2: TGIDEquals"),
        "{left_out:?}"
    );
    assert!(
        left_out[1].contains("`none`: block 1: UsedGpuPid"),
        "{left_out:?}"
    );
    assert!(
        left_out[2].contains("`template`: its template"),
        "{left_out:?}"
    );
    assert!(
        !out.policy.contains("pool = \"critical\""),
        "{}",
        out.policy
    );
    assert!(out.policy.contains("weight = 300"), "{}", out.policy);
}

#[test]
fn what_cannot_be_read_is_malformed_with_its_line_and_the_rest_is_imported() {
    let text = "[\n{\"name\": \"a\", \"matches\": [[]], \"kind\": {\"Open\": {}}},\n{\"name\": \"b\"},\n{]";
    let out = import(&Source {
        name: "l.json".to_owned(),
        bytes: text.into(),
    });
    let places: Vec<usize> = out
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::Malformed)
        .map(|note| note.place.as_ref().map_or(0, |(_, line)| *line))
        .collect();
    assert_eq!(places, [3, 4], "{:?}", out.notes);
    assert_eq!((out.read, out.kept, out.rules), (3, 1, 1));
    for text in ["", "{}", "[]", "[{}", "[{} {}]", "[{}] x", "[,]"] {
        let out = import(&Source {
            name: "l.json".to_owned(),
            bytes: text.into(),
        });
        assert!(out.is_malformed(), "{text}");
    }
}

/// Texts of up to three of these characters.
fn texts() -> Vec<String> {
    let mut all = vec![String::new()];
    for length in 0..3 {
        let longest: Vec<String> = all.iter().filter(|t| t.len() == length).cloned().collect();
        all.extend(
            longest
                .iter()
                .flat_map(|t| ["a", "b", "/"].map(|c| format!("{t}{c}"))),
        );
    }
    all
}

/// Paths of up to three components.
fn paths() -> Vec<String> {
    let mut all = vec![String::new()];
    for depth in 0..3 {
        let deepest: Vec<String> = all
            .iter()
            .filter(|path| path.matches('/').count() == depth)
            .cloned()
            .collect();
        all.extend(deepest.iter().flat_map(|path| {
            ["a", "b", "ab", "ba", "aa"].map(|component| format!("{path}/{component}"))
        }));
    }
    all[0] = "/".to_owned();
    all
}

/// Whether a path fits the value of a `cgroup` condition.
fn fits(value: &str) -> impl Fn(&str) -> bool + use<> {
    let table: toml::Table = toml::from_str(&format!("x = {value}")).expect("TOML");
    let (form, text) = table["x"]
        .as_table()
        .and_then(|t| t.iter().next())
        .expect("a form");
    let text = text.as_str().expect("a string");
    let whole = match form.as_str() {
        "exact" => regex::escape(text),
        "under" => format!("{}(?:/.*)?", regex::escape(text)),
        "regex" => text.to_owned(),
        other => panic!("no form {other}"),
    };
    let regex = regex::bytes::Regex::new(&format!("^(?s-u:{whole})$")).expect("a regex");
    move |path| regex.is_match(path.as_bytes())
}

/// Every beginning with every end, and every part, over every path: also where they overlap.
#[test]
fn questions_about_paths_are_answered_as_scx_layered_answers_them() {
    let (texts, paths) = (texts(), paths());
    let check = |matchers: Value, expected: &dyn Fn(&str) -> bool| {
        let value = match block_of(matchers.clone()) {
            Verdict::Block(block) => block.conditions.first().map(|(_, value)| value.clone()),
            Verdict::Never(_) => Some("{ regex = \"never\" }".to_owned()),
            other => panic!("{matchers}: {other:?}"),
        };
        let fits = fits(&value.unwrap_or_else(|| "{ regex = \".*\" }".to_owned()));
        for path in &paths {
            let seen = format!("{}/", &path[1..]);
            assert_eq!(fits(path), expected(&seen), "{matchers} {path}");
        }
    };
    for text in &texts {
        check(json!([{ "CgroupContains": text }]), &|path| {
            path.contains(text.as_str())
        });
        for end in &texts {
            check(
                json!([{ "CgroupPrefix": text }, { "CgroupSuffix": end }]),
                &|path| path.starts_with(text.as_str()) && path.ends_with(end.as_str()),
            );
        }
    }
}
