//! The guest's file system: a cpio archive ("newc") of a static busybox and the given programs.
//!
//! Programs come with the shared libraries that the host's dynamic linker finds for them, at the
//! same paths. The archive is not compressed: it is handed over in memory, and unpacking costs
//! emulated instructions.

use crate::host;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const INIT: &str = include_str!("init.sh");

/// Directories that the guest has beside those of its files, with their modes.
const DIRECTORIES: &[(&str, u32)] = &[
    ("/dev", 0o755),
    ("/etc/twopool", 0o755),
    ("/etc/twopool/policy.d", 0o755),
    ("/home/dev", 0o777),
    ("/proc", 0o755),
    ("/root", 0o700),
    ("/run", 0o755),
    ("/sbin", 0o755),
    ("/sys", 0o755),
    ("/tmp", 0o1777),
    ("/var/lib", 0o755),
    ("/var/run", 0o755),
];

/// Users that tests and policies may name: (name, id). Each has a group of the same name and id.
const USERS: &[(&str, u32)] = &[
    ("root", 0),
    ("ads", 990),
    ("web", 991),
    ("batch", 992),
    ("dev", 1000),
    ("nobody", 65534),
];

#[derive(Debug)]
enum Node {
    Dir(u32),
    File(u32, Vec<u8>),
    Link(PathBuf),
    Device(u32, u32),
}

/// A file system under construction.
#[derive(Debug, Default)]
pub struct Initramfs {
    nodes: BTreeMap<PathBuf, Node>,
}

impl Initramfs {
    /// Busybox, an init that runs `command`, users, and empty mount points.
    pub fn new(busybox: &Path, command: &str) -> Result<Self> {
        let mut fs = Self::default();
        for (dir, mode) in DIRECTORIES {
            fs.add_dir(Path::new(dir), *mode);
        }
        fs.add(Path::new("/dev/console"), Node::Device(5, 1));
        fs.add(Path::new("/dev/null"), Node::Device(1, 3));
        fs.add_program(busybox, Path::new("/bin/busybox"))?;
        for applet in host::output(Command::new(busybox).arg("--list"))?.lines() {
            fs.add(
                &Path::new("/bin").join(applet),
                Node::Link("busybox".into()),
            );
        }
        // The last applet of that name: the archive's copy would be the link above.
        fs.add_program(busybox, Path::new("/bin/busybox"))?;
        fs.add_text("/init", 0o755, INIT);
        fs.add_text("/command", 0o755, command);
        fs.add_text(
            "/etc/passwd",
            0o644,
            &users(|name, id| format!("{name}:x:{id}:{id}::/tmp:/bin/sh\n")),
        );
        fs.add_text(
            "/etc/group",
            0o644,
            &users(|name, id| format!("{name}:x:{id}:\n")),
        );
        Ok(fs)
    }

    /// A text file.
    pub fn add_text(&mut self, path: &str, mode: u32, text: &str) {
        self.add(Path::new(path), Node::File(mode, text.into()));
    }

    /// A program of the host without its debug information, and its shared libraries.
    pub fn add_program(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.add(to, Node::File(0o755, stripped(from)?));
        for library in libraries(from)? {
            let data = read(&library)?;
            self.add(&library, Node::File(0o755, data));
        }
        Ok(())
    }

    /// A file, or a directory with all that is in it; executables bring their libraries.
    pub fn add_path(&mut self, from: &Path, to: &Path) -> Result<()> {
        if from.is_dir() {
            self.add_dir(to, 0o755);
            for entry in std::fs::read_dir(from)? {
                let entry = entry?;
                self.add_path(&entry.path(), &to.join(entry.file_name()))?;
            }
            return Ok(());
        }
        if is_elf(from)? {
            return self.add_program(from, to);
        }
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(from)
            .with_context(|| format!("cannot read {}", from.display()))?
            .permissions()
            .mode();
        self.add(to, Node::File(mode & 0o777, read(from)?));
        Ok(())
    }

