//! Thread and process names.

use crate::common::{named, other_codes, policy, report, rule_of, takes};
use twopool_diag::Code;
use twopool_policy::explain::explain;
use twopool_policy::naive::NaiveRegexes;
use twopool_policy::text::toml_string;
use twopool_policy::thread::Thread;

fn of(thread: &str, process: &str) -> Thread {
    Thread {
        process: process.as_bytes().to_vec(),
        leader: thread == process,
        ..named(thread)
    }
}

#[test]
fn t01_exact_name_longer_than_15_bytes() {
    let out = policy(
        "[[rule]]\nname = \"r\"\npool = \"critical\"\nthread = { exact = \"systemd-resolved\" }",
    );
    assert_eq!(other_codes(&out), [Code::NameTooLong]);
    let text = report(&out);
    assert!(
        text.contains("16 bytes") && text.contains("`systemd-resolve`"),
        "{text}"
    );
    assert_eq!(
        rule_of(&out, &named("systemd-resolve")).as_deref(),
        Some("r")
    );
    assert_eq!(
        rule_of(&out, &named("systemd-resolved")).as_deref(),
        Some("r"),
        "cut like the rule"
    );
    assert_eq!(rule_of(&out, &named("systemd-resolv")), None);
}

#[test]
fn t03_cut_in_the_middle_of_a_character() {
    let out = policy(
        "[[rule]]\nname = \"r\"\npool = \"critical\"\nthread = { exact = \"process-name-töö\" }",
    );
    let kept = b"process-name-t\xc3";
    let thread = named(kept);
    assert_eq!(rule_of(&out, &thread).as_deref(), Some("r"));
    assert_eq!(rule_of(&out, &named("process-name-t")), None);
    assert!(
        report(&out).contains(r"process-name-t\xc3"),
        "{}",
        report(&out)
    );
    let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
    let why = explain(
        policy,
        &NaiveRegexes::new(policy),
        &thread,
        image.classify(&thread),
    );
    assert_eq!(why.thread.thread, r"process-name-t\xc3");
    assert_eq!(why.rules[0].conditions[0].pattern, r"process-name-t\xc3");
}

#[test]
fn t05_spaces_parentheses_slashes_newlines_and_brackets_in_names() {
    let names = [
        "x)) R 1 (",
        "Plex Media Serv",
        "/usr/sbin/postg",
        "runc:[2:INIT]",
        "a\nb",
    ];
    for name in names {
        let literal = format!("thread = {{ exact = {} }}", toml_string(name));
        for other in names {
            assert_eq!(
                takes(&literal, &named(other)),
                name == other,
                "{name:?} against {other:?}"
            );
        }
    }
    assert!(takes("thread = \"kworker/*\"", &named("kworker/u8:3")));
    assert!(
        !takes("thread = \"runc:[2:INIT]\"", &named("runc:[2:INIT]")),
        "a class matches one byte"
    );
    let out = policy("[[rule]]\npool = \"critical\"\nthread = [\"runc:[2:INIT]\", \" x\", \"y \"]");
    assert_eq!(
        other_codes(&out),
        [
            Code::LooksLikeLiteral,
            Code::SuspiciousBlank,
            Code::SuspiciousBlank
        ]
    );
}

#[test]
fn t08_process_name_and_thread_name() {
    let rule = "process = { exact = \"python3.12\" }\nthread = { prefix = \"EngineCore\" }";
    assert!(takes(rule, &of("EngineCore_DP0", "python3.12")));
    assert!(takes(rule, &of("EngineCore_DP1", "python3.12")));
    assert!(!takes(rule, &of("python3.12", "python3.12")));
    assert!(!takes(rule, &of("EngineCore_DP0", "python3.11")));
}

#[test]
fn t09_a_title_from_ps_is_not_a_thread_name() {
    let out =
        policy("[[rule]]\npool = \"critical\"\nthread = { exact = \"nginx: worker process\" }");
    assert_eq!(other_codes(&out), [Code::NameTooLong]);
    assert!(report(&out).contains("/proc/PID/comm"), "{}", report(&out));
    assert_eq!(rule_of(&out, &named("nginx")), None);
    assert!(takes(
        "thread = { prefix = \"gunicorn: \" }",
        &named("gunicorn: worke")
    ));
}

#[test]
fn t11_kernel_thread_names_end_before_the_work_queue() {
    let rows = b"thread\tkthread\nkworker/u8:0-ext4-rsv-conversion\t1\nrcu_exp_par_gp_kthread_worker/0\t1\n";
    let threads = twopool_policy::tsv::read(rows).unwrap();
    let out =
        policy("[[rule]]\nname = \"w\"\npool = \"critical\"\nthread = { glob = \"kworker/u*\" }");
    assert_eq!(rule_of(&out, &threads[0]).as_deref(), Some("w"));
    assert_eq!(threads[0].thread, b"kworker/u8:0");
    assert!(takes("thread = \"rcu_exp_par_gp_\"", &threads[1]));
    let out = policy(
        "[[rule]]\npool = \"critical\"\nthread = { exact = \"kworker/u8:0-events_unbound\" }",
    );
    assert_eq!(
        other_codes(&out),
        [Code::NameTooLong, Code::WorkqueueSuffix]
    );
}
