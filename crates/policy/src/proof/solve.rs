//! Answers questions about threads.
//!
//! A thread is proposed dimension by dimension and shown to the evaluator. If an alternative takes
//! it that must not, one of that alternative's literals has to fail: each is tried, which adds a
//! condition to one dimension and asks for another value there. Where a dimension has no value left,
//! the alternatives whose conditions it holds are to blame; a choice that is not to blame for the
//! failure behind it need not be tried otherwise. So the answer is exact, a "no" names who is to
//! blame, and a "yes" is a thread that the evaluator has seen.

use super::language::Exhausted;
use super::possible::{Kind, is_possible};
use super::question::{Alternatives, Answer, Question, first_yes, join};
use super::space::{Alternative, Literal, Space};
use super::with_share;
use crate::automaton::Work;
use crate::eval::Row;
use crate::lower::Field;
use crate::policy::Sched;
use crate::thread::Thread;

/// Who wanted a constraint: the question, or an alternative (policy, index) that must not take.
type Origin = Option<(usize, usize)>;

#[derive(Debug, Clone, Copy)]
struct Constraint {
    condition: u32,
    is_met: bool,
    origin: Origin,
}

/// Dimensions in which a value is chosen; a leader's two names are one.
const DIMENSIONS: usize = 10;

#[derive(Debug, Clone, Default)]
struct Dimension {
    constraints: Vec<Constraint>,
    value: Value,
}

#[derive(Debug, Clone, Default)]
enum Value {
    #[default]
    Unset,
    Bytes(Vec<u8>),
    Number(u64),
}

const NUMBERS: [(Field, usize); 7] = [
    (Field::User, 3),
    (Field::Group, 4),
    (Field::Nice, 5),
    (Field::Kthread, 6),
    (Field::Leader, 7),
    (Field::Sched, 8),
    (Field::Hint, 9),
];

/// Answers a question. First among leaders, whose two names are one, then among other threads.
pub(super) fn solve(space: &mut Space, question: &Question, work: &mut Work) -> Answer {
    let kinds = [Kind::Leader, Kind::Other].into_iter();
    first_yes(kinds.map(|kind| Search::new(space, work, kind, question.blockers).begin(question)))
}

/// Whether some thread meets two rules, each given by its policy and its index there, and none of
/// the blockers. The index behind the last rule is the default, which asks nothing.
pub(super) fn solve_both(
    space: &mut Space,
    rules: [(usize, usize); 2],
    blockers: Alternatives,
    work: &mut Work,
) -> Answer {
    let [first, second] = rules.map(|(side, rule)| -> Vec<Option<(usize, usize)>> {
        let policy = &space.sides[side];
        match rule == policy.policy.rules.len() {
            true => vec![None],
            false => policy.of_rule(rule).map(|(i, _)| Some((side, i))).collect(),
        }
    });
    let ways = first
        .iter()
        .flat_map(|a| second.iter().map(move |b| [*a, *b]));
    first_yes(ways.map(|way| {
        let met = way.iter().flatten();
        let met = met.map(|(side, index)| &space.sides[*side].alternatives[*index]);
        let question = Question::of(met, blockers);
        with_share(work, |work| solve(space, &question, work))
    }))
}

/// Whether a question without blockers would be answered by a thread that no kernel shows.
pub(super) fn holds_on_paper(space: &mut Space, question: &Question, work: &mut Work) -> bool {
    let mut search = Search::new(space, work, Kind::Any, Alternatives::default());
    matches!(search.begin(question), Answer::Yes(_))
}

struct Search<'s, 'a> {
    space: &'s mut Space<'a>,
    work: &'s mut Work,
    kind: Kind,
    blockers: Alternatives,
    dimensions: [Dimension; DIMENSIONS],
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(
        space: &'s mut Space<'a>,
        work: &'s mut Work,
        kind: Kind,
        blockers: Alternatives,
    ) -> Self {
        Self {
            space,
            work,
            kind,
            blockers,
            dimensions: std::array::from_fn(|_| Dimension::default()),
        }
    }

