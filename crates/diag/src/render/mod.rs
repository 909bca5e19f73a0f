//! Diagnostics for people and for programs. Pure: text in, text out.

mod human;
mod json;

pub use human::{human, summary_line};
pub use json::{
    CheckDocument, DiagnosticJson, PlaceJson, RangeJson, RelatedJson, TestCounts, diagnostics,
};
