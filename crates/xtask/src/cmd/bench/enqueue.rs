//! What a wake costs in the program, with a small policy and with the largest that is promised.

use super::{Args, GuestFile, Scenario};
use crate::table::Table;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write;

pub const SCENARIO: Scenario = Scenario {
    name: "enqueue",
    about: "instructions of the kernel program's callbacks a call, two threads on one CPU that wake \
            each other, under a policy of 1 rule and one of 256 rules with 16,000 exact names",
    columns: "Guest instructions a call, with what the kernel's own measuring of a call takes (some tens, \
              the same in every column). Unchanged: nothing that a class depends on changed since the last \
              call. Classified anew: each thread has renamed itself before each sleep, its cgroup is known.",
    cpus: 2,
    shift: SHIFT,
    files,
    command,
    summary,
};

/// A nanosecond is an instruction.
const SHIFT: u8 = 0;
/// Rules of the large policy.
const RULES: usize = 256;
/// Its exact names.
const NAMES: usize = 16_000;

fn files(_: &Args) -> Result<Vec<GuestFile>> {
    Ok(vec![
        ("/one.toml", policy(1, 1)),
        ("/many.toml", policy(RULES, NAMES)),
    ])
}

/// Every rule takes its part of the names, in cgroups below the root.
fn policy(rules: usize, names: usize) -> String {
    let mut text = "version = 1\ndefault = \"background\"\n".to_owned();
    for rule in 0..rules {
        let part = (rule * names / rules)..((rule + 1) * names / rules);
        let list: Vec<String> = part.map(|name| format!("\"name-{name}\"")).collect();
        let list = list.join(", ");
        let weight = 100 + rule % 2;
        write!(
            text,
            "[[rule]]\nname = \"r{rule}\"\npool = \"critical\"\nweight = {weight}\n\
             thread = [{list}]\ncgroup = {{ under = \"/\" }}\n"
        )
        .expect("a string takes every write");
    }
    text
}

fn command(args: &Args) -> Vec<String> {
    let rounds = if args.quick { "1000" } else { "10000" };
    // Of the first rules, of the last ones, and of none.
    let names = "name-N,name-159N,nobody-N";
    let words = [
        "twopool-load",
        "cost",
        "--policy",
        "/one.toml",
        "--policy",
        "/many.toml",
    ];
    let more = ["--rounds", rounds, "--names", names];
    words
        .iter()
        .chain(&more)
        .map(|word| (*word).to_owned())
        .collect()
}

fn summary(args: &Args, lines: &[Value]) -> Result<Table> {
    let mut table = Table::new(&[
        "callback",
        "1 rule, unchanged",
        "large, unchanged",
        "ratio",
        "1 rule, classified anew",
        "large, classified anew",
    ]);
    let find = |policy: &str, renames: bool| {
        let is_it = |line: &&Value| line["policy"] == policy && line["renames"] == renames;
        let line = lines.iter().find(is_it);
        let line = line.with_context(|| format!("no measurement of {policy}"))?;
        line["callbacks"].as_object().context("no callbacks")
    };
    let all = [
        find("/one.toml", false)?,
        find("/many.toml", false)?,
        find("/one.toml", true)?,
        find("/many.toml", true)?,
    ];
    for name in all[0].keys() {
        let costs = all.map(|line| line.get(name).and_then(|cost| cost["mean_ns"].as_f64()));
        // A callback that one of them did not need is not compared.
        let [Some(a), Some(b), Some(c), Some(d)] = costs else {
            continue;
        };
        let costs = [a, b, c, d].map(|ns| ns / f64::from(1 << args.shift.unwrap_or(SHIFT)));
        let text = |cost: f64| format!("{cost:.0}");
        table.row(vec![
            name.trim_start_matches("on_").to_owned(),
            text(costs[0]),
            text(costs[1]),
            format!("{:.3}", costs[1] / costs[0]),
            text(costs[2]),
            text(costs[3]),
        ]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_policy_has_what_is_promised() {
        let text = policy(RULES, NAMES);
        assert_eq!(text.matches("[[rule]]").count(), RULES);
        assert_eq!(text.matches("\"name-").count(), NAMES);
        assert!(text.contains("\"name-15999\""));
    }
}