    fn begin(&mut self, question: &Question) -> Answer {
        let literals = question.meets.iter().map(|literal| (*literal, true));
        let avoided = question.avoids.iter().map(|literal| (*literal, false));
        for (literal, is_met) in literals.chain(avoided) {
            let at = self.dimension_of(literal.field);
            self.dimensions[at].constraints.push(Constraint {
                condition: literal.condition,
                is_met,
                origin: None,
            });
        }
        for at in 0..DIMENSIONS {
            if let Some(refusal) = self.settle(at) {
                return refusal;
            }
        }
        self.run()
    }

    fn dimension_of(&self, field: Field) -> usize {
        match field {
            Field::Thread => 0,
            Field::Process => usize::from(self.kind != Kind::Leader),
            Field::Cgroup => 2,
            number => {
                let known = NUMBERS.iter().find(|(field, _)| *field == number);
                known.expect("every other field is a number").1
            }
        }
    }

    /// Looks for a value of one dimension under its constraints; the answer if there is none.
    fn settle(&mut self, at: usize) -> Option<Answer> {
        let pick = |is_met: bool| -> Vec<u32> {
            let constraints = self.dimensions[at].constraints.iter();
            let chosen = constraints.filter(|c| c.is_met == is_met);
            chosen.map(|c| c.condition).collect()
        };
        let (meets, avoids) = (pick(true), pick(false));
        if self.work.spend(4 + meets.len() + avoids.len()).is_none() {
            return Some(Answer::Undecided);
        }
        let found = match at {
            0 | 1 => self
                .space
                .find_name(meets, avoids, self.work)
                .map(|v| v.map(Value::Bytes)),
            2 => self
                .space
                .find_path(meets, avoids, self.work)
                .map(|v| v.map(Value::Bytes)),
            number => {
                let (field, _) = NUMBERS[number - 3];
                let value = self.space.find_number(field, self.kind, &meets, &avoids);
                Ok(value.map(Value::Number))
            }
        };
        match found {
            Ok(Some(value)) => {
                self.dimensions[at].value = value;
                None
            }
            Ok(None) => Some(Answer::No(self.blamed(at))),
            Err(Exhausted) => Some(Answer::Undecided),
        }
    }

    /// Whose constraints a dimension holds.
    fn blamed(&self, at: usize) -> Alternatives {
        let mut core = Alternatives::default();
        for constraint in &self.dimensions[at].constraints {
            blame(&mut core, constraint.origin);
        }
        core
    }

    fn run(&mut self) -> Answer {
        let thread = self.thread();
        let Some((side, index)) = self.hit(&thread) else {
            return match self.kind == Kind::Any || is_possible(&thread) {
                true => Answer::Yes(Box::new(thread)),
                false => Answer::Undecided,
            };
        };
        let mut core = Alternatives::default();
        blame(&mut core, Some((side, index)));
        let mut undecided = false;
        for (literal, is_met) in ways_out(&self.space.sides[side].alternatives[index]) {
            match self.attempt(literal, is_met, (side, index)) {
                Answer::Yes(thread) => return Answer::Yes(thread),
                Answer::Undecided => undecided = true,
                Answer::No(blamed) => {
                    if blamed[side][index / 64] >> (index % 64) & 1 == 0 {
                        return Answer::No(blamed);
                    }
                    join(&mut core, &blamed);
                }
            }
        }
        if undecided {
            Answer::Undecided
        } else {
            Answer::No(core)
        }
    }

