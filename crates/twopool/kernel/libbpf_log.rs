//! What libbpf says while it loads, kept for the case that loading fails.
//!
//! libbpf reports through one global function, so this is the one global of the program.

use std::sync::Mutex;

use libbpf_rs::{PrintLevel, set_print};

/// Keeps the end of a longer log: the verifier's verdict is there.
const KEEP_BYTES: usize = 1 << 20;

static LOG: Mutex<String> = Mutex::new(String::new());

/// Starts keeping libbpf's messages, from nothing.
pub fn start() {
    lock().clear();
    set_print(Some((PrintLevel::Info, |_, message| {
        let mut log = lock();
        log.push_str(&message);
        if log.len() > 2 * KEEP_BYTES {
            let mut cut = log.len() - KEEP_BYTES;
            while !log.is_char_boundary(cut) {
                cut += 1;
            }
            log.drain(..cut);
        }
    })));
}

/// Everything kept since `start`.
pub fn take() -> String {
    std::mem::take(&mut *lock())
}

fn lock() -> std::sync::MutexGuard<'static, String> {
    LOG.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The one line of a log that says why loading failed: the verifier's last complaint before its
/// statistics, else libbpf's last message that is more than "it failed".
pub fn verdict(log: &str) -> Option<&str> {
    let within = log
        .split("-- BEGIN PROG LOAD LOG --")
        .nth(1)
        .and_then(|rest| rest.split("-- END PROG").next());
    let lines = within.unwrap_or(log).lines().rev().map(str::trim);
    lines.into_iter().find(|line| says_why(line))
}

fn says_why(line: &str) -> bool {
    // Source lines, instructions and statistics of a verifier log; libbpf's closing lines.
    let is_noise = line.starts_with([';', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        || line.starts_with("processed ")
        || line.starts_with("libbpf: failed to load object")
        || line.starts_with("libbpf: failed to load BPF skeleton");
    !line.is_empty() && !is_noise
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k08_the_verifiers_complaint_is_the_verdict() {
        let log = "\
libbpf: prog 'on_enqueue': BPF program load failed: -EACCES
libbpf: prog 'on_enqueue': -- BEGIN PROG LOAD LOG --
0: R1=ctx() R10=fp0
; struct task_ctx *t @ pools.h:3
12: (79) r1 = *(u64 *)(r1 +0)
R6 unbounded memory access, make sure to bounds check any such access
processed 12 insns (limit 1000000)
-- END PROG LOAD LOG --
libbpf: prog 'on_enqueue': failed to load: -EACCES
";
        assert_eq!(
            verdict(log),
            Some("R6 unbounded memory access, make sure to bounds check any such access")
        );
    }

    #[test]
    fn without_a_verifier_log_the_last_message_is_the_verdict() {
        let log = "libbpf: a\nlibbpf: b\nlibbpf: failed to load object 'x'\n\
                   libbpf: failed to load BPF skeleton 'x': -EINVAL\n\n";
        assert_eq!(verdict(log), Some("libbpf: b"));
        assert_eq!(verdict(""), None);
    }
}
