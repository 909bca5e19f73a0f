//! One file per command.

pub mod bench;
pub mod fuzz;
pub mod run;
pub mod test;
pub mod vm;
