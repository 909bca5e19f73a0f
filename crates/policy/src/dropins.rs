//! Which files make up a policy, and in which order.
//!
//! Pure: it judges names, the caller lists the directory. A link to `/dev/null` is the caller's
//! business too.

use serde::{Deserialize, Serialize};

/// What a file is to the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The policy file itself, which needs `version` and `default`.
    Policy,
    /// A file of `policy.d`.
    DropIn,
    /// The file of tests beside the policy file, which holds nothing else.
    Tests,
}

/// The name of the file of tests beside a policy file: `policy.test.toml` beside `policy.toml`.
/// Nothing for a name that does not end in `.toml`.
pub fn tests_name(policy_name: &[u8]) -> Option<Vec<u8>> {
    let stem = policy_name.strip_suffix(b".toml")?;
    Some([stem, TESTS_END].concat())
}

/// The policy file that a file of tests belongs to, by name.
pub fn policy_name(tests_name: &[u8]) -> Option<Vec<u8>> {
    let stem = tests_name.strip_suffix(TESTS_END)?;
    Some([stem, b".toml"].concat())
}

/// How the name of a file of tests ends.
const TESTS_END: &[u8] = b".test.toml";

/// Whether a file of `policy.d` takes part.
pub fn is_dropin(file_name: &[u8]) -> bool {
    file_name.ends_with(b".toml") && !file_name.starts_with(b".")
}

/// Sort key of a file in the effective order: drop-ins that start with 00 to 49, the policy file,
/// the other drop-ins, tests; each group by file name in byte order. `path` may have directories.
pub fn rank(role: Role, path: &str) -> (u8, Vec<u8>) {
    let name = path.rsplit('/').next().unwrap_or(path).as_bytes().to_vec();
    let early = matches!(name.as_slice(), [b'0'..=b'4', b'0'..=b'9', ..]);
    let group = match role {
        Role::DropIn if early => 0,
        Role::Policy => 1,
        Role::DropIn => 2,
        Role::Tests => 3,
    };
    (group, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_toml_files_take_part() {
        assert!(is_dropin(b"10-ads.toml") && is_dropin(b"x.toml"));
        for name in [
            &b".x.toml"[..],
            b"x.toml~",
            b"x.tom",
            b".x.toml.swp",
            b"toml",
            b"x.TOML",
        ] {
            assert!(!is_dropin(name), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_file_of_tests_has_the_name_of_its_policy() {
        assert_eq!(tests_name(b"policy.toml").unwrap(), b"policy.test.toml");
        assert_eq!(policy_name(b"policy.test.toml").unwrap(), b"policy.toml");
        assert_eq!(
            (tests_name(b"policy"), policy_name(b"policy.toml")),
            (None, None)
        );
    }

    #[test]
    fn the_policy_file_stands_between_49_and_50() {
        let mut files = [
            (Role::DropIn, "d/zz.toml"),
            (Role::DropIn, "d/50-a.toml"),
            (Role::Policy, "00-policy.toml"),
            (Role::DropIn, "d/49-b.toml"),
            (Role::DropIn, "d/9.toml"),
            (Role::DropIn, "d/00-a.toml"),
            (Role::DropIn, "d/Zz.toml"),
            (Role::DropIn, "d/4x.toml"),
        ];
        files.sort_by_key(|(role, path)| rank(*role, path));
        let order: Vec<&str> = files.iter().map(|(_, path)| *path).collect();
        assert_eq!(
            order,
            [
                "d/00-a.toml",
                "d/49-b.toml",
                "00-policy.toml",
                "d/4x.toml",
                "d/50-a.toml",
                "d/9.toml",
                "d/Zz.toml",
                "d/zz.toml"
            ]
        );
    }
}
