//! Diagnostics as data: spans, codes, `Diagnostic`, and the renderers that turn them into text or
//! JSON.
//!
//! Invariant: nothing here reads a file or prints. A message is general (`summary`), its label
//! specific, and only `help` says how to fix; all are lowercase without a final period.

mod code;
mod findings;
mod printable;
pub mod render;
mod source;

pub use code::{Code, Severity};
pub use findings::{Findings, MAX_KEPT, MAX_KEPT_BYTES};
pub use printable::{printable, printable_lines};
pub use source::{FileId, Position, SourceFile, Sources, Span};

/// One finding about a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of finding; decides the severity.
    pub code: Code,
    /// The problem in one line, without its place: ``unknown key `wieght` ``.
    pub summary: String,
    /// Where, if there is a place. The smallest span that shows it.
    pub span: Option<Span>,
    /// Text under the primary span; specific to the place.
    pub label: Option<String>,
    /// Other places that explain this one, each with its text.
    pub related: Vec<(Span, String)>,
    /// How to fix it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding at a place.
    pub fn new(code: Code, span: impl Into<Option<Span>>, summary: impl Into<String>) -> Self {
        Self {
            code,
            summary: summary.into(),
            span: span.into(),
            label: None,
            related: Vec::new(),
            help: None,
        }
    }

    /// Adds the text under the span.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = Some(text.into());
        self
    }

    /// Adds another place that explains this one.
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, text.into()));
        self
    }

    /// Says how to fix it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Error or warning, by the code.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}
