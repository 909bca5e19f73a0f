//! What the daemon knows about policies: the one in force, the one on trial, what was last tried.
//!
//! Pure: every decision about reloads is made here, by values, and tested without a kernel.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use twopool_telemetry::{LastReload, ReloadResult};

use super::reload::Candidate;

/// An ejection this soon after a reload is blamed on it.
pub const PROBATION: Duration = Duration::from_secs(30);
/// Files may be missing or empty this long before it is worth a warning: editors and
/// configuration tools pass through such a state.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Policies whose rule names are remembered, for threads that were classified under them.
const REMEMBERED: usize = 16;

/// A policy that was put in force.
#[derive(Debug, Clone)]
pub struct Active {
    /// The policy.
    pub candidate: Candidate,
    /// Its number.
    pub epoch: u32,
    /// RFC 3339.
    pub loaded_at: String,
}

/// Policies of this daemon.
#[derive(Debug)]
pub struct Policies {
    active: Active,
    /// The one before, while the active one is on probation.
    fallback: Option<(Active, Instant)>,
    /// A set that was rejected, or ejected: not tried again until it changes or somebody asks.
    refused_hash: Option<String>,
    last_reload: Option<LastReload>,
    /// What `last_reload` was before it told of a failure that is over as soon as the set that was seen
    /// last is on the disk again.
    before_failure: Option<Option<LastReload>>,
    next_epoch: u32,
    names: VecDeque<(u32, Vec<String>)>,
}

impl Policies {
    /// The policy of the start gets epoch 1.
    pub fn new(first: Candidate, loaded_at: String) -> Self {
        let active = Active {
            epoch: 1,
            loaded_at,
            candidate: first,
        };
        let names = VecDeque::from([(1, active.candidate.rules.clone())]);
        Self {
            active,
            fallback: None,
            refused_hash: None,
            last_reload: None,
            before_failure: None,
            next_epoch: 2,
            names,
        }
    }

    /// The policy in force.
    pub fn active(&self) -> &Active {
        &self.active
    }

    /// The last attempt to change it.
    pub fn last_reload(&self) -> Option<&LastReload> {
        self.last_reload.as_ref()
    }

    /// The hash of the set that was looked at last; finding it again is no news.
    pub fn seen_hash(&self) -> &str {
        self.refused_hash
            .as_deref()
            .unwrap_or(&self.active.candidate.hash)
    }

    /// A number for an image that is about to be published. Never 0, never the active one.
    pub fn take_epoch(&mut self) -> u32 {
        let epoch = self.next_epoch;
        self.next_epoch = epoch.checked_add(1).unwrap_or(1);
        epoch
    }

    /// Whether a valid candidate is what already runs, to the byte.
    pub fn is_active(&self, candidate: &Candidate) -> bool {
        let active = &self.active;
        // Nearly always decides, and spares a copy of megabytes.
        if active.candidate.hash != candidate.hash {
            return false;
        }
        // Equal files need not mean the same: users may have got other numbers.
        let mut image = candidate.image.clone();
        image.set_epoch(active.epoch);
        active.candidate.image == image
    }

    /// A set was read and is not valid.
    pub fn reject(&mut self, hash: String, diagnostics: Vec<Value>, at: String) {
        self.refused_hash = Some(hash);
        self.tried(ReloadResult::Rejected, at, diagnostics);
    }

    /// There is no complete set, and it lasts, or the kernel did not take a valid one: who asks for the
    /// state must see that the policy in force is not what is on disk. `code` as in a document of a
    /// failure.
    pub fn fail(&mut self, code: &str, message: &str, at: String) {
        let before = self.before_failure.take();
        let before = before.unwrap_or_else(|| self.last_reload.clone());
        let finding = json!({
            "severity": "error", "code": code, "summary": message, "detail": "", "range": null,
            "related": [],
        });
        self.tried(ReloadResult::Rejected, at, vec![finding]);
        self.before_failure = Some(before);
    }

