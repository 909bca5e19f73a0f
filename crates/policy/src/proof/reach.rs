//! Which rules, `any` tables and patterns take some thread.

use super::question::{Alternatives, Answer, Question, join};
use super::solve::{holds_on_paper, solve};
use super::space::{Literal, Space};
use super::{QUESTION_STEPS, TOTAL_STEPS, with_share};
use crate::automaton::Work;
use crate::image::Image;
use crate::lower::Field;
use crate::policy::{Conditions, Pattern, PatternKind, Policy};
use crate::thread::Thread;

/// Rules that are tried alone as the one that blocks, and most rules from which each is left out
/// once to see whether the others suffice.
const MAX_REDUCED: usize = 48;

/// Whether something takes a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// This thread, which the image confirms.
    Reachable(Box<Thread>),
    /// No thread.
    Unreachable(Why),
    /// It was not decided within the budget.
    Undecided,
}

/// Why no thread is taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// These rules (counted from 0) take all of them first, and none of these can be left out.
    TakenBy(Vec<usize>),
    /// The conditions contradict each other.
    Contradiction,
    /// The conditions ask for what a kernel never shows: a leader whose name is not its process's,
    /// or a kernel thread that leads no thread group.
    NoSuchThread,
}

impl Why {
    /// The rules that take the threads; none for the other reasons.
    pub fn blockers(&self) -> &[usize] {
        match self {
            Why::TakenBy(rules) => rules,
            _ => &[],
        }
    }
}

/// A part of a reachable rule that takes no thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// The rule, counted from 0.
    pub rule: usize,
    /// The `any` table, counted from 0; `None`: the rule's own conditions.
    pub any: Option<usize>,
    /// `thread`, `process` or `cgroup`, and the pattern's index in it; `None`: the whole table.
    pub pattern: Option<(&'static str, usize)>,
    /// Why it takes none.
    pub why: Why,
}

/// Everything about who is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// By rule.
    pub rules: Vec<Verdict>,
    /// Tables and patterns of reachable rules that take no thread.
    pub dead: Vec<Dead>,
    /// Rules, tables and patterns that the budget did not suffice for.
    pub undecided: usize,
}

/// Decides about every rule of a compiled policy and its parts.
pub fn reach(policy: &Policy, image: &Image) -> Reach {
    let mut found = Reach::default();
    let Ok(space) = Space::new(&[(policy, image)]) else {
        found.rules = vec![Verdict::Undecided; policy.rules.len()];
        found.undecided = policy.rules.len();
        return found;
    };
    let mut prover = Prover::new(space);
    found.rules = (0..policy.rules.len())
        .map(|rule| prover.rule(rule))
        .collect();
    for rule in 0..policy.rules.len() {
        match found.rules[rule].clone() {
            Verdict::Undecided => found.undecided += 1,
            Verdict::Unreachable(_) => {}
            Verdict::Reachable(witness) => prover.parts(rule, &witness, &mut found),
        }
    }
    found
}

/// Asks about one policy, with a budget for all questions.
struct Prover<'a> {
    space: Space<'a>,
    work: Work,
}

impl<'a> Prover<'a> {
    fn new(space: Space<'a>) -> Self {
        Self {
            space,
            work: Work::new(TOTAL_STEPS),
        }
    }

    fn ask(&mut self, question: &Question) -> Answer {
        with_share(&mut self.work, |work| {
            solve(&mut self.space, question, work)
        })
    }

    /// Whether some thread reaches a rule.
    fn rule(&mut self, rule: usize) -> Verdict {
        self.verdict(rule, None, |_| true)
    }

    /// Whether some thread reaches a rule by one of the chosen `any` tables, meeting `also`.
    fn verdict(
        &mut self,
        rule: usize,
        also: Option<Literal>,
        chosen: impl Fn(usize) -> bool,
    ) -> Verdict {
        let earlier = [self.space.sides[0].bits(|other| other < rule), [0; 8]];
        match self.any_of(rule, also, &chosen, earlier) {
            Answer::Yes(thread) => Verdict::Reachable(thread),
            Answer::Undecided => self.unblocked(rule, also, &chosen),
            Answer::No(core) => Verdict::Unreachable(match core == Alternatives::default() {
                true => self.own_fault(rule, also, &chosen),
                false => Why::TakenBy(self.reduced(core, |prover, blockers| {
                    prover.any_of(rule, also, &chosen, blockers)
                })),
            }),
        }
    }

