//! Diagnostics for people and for programs. Pure: text in, text out.

mod github;
mod human;
mod json;
mod sarif;

pub use github::github;
pub use human::{human, summary_line};
pub use json::{
    CheckDocument, DiagnosticJson, PlaceJson, RangeJson, RelatedJson, TestCounts, diagnostics,
};
pub use sarif::{Checked, sarif};
