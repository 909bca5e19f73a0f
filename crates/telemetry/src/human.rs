//! The status document as text for people.

use std::fmt::Write;

use crate::sample::{Events, LastReload, ReloadResult, State};
use crate::status::{Pool, Rule, Status};

/// The whole status, ending in a newline.
pub fn status_text(status: &Status) -> String {
    let mut text = String::new();
    headline(&mut text, status);
    if let Some(reload) = &status.last_reload {
        reload_lines(&mut text, reload);
    }
    text.push('\n');
    pool_table(&mut text, status);
    event_lines(&mut text, &status.events);
    if !status.rules.is_empty() {
        text.push('\n');
        rule_table(&mut text, &status.rules);
    }
    text
}

fn headline(text: &mut String, status: &Status) {
    let state = match status.state {
        State::Attached => "attached: this policy schedules the host",
        State::Waiting => "waiting to be attached: the kernel's own scheduler is in charge",
        State::Paused => "paused on request: the kernel's own scheduler is in charge",
        State::Ejected => "ejected by the kernel: its own scheduler is in charge",
    };
    let policy = &status.policy;
    let _ = writeln!(text, "twopool  {state}");
    let _ = writeln!(text, "kernel   {}", status.kernel.release);
    let _ = writeln!(
        text,
        "policy   epoch {}, {}, loaded {}",
        policy.epoch,
        count(u64::from(policy.rules), "rule"),
        policy.loaded_at
    );
    let _ = writeln!(text, "         {}", short_hash(&policy.hash));
    for file in &policy.files {
        let _ = writeln!(text, "         {file}");
    }
}

fn reload_lines(text: &mut String, reload: &LastReload) {
    let outcome = match reload.result {
        ReloadResult::Applied => "applied",
        ReloadResult::Unchanged => "unchanged",
        ReloadResult::Rejected => "REJECTED, the old policy stays",
        ReloadResult::RolledBack => "taken back, the old policy stays",
    };
    let _ = writeln!(text, "reload   {outcome}, {}", reload.at);
    for diagnostic in &reload.diagnostics {
        let field = |name: &str| {
            diagnostic
                .get(name)
                .and_then(|value| value.as_str())
                .unwrap_or_default()
        };
        let place = diagnostic
            .get("range")
            .filter(|range| range.is_object())
            .map(|range| {
                let file = range["filename"].as_str().unwrap_or_default();
                format!(
                    "{file}:{}:{}: ",
                    range["start"]["line"], range["start"]["column"]
                )
            });
        let _ = writeln!(
            text,
            "         {}{}[{}]: {}",
            place.unwrap_or_default(),
            field("severity"),
            field("code"),
            field("summary")
        );
    }
}

fn pool_table(text: &mut String, status: &Status) {
    let _ = writeln!(
        text,
        "{:<12}{:>8}  {:>10}  {:>9}  {:>9}  owns CPUs",
        "POOL", "threads", "CPU time", "wait p50", "wait p99"
    );
    let mut line = |name: &str, pool: &Pool| {
        let _ = writeln!(
            text,
            "{name:<12}{:>8}  {:>10}  {:>9}  {:>9}  {}",
            pool.threads,
            cpu_time(pool.cpu_seconds),
            wait(pool.wait_us.p50),
            wait(pool.wait_us.p99),
            cpu_list(&pool.cpus)
        );
    };
    line("critical", &status.pools.critical);
    line("background", &status.pools.background);
}

/// Only what somebody must do something about.
fn event_lines(text: &mut String, events: &Events) {
    if events.fallback_no_context > 0 {
        let _ = writeln!(
            text,
            "\nmemory was short: {} without a look at the policy",
            count(events.fallback_no_context, "wake")
        );
    }
}