    /// The archive. Times are zero and inodes are counted, so that equal contents give equal bytes.
    pub fn to_cpio(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, (path, node)) in self.nodes.iter().enumerate() {
            let name = path.to_string_lossy();
            let name = name.trim_start_matches('/');
            let (mode, data, device): (u32, &[u8], (u32, u32)) = match node {
                Node::Dir(mode) => (0o040_000 | mode, &[], (0, 0)),
                Node::File(mode, data) => (0o100_000 | mode, data, (0, 0)),
                Node::Link(to) => (0o120_777, to.as_os_str().as_encoded_bytes(), (0, 0)),
                Node::Device(major, minor) => (0o020_600, &[], (*major, *minor)),
            };
            push_entry(&mut out, index as u32 + 1, name, mode, data, device);
        }
        push_entry(&mut out, 0, "TRAILER!!!", 0, &[], (0, 0));
        out
    }

    fn add_dir(&mut self, path: &Path, mode: u32) {
        self.add(path, Node::Dir(mode));
    }

    fn add(&mut self, path: &Path, node: Node) {
        for parent in path.ancestors().skip(1).filter(|p| p.parent().is_some()) {
            self.nodes
                .entry(parent.to_path_buf())
                .or_insert(Node::Dir(0o755));
        }
        self.nodes.insert(path.to_path_buf(), node);
    }
}

/// One "newc" entry: 110 bytes of hexadecimal header, name and data, each padded to 4 bytes.
fn push_entry(
    out: &mut Vec<u8>,
    inode: u32,
    name: &str,
    mode: u32,
    data: &[u8],
    device: (u32, u32),
) {
    let links = if mode & 0o170_000 == 0o040_000 { 2 } else { 1 };
    let size = data.len() as u32;
    let name_size = name.len() as u32 + 1;
    let fields = [
        inode, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0,
    ];
    out.extend_from_slice(b"070701");
    for field in fields {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(data);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    while !out.len().is_multiple_of(4) {
        out.push(0);
    }
}

fn users(line: impl Fn(&str, u32) -> String) -> String {
    USERS.iter().map(|(name, id)| line(name, *id)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn is_elf(path: &Path) -> Result<bool> {
    Ok(read(path)?.starts_with(b"\x7fELF"))
}

fn stripped(path: &Path) -> Result<Vec<u8>> {
    let out = tempfile::NamedTempFile::new()?;
    let done = host::output(
        Command::new("objcopy")
            .arg("--strip-debug")
            .arg(path)
            .arg(out.path()),
    );
    // Without binutils the guest is only larger.
    read(if done.is_ok() { out.path() } else { path })
}

/// What `ldd` resolves, the dynamic linker included. Nothing for a static program.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let out = Command::new("ldd")
        .arg(program)
        .output()
        .context("cannot run ldd")?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Ok(parse_ldd(&text))
}

fn parse_ldd(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let path = line.split_once("=> ").map_or(line, |(_, path)| path);
            let path = path.split(" (").next()?;
            path.starts_with('/').then(|| PathBuf::from(path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_linker_are_taken_from_ldd() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            parse_ldd(text),
            [
                PathBuf::from("/lib/x86_64-linux-gnu/libz.so.1"),
                PathBuf::from("/lib64/ld-linux-x86-64.so.2"),
            ]
        );
        assert!(parse_ldd("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn the_archive_has_parents_before_children_and_aligned_entries() {
        let mut fs = Initramfs::default();
        fs.add_text("/etc/deep/file", 0o640, "hello");
        let cpio = fs.to_cpio();
        assert_eq!(cpio.len() % 4, 0);
        let text = String::from_utf8_lossy(&cpio);
        let at = |name: &str| text.find(&format!("{name}\0")).expect("entry");
        assert!(at("etc") < at("etc/deep") && at("etc/deep") < at("etc/deep/file"));
        assert!(text.contains("000081a0"), "mode of a regular file 0640");
        assert!(text.contains("TRAILER!!!"));
    }
}
