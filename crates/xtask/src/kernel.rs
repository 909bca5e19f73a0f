//! Which kernel to boot: a series from the package archive, or an image at hand.
//!
//! Old versions leave the archive, so a kernel is asked for by series and the newest version of it that
//! is there is taken. What was fetched once is kept and needs no network again.

use crate::archive::Archive;
use crate::host::{self, Host, progress};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The series that are tested, oldest first. sched_ext came with the first of them.
pub const SERIES: &[&str] = &["6.12", "6.16", "6.18", "6.19", "7.0", "7.1", "7.2", "7.3"];

/// Debian builds these without sched_ext: an image of one's own is needed.
const NOT_IN_ARCHIVE: &[&str] = &["6.12"];

/// Builds in which the types of some kfuncs show an argument that should be hidden, so that no program
/// can call them; in these one is among them that a scheduler with queues cannot do without (see
/// `bpf/kernel.h`). Which ones is an accident of each build: 7.2.6 has none that matters.
const UNFIT: &[&str] = &[
    "7.1.3", "7.1.7", "7.1.8", "7.1.13", "7.2.9", "7.2.11", "7.2.12",
];

/// What `--kernel` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// The newest version of a series, such as `6.18`.
    Series(String),
    /// The newest of `SERIES` that is at hand.
    Newest,
    /// A bootable image.
    Image(PathBuf),
}

impl std::str::FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "newest" {
            Ok(Self::Newest)
        } else if is_series(text) {
            Ok(Self::Series(text.to_owned()))
        } else if Path::new(text).is_file() {
            Ok(Self::Image(text.into()))
        } else {
            Err("expected a series such as 7.3, `newest`, or the path of a kernel image".into())
        }
    }
}

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// As `uname -r` will say.
    pub version: String,
    /// The image.
    pub image: PathBuf,
}

impl Kernel {
    /// Any Linux image, with the version that it carries in its header.
    pub fn from_image(image: &Path) -> Result<Self> {
        let version = image_version(image)
            .with_context(|| format!("{} is not an x86-64 Linux image", image.display()))?;
        let image = std::path::absolute(image)?;
        Ok(Self { version, image })
    }

    /// `7.3` of `7.3.4+deb13-cloud-amd64`.
    pub fn series(&self) -> &str {
        series_of(&self.version)
    }
}

/// Finds the kernel that `spec` asks for. `None` (after saying so loudly) when the archive has none.
pub fn find(host: &Host, spec: &Spec) -> Result<Option<Kernel>> {
    match spec {
        Spec::Image(path) => Kernel::from_image(path).map(Some),
        Spec::Series(series) => find_series(host, series),
        Spec::Newest => first_at_hand(host, SERIES.iter().rev()),
    }
}

/// The oldest of `SERIES` that is at hand.
pub fn find_oldest(host: &Host) -> Result<Option<Kernel>> {
    first_at_hand(host, SERIES.iter())
}

/// The first of these that is there. An archive that cannot be reached is no reason to give up
/// while the cache has another series.
fn first_at_hand<'a>(
    host: &Host,
    series: impl Iterator<Item = &'a &'a str>,
) -> Result<Option<Kernel>> {
    let mut problem = None;
    for series in series {
        match find_series(host, series) {
            Ok(Some(kernel)) => return Ok(Some(kernel)),
            Ok(None) => {}
            Err(error) => {
                host::loudly(format!("kernel {series}: {error:#}"));
                problem.get_or_insert(error);
            }
        }
    }
    problem.map_or(Ok(None), Err)
}

fn find_series(host: &Host, series: &str) -> Result<Option<Kernel>> {
    if let Some(image) = local_image(series)? {
        return Kernel::from_image(&image).map(Some);
    }
    if NOT_IN_ARCHIVE.contains(&series) {
        host::loudly(format!(
            "kernel {series}: Debian's has no sched_ext, so it is skipped; {}=PATH names an image \
             that has it",
            variable(series)
        ));
        return Ok(None);
    }
    let _lock = host.lock_cache()?;
    let cache = host.cache.join("kernels");
    if let Some(image) = cached(&cache, series) {
        return Kernel::from_image(&image).map(Some);
    }
    // The small list first: it has nearly everything.
    for (name, suites) in [
        ("kernels", &["trixie-backports"][..]),
        ("kernels-unstable", &["testing", "sid"][..]),
    ] {
        let suites: Vec<String> = suites.iter().map(|suite| (*suite).to_owned()).collect();
        let archive = Archive::open(host, name, &suites)?;
        if let Some(package) = package_of(&archive, series)? {
            return fetch(&archive, &package, &cache).map(Some);
        }
    }
    host::loudly(format!(
        "kernel {series}: no build in the archive that can run a scheduler: skipped"
    ));
    Ok(None)
}

