//! The daemon: one loop that owns all state, and threads that send it events.
//!
//! Never on a scheduling path: a daemon that is stopped or slow delays reloads and figures.

mod attaching;
pub mod control;
pub mod event_loop;
pub mod protocol;
mod quiet;
pub mod reload;
pub mod reloads;
pub mod signals;
mod slots;
pub mod state;
pub mod status;
pub mod watch;

#[cfg(test)]
mod tests;
