//! What a compiled policy has to say, ready to be shown: the document of `check` and its text.

use serde_json::Value;
use twopool_diag::render::{self, CheckDocument, TestCounts};
use twopool_policy::compile::Compiled;

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

    /// The diagnostics of the document.
    pub fn diagnostics(&self) -> Vec<Value> {
        self.document["diagnostics"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }
}
