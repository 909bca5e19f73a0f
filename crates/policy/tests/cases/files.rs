//! Policy files.

use crate::common::{codes, compiled, named, other_codes, policy, report, rule_of};
use twopool_diag::Code;
use twopool_policy::thread::Thread;

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
    let places: Vec<u32> = out.diagnostics.kept()[0]
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
    assert_eq!(
        other_codes(&out),
        [Code::DuplicateRule, Code::DuplicateRule]
    );
    let text = report(&out);
    assert!(
        text.contains("rules `a` and `b`") && text.contains("rules `a` and `c`"),
        "{text}"
    );
}

#[test]
fn f03_encoding() {
    let plain = "version = 1\ndefault = \"background\"\n\
        [[rule]]\nname = \"r\"\npool = \"critical\"\nthread = \"\"\"a\nb\"\"\"\n";
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
            "version = 1\ndefault = \"background\"\n[pool.critical]\nslice = {text}\n\
             [[rule]]\npool = \"critical\"\nnice = 1\n"
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
