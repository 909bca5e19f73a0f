//! Tells the event loop that the policy's files may have changed.
//!
//! Directories are watched, never files: a watch on a file is lost at the first save by rename.
//! Which directories: those of the policy file and of the drop-ins, their parents (to see the
//! directories themselves replaced), and every directory that a symbolic link on the way leads
//! through. What an event says is not believed; it only starts a look, after things have been quiet
//! (`quiet`). A slow look at file times goes on beside it: some file systems report nothing.
//!
//! Invariant: the watches are renewed before the loop is told, so that a change after the loop's
//! reading is seen as another event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tracing::warn;
use twopool_policy::dropins::is_dropin;

use super::event_loop::Event;
use super::quiet::{Quiet, WRITER_PATIENCE};
use crate::host::input::Location;

/// Pause between looks at file times; without notifications they are all there is.
const POLL: Duration = Duration::from_secs(5);
const POLL_ALONE: Duration = Duration::from_secs(1);
/// Symbolic links followed from one file; the kernel's own limit is 40.
const MAX_LINKS: u32 = 40;

/// Watches until the event loop is gone. A host without notifications (no inotify instance left)
/// is served by polling alone, with one warning.
pub fn run_watcher(location: &Location, events: &Sender<Event>) {
    let (raw_sender, raw) = channel();
    let watcher = notify::recommended_watcher(raw_sender);
    if let Err(error) = &watcher {
        warn!(%error, "file notifications are not available; looking at the policy's files every second");
    }
    Watch {
        location,
        watcher: watcher.ok(),
        watched: BTreeMap::new(),
        places: Places::default(),
    }
    .run(&raw, events);
}

/// The watcher's state.
struct Watch<'a> {
    location: &'a Location,
    watcher: Option<RecommendedWatcher>,
    /// Directories with a watch and the inode that it is on.
    watched: BTreeMap<PathBuf, (u64, u64)>,
    places: Places,
}

impl Watch<'_> {
    fn run(mut self, raw: &Receiver<notify::Result<notify::Event>>, events: &Sender<Event>) {
        self.renew();
        let mut seen = signature(self.location);
        // Changes between the daemon's first reading and the first watch are looked for at once.
        if events.send(Event::FilesChanged).is_err() {
            return;
        }
        loop {
            let poll = if self.watcher.is_some() {
                POLL
            } else {
                POLL_ALONE
            };
            let changed = self.wait(raw, poll);
            self.renew();
            let now = signature(self.location);
            if (changed || now != seen) && events.send(Event::FilesChanged).is_err() {
                return;
            }
            seen = now;
        }
    }

    /// Waits for a relevant event and for quiet after it: true; or for `poll` to pass: false.
    fn wait(&self, raw: &Receiver<notify::Result<notify::Event>>, poll: Duration) -> bool {
        let mut quiet = Quiet::new(Instant::now() + poll);
        loop {
            let until = quiet.until();
            match raw.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) if self.is_relevant(&event) => {
                    quiet.heard(event.ok().as_ref(), Instant::now(), |path| {
                        is_policy_file(self.location, path)
                    });
                }
                Ok(_) => {}
                // Without a watcher its end of the channel is gone: time is all that passes.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    return false;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(path) = quiet.open_file() {
                        warn!(
                            file = %path.display(),
                            "still open for writing after {} s: taken as it is", WRITER_PATIENCE.as_secs()
                        );
                    }
                    return quiet.has_news();
                }
            }
        }
    }

    /// An error (an overflowing queue, say) means that anything may have happened.
    fn is_relevant(&self, event: &notify::Result<notify::Event>) -> bool {
        let Ok(event) = event else { return true };
        // Reading is no change, and our own reading would wake us for ever.
        let wrote = EventKind::Access(AccessKind::Close(AccessMode::Write));
        if matches!(event.kind, EventKind::Access(_)) && event.kind != wrote {
            return false;
        }
        event.need_rescan()
            || event.paths.is_empty()
            || event.paths.iter().any(|path| self.places.concern(path))
    }

    /// Puts watches where the files are now.
    fn renew(&mut self) {
        self.places = Places::of(self.location);
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let wanted: BTreeMap<PathBuf, (u64, u64)> = self
            .places
            .all()
            .filter_map(|directory| Some((directory.clone(), identity(directory)?)))
            .collect();
        for (directory, inode) in &self.watched {
            if wanted.get(directory) != Some(inode) {
                // The directory is gone or another one has its name: this watch is dead.
                let _ = watcher.unwatch(directory);
            }
        }
        self.watched
            .retain(|directory, inode| wanted.get(directory) == Some(inode));
        for (directory, inode) in wanted {
            if self.watched.contains_key(&directory) {
                continue;
            }
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(directory, inode);
                }
                // It may have vanished meanwhile; polling notices whatever comes of it.
                Err(error) => tracing::debug!(directory = %directory.display(), %error, "no watch"),
            }
        }
    }
}

/// Directories to watch.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    /// Whatever happens to an entry of these counts.
    inner: BTreeSet<PathBuf>,
    /// Parents of those: only the entry that is an inner directory counts.
    outer: BTreeSet<PathBuf>,
}

