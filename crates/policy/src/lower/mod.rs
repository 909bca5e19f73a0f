//! `Policy` to `Image`: everything that can be decided before a thread exists is decided here.
//!
//! Rules become alternatives (`any` and `not` are gone after that), alternatives become bits, and
//! each dimension becomes tables that map a value to the row of bits it does not rule out.
//!
//! Invariant: an image comes back only without an error among the diagnostics, and it decides
//! about every thread as the policy's text says.

mod alternatives;
mod numbers;
mod patterns;
mod rows;
mod settings;

#[cfg(test)]
mod tests;

use twopool_diag::{Code, Diagnostic, Findings};

use self::alternatives::Asked;
pub(crate) use self::alternatives::{Alternative, Field, alternatives};
use self::patterns::{Compiled, ExactNames, Lowering};
use self::rows::Rows;
use crate::automaton::{WORK, Work};
use crate::image::names::NameTable;
use crate::image::{
    Header, Image, MAX_ALTS, MAX_BOUNDS, MAX_EXACT_NAMES, MAX_RULES, NameDimRecord, POOL_WORDS,
    PoolRecord, RangesRecord, Tables, encode,
};
use crate::limits;
use crate::policy::{Conditions, NumberCondition, Policy};

// What resolving lets through must fit the image.
const _: () = assert!(limits::MAX_RULES == MAX_RULES && limits::MAX_ALTERNATIVES == MAX_ALTS);
const _: () = assert!(limits::MAX_EXACT_NAMES == MAX_EXACT_NAMES);

/// Compiles a policy. The image is there exactly if no diagnostic is an error.
///
/// # Panics
///
/// If the policy exceeds the counts in [`limits`]; resolving refuses such a policy.
pub fn lower(policy: &Policy) -> (Option<Image>, Findings) {
    let mut diagnostics = Findings::new();
    let mut work = Work::new(WORK);
    let compiled = Compiled::new(policy, &mut work, &mut diagnostics);
    let alternatives = alternatives(policy);
    assert!(
        policy.rules.len() <= MAX_RULES && alternatives.len() <= MAX_ALTS,
        "resolve refuses more"
    );
    if diagnostics.errors() > 0 {
        return (None, diagnostics);
    }
    let image = tables(
        policy,
        &alternatives,
        &compiled,
        &mut work,
        &mut diagnostics,
    );
    let failed = diagnostics.errors() > 0;
    assert_eq!(
        image.is_some(),
        !failed,
        "an image, or the reason why there is none"
    );
    (image, diagnostics)
}

