//! `explain-code` from outside, and what the command line says to typical mistakes.

use twopool_diag::Code;

use crate::Place;

#[test]
fn a_code_is_explained_with_a_wrong_and_a_right_example() {
    let run = Place::empty()
        .run("explain-code never-matches")
        .ends_with(0);
    assert_eq!(run.stdout, Code::NeverMatches.page());
    assert!(run.stdout.contains("Wrong:") && run.stdout.contains("Right:"));
    assert_eq!(run.stderr, "");
}

#[test]
fn without_a_code_all_are_listed() {
    let place = Place::empty();
    let run = place.run("explain-code").ends_with(0);
    let names: Vec<&str> = run
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let all: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names, all);
    let document = place.run("explain-code --format json").ends_with(0).json();
    assert_eq!(document["format_version"], "1");
    assert_eq!(document["codes"].as_array().map(Vec::len), Some(all.len()));
    assert_eq!(document["codes"][0]["code"], "syntax");
    assert_eq!(document["codes"][0]["severity"], "error");
}

#[test]
fn a_misspelt_code_gets_a_suggestion() {
    let run = Place::empty().run("explain-code never-match").ends_with(64);
    assert!(run.stderr.contains("'never-matches'"), "{}", run.stderr);
    let run = Place::empty()
        .run("explain-code never-match --format json")
        .ends_with(64);
    assert_eq!(run.json()["error"]["code"], "usage");
}

/// They were ignored once, and the answer was about another thread than the one meant.
#[test]
fn properties_of_a_simulated_thread_need_one() {
    let place = Place::with(crate::POLICY);
    place.write("threads.tsv", "thread\nsrv-1\n");
    for arguments in [
        "explain 1 --process x --policy policy.toml",
        "explain --threads threads.tsv --nice 4 --policy policy.toml",
        "explain --process x --policy policy.toml",
    ] {
        let run = place.run(arguments).ends_with(64);
        assert_eq!(run.stdout, "", "{arguments}");
    }
}

#[test]
fn a_name_in_place_of_a_tid_is_told_where_it_belongs() {
    for tid in ["srv-1", "99999999999"] {
        let run = Place::empty().run(&format!("explain {tid}")).ends_with(64);
        assert!(run.stderr.contains("--thread NAME"), "{}", run.stderr);
    }
}

#[test]
fn help_keeps_what_every_command_takes_apart() {
    for command in ["check", "explain", "status", "explain-code"] {
        let run = Place::empty()
            .run(&format!("{command} --help"))
            .ends_with(0);
        let (own, common) = run
            .stdout
            .split_once("Common options:")
            .unwrap_or_else(|| panic!("{}", run.stdout));
        assert!(own.contains("--format"), "{}", run.stdout);
        assert!(!own.contains("--policy-dir"), "{}", run.stdout);
        assert!(common.contains("--log-format"), "{}", run.stdout);
    }
}
