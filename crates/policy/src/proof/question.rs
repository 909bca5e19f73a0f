//! Questions about threads and their answers: is there one that meets these literals and that none
//! of those alternatives takes? `solve` answers them.

use super::space::{Alternative, Literal};
use crate::eval::Row;
use crate::thread::Thread;

/// Alternatives, by policy.
pub(super) type Alternatives = [Row; 2];

/// What is asked.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub meets: Vec<Literal>,
    pub avoids: Vec<Literal>,
    /// None of these may take the thread.
    pub blockers: Alternatives,
}

impl Question {
    /// Whether some thread meets all of these alternatives and is taken by none of the blockers.
    pub fn of<'a>(
        alternatives: impl IntoIterator<Item = &'a Alternative>,
        blockers: Alternatives,
    ) -> Self {
        let (mut meets, mut avoids) = (Vec::new(), Vec::new());
        for alternative in alternatives {
            meets.extend_from_slice(&alternative.meets);
            avoids.extend(alternative.avoids);
        }
        Self {
            meets,
            avoids,
            blockers,
        }
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// This thread does it.
    Yes(Box<Thread>),
    /// No thread does, because of these blockers; of none, if what is asked contradicts itself.
    No(Alternatives),
    /// The work was used up first.
    Undecided,
}

/// Over several answers: the first yes, else undecided if one is, else no, with everybody blamed.
pub(super) fn first_yes(answers: impl Iterator<Item = Answer>) -> Answer {
    let (mut core, mut undecided) = (Alternatives::default(), false);
    for answer in answers {
        match answer {
            Answer::Yes(thread) => return Answer::Yes(thread),
            Answer::No(blamed) => join(&mut core, &blamed),
            Answer::Undecided => undecided = true,
        }
    }
    match undecided {
        true => Answer::Undecided,
        false => Answer::No(core),
    }
}

/// Both sets together.
pub(super) fn join(into: &mut Alternatives, other: &Alternatives) {
    for (mine, theirs) in into.iter_mut().flatten().zip(other.iter().flatten()) {
        *mine |= theirs;
    }
}
