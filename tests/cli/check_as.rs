//! `check --as DEST FILE`: the policy as it would be.

use crate::{POLICY, Place};

fn configured() -> Place {
    let place = Place::empty();
    place.write("etc/policy.toml", POLICY);
    place
}

#[test]
fn a_drop_in_that_does_not_exist_yet_is_judged_with_the_whole_policy() {
    let place = configured();
    place.write(
        "tmp/candidate",
        "[[rule]]\nname = \"debug\"\npool = \"critical\"\nthread = \"x\"\n",
    );
    // Valid in itself but for the name, which only the policy file shows to be taken.
    let run = place
        .run("check --policy etc/policy.toml --as etc/policy.d/50-x.toml tmp/candidate")
        .ends_with(1);
    assert!(
        run.stderr.contains("error[duplicate-name]"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("etc/policy.d/50-x.toml:2:8"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("tmp/candidate"), "{}", run.stderr);
    assert_eq!(
        run.stdout,
        "etc/policy.toml with tmp/candidate as etc/policy.d/50-x.toml: not valid: 1 error\n"
    );
    assert!(!place.path().join("etc/policy.d").exists());
}

#[test]
fn the_file_in_place_is_replaced_and_the_other_drop_ins_stay() {
    let place = configured();
    place.write("etc/policy.d/50-x.toml", "not TOML at all [");
    place.write(
        "etc/policy.d/60-y.toml",
        "[[rule]]\npool = \"background\"\nthread = \"y\"\n",
    );
    place.write(
        "candidate",
        "[[rule]]\npool = \"background\"\nthread = \"x\"\n",
    );
    let arguments = "check --policy etc/policy.toml --as etc/policy.d/50-x.toml candidate";
    let run = place.run(arguments).ends_with(0);
    assert!(run.stdout.contains(": ok, 5 rules"), "{}", run.stdout);
    // The policy is found by the destination alone.
    let run = place
        .run("check --as etc/policy.d/50-x.toml candidate")
        .ends_with(0);
    assert!(run.stdout.contains(": ok, 5 rules"), "{}", run.stdout);
    // A link to /dev/null that would be replaced switches nothing off any more.
    std::fs::remove_file(place.path().join("etc/policy.d/50-x.toml")).expect("removed");
    std::os::unix::fs::symlink("/dev/null", place.path().join("etc/policy.d/50-x.toml"))
        .expect("linked");
    let run = place.run(arguments).ends_with(0);
    assert!(run.stdout.contains(": ok, 5 rules"), "{}", run.stdout);
}

#[test]
fn the_policy_file_itself_can_be_stood_in_for() {
    let place = configured();
    place.write(
        "etc/policy.d/10-x.toml",
        "[[rule]]\npool = \"background\"\nthread = \"x\"\n",
    );
    place.write("candidate", "version = 1\ndefalt = \"background\"\n");
    let arguments = "check --policy etc/policy.toml --as etc/policy.toml candidate";
    let run = place
        .run(&format!("{arguments} --format json"))
        .ends_with(1);
    let found = &run.json()["diagnostics"][0];
    assert_eq!(found["range"]["filename"], "etc/policy.toml");
    place.write("candidate", POLICY);
    let run = place.run(arguments).ends_with(0);
    assert!(
        run.stdout
            .starts_with("candidate as etc/policy.toml: ok, 4 rules"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_candidate_may_come_on_standard_input() {
    let place = configured();
    let arguments = ["check", "--as", "etc/policy.d/50-x.toml", "-"];
    let text = b"[[rule]]\npool = \"fast\"\n";
    let run = place.run_args(&arguments, text).ends_with(1);
    assert!(
        run.stderr.contains("etc/policy.d/50-x.toml:2:8"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_is_missing_or_makes_no_sense_is_said() {
    let place = configured();
    place.write("candidate", "");
    place.write("elsewhere/policy.d/1.toml", "");
    for (arguments, code) in [
        ("check --as etc/policy.d/50-x.toml none", 66),
        ("check --as elsewhere/policy.d/50-x.toml candidate", 66),
        ("check --as etc/policy.d/50-x.toml etc", 66),
        ("check --as etc/policy.d/50-x.conf candidate", 64),
        ("check --as etc/policy.d/50-x.toml", 64),
        ("check --as etc candidate", 64),
        ("check --as - candidate", 64),
        ("check --as etc/policy.d/50-x.toml candidate candidate", 64),
    ] {
        let run = place.run(arguments).ends_with(code);
        assert!(
            run.stderr.starts_with("error: "),
            "{arguments}: {}",
            run.stderr
        );
        let run = place
            .run(&format!("{arguments} --format json"))
            .ends_with(code);
        assert!(run.json()["error"]["message"].is_string(), "{arguments}");
    }
}

/// Whatever host this is: with sched_ext it is silent, without it says so in every format.
#[test]
fn k08_the_host_is_asked_only_if_told_to() {
    let place = Place::with(POLICY);
    place.run("check policy.toml").ends_with(0);
    let run = place.run("check policy.toml --host --format json");
    let document = run.json();
    match run.code {
        Some(0) => assert_eq!(document["valid"], true),
        Some(69) => assert!(document["error"]["code"].is_string(), "{document}"),
        _ => panic!("{run:#?}"),
    }
    // A policy that is wrong everywhere is said to be so first.
    place.write("bad.toml", "version = 2\ndefault = \"background\"\n");
    let run = place
        .run("check bad.toml --host --format json")
        .ends_with(1);
    assert_eq!(run.json()["valid"], false);
}

/// Whatever host this is: it loads, or says what stands in the way, and a wrong policy comes first.
#[test]
fn k08_the_kernel_is_asked_only_if_told_to() {
    let place = Place::with(POLICY);
    let run = place.run("check policy.toml --kernel --format json");
    match run.code {
        Some(0) => assert_eq!(run.json()["valid"], true),
        Some(69 | 77) => assert!(run.json()["error"]["code"].is_string(), "{run:#?}"),
        _ => panic!("{run:#?}"),
    }
    place.write("bad.toml", "version = 2\ndefault = \"background\"\n");
    let run = place
        .run("check bad.toml --kernel --format json")
        .ends_with(1);
    assert_eq!(run.json()["valid"], false);
}
