//! `Options` of all files to one `Policy`: order, defaults, names, patterns, and every check that
//! needs more than one value.
//!
//! What comes first wins, for rules and for settings alike. The result is the best that could be
//! made of the files; it may be used only if no error was reported on the way.

mod rules;
mod settings;
mod show;
mod tests;

use std::collections::HashMap;

use twopool_diag::{Code, Diagnostic, FileId, Findings, Sources, Span};

use crate::options::{Options, Text, Value};
use crate::policy::{CgroupCondition, Policy, Pool, UNKNOWN_ID_BASE};
use crate::syntax::span;

pub use settings::{Setting, show};

/// The users and groups of the host that a policy is meant for.
pub trait Names {
    /// The uid of a user.
    fn user(&self, name: &str) -> Option<u32>;
    /// The gid of a group.
    fn group(&self, name: &str) -> Option<u32>;
    /// Whether a name that is not known here is worth a warning. A check for another host says no.
    fn is_host(&self) -> bool {
        true
    }
}

/// A host without any user or group, for checks that must not depend on the host they run on.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn user(&self, _: &str) -> Option<u32> {
        None
    }
    fn group(&self, _: &str) -> Option<u32> {
        None
    }
    fn is_host(&self) -> bool {
        false
    }
}

/// An id for a user or group of a simulated thread that neither the host nor the policy names.
pub const NOBODY: u64 = u64::MAX - 1;

/// Resolves files in effective order. `policy_file` is the one that must say `version` and
/// `default`; without it (drop-ins alone) nothing is required.
pub fn resolve(
    files: &[Options],
    policy_file: Option<FileId>,
    sources: &Sources,
    names: &dyn Names,
) -> (Policy, Findings) {
    let mut context = Context {
        names,
        diagnostics: Findings::new(),
        users: Ids::default(),
        groups: Ids::default(),
    };
    context.required(files, policy_file);
    let settings = settings::Merged::of(files);
    let rules = context.rules(files, sources);
    let tests = context.tests(files, &rules);
    let attach = settings
        .get("attach.while_cgroup")
        .and_then(|value| match value {
            Value::Cgroups(patterns) => context.cgroups(&patterns),
            _ => None,
        });
    settings.check(&mut context.diagnostics);
    let policy = Policy {
        default: settings.default_pool(),
        pools: Pool::ALL.map(|pool| settings.pool(pool)),
        sizing_interval_us: settings.micros("sizing.interval").unwrap_or_default(),
        steal: settings.steal(),
        hints: settings.hints(),
        background_wait_us: settings
            .micros("limits.background_wait")
            .unwrap_or_default(),
        attach_while_cgroup: attach.map(|patterns| CgroupCondition { patterns }),
        rules,
        tests,
        unknown_users: context.users.unknown,
        unknown_groups: context.groups.unknown,
    };
    (policy, context.diagnostics)
}

/// The uid that a simulated thread's user name stands for under a policy.
pub fn user_id(policy: &Policy, names: &dyn Names, name: &str) -> u64 {
    id_of(names.user(name), &policy.unknown_users, name)
}

/// The gid that a simulated thread's group name stands for under a policy.
pub fn group_id(policy: &Policy, names: &dyn Names, name: &str) -> u64 {
    id_of(names.group(name), &policy.unknown_groups, name)
}

fn id_of(known: Option<u32>, unknown: &[String], name: &str) -> u64 {
    match known {
        Some(id) => u64::from(id),
        None => match unknown.iter().position(|n| n == name) {
            Some(i) => UNKNOWN_ID_BASE + i as u64,
            None => NOBODY,
        },
    }
}

/// What resolving needs at every step.
struct Context<'a> {
    names: &'a dyn Names,
    diagnostics: Findings,
    users: Ids,
    groups: Ids,
}

/// Names seen so far, and those that the host does not know.
#[derive(Default)]
struct Ids {
    seen: HashMap<String, u64>,
    unknown: Vec<String>,
}

impl Context<'_> {
    fn required(&mut self, files: &[Options], policy_file: Option<FileId>) {
        let Some(file) = files.iter().find(|f| Some(f.file) == policy_file) else {
            return;
        };
        if file.broken || file.empty {
            return;
        }
        for (key, help) in [
            ("version", "write `version = 1` at the top of the file"),
            (
                "default",
                "write `default = \"background\"` at the top: the pool of threads that no rule takes",
            ),
        ] {
            if !file.settings.contains_key(key) && !self.was_reported(files, key) {
                let place = span(file.file, 0, 0);
                self.diagnostics.push(
                    Diagnostic::new(Code::MissingKey, place, format!("missing key `{key}`"))
                        .help(help),
                );
            }
        }
    }

    /// A key whose value was wrong is not missing as well; `read` drops both kinds alike.
    fn was_reported(&self, files: &[Options], key: &str) -> bool {
        files.iter().any(|f| f.refused.iter().any(|r| r == key))
    }

    /// The id of a user or group name; an unknown one gets an id that nobody has.
    fn id(&mut self, text: &Text, is_group: bool) -> u64 {
        let known = if is_group {
            self.names.group(&text.value)
        } else {
            self.names.user(&text.value)
        };
        let ids = if is_group {
            &mut self.groups
        } else {
            &mut self.users
        };
        if let Some(id) = ids.seen.get(&text.value) {
            return *id;
        }
        let id = known.map_or(UNKNOWN_ID_BASE + ids.unknown.len() as u64, u64::from);
        ids.seen.insert(text.value.clone(), id);
        if known.is_none() {
            ids.unknown.push(text.value.clone());
            if self.names.is_host() {
                let what = if is_group { "group" } else { "user" };
                self.diagnostics.push(
                    Diagnostic::new(
                        Code::UnknownUser,
                        text.span,
                        format!("unknown {what} `{}`", text.value),
                    )
                    .label("not on this host; the condition matches nobody"),
                );
            }
        }
        id
    }
}

/// A limit that was passed: how many, how many fit, and the first that is too much.
fn limit(count: usize, most: usize, what: &str, first: Option<Span>) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        first,
        format!("too many {what}: {count}, at most {most} fit"),
    )
    .label("the first that does not fit")
}
