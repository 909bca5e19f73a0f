//! Counts tests from what test runners print, line by line.

use std::collections::HashSet;

/// How many tests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Held.
    pub passed: u64,
    /// Did not hold, or could not be judged.
    pub failed: u64,
    /// Not run, with a reason given where it happened.
    pub skipped: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Counts one check of our own and says how it ended.
    pub fn check(&mut self, name: &str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
        println!("check {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// Cuts a byte stream into lines.
#[derive(Debug, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    /// Takes what arrived and returns the lines that are whole now.
    pub fn push(&mut self, data: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(data);
        let mut lines = Vec::new();
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        lines
    }
}

/// The count in cargo's own summary: `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
pub fn cargo_summary(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut tally = Tally::default();
    for part in counts.split(';') {
        let mut words = part.split_whitespace();
        let (Some(number), Some(word)) = (words.next(), words.next()) else {
            continue;
        };
        let number = number.parse().unwrap_or(0);
        match word {
            "passed" => tally.passed = number,
            "failed" => tally.failed = number,
            "ignored" => tally.skipped = number,
            _ => {}
        }
    }
    Some(tally)
}

/// Counts a guest's tests one by one: a guest that dies prints no summary, and what it had done
/// by then still counts.
#[derive(Debug, Default)]
pub struct GuestTally {
    tally: Tally,
    summarised: bool,
    failed: HashSet<String>,
}

impl GuestTally {
    /// Takes a line of the harness's output.
    pub fn line(&mut self, line: &str) {
        if line.starts_with("test result: ") {
            self.summarised = true;
            return;
        }
        let Some((name, verdict)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        else {
            return;
        };
        if verdict.starts_with("ok") {
            self.tally.passed += 1;
        } else if verdict.starts_with("ignored") {
            self.tally.skipped += 1;
        } else if self.failed.insert(name.to_owned()) {
            self.tally.failed += 1;
        }
    }

    /// The count; a harness that did not come to its end is a failure more.
    pub fn finish(mut self) -> Tally {
        if !self.summarised {
            self.tally.failed += 1;
        }
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_summaries_are_read() {
        let line = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.1s";
        let tally = cargo_summary(line).unwrap();
        assert_eq!(tally.to_string(), "3 passed, 2 failed, 1 skipped");
        assert_eq!(cargo_summary("test a ... ok"), None);
    }

    #[test]
    fn a_guest_without_a_summary_has_failed() {
        let mut guest = GuestTally::default();
        for line in [
            "test a::b ... ok (1.0 s)",
            "test c ... ignored, needs 8 CPUs (0.0 s)",
        ] {
            guest.line(line);
        }
        assert_eq!(guest.finish().to_string(), "1 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn lines_survive_being_cut() {
        let mut lines = Lines::default();
        assert!(lines.push(b"te").is_empty());
        assert_eq!(lines.push(b"st\r\nx"), ["test"]);
    }
}
