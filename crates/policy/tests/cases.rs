//! Field cases: complaints of people who do this job, each turned into the right behaviour.
//! Named after the cases; the ones that need a kernel are tested there.

mod common;

use common::{codes, compiled, in_cgroup, named, policy, report, rule_of, takes};
use twopool_diag::Code;
use twopool_policy::compile::{Input, Role, compile};
use twopool_policy::eval::Class;
use twopool_policy::explain::explain;
use twopool_policy::naive::NaiveRegexes;
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
    assert_eq!(codes(&out), [Code::NameTooLong]);
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
        let literal = format!("thread = {{ exact = {} }}", toml_basic(name));
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
        codes(&out),
        [
            Code::LooksLikeLiteral,
            Code::SuspiciousBlank,
            Code::SuspiciousBlank
        ]
    );
}

fn toml_basic(text: &str) -> String {
    format!("\"{}\"", text.replace('\n', "\\n"))
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
    assert_eq!(codes(&out), [Code::NameTooLong]);
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
    assert_eq!(codes(&out), [Code::NameTooLong, Code::WorkqueueSuffix]);
}

#[test]
fn g01_prefix_boundary_and_slash_normalisation() {
    for written in [
        "/system.slice/docker",
        "system.slice/docker",
        "system.slice/docker/",
    ] {
        let under = format!("cgroup = {{ under = \"{written}\" }}");
        assert!(takes(&under, &in_cgroup("/system.slice/docker")));
        assert!(takes(&under, &in_cgroup("/system.slice/docker/y")));
        for other in ["docker.service", "docker-3f9a.scope", "dockerx/y"] {
            assert!(
                !takes(&under, &in_cgroup(format!("/system.slice/{other}"))),
                "{written} {other}"
            );
        }
    }
    for written in ["/a/b", "a/b", "a/b/"] {
        let bare = format!("cgroup = \"{written}\"");
        assert!(
            takes(&bare, &in_cgroup("/a/b")) && !takes(&bare, &in_cgroup("/a/b/c")),
            "{written}"
        );
    }
    assert!(takes("cgroup = \"/\"", &in_cgroup("/")) && !takes("cgroup = \"/\"", &in_cgroup("/a")));
    assert!(takes("cgroup = { under = \"/\" }", &in_cgroup("/")));
    assert!(takes("cgroup = { under = \"/\" }", &in_cgroup("/a/b")));
}

#[test]
fn g02_systemd_escapes_are_plain_bytes() {
    let path =
        r"/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox\x2desr-07dd.scope";
    let thread = in_cgroup(path);
    let base = "/user.slice/user-1000.slice/user@1000.service/app.slice";
    assert!(takes(&format!("cgroup = {{ under = '{path}' }}"), &thread));
    assert!(takes(
        &format!(r"cgroup = '{base}/app-firefox\x2desr-*'"),
        &thread
    ));
    let basic = format!("[[rule]]\npool = \"critical\"\ncgroup = {{ under = \"{path}\" }}");
    let out = policy(&basic);
    assert_eq!(codes(&out), [Code::SuspiciousEscape]);
    assert_eq!(rule_of(&out, &thread), None);
    assert!(report(&out).contains("single quotes"), "{}", report(&out));
    assert!(!takes(
        &format!("cgroup = {{ under = \"{base}/app-firefox-esr-07dd.scope\" }}"),
        &thread
    ));
}

#[test]
fn g06_kubernetes_spellings_of_two_drivers() {
    let regex = "cgroup = { regex = '/kubepods.*burstable.*' }";
    for path in [
        "/kubepods/burstable/pod0a1b-2c/77",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_2c.slice/cri-containerd-77.scope",
    ] {
        assert!(takes(regex, &in_cgroup(path)), "{path}");
    }
    assert!(!takes(
        regex,
        &in_cgroup("/kubepods.slice/kubepods-pod0a1b_2c.slice/cri-containerd-77.scope")
    ));
    let glob = "cgroup = \"/kubepods{.slice/kubepods-burstable.slice,/burstable}/**\"";
    assert!(takes(glob, &in_cgroup("/kubepods/burstable/pod0a1b-2c/77")));
    assert!(takes(
        glob,
        &in_cgroup("/kubepods.slice/kubepods-burstable.slice/x.slice")
    ));
}

#[test]
fn r01_a_regex_matches_the_whole_name() {
    for regex in ["nginx", "^nginx$"] {
        let rule = format!("thread = {{ regex = '{regex}' }}");
        assert!(takes(&rule, &named("nginx")));
        assert!(!takes(&rule, &named("my-nginx-exp")) && !takes(&rule, &named("nginx-debug")));
        assert!(!takes(&rule, &named("NGINX")));
    }
    assert!(takes("thread = { regex = '(?i)nginx' }", &named("NGINX")));
    assert!(
        !takes("thread = { exact = \"nginx\" }", &named("Nginx")),
        "case matters everywhere"
    );
}