    /// The set that was seen last is on the disk: a failure since then is over.
    pub fn as_before(&mut self) {
        if let Some(before) = self.before_failure.take() {
            self.last_reload = before;
        }
    }

    /// A valid set that needs no change. What was refused before is gone from the disk.
    pub fn keep(&mut self, diagnostics: Vec<Value>, at: String) {
        self.refused_hash = None;
        self.tried(ReloadResult::Unchanged, at, diagnostics);
    }

    /// A candidate was published under its image's epoch.
    pub fn apply(&mut self, candidate: Candidate, at: String, now: Instant) {
        let diagnostics = candidate.report.diagnostics();
        self.enact(candidate, at.clone(), Some(now));
        self.tried(ReloadResult::Applied, at, diagnostics);
    }

    /// All findings of the last reload, where loading had given some of them.
    pub fn found(&mut self, diagnostics: Vec<Value>) {
        use ReloadResult::{Applied, Unchanged};
        if let Some(last) = &mut self.last_reload
            && matches!(last.result, Applied | Unchanged)
        {
            last.diagnostics = diagnostics;
        }
    }

    /// The kernel ejected the scheduler. If the active policy is on probation: the one before,
    /// to be put in force instead; the active one's hash is marked.
    pub fn take_fallback(&mut self, now: Instant) -> Option<Candidate> {
        let (fallback, applied) = self.fallback.take()?;
        (now.duration_since(applied) < PROBATION).then_some(fallback.candidate)
    }

    /// The fallback was put in force under its image's epoch.
    pub fn roll_back(&mut self, candidate: Candidate, at: String) {
        self.refused_hash = Some(self.active.candidate.hash.clone());
        let refused = self.refused_hash.clone();
        self.enact(candidate, at.clone(), None);
        self.refused_hash = refused;
        self.tried(ReloadResult::RolledBack, at, Vec::new());
    }

    /// The name of a rule of a recent policy; slots count from 1.
    pub fn rule_name(&self, epoch: u32, slot: u16) -> Option<&str> {
        let (_, names) = self.names.iter().find(|(known, _)| *known == epoch)?;
        names
            .get(usize::from(slot).checked_sub(1)?)
            .map(String::as_str)
    }

    fn tried(&mut self, result: ReloadResult, at: String, diagnostics: Vec<Value>) {
        self.before_failure = None;
        self.last_reload = Some(LastReload {
            result,
            at,
            diagnostics,
        });
    }

    fn enact(&mut self, candidate: Candidate, loaded_at: String, probation_from: Option<Instant>) {
        let epoch = candidate.image.epoch();
        self.names.push_back((epoch, candidate.rules.clone()));
        if self.names.len() > REMEMBERED {
            self.names.pop_front();
        }
        let before = std::mem::replace(
            &mut self.active,
            Active {
                candidate,
                epoch,
                loaded_at,
            },
        );
        self.fallback = probation_from.map(|now| (before, now));
        self.refused_hash = None;
    }
}

/// Files that cannot be read, or are empty, for a while.
#[derive(Debug, Default)]
pub struct Trouble {
    since: Option<Instant>,
    told: bool,
}

impl Trouble {
    /// Another reading failed. True once, when it has lasted long enough to be told.
    pub fn note(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let tell = !self.told && now.duration_since(since) >= PATIENCE;
        self.told |= tell;
        tell
    }

    /// A reading succeeded. True if the trouble had been told.
    pub fn end(&mut self) -> bool {
        std::mem::take(self).told
    }

    /// Whether a reading should be tried again soon.
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::tests::candidate;

    fn policies() -> Policies {
        Policies::new(numbered("a", 1), "T1".into())
    }

    fn numbered(thread: &str, epoch: u32) -> Candidate {
        let mut candidate = candidate(thread);
        candidate.image.set_epoch(epoch);
        candidate
    }

