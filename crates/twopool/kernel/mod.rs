//! The kernel side.
pub mod preflight;
pub mod topology;
