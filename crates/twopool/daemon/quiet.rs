//! When things are quiet enough for a look at the policy's files.
//!
//! Pure: events and time are arguments. A file that is written in place is half a policy until its writer
//! has closed it, however long that takes: a valid prefix of a policy is a policy. Where the file system
//! does not tell of closing, or a writer never does, patience has an end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

/// Quiet time after the last event before a look; editors save in several steps.
pub const SETTLE: Duration = Duration::from_millis(200);
/// A directory that never comes to rest is looked at this often.
const MAX_SETTLE: Duration = Duration::from_secs(2);
/// A file that is written in place and stays open is looked at after this long all the same.
pub const WRITER_PATIENCE: Duration = Duration::from_secs(10);

/// One wait for quiet.
#[derive(Debug)]
pub struct Quiet {
    /// If nothing happens.
    idle_until: Instant,
    /// The first event and the last one.
    news: Option<(Instant, Instant)>,
    /// Files that were written to, and not closed since.
    open: BTreeSet<PathBuf>,
}

impl Quiet {
    /// Nothing has happened; without news the wait ends then.
    pub fn new(idle_until: Instant) -> Self {
        Self {
            idle_until,
            news: None,
            open: BTreeSet::new(),
        }
    }

    /// Something happened; `None`: anything may have. `is_policy` says which files matter to be closed.
    pub fn heard(
        &mut self,
        event: Option<&Event>,
        now: Instant,
        is_policy: impl Fn(&Path) -> bool,
    ) {
        let first = self.news.map_or(now, |(first, _)| first);
        self.news = Some((first, now));
        let Some(event) = event else { return };
        let paths = event.paths.iter().filter(|path| is_policy(path));
        match event.kind {
            EventKind::Modify(ModifyKind::Data(_)) => self.open.extend(paths.cloned()),
            // Another file may have its name now.
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Remove(_) => paths.for_each(|path| {
                self.open.remove(path);
            }),
            _ => {}
        }
    }

    /// When the wait is over, as things are now.
    pub fn until(&self) -> Instant {
        match self.news {
            None => self.idle_until,
            Some((first, _)) if !self.open.is_empty() => first + WRITER_PATIENCE,
            Some((first, last)) => (last + SETTLE).min(first + MAX_SETTLE),
        }
    }

    /// Whether anything happened.
    pub fn has_news(&self) -> bool {
        self.news.is_some()
    }

    /// A file that its writer has not closed.
    pub fn open_file(&self) -> Option<&Path> {
        self.open.first().map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{CreateKind, DataChange, RemoveKind, RenameMode};

    const POLICY: &str = "/etc/twopool/policy.toml";

    fn wrote() -> EventKind {
        EventKind::Modify(ModifyKind::Data(DataChange::Any))
    }

    fn closed() -> EventKind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
    }

    /// Milliseconds from the first event until the look, if these happened at these milliseconds.
    fn look_after(events: &[(u64, EventKind, &str)]) -> u128 {
        let start = Instant::now();
        let mut quiet = Quiet::new(start + Duration::from_secs(99));
        for (at_ms, kind, path) in events {
            let now = start + Duration::from_millis(*at_ms);
            assert!(quiet.until() > now, "looked before the event at {at_ms} ms");
            let event = Event::new(*kind).add_path(PathBuf::from(path));
            quiet.heard(Some(&event), now, |path| path == Path::new(POLICY));
        }
        assert!(quiet.has_news());
        (quiet.until() - start).as_millis()
    }

    #[test]
    fn a_writer_that_pauses_is_waited_for() {
        assert_eq!(look_after(&[(0, wrote(), POLICY)]), 10_000);
        let slow = [
            (0, wrote(), POLICY),
            (1_500, wrote(), POLICY),
            (4_000, closed(), POLICY),
        ];
        // Longer than any patience with mere noise: it has been long enough.
        assert_eq!(look_after(&slow), 2_000);
        assert_eq!(look_after(&slow[..2]), 10_000);
        let quick = [(0, wrote(), POLICY), (300, closed(), POLICY)];
        assert_eq!(look_after(&quick), 500);
    }

    #[test]
    fn what_is_renamed_into_place_or_gone_is_no_file_that_somebody_writes() {
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let removed = EventKind::Remove(RemoveKind::File);
        for replaced in [renamed, removed] {
            let events = [(0, wrote(), POLICY), (50, replaced, POLICY)];
            assert_eq!(look_after(&events), 250);
        }
        let created = EventKind::Create(CreateKind::File);
        assert_eq!(look_after(&[(0, created, POLICY)]), 200);
    }

    #[test]
    fn other_files_that_are_kept_open_delay_nothing() {
        let swap = "/etc/twopool/.policy.toml.swp";
        assert_eq!(look_after(&[(0, wrote(), swap)]), 200);
    }

    #[test]
    fn noise_without_an_end_is_not_waited_for() {
        let touched = EventKind::Modify(ModifyKind::Metadata(notify::event::MetadataKind::Any));
        let noise: Vec<_> = (0..19).map(|n| (n * 100, touched, POLICY)).collect();
        assert_eq!(look_after(&noise), 2_000);
        let nothing = Quiet::new(Instant::now());
        assert!(!nothing.has_news() && nothing.open_file().is_none());
    }
}