    /// What all earlier rules together make too hard is plain where some thread of the rule, whichever
    /// is found first, happens to be none of theirs, or where one of them takes all.
    fn unblocked(
        &mut self,
        rule: usize,
        also: Option<Literal>,
        chosen: &impl Fn(usize) -> bool,
    ) -> Verdict {
        match self.any_of(rule, also, chosen, Alternatives::default()) {
            Answer::Yes(thread) => Verdict::Reachable(thread),
            _ => self.blocked_by_one(rule, also, chosen),
        }
    }

    fn blocked_by_one(
        &mut self,
        rule: usize,
        also: Option<Literal>,
        chosen: &impl Fn(usize) -> bool,
    ) -> Verdict {
        let least = self.work.left().saturating_sub(QUESTION_STEPS);
        for earlier in 0..rule {
            if self.work.left() < least {
                break;
            }
            let alone = [self.space.sides[0].bits(|other| other == earlier), [0; 8]];
            if let Answer::No(_) = self.any_of(rule, also, chosen, alone) {
                return Verdict::Unreachable(Why::TakenBy(vec![earlier]));
            }
        }
        Verdict::Undecided
    }

    /// Why a rule takes no thread even if it stands first.
    fn own_fault(
        &mut self,
        rule: usize,
        also: Option<Literal>,
        chosen: &impl Fn(usize) -> bool,
    ) -> Why {
        for question in self.questions(rule, also, chosen, Alternatives::default()) {
            let space = &mut self.space;
            if with_share(&mut self.work, |work| {
                holds_on_paper(space, &question, work)
            }) {
                return Why::NoSuchThread;
            }
        }
        Why::Contradiction
    }

    fn questions(
        &self,
        rule: usize,
        also: Option<Literal>,
        chosen: &impl Fn(usize) -> bool,
        blockers: Alternatives,
    ) -> Vec<Question> {
        let alternatives = self.space.sides[0].of_rule(rule);
        alternatives
            .filter(|(_, alternative)| chosen(alternative.any_index))
            .map(|(_, alternative)| {
                let mut question = Question::of([alternative], blockers);
                question.meets.extend(also);
                question
            })
            .collect()
    }

    /// Over the alternatives of a rule: yes if one says yes, no if all do.
    fn any_of(
        &mut self,
        rule: usize,
        also: Option<Literal>,
        chosen: &impl Fn(usize) -> bool,
        blockers: Alternatives,
    ) -> Answer {
        let mut core = Alternatives::default();
        let mut undecided = false;
        for question in self.questions(rule, also, chosen, blockers) {
            match self.ask(&question) {
                Answer::Yes(thread) if self.is_confirmed(rule, &thread) => {
                    return Answer::Yes(thread);
                }
                Answer::Yes(_) if blockers[0] != self.space.sides[0].bits(|other| other < rule) => {
                    return Answer::Undecided;
                }
                Answer::Yes(thread) => {
                    debug_assert!(false, "rule {rule} does not take its witness {thread:?}");
                    undecided = true;
                }
                Answer::No(blamed) => join(&mut core, &blamed),
                Answer::Undecided => undecided = true,
            }
        }
        if undecided {
            Answer::Undecided
        } else {
            Answer::No(core)
        }
    }

    fn is_confirmed(&self, rule: usize, thread: &Thread) -> bool {
        usize::from(self.space.sides[0].classify(thread).rule) == rule + 1
    }

