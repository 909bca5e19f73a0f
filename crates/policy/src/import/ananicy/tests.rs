//! The translation of values, and what is said about names.

use super::*;
use crate::import::Note;

fn imported(files: &[(&str, &str)]) -> Imported {
    let sources: Vec<Source> = files
        .iter()
        .map(|(name, text)| Source {
            name: (*name).to_owned(),
            bytes: text.as_bytes().to_vec(),
        })
        .collect();
    import("d", &sources)
}

fn notes(imported: &Imported, kind: NoteKind) -> Vec<String> {
    let of_kind = imported.notes.iter().filter(|note| note.kind == kind);
    of_kind
        .map(|Note { place, text, .. }| match place {
            Some((file, line)) => format!("{file}:{line}: {text}"),
            None => text.clone(),
        })
        .collect()
}

fn of(nice: Option<i8>, latency_nice: Option<i8>, sched: Option<Sched>) -> Option<(Pool, u32)> {
    outcome(&Facts {
        nice,
        latency_nice,
        sched,
    })
    .map(|o| (o.pool, o.weight))
}

#[test]
fn values_become_a_pool_and_a_weight() {
    use Pool::{Background, Critical};
    assert_eq!(of(None, None, None), None);
    assert_eq!(of(Some(0), None, None), Some((Background, 100)));
    assert_eq!(of(Some(-5), None, None), Some((Critical, 305)));
    assert_eq!(of(Some(19), None, None), Some((Background, 1)));
    assert_eq!(of(None, Some(-3), None), Some((Critical, 100)));
    assert_eq!(of(Some(5), Some(-3), None), Some((Critical, 33)));
    assert_eq!(of(Some(-5), None, Some(Sched::Idle)), Some((Background, 1)));
    assert_eq!(
        of(Some(9), None, Some(Sched::Batch)),
        Some((Background, 13))
    );
    assert_eq!(of(None, None, Some(Sched::RealTime)), Some((Critical, 100)));
    assert_eq!(of(None, None, Some(Sched::Normal)), Some((Background, 100)));
}

#[test]
fn a_step_of_nice_is_a_quarter_more_or_less_within_the_range_of_weights() {
    assert_eq!(weight_of_nice(0), 100);
    assert_eq!(weight_of_nice(-1), 125);
    assert_eq!(weight_of_nice(1), 80);
    let all: Vec<u32> = (-20..=19).map(weight_of_nice).collect();
    assert!(all.windows(2).all(|pair| pair[0] >= pair[1]), "{all:?}");
    assert_eq!((all[0], all[39]), (8674, 1));
}

#[test]
fn a_rule_overrides_its_type_wherever_the_type_is_defined() {
    let out = imported(&[
        (
            "a.rules",
            "{\"name\": \"x\", \"type\": \"Game\", \"nice\": 3}\n{\"name\": \"y\", \"type\": \"Game\"}",
        ),
        ("z.types", "{\"type\": \"Game\", \"nice\": -5}"),
    ]);
    assert_eq!((out.read, out.kept, out.rules), (2, 2, 2), "{}", out.policy);
    let (critical, background) = out
        .policy
        .split_once("ananicy, background")
        .expect("two rules");
    assert!(
        critical.contains("\"y\",") && background.contains("\"x\","),
        "{}",
        out.policy
    );
}

#[test]
fn what_is_wrong_with_a_line_is_said_with_its_place_and_the_others_are_imported() {
    let text = "# comment\n\n{\"name\": \"ok\", \"nice\": 1} # fine\n{\"name\": \"\", \"nice\": 1}\nNAME=old NICE=1\n\
        {\"name\": \"x\", \"nice\": 20}\n{\"name\": \"x\", \"sched\": \"fast\"}\n{\"nice\": 3}\n{\"name\": \"x\"} y\n\
        {\"name\": 7}\n{\"name\": \"a\\u0000\"}";
    let out = imported(&[("a.rules", text)]);
    assert_eq!(
        notes(&out, NoteKind::Malformed),
        [
            "a.rules:4: `name` is empty",
            "a.rules:5: not JSON: expected value at column 1",
            "a.rules:6: `nice` is not an integer from -20 to 19",
            "a.rules:7: `sched` knows no class `fast`",
            "a.rules:8: none of `name`, `type` and `cgroup` is there",
            "a.rules:9: something stands behind the object",
            "a.rules:10: `name` is not a string",
            "a.rules:11: `name` has a NUL byte",
        ]
    );
    assert_eq!((out.read, out.kept), (9, 1));
}

#[test]
fn long_names_are_cut_and_those_that_become_one_are_named() {
    let text = "{\"name\": \"JustAnotherGame-x64\", \"nice\": -5}\n{\"name\": \"JustAnotherGame-launcher\", \"nice\": 9}\n\
        {\"name\": \"systemd-resolved\", \"nice\": -1}\n{\"name\": \"systemd-resolve\", \"nice\": -1}";
    let out = imported(&[("a.rules", text)]);
    assert_eq!(notes(&out, NoteKind::Cut).len(), 3);
    assert_eq!(
        notes(&out, NoteKind::Clash),
        [
            "a.rules:1: `JustAnotherGame-x64` (critical, weight 305) gives way to \
            `JustAnotherGame-launcher` (background, weight 13, a.rules:2)"
        ]
    );
    assert!(
        out.policy.contains("\"systemd-resolve\",  # a.rules:3"),
        "{}",
        out.policy
    );
    assert_eq!(out.kept, 3);
}

#[test]
fn of_a_name_that_is_there_twice_the_later_line_counts() {
    let out = imported(&[
        ("a.rules", "{\"name\": \"x\", \"nice\": -5}"),
        ("b.rules", "{\"name\": \"x\", \"nice\": 5}"),
    ]);
    assert_eq!(
        notes(&out, NoteKind::Duplicate),
        ["a.rules:1: `x` is again at b.rules:1"]
    );
    assert!(
        !out.policy.contains("pool = \"critical\""),
        "{}",
        out.policy
    );
}

#[test]
fn what_is_not_about_cpu_time_is_dropped_by_key_and_a_rule_with_nothing_else_by_name() {
    let text = "{\"name\": \"x\", \"ioclass\": \"idle\", \"cgroup\": \"cpu80\", \"colour\": 1}\n\
        {\"name\": \"y\", \"nice\": 1, \"ioclass\": \"idle\"}\n{\"cgroup\": \"cpu80\", \"CPUQuota\": 80}\n\
        {\"name\": \"z\", \"type\": \"Nowhere\"}\n{\"name\": \"w\", \"nice\": 1, \"cmdlines\": [\"a\"]}";
    let out = imported(&[("a.rules", text)]);
    let dropped = notes(&out, NoteKind::Dropped).join("\n");
    for part in [
        "a.rules:1: `x` gets nothing",
        "a.rules:1: `ioclass`, 2 lines",
        "a.rules:1: `cgroup`, 1 line from",
        "a.rules:1: `colour`, 1 line",
        "a.rules:3: `CPUQuota`",
    ] {
        assert!(dropped.contains(part), "{part} is not in\n{dropped}");
    }
    assert_eq!(
        notes(&out, NoteKind::LeftOut),
        [
            "a.rules:5: `w`: `cmdlines` asks for more than a name",
            "a.rules:4: `z`: no file defines the type `Nowhere`",
        ]
    );
}
