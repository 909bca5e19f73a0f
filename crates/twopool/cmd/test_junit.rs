//! What `test` found as JUnit XML.
//!
//! Invariant: the document is well-formed XML 1.0 whatever the names of tests and rules hold. That
//! has no way to write most control characters, so they appear as people read them: `\u{1b}`.

use std::fmt::Write;

/// The tests of one policy.
pub(super) struct Suite {
    /// The policy.
    pub name: String,
    /// In order.
    pub cases: Vec<Case>,
}

/// One test.
pub(super) struct Case {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a test; texts are for people.
pub(super) enum Outcome {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed(String),
    /// It could not be asked.
    Error(String),
}

impl Suite {
    fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.cases.iter().filter(|case| is(&case.outcome)).count()
    }

    fn counts(&self) -> [usize; 3] {
        [
            self.cases.len(),
            self.count(|outcome| matches!(outcome, Outcome::Failed(_))),
            self.count(|outcome| matches!(outcome, Outcome::Error(_))),
        ]
    }
}

/// The document of all policies.
pub(super) fn junit(suites: &[Suite]) -> String {
    let all = suites.iter().map(Suite::counts);
    let total = all.fold([0; 3], |a, b| [0, 1, 2].map(|i| a[i] + b[i]));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    put(
        &mut out,
        &format!("<testsuites name=\"twopool\"{}>", counts(total)),
    );
    for suite in suites {
        let name = escaped(&suite.name);
        put(
            &mut out,
            &format!("  <testsuite name=\"{name}\"{}>", counts(suite.counts())),
        );
        for case in &suite.cases {
            put(&mut out, &element(&name, case));
        }
        put(&mut out, "  </testsuite>");
    }
    put(&mut out, "</testsuites>");
    out
}

fn put(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("a string takes every write");
}

fn counts([tests, failures, errors]: [usize; 3]) -> String {
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"")
}

fn element(suite: &str, case: &Case) -> String {
    let name = escaped(&case.name);
    let head = format!("    <testcase classname=\"{suite}\" name=\"{name}\"");
    let (tag, text) = match &case.outcome {
        Outcome::Passed => return format!("{head}/>"),
        Outcome::Failed(text) => ("failure", escaped(text)),
        Outcome::Error(text) => ("error", escaped(text)),
    };
    format!("{head}>\n      <{tag} message=\"{text}\"/>\n    </testcase>")
}

/// Text as an attribute's value.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A reader takes a bare newline or tab in an attribute for a blank.
            '\n' | '\t' => write!(out, "&#{};", u32::from(c)).expect("a string takes every write"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.extend(c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_written_and_read_back() {
        let name = "a<b> & \"c\" 'd' ]]>\n\té\u{1b}\u{0}\u{fffe}";
        let suites = [Suite {
            name: "p&q.toml".into(),
            cases: vec![
                Case {
                    name: name.into(),
                    outcome: Outcome::Passed,
                },
                Case {
                    name: "x".into(),
                    outcome: Outcome::Failed("<got>".into()),
                },
                Case {
                    name: "y".into(),
                    outcome: Outcome::Error("bad".into()),
                },
            ],
        }];
        let text = junit(&suites);
        let document = roxmltree::Document::parse(&text).expect("well-formed");
        let suite = document
            .root_element()
            .first_element_child()
            .expect("a suite");
        let counts = ["tests", "failures", "errors"].map(|name| suite.attribute(name));
        assert_eq!(counts, ["3", "1", "1"].map(Some));
        assert_eq!(suite.attribute("name"), Some("p&q.toml"));
        let cases: Vec<_> = suite.children().filter(|node| node.is_element()).collect();
        let expected = "a<b> & \"c\" 'd' ]]>\n\té\\u{1b}\\u{0}\\u{fffe}";
        assert_eq!(cases[0].attribute("name"), Some(expected));
        let inner = [1, 2].map(|i: usize| cases[i].first_element_child().expect("an outcome"));
        assert_eq!(
            inner.map(|node| node.tag_name().name().to_owned()),
            ["failure", "error"]
        );
        assert_eq!(inner[0].attribute("message"), Some("<got>"));
    }
}
