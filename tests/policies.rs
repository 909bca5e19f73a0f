//! The policies that we support and show: each compiles without a finding, passes its own tests, and
//! every rule takes some tested thread, so that what people copy from is known to work.

// Policies are files.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};

use twopool_diag::render::human;
use twopool_policy::compile::{Compiled, Input, Role, compile};
use twopool_policy::resolve::Names;

/// A host that has every user, whatever users this machine has.
struct AnyHost;

impl Names for AnyHost {
    fn user(&self, name: &str) -> Option<u32> {
        Some(1000 + name.bytes().map(u32::from).sum::<u32>())
    }

    fn group(&self, name: &str) -> Option<u32> {
        self.user(name)
    }
}

fn policies() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<PathBuf> = ["policies", "examples/policies"]
        .iter()
        .flat_map(|directory| fs::read_dir(root.join(directory)).expect("a directory"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    found.sort();
    assert!(found.len() >= 5, "only {found:?}");
    found
}

fn compiled(path: &Path) -> Compiled {
    let input = Input {
        name: path.display().to_string(),
        role: Role::Policy,
        bytes: fs::read(path).expect("readable"),
    };
    compile(&[input], &AnyHost)
}

#[test]
fn every_policy_compiles_without_a_finding_and_passes_its_tests() {
    for path in policies() {
        let out = compiled(&path);
        assert!(
            out.is_valid() && out.diagnostics.is_empty(),
            "{}\n{}",
            path.display(),
            human(&out.sources, &out.diagnostics, false)
        );
        assert!(out.tests.passed > 0, "{}: no test ran", path.display());
    }
}

/// A rule that no test reaches may be misspelt without anybody noticing.
#[test]
fn every_rule_takes_some_tested_thread() {
    for path in policies() {
        let out = compiled(&path);
        let policy = out.policy.as_ref().expect("valid");
        for (index, rule) in policy.rules.iter().enumerate() {
            let is_reached = out.tests.cases.iter().any(|case| case.rule == Some(index));
            assert!(
                is_reached,
                "{}: no test reaches `{}`",
                path.display(),
                rule.name
            );
        }
    }
}