fn tables(
    policy: &Policy,
    alternatives: &[Alternative<'_>],
    compiled: &Compiled<'_>,
    work: &mut Work,
    diagnostics: &mut Findings,
) -> Option<Image> {
    let words = alternatives.len().div_ceil(64).max(1);
    let (mut rows, mut plane_rows) = (Rows::new(words), Rows::new(3 * words));
    let mut tables = Tables::default();
    let thread = Asked::new(alternatives, words, Field::Thread, |c| c.thread.as_ref());
    let process = Asked::new(alternatives, words, Field::Process, |c| c.process.as_ref());
    let cgroup = Asked::new(alternatives, words, Field::Cgroup, |c| c.cgroup.as_ref());
    let mut exact = ExactNames::new();
    let mut lowering = Lowering {
        compiled,
        plane_rows: &mut plane_rows,
        tables: &mut tables,
        work,
        diagnostics,
    };
    let dims = [
        patterns::names(&thread.conditions, 0, &mut exact, &mut lowering),
        patterns::names(&process.conditions, 1, &mut exact, &mut lowering),
        patterns::paths(&cgroup.conditions, &cgroup.init, &mut lowering),
    ];
    let [
        Some(mut thread_dim),
        Some(mut process_dim),
        Some(mut cgroup_dim),
    ] = dims
    else {
        return None;
    };
    if plane_rows.len() > usize::from(u16::MAX) {
        diagnostics.push(overflow("patterns"));
        return None;
    }
    thread_dim.init = plane_rows.intern(&thread.init);
    process_dim.init = plane_rows.intern(&process.init);
    cgroup_dim.init = plane_rows.intern(&cgroup.init);
    let mut header = empty_header(words, [thread_dim, process_dim], cgroup_dim);
    header.alt_rule = alternatives.iter().map(|a| a.rule as u16 + 1).collect();
    write_names(&exact, &mut plane_rows, &mut tables, &mut header);
    write_numbers(
        alternatives,
        &mut rows,
        &mut tables,
        &mut header,
        diagnostics,
    );
    header.rows = tables.push_u64s(rows.words());
    header.plane_rows = tables.push_u64s(plane_rows.words());
    settings::settings(policy, &mut header);
    if diagnostics.errors() > 0 {
        return None;
    }
    let image = encode(&header, &tables);
    if image.is_none() {
        diagnostics.push(overflow("patterns and names"));
    }
    image
}

fn overflow(what: &str) -> Diagnostic {
    let summary = format!(
        "the {what} of this policy need more than {} KiB of tables",
        POOL_WORDS / 128
    );
    Diagnostic::new(Code::LimitExceeded, None, summary)
        .help("use fewer patterns with wildcards, above all on cgroups")
}

/// The exact names, where the kernel program looks for them.
fn write_names(
    exact: &ExactNames,
    plane_rows: &mut Rows,
    tables: &mut Tables,
    header: &mut Header,
) {
    assert!(exact.len() <= MAX_EXACT_NAMES, "resolve refuses more");
    let with_rows = exact.iter().map(|(key, [thread, process])| {
        let rows = [plane_rows.intern(thread), plane_rows.intern(process)].map(u64::from);
        (*key, rows[0] | rows[1] << 32)
    });
    let table = NameTable::new(&with_rows.collect::<Vec<_>>());
    let entries = table.entries.iter();
    let words: Vec<u64> = entries
        .flat_map(|(key, rows)| [key[0], key[1], *rows])
        .collect();
    header.names = tables.push_u64s(&words);
    header.name_slots = table.entries.len() as u32;
    header.name_displacements = tables.push_u16s(&table.displacements);
    header.name_seed = table.seed;
}

fn write_numbers<'a>(
    alternatives: &[Alternative<'a>],
    rows: &mut Rows,
    tables: &mut Tables,
    header: &mut Header,
    diagnostics: &mut Findings,
) {
    let words = header.words as usize;
    header.nice_row = numbers::nice(alternatives, words, rows);
    header.flags_row = numbers::flags(alternatives, words, rows);
    let mut ranges = |field, what, get: fn(&'a Conditions) -> Option<&'a NumberCondition>| {
        match numbers::ranges(alternatives, words, field, get, rows, tables) {
            Ok(record) => record,
            Err(numbers::TooManyBounds(count)) => {
                let summary =
                    format!("{count} bounds on {what}, more than the limit of {MAX_BOUNDS}");
                let help = "a range has two bounds; write neighbouring numbers as one range";
                diagnostics.push(Diagnostic::new(Code::LimitExceeded, None, summary).help(help));
                RangesRecord::default()
            }
        }
    };
    header.user = ranges(Field::User, "`user`", |c| c.user.as_ref());
    header.group = ranges(Field::Group, "`group`", |c| c.group.as_ref());
    header.hint = ranges(Field::Hint, "`hint`", |c| c.hint.as_ref());
}

fn empty_header(words: usize, name_dims: [NameDimRecord; 2], cgroup: NameDimRecord) -> Header {
    let pool = PoolRecord {
        slice_ns: 0,
        weight: 0,
        flags: 0,
        cpus_min: 0,
        cpus_max: 0,
        util_low_permille: 0,
        util_high_permille: 0,
        perf_permille: 0,
    };
    Header {
        words: words as u32,
        plane_rows: 0,
        rows: 0,
        names: 0,
        name_slots: 1,
        name_displacements: 0,
        name_seed: 0,
        name_dims,
        cgroup,
        user: RangesRecord::default(),
        group: RangesRecord::default(),
        hint: RangesRecord::default(),
        nice_row: [0; 64],
        flags_row: [0; 16],
        alt_rule: Vec::new(),
        rules: Vec::new(),
        pools: [pool; 2],
        steal_ns: [0; 4],
        sizing_interval_ns: 0,
        background_wait_ns: 0,
        hint_boost_ns: 0,
        hint_share_permille: 0,
    }
}
