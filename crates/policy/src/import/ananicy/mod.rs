//! ananicy's rules and types as a policy: lists of process names by what they shall get.
//!
//! An ananicy rule gives a process a nice value; a policy gives its threads a pool and a weight.
//! `outcome` is the whole of that translation. Names that get the same stand in one rule, so that
//! thousands of names need a handful of rules. ananicy knows the full name of an executable, the
//! kernel keeps 15 bytes: names are cut, and names that become one are reported.

mod line;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use twopool_diag::printable;

use crate::glob;
use crate::policy::{NEUTRAL_WEIGHT, Pool};
use crate::text::toml_string;
use crate::thread::{NAME_BYTES, cut};

use super::write::{Names, Policy, Rule};
use super::{Imported, NoteKind, Notes, Source};
use line::{Facts, Line, Parsed, Sched};

/// What one step of nice is worth: the kernel's own table has the same ratio.
const NICE_STEP: f64 = 1.25;

/// What a process gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    pool: Pool,
    /// 1..=10000.
    weight: u32,
}

/// What the values of a rule and its type come to; `None`: they say nothing about CPU time.
///
/// A real-time class, a negative nice or a negative latency_nice make a process critical, the
/// classes `idle` and `batch` and everything else background. The weight is that of the nice value,
/// `1.25^-nice` parts of 100; class `idle` has the least there is.
fn outcome(facts: &Facts) -> Option<Outcome> {
    if facts.nice.is_none() && facts.latency_nice.is_none() && facts.sched.is_none() {
        return None;
    }
    let is_negative = |value: Option<i8>| value.is_some_and(|value| value < 0);
    let pool = match facts.sched {
        Some(Sched::RealTime) => Pool::Critical,
        Some(Sched::Idle | Sched::Batch) => Pool::Background,
        _ if is_negative(facts.nice) || is_negative(facts.latency_nice) => Pool::Critical,
        _ => Pool::Background,
    };
    let weight = match facts.sched {
        Some(Sched::Idle) => 1,
        _ => weight_of_nice(facts.nice.unwrap_or(0)),
    };
    Some(Outcome { pool, weight })
}

/// 8674 for -20, 100 for 0, 1 for 19.
fn weight_of_nice(nice: i8) -> u32 {
    let weight = f64::from(NEUTRAL_WEIGHT) * NICE_STEP.powi(-i32::from(nice));
    (weight.round() as u32).clamp(1, 10_000)
}

/// A rule of ananicy, and where it is.
#[derive(Debug, Clone)]
struct Program {
    name: String,
    kind: Option<String>,
    facts: Facts,
    file: usize,
    line: usize,
}

/// A name as the kernel keeps it, and who wants it.
#[derive(Debug)]
struct Kept {
    outcome: Outcome,
    programs: Vec<Program>,
}

/// Imports the files of a directory, in their order. `directory` is for the policy's first line.
pub fn import(directory: &str, sources: &[Source]) -> Imported {
    let mut reader = Reader::default();
    for (index, source) in sources.iter().enumerate() {
        reader.file(index, source);
    }
    reader.finish(directory, sources)
}

#[derive(Default)]
struct Reader {
    notes: Notes,
    /// Rules that were read, malformed ones included.
    read: usize,
    programs: Vec<Program>,
    /// Types by name, the last one of a name.
    types: HashMap<String, Facts>,
    /// Keys that are not about CPU time: where the first is, and how many there are.
    dropped: BTreeMap<String, (usize, usize, usize)>,
}

impl Reader {
    fn file(&mut self, file: usize, source: &Source) {
        for (index, bytes) in source.bytes.split(|b| *b == b'\n').enumerate() {
            let line = index + 1;
            match line::parse(bytes) {
                Ok(None) => {}
                Ok(Some(parsed)) => self.line(file, line, parsed, source),
                Err(text) => {
                    self.read += 1;
                    self.notes.at(NoteKind::Malformed, &source.name, line, text);
                }
            }
        }
    }

