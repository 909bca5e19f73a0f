//! What is refused, in whose words, and what still fits.

use twopool_diag::Code;

use super::*;

#[test]
fn patterns_that_no_name_can_match_are_named() {
    for (pattern, needs) in [
        (
            r#"{ prefix = "sixteen-bytes-up" }"#,
            "it needs at least 16 bytes",
        ),
        (r#""*sixteen-bytes-up*""#, "it needs at least 16 bytes"),
        (
            "{ regex = '[a-z]{3}\\d{13,}' }",
            "it needs at least 16 bytes",
        ),
        ("{ regex = 'a{5000}' }", "it needs at least 5000 bytes"),
        ("{ regex = 'a$b' }", "it matches nothing at all"),
    ] {
        let error = error(&rule(&format!("process = {pattern}")));
        assert_eq!(error.code, Code::NeverMatches, "{pattern}");
        assert_eq!(error.label.as_deref(), Some(needs), "{pattern}");
        assert!(error.span.is_some());
    }
    assert!(compiled(&rule(r#"thread = { prefix = "fifteen-bytes--" }"#)).is_valid());
}

#[test]
fn a_pattern_that_never_matches_is_reported_at_each_of_its_places() {
    let twice = rule(r#"thread = "*sixteen-bytes-up*""#).repeat(2);
    let found = compiled(&twice).diagnostics;
    let places: Vec<_> = found
        .iter()
        .filter(|d| d.code == Code::NeverMatches)
        .collect();
    assert_eq!(places.len(), 2);
    assert_ne!(places[0].span, places[1].span);
}

#[test]
fn patterns_too_large_together_name_the_first_and_count_the_others() {
    let error = error(&rule("cgroup = { regex = '/a.*b.{70}' }"));
    assert_eq!(error.code, Code::PatternTooLarge);
    assert_eq!(error.summary, "pattern `/a.*b.{70}` is too large");
    let many: Vec<String> = (0..1000).map(|i| format!("\"*a{i}*b{i}*c{i}*\"")).collect();
    let error = super::error(&rule(&format!("thread = [{}]", many.join(", "))));
    assert_eq!(error.code, Code::PatternTooLarge);
    assert!(
        error
            .summary
            .ends_with("patterns on thread names are too large together")
    );
    assert!(error.span.is_some() && !error.related.is_empty() && error.help.is_some());
}

#[test]
fn as_many_alternatives_as_the_image_has_can_be_told_apart() {
    let any: Vec<String> = (0..128)
        .map(|i| format!("{{ thread = \"n{i}\" }}"))
        .collect();
    let not = "not = { nice = 1, hint = 1, user = 1, group = 1 }";
    let full = rule(&format!("any = [{}]\n{not}", any.join(", ")));
    let image = image(&full);
    let all = Thread {
        nice: 1,
        hint: 1,
        user: 1,
        group: 1,
        ..named("n127")
    };
    assert!(!taken(&image, &all));
    assert!(
        taken(
            &image,
            &Thread {
                group: 2,
                ..all.clone()
            }
        ),
        "the last alternative"
    );
    assert!(!taken(
        &image,
        &Thread {
            group: 2,
            ..named("n128")
        }
    ));
    let error = error(&format!("{full}{}", rule("name = \"one more\"\nnice = 3")));
    assert_eq!(error.code, Code::LimitExceeded);
}

#[test]
fn more_bounds_than_the_table_has_are_refused() {
    let users = |n: usize| {
        let ids: Vec<String> = (0..n).map(|i| (2 * i + 1).to_string()).collect();
        rule(&format!("user = [{}]", ids.join(", ")))
    };
    let image = image(&users(2047));
    assert!(taken(
        &image,
        &Thread {
            user: 4093,
            ..named("x")
        }
    ));
    assert!(!taken(
        &image,
        &Thread {
            user: 4094,
            ..named("x")
        }
    ));
    let error = error(&users(2048));
    assert_eq!(error.code, Code::LimitExceeded);
    assert_eq!(
        error.summary,
        "4097 bounds on `user`, more than the limit of 4096"
    );
}

/// 16,000 exact names and 250 patterns, 60 of them `*x*` on names and 60 `/**/x.service/**`.
fn big_policy() -> String {
    let list = |n: usize, of: &dyn Fn(usize) -> String| -> String {
        (0..n).map(of).collect::<Vec<_>>().join(", ")
    };
    let mut text = String::new();
    for part in 0..20 {
        let names = list(800, &|i| format!("\"w-{part:02}-{i:03}\""));
        text += &rule(&format!("thread = [{names}]"));
    }
    for i in 0..60 {
        text += &rule(&format!(
            "thread = \"*svc{i:02}-*\"\ncgroup = \"/**/svc{i}.service/**\""
        ));
    }
    for i in 0..50 {
        text += &rule(&format!("process = {{ prefix = \"pre{i}\" }}"));
    }
    text += &rule(&format!(
        "process = [{}]",
        list(30, &|i| format!("\"*-suf{i}\""))
    ));
    text += &rule(&format!(
        "cgroup = [{}]",
        list(30, &|i| format!("{{ under = \"/a/b{i}\" }}"))
    ));
    let regexes = list(20, &|i| format!("{{ regex = 'r{i}-\\d+(?:-x)?' }}"));
    text += &rule(&format!("thread = [{regexes}]"));
    text
}

#[test]
fn the_big_policy_compiles() {
    let image = image(&big_policy());
    assert_eq!(image.classify(&named("w-19-799")).rule, 20);
    let thread = Thread {
        cgroup: b"/s/svc7.service/x".to_vec(),
        ..named("a-svc07-b")
    };
    assert_eq!(image.classify(&thread).rule, 28);
    assert!(image.as_bytes().len() < size::POLICY_IMAGE / 2);
}

#[test]
#[ignore = "prints the time and size of the big policy"]
#[expect(
    clippy::disallowed_methods,
    reason = "a report for people, asked for by name"
)]
fn report_big_policy() {
    let text = big_policy();
    let started = std::time::Instant::now();
    let compiled = compiled(&text);
    let whole = started.elapsed();
    let started = std::time::Instant::now();
    let image = crate::lower::lower(&compiled.policy.unwrap()).0.unwrap();
    println!(
        "whole {whole:?}, lowering {:?}, {} KiB",
        started.elapsed(),
        image.as_bytes().len() / 1024
    );
}