impl Places {
    fn of(location: &Location) -> Self {
        let mut inner = BTreeSet::new();
        if let Some(policy) = &location.policy {
            add_way(policy, &mut inner, MAX_LINKS);
        }
        if let Some(tests) = location.tests() {
            add_way(&tests, &mut inner, MAX_LINKS);
        }
        if let Some(directory) = &location.drop_ins {
            add_way(&directory.join("x"), &mut inner, MAX_LINKS);
            for file in location.drop_in_files().unwrap_or_default() {
                add_way(&file, &mut inner, MAX_LINKS);
            }
        }
        let outer = inner
            .iter()
            .map(|directory| parent(directory))
            .filter(|path| !inner.contains(path))
            .collect();
        Self { inner, outer }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.inner.iter().chain(&self.outer)
    }

    fn concern(&self, path: &Path) -> bool {
        self.inner.contains(path) || self.inner.contains(&parent(path))
    }
}

/// Adds the directory of a file, and the directory of every symbolic link on the way to it.
fn add_way(file: &Path, directories: &mut BTreeSet<PathBuf>, links: u32) {
    directories.insert(parent(file));
    let Some(links) = links.checked_sub(1) else {
        return;
    };
    let mut prefix = PathBuf::new();
    let mut components = file.components();
    while let Some(component) = components.next() {
        prefix.push(component);
        if let Ok(target) = fs::read_link(&prefix) {
            let holder = parent(&prefix);
            add_way(
                &holder.join(target).join(components.as_path()),
                directories,
                links,
            );
            directories.insert(holder);
            return;
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => PathBuf::from("/"),
    }
}

/// Is that the name of a file of the policy? Editors keep others open beside it for hours.
fn is_policy_file(location: &Location, path: &Path) -> bool {
    let name = path.file_name();
    let named = |file: &Path| file.file_name() == name;
    location.policy.as_deref().is_some_and(named)
        || location.tests().as_deref().is_some_and(named)
        || name.is_some_and(|name| is_dropin(name.as_bytes()))
}

fn identity(directory: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(directory).ok().filter(fs::Metadata::is_dir)?;
    Some((metadata.dev(), metadata.ino()))
}

/// What the file system says about the files, without reading them.
fn signature(location: &Location) -> Vec<(PathBuf, Option<[i64; 6]>)> {
    let drop_ins = location.drop_in_files().unwrap_or_default();
    let files = location
        .policy
        .iter()
        .cloned()
        .chain(location.tests())
        .chain(drop_ins);
    files
        .map(|path| {
            let facts = fs::metadata(&path).ok().map(|m| {
                [
                    m.dev() as i64,
                    m.ino() as i64,
                    m.size() as i64,
                    m.mtime(),
                    m.mtime_nsec(),
                    m.ctime_nsec() ^ m.ctime(),
                ]
            });
            (path, facts)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn inner(location: &Location, root: &Path) -> Vec<String> {
        let below = |path: &PathBuf| {
            path.strip_prefix(root)
                .map(|p| p.display().to_string())
                .unwrap_or_default()
        };
        Places::of(location).inner.iter().map(below).collect()
    }

    #[test]
    fn l02_every_link_on_the_way_to_the_file_is_watched() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let at = |path: &str| root.path().join(path);
        for directory in ["conf", "srv/cfg/v1", "srv/cfg/v2"] {
            fs::create_dir_all(at(directory)).expect("created");
        }
        symlink("v1", at("srv/cfg/current")).expect("linked");
        symlink(at("srv/cfg/current/p.toml"), at("conf/policy.toml")).expect("linked");
        let location = Location {
            policy: Some(at("conf/policy.toml")),
            drop_ins: None,
            is_named: false,
        };
        assert_eq!(
            inner(&location, root.path()),
            ["conf", "srv/cfg", "srv/cfg/current", "srv/cfg/v1"]
        );
    }

    #[test]
    fn a_loop_of_links_ends() {
        let root = tempfile::tempdir().expect("a temporary directory");
        symlink("b", root.path().join("a")).expect("linked");
        symlink("a", root.path().join("b")).expect("linked");
        let location = Location {
            policy: Some(root.path().join("a")),
            drop_ins: None,
            is_named: false,
        };
        assert_eq!(inner(&location, root.path()), [""]);
    }

    #[test]
    fn only_what_can_change_the_policy_concerns_us() {
        let location = Location {
            policy: Some("/nowhere/etc/policy.toml".into()),
            drop_ins: Some("/nowhere/etc/policy.d".into()),
            is_named: false,
        };
        let places = Places::of(&location);
        for path in [
            "/nowhere/etc",
            "/nowhere/etc/policy.toml",
            "/nowhere/etc/policy.d",
            "/nowhere/etc/policy.d/1.toml",
        ] {
            assert!(places.concern(Path::new(path)), "{path}");
        }
        assert!(!places.concern(Path::new("/nowhere/other")));
        assert!(places.outer.contains(Path::new("/nowhere")));
    }

    #[test]
    fn a_relative_policy_is_in_the_current_directory() {
        let location = Location {
            policy: Some("policy.toml".into()),
            drop_ins: None,
            is_named: false,
        };
        assert_eq!(
            Places::of(&location).inner.into_iter().collect::<Vec<_>>(),
            [PathBuf::from(".")]
        );
    }
}
