//! `check --host`: what of a policy cannot work on this host, though the policy is right.
//!
//! Invariant: a fact that cannot be read is unknown, and of the unknown nothing is said.

use std::fs;
use std::path::Path;

use twopool_diag::{Code, Diagnostic};
use twopool_policy::compile::Compiled;
use twopool_policy::policy::{Policy, Pool, Rule};

use super::clock::tick_ns;

/// What a policy depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Microseconds between two ticks of the scheduler.
    tick_us: Option<u64>,
    /// A cgroup v2 hierarchy is mounted.
    cgroup2: Option<bool>,
}

impl Facts {
    /// Of the host below `root`, whose tick is that of the kernel that runs us.
    pub fn read(root: &Path) -> Self {
        let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok();
        Self {
            tick_us: tick_ns().map(|nanoseconds| nanoseconds / 1000),
            cgroup2: mounts.map(|text| text.lines().any(is_cgroup2)),
        }
    }

    /// Adds what is to be said to the findings of a valid policy.
    pub fn judge(self, compiled: &mut Compiled) {
        let Some(policy) = &compiled.policy else {
            return;
        };
        let mut found = Vec::new();
        if let Some(tick_us) = self.tick_us {
            found.extend(short_slices(policy, compiled, tick_us));
        }
        if self.cgroup2 == Some(false) {
            found.extend(cgroup_rules(policy));
        }
        compiled.diagnostics.extend(found);
        compiled.diagnostics.sort_by_place();
    }
}

/// `36 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw`: the type follows the dash.
fn is_cgroup2(mount: &str) -> bool {
    let rest = mount.split_once(" - ").map_or("", |(_, rest)| rest);
    rest.split(' ').next() == Some("cgroup2")
}

/// Slices that somebody wrote; a default is nobody's mistake.
fn short_slices(policy: &Policy, compiled: &Compiled, tick_us: u64) -> Vec<Diagnostic> {
    let pools = Pool::ALL.map(|pool| {
        let path = format!("pool.{}.slice", pool.as_str());
        (path, policy.pools[pool as usize].slice_us)
    });
    let rules = policy.rules.iter().enumerate();
    let rules =
        rules.filter_map(|(i, rule)| Some((format!("rule[{}].slice", i + 1), rule.slice_us?)));
    let short = pools
        .into_iter()
        .chain(rules)
        .filter(|(_, us)| *us < tick_us);
    let written = short.filter_map(|(path, _)| {
        let mut settings = compiled.settings.iter();
        settings.find(|setting| setting.path == path)?.origin
    });
    let tick = format!("{}ms", tick_us as f64 / 1000.0);
    written
        .map(|place| {
            let summary = "a slice shorter than the tick of this host";
            Diagnostic::new(Code::SliceBelowTick, place, summary)
                .label(format!("ends at a tick, and they are {tick} apart"))
                .help(format!("write `slice = \"{tick}\"` or more"))
        })
        .collect()
}

/// The first condition on a cgroup: one finding says it for all.
fn cgroup_rules(policy: &Policy) -> Option<Diagnostic> {
    let tables = policy.rules.iter().flat_map(Rule::tables);
    let first = tables.flat_map(|table| table.patterns("cgroup")).next()?;
    let summary = "rules on cgroups, and no cgroup v2 hierarchy on this host";
    Some(
        Diagnostic::new(Code::NoCgroup2, first.at.0, summary)
            .label("every thread is in the root of the unused hierarchy")
            .help("boot with `systemd.unified_cgroup_hierarchy=1`, or mount cgroup2"),
    )
}

#[cfg(test)]
mod tests {
    use twopool_policy::compile::{Input, Role, compile};

    use super::*;
    use crate::host::names::HostNames;

    const POLICY: &str = "version = 1\ndefault = \"critical\"\n[pool.background]\nslice = \"3ms\"\n\
        [[rule]]\npool = \"background\"\ncgroup = \"/a\"\nslice = \"1ms\"\n\
        [[rule]]\npool = \"background\"\nnot = { cgroup = \"/b\" }\nslice = \"4ms\"\n";

    fn codes(facts: Facts) -> Vec<Code> {
        let input = Input {
            name: "p.toml".to_owned(),
            role: Role::Policy,
            bytes: POLICY.as_bytes().to_vec(),
        };
        let mut compiled = compile(&[input], &HostNames);
        facts.judge(&mut compiled);
        assert!(compiled.is_valid());
        compiled.diagnostics.iter().map(|d| d.code).collect()
    }

    #[test]
    fn slices_that_were_written_are_held_to_the_tick() {
        let with = |tick_us| {
            codes(Facts {
                tick_us,
                cgroup2: None,
            })
        };
        // The default of the critical pool, 3 ms, is nobody's mistake.
        assert_eq!(with(Some(4000)), [Code::SliceBelowTick; 2]);
        assert_eq!(with(Some(1000)), []);
        assert_eq!(with(None), []);
    }

    #[test]
    fn g04_a_host_without_cgroup2_is_named_once() {
        let with = |cgroup2| {
            codes(Facts {
                tick_us: None,
                cgroup2,
            })
        };
        assert_eq!(with(Some(false)), [Code::NoCgroup2]);
        assert_eq!(with(Some(true)), []);
    }

    #[test]
    fn the_type_of_a_mount_decides_and_not_its_name() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let with = |text: &str| {
            fs::create_dir_all(root.path().join("proc/self")).expect("created");
            fs::write(root.path().join("proc/self/mountinfo"), text).expect("written");
            Facts::read(root.path()).cgroup2
        };
        assert_eq!(Facts::read(Path::new("/none-such")).cgroup2, None);
        let v1 = "30 25 0:27 / /sys/fs/cgroup/cgroup2 rw shared:9 - cgroup cgroup2 rw,cpu\n";
        assert_eq!(with(v1), Some(false));
        let hybrid = "31 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(with(&format!("{v1}{hybrid}")), Some(true));
    }
}