#[test]
fn r02_globs_in_regex_fields_and_regexes_in_glob_fields() {
    let out = compiled(
        "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"critical\"\nthread = { regex = '*.arg1.*' }\n",
    );
    assert_eq!(codes(&out), [Code::InvalidRegex]);
    let text = report(&out);
    assert!(
        text.contains("policy.toml:5:21") && text.contains("glob"),
        "{text}"
    );
    let out = policy("[[rule]]\npool = \"critical\"\nthread = \".*src.*\"");
    assert_eq!(codes(&out), [Code::LooksLikeRegex]);
    let out = policy("[[rule]]\npool = \"critical\"\nthread = { regex = 'kworker/*' }");
    assert_eq!(codes(&out), [Code::LooksLikeGlob]);
}

#[test]
fn r03_look_around_names_the_two_rule_form() {
    let out = compiled(
        "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"critical\"\nthread = { regex = '^(?!java).*' }\n",
    );
    assert_eq!(codes(&out), [Code::InvalidRegex]);
    let text = report(&out);
    assert!(
        text.contains("look-around is not available") && text.contains("two rules"),
        "{text}"
    );
    // The form that the help shows.
    let out = policy(
        "[[rule]]\nname = \"x\"\npool = \"background\"\nthread = { prefix = \"java\" }\n\
         [[rule]]\nname = \"rest\"\npool = \"critical\"\n",
    );
    assert_eq!(rule_of(&out, &named("java-1")).as_deref(), Some("x"));
    assert_eq!(rule_of(&out, &named("ruby")).as_deref(), Some("rest"));
    assert!(takes(r"thread = { regex = '(?-u)\xff' }", &named(b"\xff")));
}

#[test]
fn r04_patterns_too_large_or_pathological() {
    let out = compiled(
        "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"critical\"\nthread = { regex = '\\w{1000}{100}' }\n",
    );
    assert_eq!(codes(&out), [Code::PatternTooLarge]);
    assert!(
        report(&out).contains("4194304"),
        "the limit is quoted: {}",
        report(&out)
    );
    let rule = "thread = { regex = '(a+)+$' }";
    assert!(!takes(rule, &named("aaaaaaaaaaaaaab")) && takes(rule, &named("aaaaaaaaaaaaaaa")));
    let names: Vec<String> = (0..8000).map(|i| format!("n{i:05}")).collect();
    let text = format!(
        "version = 1\ndefault = \"background\"\n[[rule]]\npool = \"critical\"\nthread = {{ regex = '{}' }}\n",
        names.join("|")
    );
    let out = compiled(text);
    assert!(
        out.is_valid() || codes(&out) == [Code::PatternTooLarge],
        "{:?}",
        codes(&out)
    );
}

