//! From counters to what people and programs read: the status document and its text.
//!
//! Pure: the caller brings the numbers, the clock readings and the names; nothing here opens a
//! file, reads a clock or knows a kernel.

mod histogram;
mod human;
mod sample;
mod status;

pub use histogram::{Histogram, WAIT_BUCKETS, bucket_start_ns};
pub use human::status_text;
pub use sample::{
    Daemon, Events, KernelInfo, LastReload, PolicyInfo, PoolSample, ReloadResult, RuleSample,
    Sample, State,
};
pub use status::{FORMAT_VERSION, Pools, Status};
