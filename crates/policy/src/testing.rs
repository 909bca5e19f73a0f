//! `[[test]]` tables against a classifier.

use twopool_diag::{Code, Diagnostic, Findings};

use crate::eval::Class;
use crate::explain::RuleView;
use crate::policy::{Policy, Pool, Test};
use crate::thread::Thread;

/// What became of all tests of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestReport {
    /// Tests whose expectation held.
    pub passed: usize,
    /// Tests whose expectation did not hold.
    pub failed: usize,
    /// Rules that took at least one test's thread.
    pub rules_reached: usize,
    /// Rules of the policy.
    pub rules: usize,
    /// The others, in effective order; empty if the tests could not be run.
    pub unreached: Vec<RuleView>,
    /// Every test, in the order of the policy.
    pub cases: Vec<TestCase>,
}

/// One test and what came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// Its name.
    pub name: String,
    /// What came out that should not have; `None`: it passed.
    pub failure: Option<String>,
    /// The pool that came out.
    pub pool: Pool,
    /// Index from 0 of the rule that took the thread; `None`: the default pool.
    pub rule: Option<usize>,
    /// Its name.
    pub rule_name: Option<String>,
}

/// Runs every test. `failed-test` diagnostics point at the expectation.
pub fn run(policy: &Policy, classify: impl Fn(&Thread) -> Class) -> (TestReport, Findings) {
    let mut report = TestReport {
        rules: policy.rules.len(),
        ..TestReport::default()
    };
    let mut diagnostics = Findings::new();
    let mut reached = vec![false; policy.rules.len()];
    for test in &policy.tests {
        let class = classify(&test.thread);
        let rule = usize::from(class.rule).checked_sub(1);
        if let Some(hit) = rule.and_then(|i| reached.get_mut(i)) {
            *hit = true;
        }
        let failure = judge(policy, test, class.pool, rule);
        match &failure {
            None => report.passed += 1,
            Some(text) => {
                report.failed += 1;
                diagnostics.push(complaint(policy, test, rule, text));
            }
        }
        report.cases.push(TestCase {
            name: test.name.clone(),
            failure,
            pool: class.pool,
            rule,
            rule_name: rule.and_then(|index| Some(policy.rules.get(index)?.name.clone())),
        });
    }
    let unreached = reached.iter().enumerate().filter(|(_, hit)| !**hit);
    report.unreached = unreached
        .map(|(index, _)| RuleView {
            index: index + 1,
            name: policy.rules[index].name.clone(),
        })
        .collect();
    report.rules_reached = report.rules - report.unreached.len();
    (report, diagnostics)
}

fn judge(policy: &Policy, test: &Test, pool: Pool, rule: Option<usize>) -> Option<String> {
    let got = rule
        .and_then(|i| policy.rules.get(i))
        .map(|r| r.name.as_str());
    let rule_holds = test
        .rule
        .as_deref()
        .is_none_or(|expected| got == Some(expected));
    if pool == test.pool && rule_holds {
        return None;
    }
    let by = got.map_or("as the default, no rule took it".to_owned(), |name| {
        format!("by rule `{name}`")
    });
    Some(format!("got `{}` {by}", pool.as_str()))
}

fn complaint(policy: &Policy, test: &Test, rule: Option<usize>, text: &str) -> Diagnostic {
    let diagnostic = Diagnostic::new(
        Code::FailedTest,
        test.at.0,
        format!("test `{}` failed", test.name),
    )
    .label(text);
    match rule.and_then(|i| policy.rules.get(i)).and_then(|r| r.at.0) {
        Some(place) => diagnostic.related(place, "this rule took the thread"),
        None => diagnostic,
    }
}
