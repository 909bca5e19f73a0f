//! Diagnostics in the shape of the public JSON: `check`, `test`, and the verdict of a reload.

use serde::Serialize;

use crate::{Diagnostic, Findings, Sources, Span};

/// What `check` and `test` print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckDocument {
    /// Of this shape.
    pub format_version: &'static str,
    /// No error was found.
    pub valid: bool,
    /// Findings that keep the policy from loading.
    pub error_count: usize,
    /// Findings that do not.
    pub warning_count: usize,
    /// The findings by file and place: all of them, or the first of very many.
    pub diagnostics: Vec<DiagnosticJson>,
    /// Findings that are counted above and not listed; absent where all are listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// What became of the tests.
    pub tests: TestCounts,
}

/// Results of `[[test]]` tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TestCounts {
    /// Tests whose expectation held.
    pub passed: usize,
    /// Tests whose expectation did not hold.
    pub failed: usize,
    /// Rules that took at least one test's thread.
    pub rules_reached: usize,
    /// Rules of the policy.
    pub rules: usize,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiagnosticJson {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// As in the table of codes.
    pub code: &'static str,
    /// The problem in one line.
    pub summary: String,
    /// What is special about the place, and how to fix it.
    pub detail: String,
    /// `null` where there is no place.
    pub range: Option<RangeJson>,
    /// Other places that explain this one.
    pub related: Vec<RelatedJson>,
}

/// Another place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelatedJson {
    /// What it has to do with the finding.
    pub message: String,
    /// Where.
    pub range: RangeJson,
}

/// A range of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RangeJson {
    /// As shown to the user.
    pub filename: String,
    /// First character.
    pub start: PlaceJson,
    /// One past the last.
    pub end: PlaceJson,
}

/// A place as editors count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlaceJson {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// From 0.
    pub byte: u32,
}

impl CheckDocument {
    /// The document of some findings.
    pub fn new(sources: &Sources, found: &Findings, tests: TestCounts) -> Self {
        Self {
            format_version: "1",
            valid: found.errors() == 0,
            error_count: found.errors(),
            warning_count: found.warnings(),
            diagnostics: diagnostics(sources, found.kept()),
            omitted: found.omitted(),
            tests,
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Findings alone, for documents that hold more than these.
pub fn diagnostics(sources: &Sources, found: &[Diagnostic]) -> Vec<DiagnosticJson> {
    found.iter().map(|d| one(sources, d)).collect()
}

fn one(sources: &Sources, d: &Diagnostic) -> DiagnosticJson {
    let detail: Vec<&str> = [d.label.as_deref(), d.help.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    DiagnosticJson {
        severity: d.severity().as_str(),
        code: d.code.as_str(),
        summary: d.summary.clone(),
        detail: detail.join("; "),
        range: d.span.map(|span| range(sources, span)),
        related: d
            .related
            .iter()
            .map(|(span, text)| RelatedJson {
                message: text.clone(),
                range: range(sources, *span),
            })
            .collect(),
    }
}

fn range(sources: &Sources, span: Span) -> RangeJson {
    let place = |byte| {
        let at = sources.position(span.file, byte);
        PlaceJson {
            line: at.line,
            column: at.column,
            byte: at.byte,
        }
    };
    RangeJson {
        filename: sources.file(span.file).name.clone(),
        start: place(span.start),
        end: place(span.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, FileId, MAX_KEPT};

    #[test]
    fn the_document_has_the_public_shape() {
        let mut sources = Sources::default();
        let file = sources.add("p.toml", "version = 1\n\u{e4} = 2\nwieght = 800\n");
        let span = |start, end| Span {
            file: FileId(file.0),
            start,
            end,
        };
        let found = Diagnostic::new(Code::UnknownKey, span(19, 25), "unknown key `wieght`")
            .help("did you mean `weight`?")
            .related(span(12, 14), "a place");
        let document = CheckDocument::new(
            &sources,
            &[found].into_iter().collect(),
            TestCounts::default(),
        );
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["valid"], false);
        assert_eq!(json["error_count"], 1);
        let d = &json["diagnostics"][0];
        assert_eq!(d["code"], "unknown-key");
        assert_eq!(d["detail"], "did you mean `weight`?");
        assert_eq!(
            d["range"]["start"],
            serde_json::json!({"line": 3, "column": 1, "byte": 19})
        );
        assert_eq!(
            d["range"]["end"],
            serde_json::json!({"line": 3, "column": 7, "byte": 25})
        );
        assert_eq!(d["related"][0]["range"]["end"]["column"], 2);
    }

    #[test]
    fn a_document_that_is_cut_says_so_and_another_does_not() {
        let document = |count: usize| {
            let found = (0..count).map(|_| Diagnostic::new(Code::Syntax, None, "x"));
            let document =
                CheckDocument::new(&Sources::default(), &found.collect(), TestCounts::default());
            serde_json::to_value(document).unwrap()
        };
        assert!(document(MAX_KEPT).get("omitted").is_none());
        let cut = document(MAX_KEPT + 7);
        assert_eq!(
            (&cut["omitted"], &cut["error_count"]),
            (&7.into(), &(MAX_KEPT + 7).into())
        );
        assert_eq!(cut["diagnostics"].as_array().unwrap().len(), MAX_KEPT);
    }

    #[test]
    fn a_finding_without_a_place_has_a_null_range() {
        let found = [Diagnostic::new(Code::LimitExceeded, None, "too much text")];
        let found = found.into_iter().collect();
        let document = CheckDocument::new(&Sources::default(), &found, TestCounts::default());
        assert_eq!(
            serde_json::to_value(document).unwrap()["diagnostics"][0]["range"],
            serde_json::Value::Null
        );
    }
}