/// An image that the environment names for a series.
fn local_image(series: &str) -> Result<Option<PathBuf>> {
    let Some(path) = std::env::var_os(variable(series)).map(PathBuf::from) else {
        return Ok(None);
    };
    if !path.is_file() {
        bail!("{}: no file {}", variable(series), path.display());
    }
    Ok(Some(path))
}

fn variable(series: &str) -> String {
    format!("TWOPOOL_KERNEL_{}", series.replace('.', "_"))
}

/// The package with the image of the newest version of a series. From 6.19 on the package named
/// linux-image only depends on the one that has the image.
fn package_of(archive: &Archive, series: &str) -> Result<Option<String>> {
    let escaped = series.replace('.', "\\.");
    let pattern = format!("^linux-(image|binary)-{escaped}\\.[0-9.]+[+~a-z0-9.]*-cloud-amd64$");
    let found = archive.search(&pattern)?;
    let newest = |kind: &str| {
        found
            .iter()
            .filter(|name| name.strip_prefix(kind).is_some_and(|rest| !is_unfit(rest)))
            .max_by_key(|name| version_key(name))
            .cloned()
    };
    Ok(newest("linux-binary-").or_else(|| newest("linux-image-")))
}

fn fetch(archive: &Archive, package: &str, cache: &Path) -> Result<Kernel> {
    progress(format!("fetching {package}"));
    host::make_dir(cache)?;
    let staging = tempfile::tempdir_in(cache)?;
    archive.unpack(package, staging.path())?;
    let image = find_image(staging.path())
        .with_context(|| format!("{package} contains no kernel image"))?;
    let version = image_version(&image).context("unreadable kernel image")?;
    let kept = cache.join(format!("vmlinuz-{version}"));
    std::fs::rename(&image, &kept)?;
    Kernel::from_image(&kept)
}

/// Up to 7.0 the image is under boot/, later beside its modules.
fn find_image(root: &Path) -> Option<PathBuf> {
    let modules = std::fs::read_dir(root.join("usr/lib/modules"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("vmlinuz"));
    let boot = std::fs::read_dir(root.join("boot"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
        });
    modules.chain(boot).find(|path| path.is_file())
}

fn cached(cache: &Path, series: &str) -> Option<PathBuf> {
    std::fs::read_dir(cache)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .and_then(|name| name.strip_prefix("vmlinuz-"))
                .is_some_and(|version| series_of(version) == series && !is_unfit(version))
        })
        .max_by_key(|path| version_key(&path.to_string_lossy()))
}

/// `7.1.13+deb13-cloud-amd64` is one of `UNFIT`.
fn is_unfit(version: &str) -> bool {
    let number = version.split(['+', '-', '~']).next().unwrap_or(version);
    UNFIT.contains(&number)
}

fn is_series(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    numbers.len() == 2 && numbers.iter().all(|n| n.parse::<u32>().is_ok())
}

fn series_of(version: &str) -> &str {
    match version.match_indices('.').nth(1) {
        Some((at, _)) => &version[..at],
        None => version,
    }
}

/// All numbers of a version, for comparison: 6.19.10 is newer than 6.19.9.
fn version_key(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

/// The release in the header of an x86 boot image (Documentation/arch/x86/boot.rst: the magic
/// "HdrS" at 0x202, and at 0x20e the offset of a text, less 0x200).
fn image_version(path: &Path) -> Result<String> {
    let data = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let magic = data.get(0x202..0x206).context("too short")?;
    if magic != b"HdrS" {
        bail!("no boot header");
    }
    let offset = usize::from(u16::from_le_bytes([data[0x20e], data[0x20f]])) + 0x200;
    let text = data.get(offset..).context("no version text")?;
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_graphic())
        .context("endless version text")?;
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(version_key("linux-image-6.19.10+deb13") > version_key("linux-image-6.19.9+deb13"));
        assert_eq!(series_of("7.3.4+deb13-cloud-amd64"), "7.3");
    }

    #[test]
    fn a_build_that_cannot_run_schedulers_is_passed_over() {
        assert!(is_unfit("7.1.13+deb13-cloud-amd64") && is_unfit("7.2.9"));
        assert!(!is_unfit("7.2.6+deb13-cloud-amd64") && !is_unfit("7.1.130-1"));
    }

    #[test]
    fn a_spec_is_a_series_or_newest_or_a_file() {
        assert_eq!("7.3".parse(), Ok(Spec::Series("7.3".into())));
        assert_eq!("newest".parse(), Ok(Spec::Newest));
        assert!("7.3.4".parse::<Spec>().is_err());
        assert!("/no/such/file".parse::<Spec>().is_err());
    }

    #[test]
    fn the_version_is_read_from_the_boot_header() {
        let mut image = vec![0u8; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x0100u16.to_le_bytes());
        image[0x300..0x30b].copy_from_slice(b"6.12.117 #1");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &image).unwrap();
        assert_eq!(image_version(file.path()).unwrap(), "6.12.117");
        image[0x202] = b'X';
        std::fs::write(file.path(), &image).unwrap();
        assert!(image_version(file.path()).is_err());
    }
}
