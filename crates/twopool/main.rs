//! The twopool program.
mod cli;
mod exit;
mod kernel;
mod output;
fn main() {}
