//! `schema` and `import` from outside: what goes where, and how they end.

use std::path::Path;

use serde_json::Value;

use crate::{Place, Run};

const TYPES: &str = "{ \"type\": \"Game\", \"nice\": -5 }\n";
const RULES: &str = "{ \"name\": \"a-game-with-a-long-name\", \"type\": \"Game\" }\n";
const LAYERS: &str = r#"[
  { "name": "lat", "matches": [[{ "CommPrefix": "srv-" }], [{ "PIDEquals": 7 }]], "kind": { "Open": { "preempt": true } } },
  { "name": "rest", "matches": [[]], "kind": { "Open": {} } }
]"#;

fn ananicy(rules: &str) -> Place {
    let place = Place::empty();
    place.write("rules.d/00-types.types", TYPES);
    place.write("rules.d/deeper/games.rules", rules);
    place.write("rules.d/deeper/notes.txt", "not a rule");
    place
}

/// What was imported is a policy: `check` takes it without an error.
#[track_caller]
fn accepted(place: &Place, policy: &str) -> Run {
    place
        .run_args(&["check", "-"], policy.as_bytes())
        .ends_with(0)
}

#[test]
fn the_schema_is_the_one_in_the_documents() {
    let run = Place::empty().run("schema").ends_with(0);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policy.schema.json");
    assert_eq!(
        run.stdout,
        std::fs::read_to_string(path).expect("the schema")
    );
    assert_eq!(run.stderr, "");
}

#[test]
fn a_directory_of_ananicy_becomes_a_policy_and_a_report() {
    let place = ananicy(RULES);
    let run = place.run("import ananicy rules.d").ends_with(0);
    assert!(
        run.stdout
            .contains("\"a-game-with-a-l\",  # deeper/games.rules:1, Game"),
        "{run:#?}"
    );
    assert!(
        run.stderr
            .contains("`a-game-with-a-long-name` is `a-game-with-a-l`"),
        "{run:#?}"
    );
    assert!(
        run.stderr
            .ends_with("1 of 1 imported, as 1 rule of a policy\n"),
        "{run:#?}"
    );
    accepted(&place, &run.stdout);
    let run = place
        .run("import ananicy rules.d --output policy.toml")
        .ends_with(0);
    assert_eq!(run.stdout, "");
    place
        .run("explain --thread t --process a-game-with-a-long-name --policy policy.toml")
        .ends_with(0);
}

#[test]
fn a_malformed_line_is_named_and_the_others_are_imported() {
    let place = ananicy(&format!("{{ \"name\": \"x\" \"nice\": 1 }}\n{RULES}"));
    let run = place.run("import ananicy rules.d").ends_with(1);
    assert!(
        run.stderr.contains("deeper/games.rules:1: not JSON"),
        "{run:#?}"
    );
    assert!(run.stdout.contains("a-game-with-a-l"), "{run:#?}");
    accepted(&place, &run.stdout);
}

#[test]
fn layers_come_from_a_file_or_standard_input() {
    let place = Place::empty();
    place.write("layers.json", LAYERS);
    let from_file = place.run("import scx_layered layers.json").ends_with(0);
    assert!(
        from_file
            .stderr
            .contains("layers.json:2: `lat`: block 2: PIDEquals"),
        "{from_file:#?}"
    );
    accepted(&place, &from_file.stdout);
    let run = place
        .run_args(&["import", "scx_layered", "-"], LAYERS.as_bytes())
        .ends_with(0);
    assert_eq!(
        run.stdout,
        from_file.stdout.replace("layers.json", "<stdin>")
    );
}

#[test]
fn json_is_one_document_with_the_policy_and_every_note() {
    let place = Place::empty();
    place.write("layers.json", LAYERS);
    let document = place
        .run("import scx_layered layers.json --format json")
        .ends_with(0)
        .json();
    assert_eq!(document["format_version"], "1");
    assert_eq!(
        (&document["read"], &document["kept"], &document["rules"]),
        (&2.into(), &2.into(), &2.into())
    );
    accepted(&place, document["policy"].as_str().expect("a policy"));
    let notes = document["notes"].as_array().expect("notes");
    let left_out: Vec<&Value> = notes
        .iter()
        .filter(|note| note["kind"] == "left-out")
        .collect();
    assert_eq!(left_out.len(), 1, "{document:#}");
    assert_eq!(
        (&left_out[0]["filename"], &left_out[0]["line"]),
        (&"layers.json".into(), &2.into())
    );
}

#[test]
fn what_is_not_there_ends_with_66_and_json_stays_json() {
    let place = Place::empty();
    place.write("empty.d/readme", "");
    for arguments in [
        "import ananicy nowhere",
        "import ananicy empty.d",
        "import scx_layered nowhere.json",
        "import scx_layered empty.d",
    ] {
        let run = place.run(arguments).ends_with(66);
        assert!(
            run.stdout.is_empty() && run.stderr.starts_with("error: "),
            "{run:#?}"
        );
        let run = place
            .run(&format!("{arguments} --format json"))
            .ends_with(66);
        assert_eq!(run.json()["error"]["code"], "no-input");
    }
    let run = place.run("import systemd x").ends_with(64);
    assert!(run.stderr.contains("ananicy, scx_layered"), "{run:#?}");
}

#[test]
fn a_rule_set_beyond_a_limit_says_which_and_ends_with_1() {
    let lines: String = (0..16_385)
        .map(|number| format!("{{ \"name\": \"n{number}\", \"nice\": 1 }}\n"))
        .collect();
    let run = ananicy(&lines).run("import ananicy rules.d").ends_with(1);
    assert!(run.stderr.contains("limit-exceeded"), "{}", run.stderr);
}

/// Names come from files that anybody may have written.
#[test]
fn nothing_in_a_rule_set_acts_on_the_terminal() {
    let rules = "{ \"name\": \"\\u001b[31mred\\u202e\", \"nice\": 1, \"x\\u001b[2J\": 1 }\n";
    let place = ananicy(rules);
    let run = place.run("import ananicy rules.d").ends_with(0);
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
    accepted(&place, &run.stdout);
}
