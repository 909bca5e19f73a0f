//! The kernel side as the daemon knows it: this host's sched_ext.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use twopool_policy::image::Image;
use twopool_policy::policy::Pool;
use twopool_telemetry::{Events, KernelInfo};

use super::accounts::RuleBanks;
use super::apply::Publish;
use super::counters::{PoolCounters, ThreadReport};
use super::ejection::Ejection;
use super::preflight::Host;
use super::scheduler::{Attached, Opened};
use super::topology::Topology;
use crate::daemon::event_loop::{Attach, Kernel, Scheduler};
use crate::exit::{Exit, Failure};

/// This host's sched_ext.
pub struct SchedExt {
    host: Host,
    state_directory: PathBuf,
}

impl SchedExt {
    /// Logs of refused loads go to `state_directory`.
    pub fn new(host: Host, state_directory: PathBuf) -> Self {
        Self {
            host,
            state_directory,
        }
    }
}

impl Kernel for SchedExt {
    fn load(&self, first: &Image) -> Result<Attach, Failure> {
        if let Some(obstacle) = self.host.obstacle() {
            return Err(obstacle.failure());
        }
        // Read anew each time: CPUs may have come or gone since the last start.
        let topology = Topology::read(self.host.root()).map_err(|error| {
            let exit = Exit::of(&error);
            let message = format!("the host's CPUs cannot be read: {error}");
            Failure::new(exit, "topology", message)
        })?;
        let loaded = Opened::open(&self.host, &topology)?.load(&self.state_directory)?;
        let ready = loaded.publish(first)?;
        let host = self.host.clone();
        Ok(Box::new(move || {
            let attached = ready.attach(&host)?;
            Ok(Box::new(attached) as Box<dyn Scheduler>)
        }))
    }

    fn info(&self) -> KernelInfo {
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

impl Scheduler for Attached {
    fn slot(&self) -> Arc<dyn Publish> {
        self.slot()
    }

    fn ejection(&self) -> Option<Ejection> {
        self.ejection()
    }

    fn banks(&self) -> &dyn RuleBanks {
        self.counters()
    }

    fn pool(&self, pool: Pool) -> io::Result<(PoolCounters, Vec<u32>)> {
        Ok((self.counters().pool(pool)?, self.owned_cpus(pool)))
    }

    fn events(&self) -> io::Result<Events> {
        self.counters().events()
    }

    fn threads(&self) -> io::Result<Vec<ThreadReport>> {
        self.threads()
    }
}
