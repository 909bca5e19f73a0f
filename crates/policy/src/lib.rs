//! The policy language, from text to the image that the kernel program reads.
//!
//! `text --parse--> Options --resolve--> Policy --lower--> Image`, one type per stage. Nothing in
//! this crate opens a file, reads a clock or knows a kernel.

pub mod policy;
pub mod thread;
