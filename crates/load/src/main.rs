//! Load generator.
fn main() {}
