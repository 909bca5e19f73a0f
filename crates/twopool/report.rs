//! What a compiled policy has to say, ready to be shown: the document of `check` and its text.

use serde_json::Value;
use twopool_diag::render::{self, CheckDocument, TestCounts};
use twopool_policy::compile::Compiled;

/// Findings of a reload that the daemon keeps for `status`.
const MOST_KEPT: usize = 100;

/// Findings of one policy in both forms.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The document of `check --format json`.
    pub document: Value,
    /// For people; empty if there is nothing to say.
    pub text: String,
    /// Whether the policy can be loaded.
    pub valid: bool,
    /// Number of warnings.
    pub warnings: usize,
}

impl Report {
    /// Renders a compiled policy's findings.
    pub fn of(compiled: &Compiled, colour: bool) -> Self {
        let (_, warnings) = compiled.counts();
        let tests = TestCounts {
            passed: compiled.tests.passed,
            failed: compiled.tests.failed,
            rules_reached: compiled.tests.rules_reached,
            rules: compiled.tests.rules,
        };
        let document = CheckDocument::new(&compiled.sources, &compiled.diagnostics, tests);
        Self {
            document: serde_json::to_value(document).expect("our documents have string keys"),
            text: render::human(&compiled.sources, &compiled.diagnostics, colour),
            valid: compiled.image.is_some(),
            warnings,
        }
    }

    /// The first diagnostics of the document: enough to act on, and not so many that a file that
    /// is no policy makes every `status` megabytes long.
    pub fn diagnostics(&self) -> Vec<Value> {
        let all = self.document["diagnostics"].as_array();
        all.into_iter().flatten().take(MOST_KEPT).cloned().collect()
    }
}
