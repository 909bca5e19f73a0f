//! The kernel side as the event loop knows it: this host's sched_ext.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use twopool_policy::image::Image;
use twopool_policy::policy::Pool;
use twopool_telemetry::KernelInfo;

use super::accounts::RuleBanks;
use super::apply::Publish;
use super::counters::{PoolCounters, ThreadReport};
use super::ejection::Ejection;
use super::preflight::Host;
use super::scheduler::{Attached, Opened};
use super::topology::Topology;
use crate::daemon::event_loop::Engine;
use crate::exit::{Exit, Failure};

/// This host's sched_ext.
pub struct SchedExt {
    host: Host,
    state_directory: PathBuf,
    attached: Option<Attached>,
}

impl SchedExt {
    /// Not attached yet. Logs of refused loads go to `state_directory`.
    pub fn new(host: Host, state_directory: PathBuf) -> Self {
        Self {
            host,
            state_directory,
            attached: None,
        }
    }

    fn attached(&self) -> io::Result<&Attached> {
        self.attached
            .as_ref()
            .ok_or_else(|| io::Error::other("the scheduler is not attached"))
    }
}

impl Engine for SchedExt {
    fn start(&mut self, first: &Image) -> Result<(), Failure> {
        if let Some(obstacle) = self.host.obstacle() {
            return Err(obstacle.failure());
        }
        // Read anew each time: CPUs may have come or gone since the last start.
        let topology = Topology::read(self.host.root()).map_err(|error| {
            Failure::new(
                Exit::Unavailable,
                "topology",
                format!("the host's CPUs cannot be read: {error}"),
            )
        })?;
        let loaded = Opened::open(&self.host, &topology)?.load(&self.state_directory)?;
        self.attached = Some(loaded.attach(&self.host, first)?);
        Ok(())
    }

    fn stop(&mut self) {
        self.attached = None;
    }

    fn slot(&self) -> Option<Arc<dyn Publish>> {
        self.attached
            .as_ref()
            .map(|attached| attached.slot() as Arc<dyn Publish>)
    }

    fn ejection(&self) -> Option<Ejection> {
        self.attached.as_ref()?.ejection()
    }

    fn banks(&self) -> Option<&dyn RuleBanks> {
        self.attached
            .as_ref()
            .map(|attached| attached.counters() as &dyn RuleBanks)
    }

    fn pool(&self, pool: Pool) -> io::Result<(PoolCounters, Vec<u32>)> {
        let attached = self.attached()?;
        Ok((attached.counters().pool(pool)?, attached.owned_cpus(pool)))
    }

    fn threads(&self) -> io::Result<Vec<ThreadReport>> {
        self.attached()?.threads()
    }

    fn kernel(&self) -> KernelInfo {
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        KernelInfo {
            release,
            ops: self.host.attached().unwrap_or_default(),
        }
    }
}
