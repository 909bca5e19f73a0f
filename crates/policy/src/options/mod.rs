//! `Options`: one file as it was written, every value of its key's type and in its key's range.
//!
//! Nothing is defaulted, resolved or merged here, and every value knows its place. `read` makes
//! it from a TOML tree and reports everything that is wrong with a key or a value taken alone.

mod condition;
mod read;
mod rule;
mod scalar;
mod text;
mod value;

use std::collections::BTreeMap;

use twopool_diag::{Diagnostic, FileId, Findings, Span};

use crate::policy::{Cpus, Pool, Sched};
use crate::syntax::Tree;

pub(crate) use scalar::UNITS;
#[cfg(test)]
pub(crate) use scalar::duration_us;
pub use scalar::show_us;

/// One file.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which one.
    pub file: FileId,
    /// Keys outside `[[rule]]` and `[[test]]` by their full path.
    pub settings: BTreeMap<String, Setting>,
    /// In the order written.
    pub rules: Vec<RuleOptions>,
    /// In the order written.
    pub tests: Vec<TestOptions>,
    /// Settings that were written but refused, by path.
    pub refused: Vec<String>,
    /// The text had syntax errors, so that something may be absent which the user did write.
    pub broken: bool,
    /// The text holds nothing but blanks and comments.
    pub empty: bool,
}

/// The value of one key and its place.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Checked against the key's kind.
    pub value: Value,
    /// Of the value.
    pub span: Span,
}

/// A value that fits its key.
#[derive(Debug, Clone)]
pub enum Value {
    /// An integer in range.
    Integer(i64),
    /// A duration in microseconds.
    Micros(u64),
    /// `"off"`.
    Off,
    /// A percentage.
    Percent(u32),
    /// A number of CPUs.
    Cpus(Cpus),
    /// A boolean.
    Bool(bool),
    /// One of the key's words.
    Word(&'static str),
    /// A pool.
    Pool(Pool),
    /// Free text.
    Text(Text),
    /// A condition on cgroups.
    Cgroups(Vec<PatternOptions>),
}

/// A string and where its characters stand.
#[derive(Debug, Clone)]
pub struct Text {
    /// The value after TOML's own escapes.
    pub value: String,
    /// The string with its quotes.
    pub span: Span,
    /// File offset of the value's first byte where the source spells it byte for byte.
    pub verbatim_at: Option<u32>,
    /// The first escape in double quotes that also means something in patterns: `\x2d`, `\b`.
    pub escape: Option<Span>,
}

impl Text {
    /// The place of a range of bytes of the value, or of the whole string where it has escapes.
    pub fn part(&self, range: std::ops::Range<usize>) -> Span {
        match self.verbatim_at {
            Some(at) => Span {
                file: self.span.file,
                start: at + range.start as u32,
                end: at + range.end as u32,
            },
            None => self.span,
        }
    }
}

/// One `[[rule]]`.
#[derive(Debug, Clone)]
pub struct RuleOptions {
    /// `name`.
    pub name: Option<Text>,
    /// `pool`; absent only if that was reported.
    pub pool: Option<(Pool, Span)>,
    /// The rule's own conditions.
    pub all: ConditionOptions,
    /// `any`, and its place.
    pub any: Option<(Vec<ConditionOptions>, Span)>,
    /// `not`.
    pub not: Option<ConditionOptions>,
    /// `slice`.
    pub slice_us: Option<(u64, Span)>,
    /// `weight`.
    pub weight: Option<(u32, Span)>,
    /// `hints`.
    pub hints: Option<(bool, Span)>,
    /// The header.
    pub header: Span,
}

/// Conditions of one table.
#[derive(Debug, Clone, Default)]
pub struct ConditionOptions {
    /// `thread`.
    pub thread: Option<Vec<PatternOptions>>,
    /// `process`.
    pub process: Option<Vec<PatternOptions>>,
    /// `cgroup`.
    pub cgroup: Option<Vec<PatternOptions>>,
    /// `user`.
    pub user: Option<Numbers>,
    /// `group`.
    pub group: Option<Numbers>,
    /// `nice`.
    pub nice: Option<Numbers>,
    /// `kthread`.
    pub kthread: Option<bool>,
    /// `leader`.
    pub leader: Option<bool>,
    /// `sched`.
    pub sched: Option<Vec<Sched>>,
    /// `hint`.
    pub hint: Option<Numbers>,
    /// Where each condition's value stands, by key.
    pub spans: BTreeMap<&'static str, Span>,
}

/// How a pattern was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A bare string.
    Bare,
    /// `{ exact = .. }`.
    Exact,
    /// `{ prefix = .. }`.
    Prefix,
    /// `{ under = .. }`.
    Under,
    /// `{ glob = .. }`.
    Glob,
    /// `{ regex = .. }`.
    Regex,
}

/// One pattern as written.
#[derive(Debug, Clone)]
pub struct PatternOptions {
    /// Its form.
    pub form: Form,
    /// Its text.
    pub text: Text,
}

/// A condition on a number.
#[derive(Debug, Clone)]
pub struct Numbers {
    /// Never empty.
    pub items: Vec<NumberItem>,
    /// Of the whole value.
    pub span: Span,
}

/// One alternative of a condition on a number.
#[derive(Debug, Clone)]
pub enum NumberItem {
    /// A value.
    One(i64),
    /// Bounds, both inclusive, min <= max; an absent one is open.
    Range(Option<i64>, Option<i64>),
    /// The name of a user or group.
    Name(Text),
}

/// A user or group of a simulated thread.
#[derive(Debug, Clone)]
pub enum IdOptions {
    /// By number.
    Number(u64),
    /// By name.
    Name(String),
}

/// One `[[test]]`.
#[derive(Debug, Clone)]
pub struct TestOptions {
    /// `name`.
    pub name: Option<Text>,
    /// `thread`; absent only if that was reported.
    pub thread: Option<Text>,
    /// `process`.
    pub process: Option<Text>,
    /// `cgroup`.
    pub cgroup: Option<Text>,
    /// `user`.
    pub user: Option<IdOptions>,
    /// `group`.
    pub group: Option<IdOptions>,
    /// `nice`.
    pub nice: Option<i64>,
    /// `kthread`.
    pub kthread: Option<bool>,
    /// `leader`.
    pub leader: Option<bool>,
    /// `sched`.
    pub sched: Option<Sched>,
    /// `hint`.
    pub hint: Option<i64>,
    /// The value of `expect`.
    pub expect: Option<Span>,
    /// `expect.pool`; absent only if that was reported.
    pub pool: Option<(Pool, Span)>,
    /// `expect.rule`.
    pub rule: Option<Text>,
    /// The header.
    pub header: Span,
}

/// Reads a whole file. Findings that are guesswork are left out.
pub fn read(tree: &Tree<'_>, is_guesswork: &dyn Fn(&Diagnostic) -> bool) -> (Options, Findings) {
    read::Reader::new(tree, is_guesswork).file()
}

/// Reads a default of the table of keys. Defaults are ours, so one that does not fit is a bug.
pub fn default_value(key: &crate::keys::Key, text: &str) -> Value {
    read::default_value(key, text)
}

/// The scheduling policy of a word of the table of keys.
pub fn sched(word: &str) -> Option<Sched> {
    match word {
        "normal" => Some(Sched::Normal),
        "batch" => Some(Sched::Batch),
        "idle" => Some(Sched::Idle),
        _ => None,
    }
}
