//! Globs and regexes.

use crate::common::{codes, compiled, named, other_codes, policy, report, rule_of, takes};
use twopool_diag::Code;

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
    assert_eq!(other_codes(&out), [Code::LooksLikeRegex]);
    let out = policy("[[rule]]\npool = \"critical\"\nthread = { regex = 'kworker/*' }");
    assert_eq!(other_codes(&out), [Code::LooksLikeGlob]);
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
    assert!(compiled(text).is_valid());
}

/// The reference says what anchors mean and what is refused.
#[test]
fn anchors_mean_the_ends_and_look_around_is_refused() {
    for regex in ["^srv$", r"\Asrv\z", "(?m)srv", "srv$"] {
        let condition = format!("thread = {{ regex = '{regex}' }}");
        assert!(takes(&condition, &named("srv")), "{regex}");
        assert!(!takes(&condition, &named("srv\n")), "{regex}");
        assert!(!takes(&condition, &named("a srv")), "{regex}");
    }
    for regex in [
        r"\bsrv",
        r"srv\B",
        r"\b{start}srv",
        "(?m)^srv",
        "(?m)srv$",
        "(?=s)srv",
        "(?!x)srv",
        "(?<=s)rv",
        "(?<!s)rv",
        r"(s)rv\1",
    ] {
        let rule = format!("[[rule]]\npool = 'critical'\nthread = {{ regex = '{regex}' }}\n");
        let out = compiled(format!("version = 1\ndefault = 'background'\n{rule}"));
        assert_eq!(codes(&out), [Code::InvalidRegex], "{regex}");
    }
}
