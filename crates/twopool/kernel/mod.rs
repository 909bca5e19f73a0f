//! The kernel side: what the host can do, the scheduler's life cycle, its policy and counters.

pub mod abi;
pub mod accounts;
pub mod apply;
pub mod counters;
pub mod ejection;
pub mod engine;
pub mod libbpf_log;
pub mod preflight;
pub mod rehearsal;
pub mod scheduler;
pub mod topology;
