//! Field cases: complaints of people who do this job, each turned into the right behaviour.
//! Named after the cases; the ones that need a kernel are tested there.

#[path = "../common/mod.rs"]
mod common;
mod files;
mod names;
mod order;
mod paths;
mod patterns;
