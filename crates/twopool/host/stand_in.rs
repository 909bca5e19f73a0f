//! A file that stands in for one of a policy's files: what the policy would be once it is put in
//! place.
//!
//! Invariant: diagnostics name the destination, since the candidate is gone before anybody reads
//! them; the destination itself is never opened.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use twopool_policy::compile::{Input, Role};
use twopool_policy::dropins::{is_dropin, policy_name};

use super::input::{self, Location, PolicySet, ReadError};
use crate::exit::{Exit, Failure};

/// A candidate for one file of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// The policy that it belongs to.
    location: Location,
    /// What the destination is to that policy.
    role: Role,
    /// The file that would be replaced; it need not exist.
    destination: PathBuf,
    /// The candidate; `-`: standard input.
    candidate: PathBuf,
}

impl StandIn {
    /// Finds the policy that `destination` belongs to: the one of `--policy` if it is that file or
    /// one of its drop-ins; else the `policy.toml` beside the `policy.d` that it is in; else it is
    /// a policy of its own.
    pub fn new(
        destination: &Path,
        candidate: &Path,
        policy: &Path,
        policy_dir: Option<&Path>,
    ) -> Result<Self, Failure> {
        let refused = |why: &str| {
            let message = format!("--as {}: {why}", destination.display());
            Err(Failure::new(Exit::Usage, "usage", message))
        };
        if destination == Path::new("-") {
            return refused("standard input cannot be replaced; name the file that would be");
        }
        if destination.is_dir() {
            return refused("this is a directory; name the file that would be replaced");
        }
        let of = |location, role| Self {
            location,
            role,
            destination: destination.to_owned(),
            candidate: candidate.to_owned(),
        };
        let configured = Location::of_argument(policy, policy_dir);
        if configured
            .policy
            .as_deref()
            .is_some_and(|p| is_same(p, destination))
        {
            return Ok(of(configured, Role::Policy));
        }
        let folder = parent(destination);
        let is_ours = |ours: &PathBuf| resolved(ours) == resolved(folder);
        let location = if configured.drop_ins.as_ref().is_some_and(is_ours) {
            configured
        } else if folder.file_name() == Some(OsStr::new("policy.d")) {
            Location {
                policy: Some(parent(folder).join("policy.toml")),
                drop_ins: Some(folder.to_owned()),
                is_named: false,
            }
        } else if let Some(location) = tested_by(destination, &configured, policy_dir) {
            return Ok(of(location, Role::Tests));
        } else {
            // Not `of_argument`: the destination is a file, also where a directory has its name.
            let beside = folder.join("policy.d");
            let location = Location {
                policy: Some(destination.to_owned()),
                drop_ins: Some(policy_dir.map_or(beside, Path::to_owned)),
                is_named: policy_dir.is_some(),
            };
            return Ok(of(location, Role::Policy));
        };
        if !file_name(destination).is_some_and(is_dropin) {
            return refused(
                "it would never be read: the name of a drop-in ends in .toml and does not begin with a dot",
            );
        }
        Ok(of(location, Role::DropIn))
    }

    /// Reads the policy's files with the candidate in the destination's place.
    pub fn read(&self) -> Result<PolicySet, ReadError> {
        let candidate = Input {
            name: self.destination(),
            role: self.role,
            bytes: match self.candidate == Path::new("-") {
                true => input::read_stdin()?,
                false => input::read_at_most(&self.candidate, input::TOO_MUCH)?,
            },
        };
        let mut first = vec![candidate];
        if self.role != Role::Policy {
            first.insert(0, self.location.read_policy()?);
        }
        if self.role != Role::Tests {
            first.extend(self.location.read_tests()?);
        }
        let mut drop_ins = self.location.drop_in_files()?;
        if self.role == Role::DropIn {
            drop_ins.retain(|path| path.file_name() != self.destination.file_name());
        }
        PolicySet::with_drop_ins(first, &drop_ins)
    }

    /// The file that would be replaced, for messages.
    pub fn destination(&self) -> String {
        self.destination.display().to_string()
    }

    /// The policy and what stands in for what.
    pub fn label(&self) -> String {
        let candidate = self.candidate.display();
        match self.role {
            Role::Policy => format!("{} as {}", candidate, self.destination.display()),
            Role::DropIn | Role::Tests => format!(
                "{} with {} as {}",
                self.location.label(),
                candidate,
                self.destination.display()
            ),
        }
    }
}

/// The policy that a file of tests is about, if there is one beside it.
fn tested_by(tests: &Path, configured: &Location, policy_dir: Option<&Path>) -> Option<Location> {
    let name = policy_name(file_name(tests)?)?;
    let policy = parent(tests).join(OsStr::from_bytes(&name));
    let location = match &configured.policy {
        Some(path) if is_same(path, &policy) => configured.clone(),
        _ => Location::of_argument(&policy, policy_dir),
    };
    policy.is_file().then_some(location)
}

/// Whether two paths name one file, which need not exist.
fn is_same(a: &Path, b: &Path) -> bool {
    a.file_name() == b.file_name() && resolved(parent(a)) == resolved(parent(b))
}

/// A directory without links where it exists, else as an absolute path.
fn resolved(directory: &Path) -> PathBuf {
    directory
        .canonicalize()
        .or_else(|_| std::path::absolute(directory))
        .unwrap_or_else(|_| directory.to_owned())
}

/// The directory of a path; that of a bare name is `.`.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn file_name(path: &Path) -> Option<&[u8]> {
    path.file_name().map(OsStr::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(destination: &str, policy_dir: Option<&str>) -> (Role, String, String) {
        let stand_in = StandIn::new(
            Path::new(destination),
            Path::new("/tmp/candidate"),
            Path::new("/etc/none-such/site.toml"),
            policy_dir.map(Path::new),
        )
        .expect("a place");
        let drop_ins = stand_in.location.drop_ins.as_ref().expect("a directory");
        (
            stand_in.role,
            stand_in.location.label(),
            drop_ins.display().to_string(),
        )
    }

    #[test]
    fn the_destination_says_what_the_candidate_is() {
        let of =
            |role, policy: &str, drop_ins: &str| (role, policy.to_owned(), drop_ins.to_owned());
        let configured = "/etc/none-such/site.toml";
        let beside = "/etc/none-such/policy.d";
        assert_eq!(
            place(configured, None),
            of(Role::Policy, configured, beside)
        );
        assert_eq!(
            place("/etc/none-such/policy.d/50-x.toml", None),
            of(Role::DropIn, configured, beside)
        );
        assert_eq!(
            place("/srv/d/50-x.toml", Some("/srv/d")),
            of(Role::DropIn, configured, "/srv/d")
        );
        assert_eq!(
            place("/srv/policy.d/50-x.toml", None),
            of(Role::DropIn, "/srv/policy.toml", "/srv/policy.d")
        );
        assert_eq!(
            place("/srv/other.toml", None),
            of(Role::Policy, "/srv/other.toml", "/srv/policy.d")
        );
    }

    #[test]
    fn a_drop_in_that_would_never_be_read_is_refused() {
        for name in ["50-x.conf", ".50-x.toml", "50-x.toml.j2"] {
            let failure = StandIn::new(
                &Path::new("/srv/policy.d").join(name),
                Path::new("x"),
                Path::new("/etc/none-such/policy.toml"),
                None,
            )
            .expect_err("refused");
            assert_eq!(failure.exit, Exit::Usage, "{name}");
        }
    }
}
