//! `[[test]]` tables to simulated threads.

use twopool_diag::{Code, Diagnostic};

use super::{Context, NOBODY};
use crate::options::{IdOptions, Options, TestOptions};
use crate::policy::{At, Pool, Rule, Sched, Test};
use crate::suggest::nearest;
use crate::thread::{Thread, cgroup_path, cut};

impl Context<'_> {
    pub(super) fn tests(&mut self, files: &[Options], rules: &[Rule]) -> Vec<Test> {
        let mut tests = Vec::new();
        for options in files.iter().flat_map(|f| &f.tests) {
            let number = tests.len() + 1;
            let Some(name) = &options.thread else {
                continue;
            };
            let thread = self.thread(options, name.value.as_bytes());
            self.known_rule(options, rules);
            tests.push(Test {
                name: options
                    .name
                    .as_ref()
                    .map_or(format!("test {number}"), |n| n.value.clone()),
                thread,
                pool: options.pool.map_or(Pool::Background, |(pool, _)| pool),
                rule: options.rule.as_ref().map(|r| r.value.clone()),
                at: At(Some(options.expect.unwrap_or(options.header))),
            });
        }
        tests
    }

    fn known_rule(&mut self, options: &TestOptions, rules: &[Rule]) {
        let Some(expected) = &options.rule else {
            return;
        };
        if rules.iter().any(|r| r.name == expected.value) {
            return;
        }
        let summary = format!("no rule is named `{}`", expected.value);
        let diagnostic = Diagnostic::new(Code::InvalidValue, expected.span, summary);
        self.diagnostics.push(
            match nearest(&expected.value, rules.iter().map(|r| r.name.as_str())) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic,
            },
        );
    }

    fn thread(&self, options: &TestOptions, name: &[u8]) -> Thread {
        let mut thread = Thread::named(name);
        if let Some(process) = &options.process {
            thread.process = cut(process.value.as_bytes()).to_vec();
        }
        thread.leader = options.leader.unwrap_or(thread.process == thread.thread);
        if let Some(cgroup) = &options.cgroup {
            thread.cgroup = cgroup_path(cgroup.value.as_bytes());
        }
        thread.user = self.simulated(options.user.as_ref(), false);
        thread.group = self.simulated(options.group.as_ref(), true);
        thread.nice = options.nice.and_then(|n| i8::try_from(n).ok()).unwrap_or(0);
        thread.kthread = options.kthread.unwrap_or(false);
        thread.sched = options.sched.unwrap_or(Sched::Normal);
        thread.hint = options
            .hint
            .and_then(|h| u16::try_from(h).ok())
            .unwrap_or(0);
        thread
    }

    /// The host's id of a name, or the one that the policy's rules gave it, so that a test on a
    /// host without that user still compares names.
    fn simulated(&self, id: Option<&IdOptions>, is_group: bool) -> u64 {
        match id {
            None => 0,
            Some(IdOptions::Number(id)) => *id,
            Some(IdOptions::Name(name)) => {
                let ids = if is_group { &self.groups } else { &self.users };
                let host = if is_group {
                    self.names.group(name)
                } else {
                    self.names.user(name)
                };
                ids.seen
                    .get(name)
                    .copied()
                    .or(host.map(u64::from))
                    .unwrap_or(NOBODY)
            }
        }
    }
}
