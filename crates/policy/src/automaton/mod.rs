//! Automata for names and cgroup paths: many patterns, one walk over the bytes.
//!
//! `Positions` (one pattern) -> `plan` (who goes where) -> `Dfa` and `Units`. A dimension has at
//! most `MAX_DFAS` deterministic automata that emit rows on the way, and bit-parallel units for
//! the patterns that would make those explode. The size of the result grows with the sum of the
//! patterns, not with their combinations; what cannot be kept small is refused by name.
//!
//! Nothing here knows rules: a pattern carries the row of bits that meeting it sets.

mod byteset;
mod dfa;
mod plan;
mod position;
mod simulation;
mod union;
mod unit;

#[cfg(test)]
mod tests;

pub(crate) use byteset::{ByteSet, Classes};
pub(crate) use dfa::Dfa;
pub(crate) use plan::{Automata, TooLarge, plan};
pub(crate) use position::{Positions, Refusal};

/// What kind of values a dimension has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    /// At most 15 bytes.
    Name,
    /// `/a/b`: a leading slash, no empty component, no trailing slash; never the root.
    Path,
}

/// One pattern of a dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a> {
    /// What it matches.
    pub positions: &'a Positions,
    /// The bits that meeting it sets; equally long for all members.
    pub row: &'a [u64],
    /// Its text, for an order that does not depend on where it was written.
    pub text: &'a str,
}

/// Steps that building all automata of a policy may take. A step is a set member looked at, so the
/// limit means the same on every machine; it is some seconds on a slow one.
pub(crate) const WORK: usize = 200_000_000;

/// What is left of `WORK`.
#[derive(Debug)]
pub(crate) struct Work {
    granted: usize,
    left: usize,
}

impl Work {
    /// A budget of steps.
    pub fn new(steps: usize) -> Self {
        Self {
            granted: steps,
            left: steps,
        }
    }

    /// Takes steps from the budget; `None` when they are not there.
    pub fn spend(&mut self, steps: usize) -> Option<()> {
        let enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        enough.then_some(())
    }

    /// A part of what is left, to be settled later.
    pub fn share(&self, steps: usize) -> Self {
        Self {
            left: self.left.min(steps),
            granted: self.left.min(steps),
        }
    }

    /// Takes what a share has spent.
    pub fn settle(&mut self, share: Work) {
        self.left -= share.granted - share.left;
    }

    /// Steps still allowed.
    pub fn left(&self) -> usize {
        self.left
    }
}
