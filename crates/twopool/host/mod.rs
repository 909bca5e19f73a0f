//! What commands read of the host (files, user names, threads of /proc), and what they ask of it.

pub mod clock;
pub mod facts;
pub mod foreign;
pub mod input;
mod location;
pub mod names;
pub mod namespaces;
pub mod priority;
pub mod procfs;
pub mod saving;
pub mod stand_in;
pub mod threads;
