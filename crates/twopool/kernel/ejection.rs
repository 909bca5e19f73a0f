//! The end that the kernel chose: its reason, the dump, and how often to try again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

use super::abi::{c_text, types};
use crate::host::saving::save_whole;

/// Dumps kept in the state directory; the oldest go first.
const KEEP_DUMPS: usize = 10;

/// What the kernel said when it ended the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ejection {
    /// The kernel's `enum scx_exit_kind`.
    pub kind: u32,
    /// Its exit code.
    pub exit_code: i64,
    /// The kind in words: `runnable task stall`.
    pub reason: String,
    /// Details; may be empty.
    pub message: String,
    /// State of the scheduler at that moment; may be empty.
    pub dump: String,
}

impl Ejection {
    /// Decodes the kernel program's report.
    pub fn decode(report: &types::exit_report) -> Self {
        Self {
            kind: report.kind,
            exit_code: report.exit_code,
            reason: c_text(&report.reason),
            message: c_text(&report.msg),
            dump: c_text(&report.dump),
        }
    }

    /// One line.
    pub fn summary(&self) -> String {
        let reason = if self.reason.is_empty() {
            "no reason given"
        } else {
            &self.reason
        };
        match self.message.as_str() {
            "" => format!("{reason} (kind {})", self.kind),
            message => format!(
                "{reason} (kind {}): {}",
                self.kind,
                message.lines().next().unwrap_or_default()
            ),
        }
    }

    /// Everything, for a file.
    fn text(&self) -> String {
        format!("{}\n{}\n\n{}", self.summary(), self.message, self.dump)
    }

    /// First lines of the dump, for the log.
    fn dump_head(&self, lines: usize) -> String {
        self.dump.lines().take(lines).collect::<Vec<_>>().join("\n")
    }

    /// Saves everything in `directory` and logs where; where that fails, logs everything: it will
    /// not be seen again. `at` as for `save`.
    pub fn report(&self, directory: &Path, at: &str) {
        match self.save(directory, at) {
            Ok(path) => {
                if !self.dump.is_empty() {
                    info!("the dump begins:\n{}", self.dump_head(20));
                }
                info!("the whole report is in {}", path.display());
            }
            Err(error) => warn!(
                "the report could not be saved in {}: {error}; here is all of it:\n{}",
                directory.display(),
                self.text()
            ),
        }
    }

    /// Writes everything to a file in `directory` and removes all but the latest of its kind.
    /// `at` names the file and must be usable there: digits, letters, `-`, `:`, `.`.
    fn save(&self, directory: &Path, at: &str) -> io::Result<PathBuf> {
        let name = format!("ejection-{at}.txt");
        let path = save_whole(directory, &name, self.text().as_bytes())?;
        if let Err(error) = remove_old(directory) {
            warn!(%error, "old reports could not be removed");
        }
        Ok(path)
    }
}

fn remove_old(directory: &Path) -> io::Result<()> {
    let mut dumps: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("ejection-"))
        })
        .collect();
    // Names carry RFC 3339 times, so that their order is the order of the events.
    dumps.sort();
    for old in dumps.iter().rev().skip(KEEP_DUMPS) {
        fs::remove_file(old)?;
    }
    Ok(())
}

/// Bounded attempts with growing pauses. Forgiving after a long good run: what matters is how
/// often it fails in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackOff {
    failures: u32,
}

/// Ejections in a row after which the daemon gives up.
const MAX_FAILURES: u32 = 5;
/// A run that lasted this long counts as good.
const GOOD_RUN: Duration = Duration::from_secs(600);

impl BackOff {
    /// Nothing failed yet.
    pub fn new() -> Self {
        Self { failures: 0 }
    }

    /// Counts an ejection after a run of `ran`. The pause before the next attempt (1, 2, 4, 8
    /// seconds), or `None` when it is enough.
    pub fn next(&mut self, ran: Duration) -> Option<Duration> {
        if ran >= GOOD_RUN {
            self.failures = 0;
        }
        self.failures += 1;
        (self.failures < MAX_FAILURES).then(|| Duration::from_secs(1 << (self.failures - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::saving::tests::names;

    fn ejection() -> Ejection {
        Ejection {
            kind: 1026,
            exit_code: 0,
            reason: "runnable task stall".into(),
            message: "req-1[77] failed to run for 30.001s".into(),
            dump: "a\nb\nc".into(),
        }
    }

    #[test]
    fn the_summary_is_one_line() {
        assert_eq!(
            ejection().summary(),
            "runnable task stall (kind 1026): req-1[77] failed to run for 30.001s"
        );
        assert_eq!(ejection().dump_head(2), "a\nb");
    }

    #[test]
    fn only_the_latest_dumps_are_kept() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for second in 10..30 {
            ejection()
                .save(directory.path(), &format!("2026-01-01T00:00:{second}Z"))
                .expect("saved");
        }
        let left = names(directory.path());
        assert_eq!(left.len(), KEEP_DUMPS);
        assert_eq!(left[0], "ejection-2026-01-01T00:00:20Z.txt");
    }

    #[test]
    fn attempts_are_bounded_and_a_good_run_forgives() {
        let mut back_off = BackOff::new();
        let mut pauses = || {
            back_off
                .next(Duration::from_secs(3))
                .map(|pause| pause.as_secs())
        };
        assert_eq!(
            [pauses(), pauses(), pauses(), pauses(), pauses()],
            [Some(1), Some(2), Some(4), Some(8), None]
        );
        assert_eq!(back_off.next(GOOD_RUN), Some(Duration::from_secs(1)));
    }
}
