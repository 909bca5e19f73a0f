//! What loads but looks wrong.
//!
//! `texts` is about patterns one by one and runs beside errors; `lint` needs a whole policy. Each
//! finding says what was seen and how to silence it; none may cost more than the compiler itself,
//! so pairs that are too many are not compared.

mod elevation;
mod essential;
mod forms;
mod patterns;
mod truncation;

use twopool_diag::{Code, Diagnostic, Findings};

use crate::image::Image;
use crate::options::{ConditionOptions, Options, RuleOptions, Value};
use crate::policy::Policy;

/// The lints that look at one pattern at a time, wherever one stands.
pub fn texts(files: &[Options]) -> Findings {
    let mut found = Findings::new();
    for file in files {
        for conditions in file.rules.iter().flat_map(tables) {
            patterns::lint(conditions, &mut found);
        }
        for (path, setting) in &file.settings {
            if let Value::Cgroups(cgroups) = &setting.value {
                let key = path.rsplit('.').next().unwrap_or(path);
                patterns::lint_cgroups(key, cgroups, &mut found);
            }
        }
    }
    found
}

/// The other lints, over a policy, the files that it came from and what the kernel gets.
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
