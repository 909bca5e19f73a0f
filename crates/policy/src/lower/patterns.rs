//! Names and cgroup paths: exact names into one sorted table, everything else into automata.

use std::collections::{BTreeMap, HashMap};

use twopool_diag::{Code, Diagnostic, Findings};

use super::rows::{Rows, or};
use crate::automaton::{self, Automata, Dfa, Domain, Member, Positions, Refusal, Work};
use crate::image::{DfaRecord, NameDimRecord, Tables, UNIT_SHIFTS};
use crate::policy::{CgroupCondition, NameCondition, Pattern, PatternKind, Policy, Rule};
use crate::thread::NAME_BYTES;

/// Every distinct pattern that needs an automaton, with what it matches.
#[derive(Debug, Default)]
pub(super) struct Compiled<'a> {
    known: HashMap<(bool, &'a str), Option<Positions>>,
}

impl<'a> Compiled<'a> {
    /// Reads the patterns of all rules; one diagnostic for each place of a pattern that cannot be
    /// built or cannot match.
    pub fn new(policy: &'a Policy, work: &mut Work, diagnostics: &mut Findings) -> Self {
        let mut compiled = Self::default();
        for table in policy.rules.iter().flat_map(Rule::tables) {
            for pattern in table.names() {
                if pattern.kind != PatternKind::Exact {
                    compiled.add(pattern, Domain::Name, work, diagnostics);
                }
            }
            for pattern in table.patterns("cgroup") {
                compiled.add(pattern, Domain::Path, work, diagnostics);
            }
        }
        compiled
    }

    fn add(
        &mut self,
        pattern: &'a Pattern,
        domain: Domain,
        work: &mut Work,
        diagnostics: &mut Findings,
    ) {
        let known = self.known.entry((domain == Domain::Name, &pattern.regex));
        let refusal = match known.or_insert(None) {
            Some(_) => None,
            place => match Positions::new(&pattern.regex, domain, work) {
                Ok(positions) => {
                    *place = Some(positions);
                    None
                }
                Err(refusal) => Some(refusal),
            },
        };
        let positions = self.known[&(domain == Domain::Name, pattern.regex.as_str())].as_ref();
        diagnostics.extend(match (refusal, positions) {
            (Some(refusal), _) => Some(refused(pattern, &refusal)),
            (None, Some(positions)) if domain == Domain::Name => never_matches(pattern, positions),
            _ => None,
        });
    }

    fn get(&self, pattern: &'a Pattern, domain: Domain) -> &Positions {
        let positions = self
            .known
            .get(&(domain == Domain::Name, pattern.regex.as_str()));
        positions
            .and_then(Option::as_ref)
            .expect("lowering stops at patterns that were refused")
    }
}

fn refused(pattern: &Pattern, refusal: &Refusal) -> Diagnostic {
    let text = &pattern.text;
    match refusal {
        Refusal::Invalid(reason) => Diagnostic::new(
            Code::InvalidRegex,
            pattern.at.0,
            format!("invalid regex `{text}`"),
        )
        .label(reason.clone()),
        Refusal::TooLarge(reason) => Diagnostic::new(
            Code::PatternTooLarge,
            pattern.at.0,
            format!("pattern `{text}` is too large"),
        )
        .label(reason.clone())
        .help("shorten counted repetitions, and avoid `(?u)` classes such as `\\w`"),
    }
}

fn never_matches(pattern: &Pattern, positions: &Positions) -> Option<Diagnostic> {
    let label = match positions.shortest {
        Some(length) if length <= NAME_BYTES => return None,
        Some(length) => format!("it needs at least {length} bytes"),
        None => "it matches nothing at all".to_owned(),
    };
    let summary = format!(
        "no name of at most {NAME_BYTES} bytes can match `{}`",
        pattern.text
    );
    Some(Diagnostic::new(Code::NeverMatches, pattern.at.0, summary).label(label))
}

/// Plane rows of exact names, by their padded bytes, for threads and for processes.
pub(super) type ExactNames = BTreeMap<[u64; 2], [Vec<u64>; 2]>;

/// The patterns of one dimension, each with all bits that meeting it sets.
struct Dimension<'a> {
    distinct: Vec<(&'a Pattern, Vec<u64>)>,
    ids: HashMap<&'a str, usize>,
}

impl<'a> Dimension<'a> {
    fn new() -> Self {
        Self {
            distinct: Vec::new(),
            ids: HashMap::new(),
        }
    }

    fn add(&mut self, pattern: &'a Pattern, bits: &[u64]) {
        let id = *self.ids.entry(&pattern.regex).or_insert_with(|| {
            self.distinct.push((pattern, vec![0; bits.len()]));
            self.distinct.len() - 1
        });
        or(&mut self.distinct[id].1, bits);
    }
}