#[test]
fn f01_misspelt_and_misplaced_keys() {
    let out = compiled(
        "version = 1\ndefault = \"background\"\n[pool.critical]\nwieght = 800\n\
         [[rule]]\npool = \"critical\"\ntread = { exact = \"x\" }\n[[rule]]\npool = \"critical\"\npreempt = true\n",
    );
    assert_eq!(codes(&out), [Code::UnknownKey; 3]);
    let text = report(&out);
    for words in [
        "`weight`",
        "`thread`",
        "`[pool.critical]`",
        "policy.toml:4:1",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn f02_duplicates() {
    let out = compiled(
        "version = 1\ndefault = \"background\"\n[pool.critical]\nweight = 1\n[pool.critical]\nslice = \"1ms\"\n",
    );
    assert_eq!(codes(&out), [Code::DuplicateKey]);
    let places: Vec<u32> = out.diagnostics[0]
        .related
        .iter()
        .map(|(s, _)| s.start)
        .collect();
    assert_eq!(places.len(), 1, "both places are named");
    let out = policy(
        "[[rule]]\nname = \"a\"\npool = \"critical\"\nthread = { exact = \"mpd\" }\n\
         [[rule]]\nname = \"b\"\npool = \"background\"\nthread = { exact = \"mpd\" }\n\
         [[rule]]\nname = \"c\"\npool = \"critical\"\nthread = { exact = \"mpd\" }\n",
    );
    assert_eq!(codes(&out), [Code::DuplicateRule, Code::DuplicateRule]);
    let text = report(&out);
    assert!(
        text.contains("rules `a` and `b`") && text.contains("rules `a` and `c`"),
        "{text}"
    );
}

#[test]
fn f03_encoding() {
    let plain = "version = 1\ndefault = \"background\"\n[[rule]]\nname = \"r\"\npool = \"critical\"\nthread = \"\"\"a\nb\"\"\"\n";
    let expected = compiled(plain).policy;
    assert!(expected.is_some());
    let bom = [b"\xef\xbb\xbf", plain.as_bytes()].concat();
    assert_eq!(compiled(bom).policy, expected);
    assert_eq!(
        compiled(plain.replace('\n', "\r\n")).policy,
        expected,
        "CRLF leaves no trace in patterns"
    );
    let inside = plain.replacen("default", "\u{feff}default", 1);
    let out = compiled(inside);
    assert_eq!(codes(&out), [Code::Syntax]);
    assert!(report(&out).contains("0xEF 0xBB 0xBF"), "{}", report(&out));
    let out = compiled(plain.replacen('\n', "\r", 1));
    assert_eq!(codes(&out), [Code::Syntax]);
    assert!(report(&out).contains("0x0D"), "{}", report(&out));
    assert!(
        compiled(plain.replace(" = ", "\t=\t")).is_valid(),
        "tabs are blanks"
    );
}

#[test]
fn f05_time_units() {
    let slice = |text: &str| {
        let out = compiled(format!(
            "version = 1\ndefault = \"background\"\n[pool.critical]\nslice = {text}\n[[rule]]\npool = \"critical\"\nnice = 1\n"
        ));
        out.policy.map(|p| p.pools[0].slice_us)
    };
    assert_eq!(slice("\"20ms\""), Some(20_000));
    assert_eq!(slice("\"20000us\""), Some(20_000));
    assert_eq!(slice("\"0.5ms\""), Some(500));
    for bad in [
        "20",
        "\"20\"",
        "\"20 ms\"",
        "\"1m\"",
        "\"20MS\"",
        "\"-5ms\"",
        "\"\"",
        "\"20msec\"",
    ] {
        assert_eq!(slice(bad), None, "{bad}");
    }
}

#[test]
fn f07_empty_policy_no_rules_unknown_pool() {
    for empty in ["", "# todo\n", "\n\n", "\u{feff}"] {
        assert_eq!(codes(&compiled(empty)), [Code::EmptyPolicy], "{empty:?}");
    }
    let out = compiled("version = 1\ndefault = \"background\"\n[pool.critical]\nweight = 800\n");
    assert!(out.is_valid());
    assert_eq!(codes(&out), [Code::NoRules]);
    let out = compiled("version = 1\ndefault = \"background\"\n[[rule]]\npool = \"fsat\"\n");
    assert_eq!(codes(&out), [Code::UnknownPool]);
    assert_eq!(
        codes(&compiled("version = 1\n[[rule]]\npool = \"critical\"\n")),
        [Code::MissingKey]
    );
}

#[test]
fn f09_limits_and_very_long_lists() {
    let names: Vec<String> = (0..16_000).map(|i| format!("\"n{i:05}\"")).collect();
    let out = policy(&format!(
        "[[rule]]\nname = \"r\"\npool = \"critical\"\nthread = [{}]",
        names.join(", ")
    ));
    assert_eq!(rule_of(&out, &named("n15999")).as_deref(), Some("r"));
    assert_eq!(rule_of(&out, &named("n16000")), None);
    let patterns: String = (0..65)
        .map(|i| format!("[[rule]]\npool = \"critical\"\nthread = {{ regex = 'p{i}-.*' }}\n"))
        .collect();
    assert_eq!(
        rule_of(&policy(&patterns), &named("p64-x")).as_deref(),
        Some("policy:65")
    );
    let any: Vec<String> = (0..200).map(|i| format!("{{ hint = {i} }}")).collect();
    let out = policy(&format!(
        "[[rule]]\npool = \"critical\"\nany = [{}]",
        any.join(", ")
    ));
    assert!(
        rule_of(
            &out,
            &Thread {
                hint: 199,
                ..named("x")
            }
        )
        .is_some()
    );
    let rules: String = (0..257)
        .map(|i| format!("[[rule]]\npool = \"critical\"\nthread = \"t{i}\"\n"))
        .collect();
    let out = compiled(format!("version = 1\ndefault = \"background\"\n{rules}"));
    assert_eq!(codes(&out), [Code::LimitExceeded]);
    let text = report(&out);
    assert!(
        text.contains("257") && text.contains("256") && text.contains("policy.toml:771"),
        "{text}"
    );
}

#[test]
fn p01_the_first_match_wins_in_file_order() {
    let rules = "\
[[rule]]
name = \"A\"
pool = \"background\"
thread = { prefix = \"java\" }
[[rule]]
name = \"B\"
pool = \"critical\"
thread = { exact = \"java\" }
[[rule]]
name = \"C\"
pool = \"background\"
[[rule]]
name = \"D\"
pool = \"critical\"
user = 0
";
    let out = policy(rules);
    assert_eq!(rule_of(&out, &named("java")).as_deref(), Some("A"));
    assert_eq!(rule_of(&out, &named("ruby")).as_deref(), Some("C"));
    assert_eq!(
        codes(&out),
        [Code::UnreachableRule, Code::UnreachableRule],
        "{}",
        report(&out)
    );
    let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
    let thread = named("java");
    let class: Class = image.classify(&thread);
    let why = explain(policy, &NaiveRegexes::new(policy), &thread, class);
    assert_eq!(why.rule.as_ref().map(|r| r.name.as_str()), Some("A"));
    let all: Vec<&str> = why
        .rules
        .iter()
        .filter(|r| r.matched)
        .map(|r| r.name.as_str())
        .collect();
    assert_eq!(
        all,
        ["A", "B", "C", "D"],
        "the winner and all others that match"
    );
    assert!(
        why.human().contains("later rules that match too"),
        "{}",
        why.human()
    );
}

#[test]
fn p01_drop_ins_have_one_order() {
    let file = |name: &str, role, text: &str| Input {
        name: name.into(),
        role,
        bytes: text.as_bytes().to_vec(),
    };
    let rule = |pool: &str| {
        format!(
            "[[rule]]\npool = \"{pool}\"\nthread = \"x\"\n[pool.critical]\nweight = {}\n",
            pool.len()
        )
    };
    let main = format!(
        "version = 1\ndefault = \"background\"\n{}",
        rule("background")
    );
    let mut inputs = vec![
        file("p/policy.toml", Role::Policy, &main),
        file("p/policy.d/49-early.toml", Role::DropIn, &rule("critical")),
        file("p/policy.d/50-late.toml", Role::DropIn, &rule("background")),
        file("p/policy.d/a.toml", Role::DropIn, &rule("critical")),
    ];
    for _ in 0..inputs.len() {
        inputs.rotate_left(1);
        let out = compile(&inputs, &common::TestHost);
        let policy = out.policy.as_ref().expect("valid");
        let names: Vec<&str> = policy.rules.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["49-early:1", "policy:1", "50-late:1", "a:1"]);
        assert_eq!(
            policy.pools[0].weight, 8,
            "what comes first wins for settings too"
        );
    }
}

#[test]
fn p04_conditions_are_anded_lists_are_ored() {
    let rule = "process = { exact = \"python3\" }\ncgroup = { under = \"jobs\" }";
    let thread = |name: &str, cgroup: &str| Thread {
        cgroup: cgroup.as_bytes().to_vec(),
        ..named(name)
    };
    assert!(takes(rule, &thread("python3", "/jobs/7")));
    assert!(!takes(rule, &thread("python3", "/system.slice")));
    assert!(!takes(rule, &thread("perl", "/jobs/7")));
    let list = "process = [\"python3\", { prefix = \"perl\" }]\ncgroup = { under = [\"jobs\", \"/batch\"] }";
    assert!(takes(list, &thread("perl5", "/batch")) && !takes(list, &thread("ruby", "/batch")));
    let out = policy(&format!("[[rule]]\npool = \"critical\"\n{rule}"));
    let (policy, image) = (out.policy.as_ref().unwrap(), out.image.as_ref().unwrap());
    let elsewhere = thread("python3", "/system.slice");
    let why = explain(
        policy,
        &NaiveRegexes::new(policy),
        &elsewhere,
        image.classify(&elsewhere),
    );
    let conditions: Vec<(&str, bool)> = why.rules[0]
        .conditions
        .iter()
        .map(|c| (c.path.as_str(), c.matched))
        .collect();
    assert_eq!(conditions, [("process", true), ("cgroup", false)]);
}

#[test]
fn p04_not_is_refused_as_a_whole_and_any_needs_one() {
    let not = "thread = \"srv-*\"\nnot = { thread = \"srv-debug*\", nice = 5 }";
    let nice = |name: &str, nice| Thread {
        nice,
        ..named(name)
    };
    assert!(takes(not, &nice("srv-debug", 0)) && takes(not, &nice("srv-1", 5)));
    assert!(!takes(not, &nice("srv-debug", 5)));
    let any = "any = [{ thread = \"io-*\" }, { nice = -5 }]";
    assert!(
        takes(any, &nice("io-1", 0)) && takes(any, &nice("x", -5)) && !takes(any, &nice("x", 0))
    );
}
