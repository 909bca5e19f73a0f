//! Proofs about policies, decided on the automata of their patterns: which rules take some thread,
//! which never do and because of which others, where rules of both pools claim one thread, and what
//! distinguishes two policies.
//!
//! `possible` says which threads there are, `space` turns policies into literals, `language` finds
//! values of one dimension, `question` says what is asked, `solve` finds threads. `reach`,
//! `overlaps` and `diff` ask the questions, `findings` and `report` word the answers.
//!
//! Invariant: never a false "unreachable". A thread that is given out was classified by the image
//! first; what does not fit the budget is undecided and said to be. The budget counts steps, so
//! the answers are the same on every machine.

mod condition;
mod diff;
mod findings;
mod language;
mod overlaps;
mod possible;
mod question;
mod reach;
mod report;
mod solve;
mod space;

pub use diff::{Difference, Differences, Outcome, diff};
pub use overlaps::{Overlap, Overlaps, overlaps};
pub use possible::is_possible;
pub use reach::{Dead, Reach, Verdict, Why, reach};
pub use report::{OverlapView, Report, RuleReport, difference_text};

pub(crate) use findings::findings;

use crate::automaton::Work;

/// Steps that one question may take, some milliseconds.
const QUESTION_STEPS: usize = 1_000_000;
/// Steps that all questions of one kind about a policy may take, some tenths of a second.
const TOTAL_STEPS: usize = 20_000_000;

/// Of what is left, one question may take this part, so that hard ones leave something to the easy
/// ones behind them.
const QUESTION_PART: usize = 8;

/// Asks one question with its share of what is left.
fn with_share<T>(work: &mut Work, ask: impl FnOnce(&mut Work) -> T) -> T {
    let mut share = work.share(QUESTION_STEPS.min(work.left() / QUESTION_PART));
    let answer = ask(&mut share);
    work.settle(share);
    answer
}
