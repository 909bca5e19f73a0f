//! What commands read of the host: files, user names, threads of /proc.

pub mod clock;
pub mod facts;
pub mod foreign;
pub mod input;
pub mod names;
pub mod procfs;
pub mod stand_in;