/// Lowers one name dimension (0 thread, 1 process); exact names go to `exact`.
pub(super) fn names<'a>(
    asked: &[(&'a NameCondition, Vec<u64>)],
    dim: usize,
    exact: &mut ExactNames,
    lowering: &mut Lowering<'_, 'a>,
) -> Option<NameDimRecord> {
    let mut dimension = Dimension::new();
    for (condition, bits) in asked {
        for pattern in &condition.patterns {
            if pattern.kind != PatternKind::Exact {
                dimension.add(pattern, bits);
                continue;
            }
            let empty = || [vec![0; bits.len()], vec![0; bits.len()]];
            or(
                &mut exact.entry(key(&pattern.bytes)).or_insert_with(empty)[dim],
                bits,
            );
        }
    }
    let what = ["thread names", "process names"][dim];
    lowering.automata(&dimension, Domain::Name, what)
}

/// Lowers the cgroup dimension; `init` is the plane row that every path starts from.
pub(super) fn paths<'a>(
    asked: &[(&'a CgroupCondition, Vec<u64>)],
    init: &[u64],
    lowering: &mut Lowering<'_, 'a>,
) -> Option<NameDimRecord> {
    let mut dimension = Dimension::new();
    for (condition, bits) in asked {
        condition
            .patterns
            .iter()
            .for_each(|pattern| dimension.add(pattern, bits));
    }
    let mut root = init.to_vec();
    for (pattern, bits) in &dimension.distinct {
        if lowering.compiled.get(pattern, Domain::Path).matches(b"/") {
            or(&mut root, bits);
        }
    }
    let record = lowering.automata(&dimension, Domain::Path, "cgroups")?;
    Some(NameDimRecord {
        root: lowering.plane_rows.intern(&root),
        ..record
    })
}

/// A name as the two u64s of `struct name_entry`.
fn key(name: &[u8]) -> [u64; 2] {
    let mut bytes = [0; 16];
    let kept = crate::thread::cut(name);
    bytes[..kept.len()].copy_from_slice(kept);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [word(0), word(8)]
}

/// What lowering patterns adds to.
pub(super) struct Lowering<'c, 'a> {
    pub compiled: &'c Compiled<'a>,
    pub plane_rows: &'c mut Rows,
    pub tables: &'c mut Tables,
    pub work: &'c mut Work,
    pub diagnostics: &'c mut Findings,
}

impl<'a> Lowering<'_, 'a> {
    fn automata(
        &mut self,
        dimension: &Dimension<'a>,
        domain: Domain,
        what: &str,
    ) -> Option<NameDimRecord> {
        let members: Vec<Member> = dimension
            .distinct
            .iter()
            .map(|(pattern, bits)| Member {
                positions: self.compiled.get(pattern, domain),
                row: bits,
                text: &pattern.regex,
            })
            .collect();
        match automaton::plan(&members, domain, self.work) {
            Ok(automata) => Some(self.write(&automata, &members)),
            Err(automaton::TooLarge(chosen)) => {
                let patterns = chosen.iter().map(|m| dimension.distinct[*m].0).collect();
                self.diagnostics.push(too_large(patterns, what));
                None
            }
        }
    }

    fn write(&mut self, automata: &Automata, members: &[Member]) -> NameDimRecord {
        let dfas = automata
            .dfas
            .iter()
            .map(|dfa| self.write_dfa(dfa))
            .collect();
        let units = &automata.units;
        let unit_cls = self.tables.push_u16s(&units.classes.of.map(u16::from));
        let mut records = Vec::new();
        for unit in &units.units {
            let masks = self.tables.push_u64s(&unit.masks);
            let mut rows = [0u16; 64];
            for (bit, member) in &unit.met {
                rows[*bit as usize] = self.plane_row(members[*member].row);
            }
            let bits = self.tables.push_u16s(&rows);
            let mut by = [0; 8];
            by[..UNIT_SHIFTS].copy_from_slice(&unit.by);
            records.extend([unit.init, unit.accept]);
            records.extend(unit.from);
            records.extend([
                u64::from_le_bytes(by),
                u64::from(masks) | u64::from(bits) << 32,
            ]);
        }
        NameDimRecord {
            dfas,
            unit_count: units.units.len() as u32,
            unit_cls,
            units: self.tables.push_u64s(&records),
            ..NameDimRecord::default()
        }
    }

    fn write_dfa(&mut self, dfa: &Dfa) -> DfaRecord {
        let ids: Vec<u16> = dfa.rows.iter().map(|row| self.plane_row(row)).collect();
        let by_state =
            |rows: &[u32]| -> Vec<u16> { rows.iter().map(|row| ids[*row as usize]).collect() };
        DfaRecord {
            cls: self.tables.push_u16s(&dfa.classes.of.map(u16::from)),
            trans: self.tables.push_u16s(&dfa.trans),
            emit: self.tables.push_u16s(&by_state(&dfa.emit)),
            fin: self.tables.push_u16s(&by_state(&dfa.fin)),
            classes: dfa.classes.representatives.len() as u32,
            start: 0,
        }
    }

    /// Ids past u16 are cut here and refused when the image is complete.
    fn plane_row(&mut self, row: &[u64]) -> u16 {
        self.plane_rows.intern(row) as u16
    }
}

/// Names up to this many of the patterns that are too large together.
const NAMED: usize = 4;

fn too_large(patterns: Vec<&Pattern>, what: &str) -> Diagnostic {
    let count = patterns.len();
    let summary = match patterns.as_slice() {
        [pattern] => format!("pattern `{}` is too large", pattern.text),
        _ => format!("{count} patterns on {what} are too large together"),
    };
    let mut diagnostic = Diagnostic::new(Code::PatternTooLarge, patterns[0].at.0, summary)
        .label("its automaton would exceed the limit");
    for pattern in patterns.iter().skip(1).take(NAMED - 1) {
        if let Some(span) = pattern.at.0 {
            diagnostic = diagnostic.related(span, format!("together with `{}`", pattern.text));
        }
    }
    if count > NAMED {
        diagnostic = diagnostic.label(format!("this and {} more", count - 1));
    }
    diagnostic.help("use fewer wildcards in one pattern, anchor it at its beginning, or count less")
}