    fn applied(policies: &mut Policies, thread: &str, now: Instant) {
        let epoch = policies.take_epoch();
        policies.apply(numbered(thread, epoch), "T2".into(), now);
    }

    #[test]
    fn the_same_files_are_unchanged_and_others_are_not() {
        let policies = policies();
        assert!(policies.is_active(&candidate("a")));
        assert!(!policies.is_active(&candidate("b")));
    }

    #[test]
    fn l05_a_rejected_set_is_news_once_and_the_next_good_one_applies() {
        let mut policies = policies();
        policies.reject("sha256:bad".into(), vec![], "T2".into());
        assert_eq!(policies.seen_hash(), "sha256:bad");
        assert_eq!(policies.active().candidate.hash, candidate("a").hash);
        assert_eq!(
            policies.last_reload().expect("tried").result,
            ReloadResult::Rejected
        );
        applied(&mut policies, "b", Instant::now());
        assert_eq!(policies.seen_hash(), candidate("b").hash);
        assert_eq!(
            policies.last_reload().expect("tried").result,
            ReloadResult::Applied
        );
    }

    #[test]
    fn an_ejection_soon_after_a_reload_takes_it_back_and_marks_it() {
        let (mut policies, now) = (policies(), Instant::now());
        applied(&mut policies, "b", now);
        let mut before = policies
            .take_fallback(now + PROBATION / 2)
            .expect("on probation");
        assert_eq!(before.hash, candidate("a").hash);
        before.image.set_epoch(policies.take_epoch());
        policies.roll_back(before, "T3".into());
        assert_eq!(policies.active().epoch, 3);
        assert_eq!(policies.seen_hash(), candidate("b").hash);
        assert_eq!(
            policies.last_reload().expect("tried").result,
            ReloadResult::RolledBack
        );
        assert!(policies.take_fallback(now).is_none());
    }

    /// Else a set that the kernel ejected would come back with the file that held it.
    #[test]
    fn a_failure_that_is_over_leaves_what_was_refused_refused() {
        let (mut policies, now) = (policies(), Instant::now());
        applied(&mut policies, "b", now);
        let before = policies.take_fallback(now).expect("on probation");
        policies.roll_back(before, "T3".into());
        let result = |policies: &Policies| policies.last_reload().expect("tried").result;
        policies.fail("no-input", "gone", "T4".into());
        policies.fail("no-input", "still gone", "T5".into());
        assert_eq!(result(&policies), ReloadResult::Rejected);
        policies.as_before();
        assert_eq!(result(&policies), ReloadResult::RolledBack);
        assert_eq!(policies.seen_hash(), candidate("b").hash);
    }

    #[test]
    fn a_policy_that_proved_itself_is_not_blamed() {
        let (mut policies, now) = (policies(), Instant::now());
        applied(&mut policies, "b", now);
        assert!(policies.take_fallback(now + PROBATION).is_none());
        assert!(policies.take_fallback(now).is_none());
    }

    #[test]
    fn rules_of_recent_policies_keep_their_names() {
        let mut policies = policies();
        applied(&mut policies, "b", Instant::now());
        assert_eq!(policies.rule_name(1, 1), Some("rule a"));
        assert_eq!(policies.rule_name(2, 1), Some("rule b"));
        assert_eq!(
            (
                policies.rule_name(2, 0),
                policies.rule_name(2, 2),
                policies.rule_name(9, 1)
            ),
            (None, None, None)
        );
        (0..REMEMBERED).for_each(|_| applied(&mut policies, "c", Instant::now()));
        assert_eq!(policies.rule_name(1, 1), None);
    }

    #[test]
    fn l03_trouble_is_told_once_and_only_if_it_lasts() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        assert!(!trouble.note(start));
        assert!(!trouble.note(start + PATIENCE / 2));
        assert!(trouble.note(start + PATIENCE));
        assert!(!trouble.note(start + 2 * PATIENCE));
        assert!(trouble.end());
        assert!(!trouble.end() && !trouble.is_on());
    }
}
