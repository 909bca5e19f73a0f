//! A private view of Debian's package archive.
//!
//! Kernels and tools of other suites than the host's own are read through apt with its state moved
//! to our cache, so nothing is installed and the system's configuration is not touched. The mirror is
//! the one that apt already uses; it is never written anywhere but into the cache.

use crate::host::{self, Host, progress};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Package lists are read again after this time.
const LISTS_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// One set of suites with its own apt state.
#[derive(Debug)]
pub struct Archive {
    dir: PathBuf,
}

impl Archive {
    /// A view of `suites`, with its state under the cache directory `name`. Its package lists are
    /// fetched when they are older than a day. Suites that the mirror lacks are left out.
    pub fn open(host: &Host, name: &str, suites: &[String]) -> Result<Self> {
        let dir = host.cache.join("apt").join(name);
        host::make_dir(&dir.join("lists/partial"))?;
        host::make_dir(&dir.join("cache/archives/partial"))?;
        let archive = Self { dir };
        if archive.is_fresh() {
            return Ok(archive);
        }
        progress(format!(
            "reading the package lists of {}",
            suites.join(", ")
        ));
        archive.write_sources(suites)?;
        // apt reports success when it got nothing at all: what counts is whether there are lists.
        let update = host::output(&mut archive.apt("apt-get", &["update"]));
        match (update, archive.has_lists()) {
            (Ok(_), true) => {}
            (Ok(_), false) => bail!("the package archive cannot be reached"),
            (Err(error), false) => return Err(error.context("cannot read the package archive")),
            (Err(error), true) => host::loudly(format!(
                "the package lists are of an earlier day or not complete: {error:#}"
            )),
        }
        std::fs::write(archive.stamp(), "").context("cannot write into the cache")?;
        Ok(archive)
    }

    /// Names of the packages whose names match an extended regex.
    pub fn search(&self, pattern: &str) -> Result<Vec<String>> {
        let text = host::output(&mut self.apt("apt-cache", &["search", "--names-only", pattern]))?;
        Ok(text
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect())
    }

    /// Downloads one package and unpacks it below `root`, whatever it depends on.
    pub fn unpack(&self, package: &str, root: &Path) -> Result<()> {
        let staging = tempfile::tempdir_in(&self.dir)?;
        host::output(
            self.apt("apt-get", &["download", package])
                .current_dir(staging.path()),
        )?;
        unpack_all(staging.path(), root)
    }

    /// Downloads a package and what it needs beyond the installed packages, preferring `release`,
    /// and unpacks all of it below `root`.
    pub fn unpack_with_dependencies(
        &self,
        package: &str,
        release: &str,
        root: &Path,
    ) -> Result<()> {
        let archives = self.dir.join("cache/archives");
        remove_debs(&archives)?;
        host::output(&mut self.apt(
            "apt-get",
            &[
                "install",
                "--yes",
                "--download-only",
                "--reinstall",
                "--no-install-recommends",
                "--target-release",
                release,
                package,
            ],
        ))?;
        unpack_all(&archives, root)?;
        remove_debs(&archives)
    }

    fn apt(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C");
        for (key, value) in [
            ("Dir::Etc::sourcelist", self.dir.join("sources.list")),
            ("Dir::Etc::sourceparts", "/dev/null".into()),
            ("Dir::State::Lists", self.dir.join("lists")),
            ("Dir::Cache", self.dir.join("cache")),
            ("Acquire::Languages", "none".into()),
            ("Acquire::Retries", "3".into()),
            // Software-centre metadata: as large as the package lists, and of no use here.
            (
                "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled",
                "false".into(),
            ),
            // Our directories are private; the sandbox user could not read them.
            ("APT::Sandbox::User", "root".into()),
            // --download-only changes nothing: do not wait for another apt's lock.
            ("Debug::NoLocking", "true".into()),
        ] {
            command.arg("-o").arg(format!("{key}={}", value.display()));
        }
        command.args(args);
        command
    }

    fn write_sources(&self, suites: &[String]) -> Result<()> {
        let mirror = mirror()?;
        let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let signed = if Path::new(keyring).exists() {
            format!(" signed-by={keyring}")
        } else {
            String::new()
        };
        let text: String = suites
            .iter()
            .map(|suite| format!("deb [arch=amd64{signed}] {mirror} {suite} main\n"))
            .collect();
        std::fs::write(self.dir.join("sources.list"), text).context("cannot write into the cache")
    }

    fn stamp(&self) -> PathBuf {
        self.dir.join("stamp")
    }

    fn is_fresh(&self) -> bool {
        let age = std::fs::metadata(self.stamp())
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        age.is_some_and(|age| age < LISTS_AGE) && self.has_lists()
    }

    fn has_lists(&self) -> bool {
        std::fs::read_dir(self.dir.join("lists")).is_ok_and(|dir| {
            dir.flatten()
                .any(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
        })
    }
}

/// This host's Debian release (`bookworm`), from which all suite names are derived.
pub fn codename() -> Result<String> {
    if host::os_release("ID").as_deref() != Some("debian") || host::which("apt-get").is_none() {
        bail!(
            "kernels and QEMU are fetched from Debian's archive, and this is not Debian: \
             pass --kernel PATH and install QEMU 10 or newer"
        );
    }
    host::os_release("VERSION_CODENAME").context("/etc/os-release has no VERSION_CODENAME")
}

/// The address of the main archive that apt uses on this host.
fn mirror() -> Result<String> {
    let codename = codename()?;
    let targets = host::output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(ORIGIN) $(CODENAME) $(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    targets
        .lines()
        .find_map(|line| {
            let mut words = line.split_whitespace();
            let wanted = words.next() == Some("Debian") && words.next() == Some(&codename);
            wanted.then(|| words.next())?.map(str::to_owned)
        })
        .with_context(|| {
            format!("apt knows no source for {codename}: run `apt-get update` as root, then again")
        })
}

fn debs(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "deb"))
        .collect();
    found.sort();
    Ok(found)
}

fn unpack_all(from: &Path, root: &Path) -> Result<()> {
    host::make_dir(root)?;
    for deb in debs(from)? {
        host::output(Command::new("dpkg").arg("-x").arg(deb).arg(root))?;
    }
    Ok(())
}

fn remove_debs(dir: &Path) -> Result<()> {
    for deb in debs(dir)? {
        std::fs::remove_file(deb)?;
    }
    Ok(())
}