    fn line(&mut self, file: usize, line: usize, parsed: Parsed, source: &Source) {
        for key in parsed.dropped {
            let (.., count) = self.dropped.entry(key).or_insert((file, line, 0));
            *count += 1;
        }
        match parsed.line {
            Line::Cgroup => {}
            Line::Type(name) => {
                self.types.insert(name, parsed.facts);
            }
            Line::Program {
                name,
                kind,
                narrowed,
            } => {
                self.read += 1;
                if let Some(key) = narrowed {
                    let text = format!("`{name}`: `{key}` asks for more than a name");
                    self.notes.at(NoteKind::LeftOut, &source.name, line, text);
                    return;
                }
                let facts = parsed.facts;
                self.programs.push(Program {
                    name,
                    kind,
                    facts,
                    file,
                    line,
                });
            }
        }
    }

    fn finish(mut self, directory: &str, sources: &[Source]) -> Imported {
        let programs = self.last_of_each_name(sources);
        let kept = self.by_kept_name(programs, sources);
        self.note_dropped(sources);
        let imported = kept.values().map(|kept| kept.programs.len()).sum();
        let (policy, rules) = text(directory, &kept, sources);
        Imported {
            policy,
            notes: self.notes.sorted(),
            read: self.read,
            kept: imported,
            rules,
        }
    }

    /// Where ananicy finds a name twice, the line that it reads last counts.
    fn last_of_each_name(&mut self, sources: &[Source]) -> Vec<Program> {
        let all = std::mem::take(&mut self.programs);
        let last: HashMap<String, usize> = all
            .iter()
            .enumerate()
            .map(|(index, program)| (program.name.clone(), index))
            .collect();
        let mut out = Vec::new();
        for (index, program) in all.iter().enumerate() {
            let later = last[&program.name];
            if later == index {
                out.push(program.clone());
                continue;
            }
            let text = format!(
                "`{}` is again at {}",
                program.name,
                place(&all[later], sources)
            );
            let file = &sources[program.file].name;
            self.notes.at(NoteKind::Duplicate, file, program.line, text);
        }
        out
    }

    fn by_kept_name(
        &mut self,
        programs: Vec<Program>,
        sources: &[Source],
    ) -> BTreeMap<Vec<u8>, Kept> {
        let mut all = BTreeMap::new();
        for program in programs {
            let Some(outcome) = self.judge(&program, sources) else {
                continue;
            };
            let bytes = cut(program.name.as_bytes()).to_vec();
            let file = &sources[program.file].name;
            if bytes.len() < program.name.len() {
                let shown = String::from_utf8_lossy(&bytes);
                let text = format!("`{}` is `{shown}` to the kernel", program.name);
                self.notes.at(NoteKind::Cut, file, program.line, text);
            }
            match all.entry(bytes) {
                Entry::Vacant(entry) => {
                    entry.insert(Kept {
                        outcome,
                        programs: vec![program],
                    });
                }
                Entry::Occupied(mut entry) if entry.get().outcome == outcome => {
                    entry.get_mut().programs.push(program);
                }
                Entry::Occupied(mut entry) => {
                    let earlier = &entry.get().programs[0];
                    let text = format!(
                        "`{}` ({}) gives way to `{}` ({}, {})",
                        earlier.name,
                        entry.get().outcome.words(),
                        program.name,
                        outcome.words(),
                        place(&program, sources)
                    );
                    let file = &sources[earlier.file].name;
                    self.notes.at(NoteKind::Clash, file, earlier.line, text);
                    entry.insert(Kept {
                        outcome,
                        programs: vec![program],
                    });
                }
            }
        }
        all
    }

