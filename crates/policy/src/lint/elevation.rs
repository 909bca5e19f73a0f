//! Rules into `critical` that a rename is enough to claim.
//!
//! Every program names its threads as it likes, and its process too. What it cannot choose: its
//! user and group, a nice value below 0, to be a kernel thread, and its cgroup. Where everything
//! is critical by default, there is nothing to claim.

use twopool_diag::{Code, Diagnostic, Findings, Span};

use crate::options::{ConditionOptions, Options, RuleOptions};
use crate::policy::{Conditions, Pattern, PatternKind, Policy, Pool, Rule};

/// `nice = 0` as rules hold it.
const NICE_ZERO: u64 = 20;

/// Other rules that a finding shows; the rest is counted.
const MOST_SHOWN: usize = 4;

/// How names of kernel threads begin. No list is complete; these are the ones that people write.
const KERNEL_NAMES: [&str; 12] = [
    "kworker",
    "ksoftirqd",
    "migration/",
    "rcu_",
    "rcuc/",
    "rcuop/",
    "rcuog/",
    "irq/",
    "kswapd",
    "kcompactd",
    "cpuhp/",
    "jbd2/",
];

/// At most two findings a policy: rules on kernel threads' names, and all others.
pub fn lint(files: &[Options], policy: &Policy, found: &mut Findings) {
    if policy.default == Pool::Critical {
        return;
    }
    let written = files.iter().flat_map(|file| &file.rules);
    let claimable: Vec<(&RuleOptions, bool)> = written
        .zip(&policy.rules)
        .filter_map(|(options, rule)| Some((options, claim(rule)?)))
        .collect();
    for kernel in [true, false] {
        let mut places = claimable
            .iter()
            .filter(|(_, is_kernel)| *is_kernel == kernel)
            .map(|(options, _)| place(options));
        if let Some(first) = places.next() {
            found.push(finding(first, &places.collect::<Vec<_>>(), kernel));
        }
    }
}

/// Whether names alone open the rule, and if so, whether all of them are kernel threads' names.
fn claim(rule: &Rule) -> Option<bool> {
    if rule.pool != Pool::Critical || is_bounded(&rule.all) || excludes_users(rule) {
        return None;
    }
    let none = [Conditions::default()];
    let alternatives = if rule.any.is_empty() {
        &none
    } else {
        rule.any.as_slice()
    };
    let mut open = alternatives
        .iter()
        .filter(|table| !is_bounded(table))
        .map(|table| rule.all.names().chain(table.names()))
        .filter(|names| names.clone().next().is_some())
        .peekable();
    open.peek()?;
    Some(open.all(|mut names| names.all(is_kernel_name)))
}

/// Whether a table holds something that a thread cannot give itself.
fn is_bounded(table: &Conditions) -> bool {
    let is_everywhere = |p: &Pattern| match p.kind {
        PatternKind::Under => p.text == "/",
        PatternKind::Glob => p.text == "/**",
        _ => false,
    };
    let cgroup = table.cgroup.as_ref();
    let nice = table.nice.as_ref();
    table.user.is_some()
        || table.group.is_some()
        || table.kthread == Some(true)
        || cgroup.is_some_and(|c| !c.patterns.iter().any(is_everywhere))
        || nice.is_some_and(|n| n.ranges.iter().all(|(_, max)| *max < NICE_ZERO))
}

/// `not = { user = .. }` and the like, which keep somebody out whatever the names.
fn excludes_users(rule: &Rule) -> bool {
    rule.not.as_ref().is_some_and(|not| {
        let kinds = [
            not.user.is_some(),
            not.group.is_some(),
            not.kthread == Some(false),
        ];
        let rest = Conditions {
            user: None,
            group: None,
            kthread: None,
            ..not.clone()
        };
        kinds.contains(&true) && rest == Conditions::default()
    })
}

fn is_kernel_name(pattern: &Pattern) -> bool {
    KERNEL_NAMES
        .iter()
        .any(|name| pattern.text.starts_with(name))
}

/// Where the rule's first condition on a name stands.
fn place(rule: &RuleOptions) -> Span {
    let named = |table: &ConditionOptions| {
        let span = table
            .spans
            .get("thread")
            .or_else(|| table.spans.get("process"));
        span.copied()
    };
    super::tables_to_meet(rule)
        .find_map(named)
        .unwrap_or(rule.header)
}

fn finding(first: Span, others: &[Span], kernel: bool) -> Diagnostic {
    let summary = match others.len() {
        0 => "a rule into `critical` that a rename is enough to claim".to_owned(),
        more => format!(
            "{} rules into `critical` that a rename is enough to claim",
            more + 1
        ),
    };
    let (label, help) = match kernel {
        true => (
            "any user can give a thread a kernel thread's name",
            "add `kthread = true`",
        ),
        false => (
            "any user can give a thread this name",
            "add what its owner cannot choose, as in `cgroup = { under = \"/ads.slice\" }` or `user = \"ads\"`",
        ),
    };
    let mut diagnostic = Diagnostic::new(Code::CommOnlyElevation, first, summary)
        .label(label)
        .help(help);
    for (shown, other) in others.iter().take(MOST_SHOWN).enumerate() {
        let left = others.len() - shown - 1;
        let text = match left {
            1.. if shown + 1 == MOST_SHOWN => format!("and this one, and {left} more"),
            _ => "and this one".to_owned(),
        };
        diagnostic = diagnostic.related(*other, text);
    }
    diagnostic
}