fn rule_table(text: &mut String, rules: &[Rule]) {
    let width = rules
        .iter()
        .map(|rule| rule.name.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(4, 40);
    let _ = writeln!(
        text,
        "{:>4}  {:<width$}  {:>8}  {:>10}  {:>10}  last match",
        "#", "RULE", "threads", "matches", "CPU time"
    );
    for rule in rules {
        let _ = writeln!(
            text,
            "{:>4}  {:<width$}  {:>8}  {:>10}  {:>10}  {}",
            rule.index,
            rule.name,
            rule.threads,
            rule.matches,
            cpu_time(rule.cpu_seconds),
            rule.last_match_at.as_deref().unwrap_or("never")
        );
    }
}

fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Enough of a hash to tell two apart.
fn short_hash(hash: &str) -> &str {
    hash.get(.."sha256:".len() + 16).unwrap_or(hash)
}

/// Up to a minute in seconds, then minutes, then hours.
fn cpu_time(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3600.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn wait(us: Option<u64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if us < 1_000 => format!("{us} us"),
        Some(us) if us < 1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        Some(us) => format!("{:.1} s", us as f64 / 1e6),
    }
}

/// CPUs as the kernel writes lists: `0-3,8`.
fn cpu_list(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == *cpu => *end = *cpu,
            _ => parts.push((*cpu, *cpu)),
        }
    }
    let text = |(start, end): &(u32, u32)| {
        if start == end {
            start.to_string()
        } else {
            format!("{start}-{end}")
        }
    };
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.iter().map(text).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Daemon, Histogram, KernelInfo, PolicyInfo, PoolSample, RuleSample, Sample};

    fn sample() -> Sample {
        let mut wait = Histogram::default();
        wait.add([0, 0, 0, 0, 50, 0, 0, 0, 50]);
        Sample {
            daemon: Daemon {
                state: State::Attached,
                kernel: KernelInfo {
                    release: "6.12.1".into(),
                    ops: "twopool".into(),
                },
                policy: PolicyInfo {
                    epoch: 7,
                    hash: format!("sha256:{}", "0123456789abcdef".repeat(4)),
                    files: vec!["/etc/twopool/policy.toml".into()],
                    rules: 1,
                    loaded_at: "2026-01-02T03:04:05Z".into(),
                },
                last_reload: Some(LastReload {
                    result: ReloadResult::Rejected,
                    at: "2026-01-02T03:05:06Z".into(),
                    diagnostics: vec![json!({
                        "severity": "error", "code": "unknown-key", "summary": "unknown key `wieght`",
                        "range": { "filename": "p.toml", "start": { "line": 4, "column": 1 } },
                    })],
                }),
            },
            pools: [
                PoolSample {
                    cpus: vec![0, 1, 2, 5],
                    threads: 40,
                    cpu_ns: 12_500_000_000,
                    preemptions: 17,
                    wait,
                },
                PoolSample {
                    cpus: vec![],
                    threads: 3,
                    cpu_ns: 7_200_000_000_000,
                    ..PoolSample::default()
                },
            ],
            events: Events {
                grants: 5,
                ..Events::default()
            },
            rules: vec![RuleSample {
                index: 1,
                name: "request path".into(),
                threads: 40,
                matches: 41,
                cpu_ns: 90_000_000_000,
                last_match_at: None,
            }],
        }
    }

    #[test]
    fn text_of_a_whole_status() {
        let expected = "\
twopool  attached: this policy schedules the host
kernel   6.12.1
policy   epoch 7, 1 rule, loaded 2026-01-02T03:04:05Z
         sha256:0123456789abcdef
         /etc/twopool/policy.toml
reload   REJECTED, the old policy stays, 2026-01-02T03:05:06Z
         p.toml:4:1: error[unknown-key]: unknown key `wieght`

POOL         threads    CPU time   wait p50   wait p99  owns CPUs
critical          40     12.50 s       2 us       3 us  0-2,5
background         3       2.0 h          -          -  none

   #  RULE           threads     matches    CPU time  last match
   1  request path        40          41     1.5 min  never
";
        assert_eq!(status_text(&sample().into()), expected);
        let mut starved = sample();
        starved.events.fallback_no_context = 1;
        let text = status_text(&starved.into());
        assert!(
            text.contains("none\n\nmemory was short: 1 wake without"),
            "{text}"
        );
    }

    #[test]
    fn the_document_has_the_public_shape_and_reads_back() {
        let status = Status::from(sample());
        let value = serde_json::to_value(&status).expect("serialises");
        assert_eq!(value["format_version"], "1");
        assert_eq!(value["state"], "attached");
        assert_eq!(value["last_reload"]["result"], "rejected");
        assert_eq!(value["pools"]["critical"]["cpus"], json!([0, 1, 2, 5]));
        assert_eq!(value["pools"]["critical"]["cpu_seconds"], 12.5);
        assert_eq!(value["pools"]["critical"]["preemptions"], 17);
        assert_eq!(value["events"]["grants"], 5);
        assert_eq!(
            value["pools"]["background"]["wait_us"],
            json!({ "p50": null, "p99": null })
        );
        assert_eq!(
            value["rules"][0],
            json!({ "index": 1, "name": "request path", "threads": 40, "matches": 41,
                "cpu_seconds": 90.0, "last_match_at": null })
        );
        assert_eq!(
            serde_json::from_value::<Status>(value).expect("reads back"),
            status
        );
    }
}
