//! One file per command.

pub mod vm;
