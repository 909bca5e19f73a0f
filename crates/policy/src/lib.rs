//! The policy language, from text to the image that the kernel program reads.
//!
//! `text --parse--> Options --resolve--> Policy --lower--> Image`, one type per stage. Nothing in
//! this crate opens a file, reads a clock or knows a kernel.

// Tests read the corpus and say how long they took.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod automaton;
pub mod compile;
pub mod dropins;
pub mod eval;
pub mod explain;
mod firsts;
#[cfg(any(test, feature = "generate"))]
pub mod generate;
mod glob;
pub mod image;
pub mod import;
pub mod keys;
pub mod limits;
mod lint;
pub mod lower;
pub mod naive;
mod options;
mod pattern;
pub mod policy;
pub mod proof;
pub mod resolve;
pub mod schema;
pub mod suggest;
mod syntax;
pub mod testing;
pub mod text;
pub mod thread;
pub mod tsv;
