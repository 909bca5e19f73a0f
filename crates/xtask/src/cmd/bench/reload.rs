//! How soon a saved policy acts on threads that never sleep, and what checking a policy takes.

use super::{Args, GuestFile, Scenario};
use crate::table::Table;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write;

pub const SCENARIO: Scenario = Scenario {
    name: "reload",
    about: "from rename(2) of a policy of 100 rules until every one of 16 threads is under it, which \
            never sleep on 4 CPUs; and `twopool check`, from start to end",
    columns: "Milliseconds, with the 200 for which the daemon waits for a file to settle. An instruction \
              takes 1 ns, whatever it is and whichever CPU executes it: in a reload, 4 busy CPUs share \
              the time, so that each is as fast as a real one with a quarter of an instruction a ns. \
              Machine time is what is left without settling, on CPUs with 1 instruction a ns each; \
              CPUs of today are several times as fast.",
    cpus: CPUS,
    shift: 0,
    files,
    command,
    summary,
};

/// All are busy throughout a reload.
const CPUS: u32 = 4;

/// How long the daemon waits for a file to settle.
const SETTLE_MS: f64 = 200.0;

/// Threads that never sleep.
const THREADS: &str = "16";

fn files(_: &Args) -> Result<Vec<GuestFile>> {
    Ok(vec![
        ("/a.toml", hundred_rules("critical")),
        ("/b.toml", hundred_rules("background")),
        ("/large.toml", large()),
    ])
}

fn head() -> String {
    "version = 1\ndefault = \"background\"\n".to_owned()
}

fn rule(text: &mut String, number: usize, pool: &str, conditions: &str) {
    write!(
        text,
        "[[rule]]\nname = \"r{number}\"\npool = \"{pool}\"\n{conditions}\n"
    )
    .expect("a string takes every write");
}

/// The load's threads are the last rule's.
fn hundred_rules(pool: &str) -> String {
    let mut text = head();
    rule(&mut text, 0, "critical", "process = \"twopool\"\nuser = 0");
    for number in 1..99 {
        let conditions = match number % 3 {
            0 => format!(
                "thread = [\"srv-{number}-*\", \"io-{number}\"]\ncgroup = {{ under = \"/s{number}\" }}"
            ),
            1 => format!("process = \"*-w{number}-*\"\nnice = 5"),
            _ => format!("cgroup = \"/**/unit{number}.service/**\""),
        };
        rule(&mut text, number, "critical", &conditions);
    }
    rule(&mut text, 99, pool, "thread = \"crowd-*\"\nuser = 0");
    text
}

/// 16,000 exact names and 250 patterns, among them 60 that look for a text inside a name and 60 for a
/// unit anywhere in a cgroup's path.
fn large() -> String {
    let mut text = head();
    let list = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(", ")
    };
    let conditions = [
        format!("thread = [{}]", list(16_000, &|i| format!("\"name-{i}\""))),
        format!("thread = [{}]", list(60, &|i| format!("\"*in{i}side*\""))),
        format!(
            "cgroup = [{}]",
            list(60, &|i| format!("\"/**/unit{i}.service/**\""))
        ),
        format!("process = [{}]", list(70, &|i| format!("\"front{i}-*\""))),
        format!(
            "thread = [{}]",
            list(60, &|i| format!("{{ regex = 'r{i}[a-f]+[0-9]*' }}"))
        ),
    ];
    for (number, conditions) in conditions.iter().enumerate() {
        rule(
            &mut text,
            number,
            "critical",
            &format!("{conditions}\nuser = 0"),
        );
    }
    text
}

fn command(args: &Args) -> Vec<String> {
    let rounds = if args.quick { "4" } else { "20" };
    let words = [
        "twopool-load",
        "reloads",
        "--rule",
        "r99",
        "--policy",
        "/a.toml",
        "--policy",
        "/b.toml",
    ];
    let checks = [
        "--check",
        "/a.toml",
        "--check",
        "/large.toml",
        "--rounds",
        rounds,
    ];
    let load = ["--", "--threads", THREADS, "--name", "crowd-N"];
    words
        .iter()
        .chain(&checks)
        .chain(&load)
        .map(|word| (*word).to_owned())
        .collect()
}

fn summary(_: &Args, lines: &[Value]) -> Result<Table> {
    let mut table = Table::new(&["what", "least", "median", "most"]);
    let mut row = |what: &str, times: &dyn Fn(&Value) -> Option<f64>| -> Result<()> {
        let mut times: Vec<f64> = lines.iter().filter_map(times).collect();
        times.sort_by(f64::total_cmp);
        let last = times
            .len()
            .checked_sub(1)
            .with_context(|| format!("no measurement of {what}"))?;
        let text = |ms: f64| format!("{ms:.1}");
        table.row(vec![
            what.to_owned(),
            text(times[0]),
            text(times[last / 2]),
            text(times[last]),
        ]);
        Ok(())
    };
    let machine = |ms: f64| (ms - SETTLE_MS) / f64::from(CPUS);
    for (what, key) in [("published", "published_ms"), ("in effect", "effect_ms")] {
        let what = format!("reload, 100 rules: {what}");
        row(&what, &|line| line[key].as_f64())?;
        row(&format!("{what}, machine time"), &|line| {
            line[key].as_f64().map(machine)
        })?;
    }
    for (what, policy) in [
        ("check, 100 rules", "/a.toml"),
        ("check, 16,000 names and 250 patterns", "/large.toml"),
    ] {
        row(what, &|line| {
            line["wall_ms"].as_f64().filter(|_| line["check"] == policy)
        })?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn policies_are_as_large_as_they_are_said_to_be() {
        assert_eq!(hundred_rules("critical").matches("[[rule]]").count(), 100);
        let large = large();
        assert_eq!(large.matches("\"name-").count(), 16_000);
        let patterns = ["*in", "/**/unit", "\"front", "regex"];
        let counts = patterns.map(|pattern| large.matches(pattern).count());
        assert_eq!(counts, [60, 60, 70, 60]);
    }

    #[test]
    fn reloads_and_checks_are_told_apart() {
        let lines = [
            json!({ "check": "/a.toml", "wall_ms": 1.0 }),
            json!({ "check": "/large.toml", "wall_ms": 50.0 }),
            json!({ "effect_ms": 230.0, "published_ms": 220.0 }),
            json!({ "effect_ms": 210.0, "published_ms": 205.0 }),
        ];
        let args = Args::of("reload");
        let table = summary(&args, &lines).unwrap().text();
        let cells = |what: &str| -> Vec<String> {
            let found = table.lines().find(|line| line.contains(what));
            let cells = found.expect("a row").split_whitespace().rev().take(3);
            cells.map(str::to_owned).collect()
        };
        assert_eq!(cells("in effect "), ["230.0", "210.0", "210.0"]);
        assert_eq!(cells("in effect, machine time"), ["7.5", "2.5", "2.5"]);
        assert_eq!(cells("16,000"), ["50.0", "50.0", "50.0"]);
    }
}