    /// Adds a constraint, looks on, and takes it back.
    fn attempt(&mut self, literal: Literal, is_met: bool, origin: (usize, usize)) -> Answer {
        let at = self.dimension_of(literal.field);
        let opposite = self.dimensions[at]
            .constraints
            .iter()
            .find(|c| c.condition == literal.condition && c.is_met != is_met);
        if let Some(opposite) = opposite {
            let mut core = Alternatives::default();
            blame(&mut core, opposite.origin);
            blame(&mut core, Some(origin));
            return Answer::No(core);
        }
        let before = self.dimensions[at].value.clone();
        self.dimensions[at].constraints.push(Constraint {
            condition: literal.condition,
            is_met,
            origin: Some(origin),
        });
        let answer = match self.settle(at) {
            None => self.run(),
            Some(refusal) => refusal,
        };
        let dimension = &mut self.dimensions[at];
        dimension.constraints.pop();
        dimension.value = before;
        answer
    }

    /// A blocker that takes the thread: one with the fewest ways out, of these the one with the simplest
    /// patterns, of these the last: rules become wider towards the end of a policy, and avoiding a
    /// wide one often avoids many.
    fn hit(&mut self, thread: &Thread) -> Option<(usize, usize)> {
        let mut best: Option<((usize, usize), (usize, usize))> = None;
        let mut looked_at = 0;
        for (side, policy) in self.space.sides.iter().enumerate() {
            if self.blockers[side] == Row::default() {
                continue;
            }
            let alive = policy.alive(thread);
            for (word, mask) in self.blockers[side].into_iter().enumerate().rev() {
                let mut hits = alive[word] & mask;
                while hits != 0 {
                    let bit = hits.ilog2() as usize;
                    let index = word * 64 + bit;
                    hits ^= 1 << bit;
                    let alternative = &policy.alternatives[index];
                    let cost = (self.open_ways(alternative), alternative.weight);
                    looked_at += 1;
                    if best.is_none_or(|(least, _)| cost < least) {
                        best = Some((cost, (side, index)));
                    }
                    if cost <= (1, 0) {
                        // No choice to make, and nothing simpler.
                        return best.map(|(_, hit)| hit);
                    }
                }
            }
        }
        // Should this be the last of the work, the next constraint finds nothing left.
        let _ = self.work.spend(looked_at);
        best.map(|(_, hit)| hit)
    }

    /// Ways out that no constraint contradicts already.
    fn open_ways(&self, alternative: &Alternative) -> usize {
        let open = |(literal, is_met): &(Literal, bool)| {
            let constraints = &self.dimensions[self.dimension_of(literal.field)].constraints;
            !constraints
                .iter()
                .any(|c| c.condition == literal.condition && c.is_met != *is_met)
        };
        ways_out(alternative).iter().filter(|way| open(way)).count()
    }

    fn thread(&self) -> Thread {
        let bytes = |at: usize| match &self.dimensions[at].value {
            Value::Bytes(bytes) => bytes.clone(),
            _ => unreachable!("a settled dimension of bytes"),
        };
        let number = |at: usize| match &self.dimensions[at].value {
            Value::Number(number) => *number,
            _ => unreachable!("a settled dimension of numbers"),
        };
        Thread {
            tid: None,
            thread: bytes(0),
            process: bytes(usize::from(self.kind != Kind::Leader)),
            cgroup: bytes(2),
            user: number(3),
            group: number(4),
            nice: number(5) as i8 - 20,
            kthread: number(6) != 0,
            leader: number(7) != 0,
            sched: Sched::ALL[number(8) as usize],
            hint: number(9) as u16,
        }
    }
}

fn blame(core: &mut Alternatives, origin: Origin) {
    if let Some((side, index)) = origin {
        core[side][index / 64] |= 1 << (index % 64);
    }
}

/// The ways in which an alternative does not take a thread: literals, and whether each is met then.
fn ways_out(alternative: &Alternative) -> Vec<(Literal, bool)> {
    let failing = alternative.meets.iter().map(|literal| (*literal, false));
    failing
        .chain(alternative.avoids.iter().map(|literal| (*literal, true)))
        .collect()
}
