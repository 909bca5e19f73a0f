//! `check --kernel`: would this host's kernel take the scheduler?
//!
//! Invariant: nothing is attached. What was loaded goes with the process, and a scheduler that runs,
//! ours or another, runs on.

use std::path::Path;

use super::preflight::{Host, Obstacle};
use super::scheduler::Opened;
use super::topology::Topology;
use crate::exit::{Exit, Failure};

/// Has the kernel verify and load a copy of the program, as for this host's CPUs.
///
/// # Errors
/// What the host lacks, or the verifier's verdict; its whole log is in a file in `state_directory`.
pub fn rehearse(host: &Host, state_directory: &Path) -> Result<(), Failure> {
    match host.obstacle() {
        // Only one can be attached, but any number can be loaded.
        None | Some(Obstacle::Attached { .. }) => {}
        Some(obstacle) => return Err(obstacle.failure()),
    }
    let topology = Topology::read(host.root()).map_err(|error| {
        let message = format!("the host's CPUs cannot be read: {error}");
        Failure::new(Exit::Unavailable, "topology", message)
    })?;
    Opened::open(host, &topology)?
        .load(state_directory)
        .map(drop)
}