    /// The rules of a core, without those that are not needed: one alone where one suffices.
    fn reduced(
        &mut self,
        core: Alternatives,
        ask: impl Fn(&mut Self, Alternatives) -> Answer,
    ) -> Vec<usize> {
        let mut rules = self.rules_of(&core);
        if rules.len() < 2 || rules.len() > MAX_REDUCED {
            return rules;
        }
        for rule in rules.clone() {
            let alone = [self.space.sides[0].bits(|other| other == rule), [0; 8]];
            if let Answer::No(_) = ask(self, alone) {
                return vec![rule];
            }
        }
        for left_out in rules.clone().into_iter().rev() {
            if !rules.contains(&left_out) {
                continue;
            }
            let others = |other| other != left_out && rules.contains(&other);
            let blockers = [self.space.sides[0].bits(others), [0; 8]];
            if let Answer::No(core) = ask(self, blockers) {
                rules = self.rules_of(&core);
            }
        }
        rules
    }

    fn rules_of(&self, core: &Alternatives) -> Vec<usize> {
        let alternatives = self.space.sides[0].alternatives.iter().enumerate();
        let blamed = alternatives.filter(|(i, _)| core[0][i / 64] >> (i % 64) & 1 != 0);
        let mut rules: Vec<usize> = blamed.map(|(_, alternative)| alternative.rule).collect();
        rules.dedup();
        rules
    }

    /// The tables and patterns of a rule that a thread reaches.
    fn parts(&mut self, rule: usize, witness: &Thread, found: &mut Reach) {
        let written = &self.space.sides[0].policy.rules[rule];
        self.table(rule, None, &written.all, witness, found);
        for (index, table) in written.any.iter().enumerate() {
            let mut example = witness.clone();
            if written.any.len() > 1 {
                match self.verdict(rule, None, |any| any == index) {
                    Verdict::Reachable(thread) => example = *thread,
                    Verdict::Undecided => found.undecided += 1,
                    Verdict::Unreachable(why) => {
                        found.dead.push(Dead {
                            rule,
                            any: Some(index),
                            pattern: None,
                            why,
                        });
                        continue;
                    }
                }
            }
            self.table(rule, Some(index), table, &example, found);
        }
    }

    /// The patterns of one table, where a condition has several.
    fn table(
        &mut self,
        rule: usize,
        any: Option<usize>,
        table: &'a Conditions,
        witness: &Thread,
        found: &mut Reach,
    ) {
        for (field, key) in [
            (Field::Thread, "thread"),
            (Field::Process, "process"),
            (Field::Cgroup, "cgroup"),
        ] {
            let patterns = table.patterns(key);
            if patterns.len() < 2 {
                continue;
            }
            for (index, pattern) in patterns.iter().enumerate() {
                if self.guess(rule, any, field, pattern, witness) {
                    continue;
                }
                let also = Some(self.space.pattern(field, pattern));
                match self.verdict(rule, also, |table| any.is_none_or(|any| any == table)) {
                    Verdict::Reachable(_) => {}
                    Verdict::Undecided => found.undecided += 1,
                    Verdict::Unreachable(why) => found.dead.push(Dead {
                        rule,
                        any,
                        pattern: Some((key, index)),
                        why,
                    }),
                }
            }
        }
    }

    /// Whether the rule's witness under an exact pattern's name is another witness; spares the
    /// search for nearly every name of a long list.
    fn guess(
        &self,
        rule: usize,
        any: Option<usize>,
        field: Field,
        pattern: &Pattern,
        witness: &Thread,
    ) -> bool {
        if pattern.kind != PatternKind::Exact {
            return false;
        }
        let mut thread = witness.clone();
        match field {
            Field::Thread => thread.thread.clone_from(&pattern.bytes),
            Field::Process => thread.process.clone_from(&pattern.bytes),
            _ => thread.cgroup.clone_from(&pattern.bytes),
        }
        if thread.leader && field == Field::Thread {
            thread.process.clone_from(&thread.thread);
        } else if thread.leader && field == Field::Process {
            thread.thread.clone_from(&thread.process);
        }
        if !super::is_possible(&thread) {
            return false;
        }
        let side = &self.space.sides[0];
        let alive = side.alive(&thread);
        let taken = side.of_rule(rule).any(|(i, alternative)| {
            alive[i / 64] >> (i % 64) & 1 != 0 && any.is_none_or(|any| any == alternative.any_index)
        });
        taken && self.is_confirmed(rule, &thread)
    }
}
