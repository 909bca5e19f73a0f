//! What loads but looks wrong.
//!
//! Lints run on a policy without errors. Each says what it saw and how to silence it; none may
//! cost more than the compiler itself, so pairs that are too many are not compared.

mod elevation;
mod essential;
mod patterns;
mod truncation;

use twopool_diag::{Code, Diagnostic, Findings};

use crate::image::Image;
use crate::options::{ConditionOptions, Options, RuleOptions};
use crate::policy::Policy;

/// All lints over a policy, the files that it came from and what the kernel gets.
pub fn lint(files: &[Options], policy: &Policy, image: &Image) -> Findings {
    let mut found = Findings::new();
    if policy.rules.is_empty() {
        let place = files
            .iter()
            .find_map(|f| f.settings.get("default"))
            .map(|s| s.span);
        let pool = policy.default.as_str();
        found.push(
            Diagnostic::new(Code::NoRules, place, "the policy has no rules")
                .label(format!("every thread takes `{pool}`")),
        );
    }
    for options in files.iter().flat_map(|f| &f.rules) {
        for conditions in tables(options) {
            patterns::lint(conditions, &mut found);
        }
    }
    truncation::lint(files, policy, &mut found);
    elevation::lint(files, policy, &mut found);
    essential::lint(policy, image, &mut found);
    found
}

fn tables(rule: &RuleOptions) -> impl Iterator<Item = &ConditionOptions> {
    tables_to_meet(rule).chain(&rule.not)
}

/// Without `not`.
fn tables_to_meet(rule: &RuleOptions) -> impl Iterator<Item = &ConditionOptions> {
    let any = rule.any.iter().flat_map(|(tables, _)| tables);
    std::iter::once(&rule.all).chain(any)
}
