//! One file per command.

pub mod bench;
pub mod run;
pub mod test;
pub mod vm;
