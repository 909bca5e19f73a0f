//! Boots a kernel with one command as its whole purpose.
//!
//! No disk, no network, nothing running on the host: QEMU loads the kernel and an archive made of
//! the built programs. Four serial ports carry, each alone, kernel messages, standard output,
//! standard error and the exit status, so that output arrives clean. One loop owns the guest;
//! threads only read.

pub mod console;
pub mod initramfs;
pub mod metronome;
pub mod qemu;

use crate::host::{Host, progress};
use crate::kernel::Kernel;
use crate::progress as status;
use anyhow::{Context, Result};
use console::Console;
use initramfs::Initramfs;
use qemu::{Machine, Qemu};
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long the guest may take to power off once it has reported.
const POWEROFF_TIME: Duration = Duration::from_secs(30);
const KERNEL_ARGUMENTS: &str =
    "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable 8250.nr_uarts=4";

/// I/O port and interrupt of each serial port. The usual assignment shares two interrupts between
/// four ports, which not every kernel takes.
const PORTS: [(Port, &str, u32); 4] = [
    (Port::Console, "0x3f8", 4),
    (Port::Stdout, "0x2f8", 3),
    (Port::Stderr, "0x3e8", 5),
    (Port::Status, "0x2e8", 7),
];

/// What arrives from the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// Kernel messages.
    Console,
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
    /// Its exit status.
    Status,
}

/// One boot.
#[derive(Debug)]
pub struct Boot<'a> {
    /// What to boot.
    pub kernel: &'a Kernel,
    /// On what.
    pub machine: Machine,
    /// More kernel arguments.
    pub append: Vec<String>,
    /// Host paths and where the guest sees them.
    pub files: Vec<(PathBuf, PathBuf)>,
    /// A shell script that is the guest's work.
    pub script: String,
    /// Wall-clock limit for all of it.
    pub timeout: Duration,
}

/// How a boot ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The command's exit status.
    Exited(i32),
    /// The time was up.
    TimedOut,
    /// The guest stopped without reporting: a crash, or QEMU could not start.
    Died,
}

/// What is left of a boot.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// What the kernel said.
    pub console: Console,
}

impl Boot<'_> {
    /// Boots and waits for the end; `sink` gets standard output and standard error as they come.
    pub fn run(&self, host: &Host, sink: &mut dyn FnMut(Port, &[u8])) -> Result<Outcome> {
        let qemu = Qemu::find(host)?;
        let busybox = qemu::find_busybox(host)?;
        // Socket paths are short of room: not below the target directory.
        let dir = tempfile::Builder::new().prefix("twopool-vm-").tempdir()?;
        let initrd = dir.path().join("initrd");
        let mut fs = Initramfs::new(&busybox, &self.script)?;
        for (from, to) in &self.files {
            fs.add_path(from, to)?;
        }
        std::fs::write(&initrd, fs.to_cpio()).context("cannot write the guest's files")?;
        let metronome = dir.path().join("metronome");
        std::fs::write(&metronome, metronome::table()).context("cannot write an ACPI table")?;
        let (events, received) = mpsc::channel();
        let mut command = qemu.command();
        command
            .args(self.machine.arguments(&metronome))
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(&initrd)
            .arg("-append")
            .arg(self.kernel_arguments());
        for (index, (port, address, irq)) in PORTS.iter().enumerate() {
            let path = dir.path().join(format!("port{index}"));
            listen(&path, *port, events.clone())?;
            command
                .arg("-chardev")
                .arg(format!("socket,id=port{index},path={}", path.display()));
            command.arg("-device").arg(format!(
                "isa-serial,chardev=port{index},index={index},iobase={address},irq={irq}"
            ));
        }
        drop(events);
        progress(format!("booting {}", self.kernel.version));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start QEMU")?;
        Guest::new(child, self.kernel.series()).watch(&received, self.timeout, sink)
    }

    fn kernel_arguments(&self) -> String {
        let mut text = KERNEL_ARGUMENTS.to_owned();
        for more in &self.append {
            text.push(' ');
            text.push_str(more);
        }
        text
    }
}

