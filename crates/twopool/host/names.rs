//! User and group names of this host.

use nix::unistd::{Group, User};
use twopool_policy::resolve::Names;

/// Asks the host's name service, once per name and load of a policy.
#[derive(Debug, Clone, Copy)]
pub struct HostNames;

impl Names for HostNames {
    // A name service that fails is a name that nobody knows now: a warning, and the next load of
    // the policy asks again.
    fn user(&self, name: &str) -> Option<u32> {
        User::from_name(name)
            .ok()
            .flatten()
            .map(|user| user.uid.as_raw())
    }

    fn group(&self, name: &str) -> Option<u32> {
        Group::from_name(name)
            .ok()
            .flatten()
            .map(|group| group.gid.as_raw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_zero_and_nonsense_is_nobody() {
        assert_eq!(HostNames.user("root"), Some(0));
        assert_eq!(HostNames.group("root"), Some(0));
        assert_eq!(HostNames.user("no such user"), None);
        assert_eq!(HostNames.user("nul\0inside"), None);
    }
}