    /// What a rule and its type come to, or a note why nothing.
    fn judge(&mut self, program: &Program, sources: &[Source]) -> Option<Outcome> {
        let known = program
            .kind
            .as_ref()
            .map(|kind| (kind, self.types.get(kind)));
        let facts = match known {
            Some((_, Some(of_type))) => program.facts.over(of_type),
            _ => program.facts.clone(),
        };
        let file = &sources[program.file].name;
        if facts.sched == Some(Sched::RealTime) {
            let text = format!(
                "`{}`: its real-time class is not set; the threads that have one are out of reach, the others critical",
                program.name
            );
            self.notes.at(NoteKind::Changed, file, program.line, text);
        }
        let found = outcome(&facts);
        if found.is_none() {
            let (name, line) = (&program.name, program.line);
            let (kind, text) = match known {
                Some((unknown, None)) => (
                    NoteKind::LeftOut,
                    format!("`{name}`: no file defines the type `{unknown}`"),
                ),
                _ => (
                    NoteKind::Dropped,
                    format!("`{name}` gets nothing that is about CPU time"),
                ),
            };
            self.notes.at(kind, file, line, text);
        }
        found
    }

    fn note_dropped(&mut self, sources: &[Source]) {
        for (key, (file, line, count)) in std::mem::take(&mut self.dropped) {
            let reason = line::why_dropped(&key);
            let lines = if count == 1 { "line" } else { "lines" };
            let text = format!("`{key}`, {count} {lines} from here: {reason}");
            self.notes
                .at(NoteKind::Dropped, &sources[file].name, line, text);
        }
    }
}

impl Outcome {
    fn words(self) -> String {
        format!("{}, weight {}", self.pool.as_str(), self.weight)
    }
}

fn place(program: &Program, sources: &[Source]) -> String {
    format!("{}:{}", sources[program.file].name, program.line)
}

/// One rule for each outcome, critical ones first, heavy ones first.
fn text(directory: &str, kept: &BTreeMap<Vec<u8>, Kept>, sources: &[Source]) -> (String, usize) {
    let mut policy = Policy::new(&header(directory), Pool::Background);
    let mut groups: BTreeMap<(Pool, std::cmp::Reverse<u32>), Vec<&Kept>> = BTreeMap::new();
    for kept in kept.values() {
        let key = (kept.outcome.pool, std::cmp::Reverse(kept.outcome.weight));
        groups.entry(key).or_default().push(kept);
    }
    let mut names = Names::default();
    for ((pool, weight), members) in groups {
        let outcome = Outcome {
            pool,
            weight: weight.0,
        };
        let mut lines = vec!["process = [".to_owned()];
        lines.extend(members.iter().map(|kept| name_line(kept, sources)));
        lines.push("]".to_owned());
        policy.rule(&Rule {
            comments: vec![match members.len() {
                1 => "One name, and where it came from.".to_owned(),
                count => format!("{count} names, and where each came from."),
            }],
            name: names.unique(&format!("ananicy, {}", outcome.words())),
            pool,
            conditions: lines,
            slice: None,
            weight: (weight.0 != NEUTRAL_WEIGHT).then_some(weight.0),
        });
    }
    policy.finish()
}

fn header(directory: &str) -> Vec<String> {
    vec![
        format!("From the ananicy rules in {directory}, by `twopool import ananicy`."),
        String::new(),
        "Names are of processes as the kernel keeps them: at most 15 bytes. A negative nice or"
            .into(),
        "latency_nice and real-time classes became critical, everything else background; weights"
            .into(),
        "are 100 times 1.25 for each step of nice.".into(),
    ]
}

/// `"name",  # file:line, type`.
fn name_line(kept: &Kept, sources: &[Source]) -> String {
    let full = &kept.programs[0].name;
    let bytes = cut(full.as_bytes());
    // A name that the cut leaves in the middle of a character cannot be written; `check` cuts it.
    let name = std::str::from_utf8(bytes).unwrap_or(full);
    let value = match name.contains(glob::CHARACTERS) {
        true => format!("{{ exact = {} }}", toml_string(name)),
        false => toml_string(name),
    };
    let origins: Vec<String> = kept
        .programs
        .iter()
        .map(|program| {
            let kind = program
                .kind
                .as_ref()
                .map_or_else(String::new, |kind| format!(", {kind}"));
            let full = match program.name.len() > NAME_BYTES {
                true => format!(", full name {}", program.name),
                false => String::new(),
            };
            format!("{}{kind}{full}", place(program, sources))
        })
        .collect();
    let origins = origins.join("; ");
    format!("    {value},  # {}", printable(&origins))
}

#[cfg(test)]
mod tests;
