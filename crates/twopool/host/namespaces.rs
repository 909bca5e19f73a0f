//! What namespaces hide from us.
//!
//! The scheduler sees whole cgroup paths, and ids of the initial user namespace. /proc shows us paths
//! from the root of our cgroup namespace on, ids as our user namespace maps them, and the thread ids
//! of its own PID namespace.

use std::fs;
use std::path::Path;

use twopool_policy::explain::Unknown;

/// Numbers of the initial namespaces, from the kernel's include/linux/proc_ns.h. They never changed.
const CGROUP: u64 = 0xEFFF_FFFB;
const USER: u64 = 0xEFFF_FFFD;
const PID: u64 = 0xEFFF_FFFC;

/// Which of our namespaces are not the initial ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Cgroup paths are not the scheduler's.
    pub cgroup: bool,
    /// Users and groups are not the scheduler's.
    pub ids: bool,
    /// Thread ids are not the daemon's.
    pub tids: bool,
}

impl Hidden {
    /// For a process that reads this /proc. A kernel without a kind of namespace hides nothing by it.
    pub fn from_us(proc_root: &Path) -> Self {
        let is_other = |kind: &str, initial: u64| {
            let link = fs::read_link(proc_root.join("self/ns").join(kind));
            link.is_ok_and(|link| link != Path::new(&format!("{kind}:[{initial}]")))
        };
        Self {
            cgroup: is_other("cgroup", CGROUP),
            ids: is_other("user", USER),
            tids: is_other("pid", PID),
        }
    }

    /// What is not known of a thread.
    pub fn unknown(self) -> Unknown {
        Unknown {
            cgroup: self.cgroup,
            ids: self.ids,
        }
    }

    /// Why that is so, if anything is; a sentence without its end.
    pub fn reason(self) -> Option<&'static str> {
        match (self.cgroup, self.ids) {
            (false, false) => None,
            (true, false) => Some(
                "this command runs in a cgroup namespace, which hides the cgroup that the scheduler sees",
            ),
            (false, true) => Some(
                "this command runs in a user namespace, which hides the users that the scheduler sees",
            ),
            (true, true) => Some(
                "this command runs in a cgroup and a user namespace, which hide the cgroup and the \
                 users that the scheduler sees",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn hidden(links: &[(&str, u64)]) -> Hidden {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = root.path().join("self/ns");
        fs::create_dir_all(&directory).expect("created");
        for (kind, number) in links {
            symlink(format!("{kind}:[{number}]"), directory.join(kind)).expect("linked");
        }
        Hidden::from_us(root.path())
    }

    #[test]
    fn only_the_initial_namespaces_hide_nothing() {
        assert_eq!(hidden(&[]), Hidden::default());
        let initial = [
            ("cgroup", 4_026_531_835),
            ("pid", 4_026_531_836),
            ("user", 4_026_531_837),
        ];
        assert_eq!(hidden(&initial), Hidden::default());
        assert_eq!(hidden(&initial).reason(), None);
        let inside = hidden(&[("cgroup", 4_026_532_000), ("user", 4_026_531_837)]);
        assert!(inside.cgroup && !inside.ids && !inside.tids);
        assert!(inside.unknown().cgroup && inside.reason().expect("why").contains("cgroup"));
        let inside = hidden(&[("user", 4_026_532_001), ("pid", 4_026_532_002)]);
        assert!(!inside.cgroup && inside.unknown().ids && inside.tids);
    }
}
