//! The findings of one run, bounded where they are made.
//!
//! A file that is no policy gives as many findings as it has bytes. Nobody reads them, and whoever
//! holds them (the daemon, a client on its socket) must not grow with them. So a bounded number is
//! kept, errors before warnings, and all of them are counted.
//!
//! Invariant: what is kept never exceeds `MAX_KEPT` findings, and `MAX_KEPT_BYTES` of text unless
//! one finding alone does; if there was an error, an error is kept.

use crate::{Diagnostic, Severity};

/// Findings of one run that are kept.
pub const MAX_KEPT: usize = 1000;
/// Bytes of text of the findings that are kept: a finding quotes keys and patterns, which may be
/// as long as the file.
pub const MAX_KEPT_BYTES: usize = 1 << 20;

/// Findings: the first ones themselves, all of them as counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    kept: Vec<Diagnostic>,
    kept_bytes: usize,
    kept_warnings: usize,
    errors: usize,
    warnings: usize,
}

impl Findings {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a finding, and keeps it while there is room. An error takes the place of a warning.
    pub fn push(&mut self, found: Diagnostic) {
        match found.severity() {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        self.keep(found);
    }

    /// Counts errors that nobody described.
    pub fn note_errors(&mut self, count: usize) {
        self.errors += count;
    }

    /// Adds what another stage found, counts and all.
    pub fn absorb(&mut self, other: Findings) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        other.kept.into_iter().for_each(|found| self.keep(found));
    }

    /// Takes back what is not wanted of the findings that were kept.
    pub fn retain(&mut self, wanted: impl Fn(&Diagnostic) -> bool) {
        for found in std::mem::take(&mut self.kept) {
            let is_warning = found.severity() == Severity::Warning;
            if wanted(&found) {
                self.kept.push(found);
                continue;
            }
            self.kept_bytes -= text_bytes(&found);
            self.kept_warnings -= usize::from(is_warning);
            match is_warning {
                true => self.warnings -= 1,
                false => self.errors -= 1,
            }
        }
    }

    /// The findings that were kept.
    pub fn kept(&self) -> &[Diagnostic] {
        &self.kept
    }

    /// The findings that were kept, one by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.kept.iter()
    }

    /// Whether one more error, of whatever text, is only counted.
    pub fn is_full_of_errors(&self) -> bool {
        self.kept.len() == MAX_KEPT && self.kept_warnings == 0
    }

    /// All errors, kept or not.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// All warnings, kept or not.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// All findings, kept or not.
    pub fn total(&self) -> usize {
        self.errors + self.warnings
    }

    /// Findings that were counted and not kept.
    pub fn omitted(&self) -> usize {
        self.total() - self.kept.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Orders what is kept by file and place; what has no place comes last.
    pub fn sort_by_place(&mut self) {
        self.kept.sort_by_key(|d| {
            d.span
                .map_or((u32::MAX, 0, 0), |s| (s.file.0, s.start, s.end))
        });
    }

    fn keep(&mut self, found: Diagnostic) {
        let (bytes, is_warning) = (text_bytes(&found), found.severity() == Severity::Warning);
        while self.is_full_for(bytes) {
            if is_warning || self.kept_warnings == 0 {
                return;
            }
            self.drop_last_warning();
        }
        self.kept_bytes += bytes;
        self.kept_warnings += usize::from(is_warning);
        self.kept.push(found);
    }

    fn is_full_for(&self, bytes: usize) -> bool {
        self.kept.len() == MAX_KEPT
            || (!self.kept.is_empty() && self.kept_bytes + bytes > MAX_KEPT_BYTES)
    }

    fn drop_last_warning(&mut self) {
        let last = self
            .kept
            .iter()
            .rposition(|d| d.severity() == Severity::Warning);
        let dropped = self.kept.remove(last.expect("the caller knows of one"));
        self.kept_bytes -= text_bytes(&dropped);
        self.kept_warnings -= 1;
    }
}

impl Extend<Diagnostic> for Findings {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, found: T) {
        found.into_iter().for_each(|found| self.push(found));
    }
}

impl FromIterator<Diagnostic> for Findings {
    fn from_iter<T: IntoIterator<Item = Diagnostic>>(found: T) -> Self {
        let mut findings = Self::new();
        findings.extend(found);
        findings
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn text_bytes(d: &Diagnostic) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let related: usize = d.related.iter().map(|(_, text)| text.len()).sum();
    d.summary.len() + optional(&d.label) + optional(&d.help) + related
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn error(text: &str) -> Diagnostic {
        Diagnostic::new(Code::Syntax, None, text)
    }

    fn warning(text: &str) -> Diagnostic {
        Diagnostic::new(Code::NoRules, None, text)
    }

    #[test]
    fn the_first_are_kept_and_all_are_counted() {
        let found: Findings = (0..100_000).map(|i| error(&i.to_string())).collect();
        assert_eq!((found.errors(), found.warnings()), (100_000, 0));
        assert_eq!(found.kept().len(), MAX_KEPT);
        assert_eq!(found.omitted(), 100_000 - MAX_KEPT);
        assert_eq!(found.kept()[MAX_KEPT - 1].summary, "999");
    }

    #[test]
    fn an_error_takes_the_place_of_a_warning_and_never_the_reverse() {
        let mut found: Findings = (0..2 * MAX_KEPT).map(|_| warning("w")).collect();
        found.push(error("e"));
        assert_eq!(found.kept().len(), MAX_KEPT);
        assert_eq!(found.iter().filter(|d| d.summary == "e").count(), 1);
        (0..MAX_KEPT).for_each(|_| found.push(error("e")));
        found.push(warning("late"));
        assert!(found.iter().all(|d| d.summary == "e"));
        assert_eq!(
            (found.errors(), found.warnings()),
            (MAX_KEPT + 1, 2 * MAX_KEPT + 1)
        );
    }

    #[test]
    fn long_texts_are_bounded_too_and_one_error_always_stays() {
        let long = "x".repeat(MAX_KEPT_BYTES);
        let mut found = Findings::new();
        found.push(warning(&long));
        found.push(error(&long));
        found.push(error(&long));
        assert_eq!(
            (found.kept().len(), found.omitted(), found.errors()),
            (1, 2, 2)
        );
        assert_eq!(found.kept()[0].severity(), Severity::Error);
    }

    #[test]
    fn what_is_taken_back_is_not_counted() {
        let mut found: Findings = [error("a"), warning("b"), error("b")].into_iter().collect();
        assert!(!found.is_full_of_errors());
        found.retain(|d| d.summary != "b");
        assert_eq!((found.errors(), found.warnings()), (1, 0));
        assert_eq!(found.kept(), [error("a")]);
        (1..MAX_KEPT).for_each(|_| found.push(error("c")));
        assert!(found.is_full_of_errors());
    }

    #[test]
    fn counts_add_up_when_stages_are_joined() {
        let mut all: Findings = (0..900).map(|_| error("a")).collect();
        all.absorb((0..5_000).map(|_| error("b")).collect());
        assert_eq!(
            (all.errors(), all.kept().len(), all.omitted()),
            (5_900, MAX_KEPT, 4_900)
        );
    }
}
