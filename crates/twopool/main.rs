//! The twopool program.
fn main() {}