struct Event {
    port: Port,
    data: Vec<u8>,
}

/// Accepts QEMU's one connection and passes on what it carries. The channel closes when all
/// ports have: that is QEMU's end.
fn listen(path: &Path, port: Port, events: Sender<Event>) -> Result<()> {
    let listener = UnixListener::bind(path).context("cannot listen for the guest")?;
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else {
            return;
        };
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let data = buffer[..count].to_vec();
            if events.send(Event { port, data }).is_err() {
                return;
            }
        }
    });
    Ok(())
}

struct Guest {
    child: Child,
    console: Console,
    status: Vec<u8>,
}

impl Guest {
    fn new(child: Child, series: &str) -> Self {
        Self {
            child,
            console: Console::new(series),
            status: Vec::new(),
        }
    }

    fn watch(
        mut self,
        events: &Receiver<Event>,
        timeout: Duration,
        sink: &mut dyn FnMut(Port, &[u8]),
    ) -> Result<Outcome> {
        let mut deadline = Instant::now() + timeout;
        let mut end = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // Short waits: a QEMU that dies before it connects closes nothing.
            match events.recv_timeout(left.min(Duration::from_millis(200))) {
                Ok(event) => self.take(&event, sink),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    end.get_or_insert(End::TimedOut);
                    break;
                }
                Err(RecvTimeoutError::Timeout) if self.child.try_wait()?.is_some() => break,
                Err(RecvTimeoutError::Timeout) => status::tick(),
            }
            if let (None, Some(status)) = (&end, parse_status(&self.status)) {
                end = Some(End::Exited(status));
                deadline = Instant::now() + POWEROFF_TIME;
            }
        }
        self.stop()?;
        status::clear();
        Ok(Outcome {
            end: end.unwrap_or(End::Died),
            console: self.console,
        })
    }

    fn take(&mut self, event: &Event, sink: &mut dyn FnMut(Port, &[u8])) {
        match event.port {
            Port::Console => self.console.push(&event.data),
            Port::Status => self.status.extend_from_slice(&event.data),
            Port::Stdout | Port::Stderr => {
                status::clear();
                // Its standard error says what it is at, where it says anything.
                if let (Port::Stderr, Some(line)) = (event.port, last_line(&event.data)) {
                    status::detail(&line);
                }
                sink(event.port, &event.data);
            }
        }
    }

    /// Ends QEMU if it has not, and adds what it complained about to the console's tail.
    fn stop(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            self.child.kill().context("cannot stop QEMU")?;
        }
        self.child.wait().context("cannot wait for QEMU")?;
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            // A complaint that is not text is of no use.
            let _ = stderr.read_to_string(&mut said);
        }
        for line in said.lines().filter(|line| !is_expected(line)) {
            self.console.push(format!("qemu: {line}\n").as_bytes());
        }
        Ok(())
    }
}

/// The CPU model has features that emulation lacks; QEMU lists each.
fn is_expected(line: &str) -> bool {
    line.contains("TCG doesn't support requested feature")
}

fn last_line(data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(data);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.to_owned())
}

fn parse_status(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    let (line, _) = text.split_once('\n')?;
    line.trim().strip_prefix("exit ")?.parse().ok()
}

/// Words as one line for the guest's shell.
pub fn shell_line(words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let words = ["echo".to_owned(), "it's $HOME".to_owned(), String::new()];
        assert_eq!(shell_line(&words), r"'echo' 'it'\''s $HOME' ''");
    }

    #[test]
    fn the_last_line_is_the_one_with_text() {
        assert_eq!(
            last_line(b"a\nblock 2 of 8: Idle\r\n\n").unwrap(),
            "block 2 of 8: Idle"
        );
        assert_eq!(last_line(b"\n"), None);
    }

    #[test]
    fn a_status_counts_once_its_line_is_whole() {
        assert_eq!(parse_status(b"exit 3"), None);
        assert_eq!(parse_status(b"exit 3\n"), Some(3));
        assert_eq!(parse_status(b"exit -\n"), None);
    }
}
