//! What the guest's kernel said, and which of it matters.

use std::collections::VecDeque;

/// Lines kept for the report of a failure.
const KEPT_LINES: usize = 60;

/// How bad a line on the console is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The kernel is broken or found something broken.
    Fault,
    /// Worth a look; tests cause some on purpose.
    Notice,
}

/// The kernel ended a scheduler. It says so as an error, and the guests' console shows nothing less,
/// if it decided that itself (a stall, an error); of ends on request (a daemon's, SysRq-S) it does
/// not. So a test that ejects on purpose does it by SysRq-S, and every such line is a fault.
const EJECTION: &str = "sched_ext: BPF scheduler";

/// What to look for in a line, in order: the first that fits counts.
const SIGNS: &[(&str, Severity)] = &[
    ("Kernel panic", Severity::Fault),
    ("Oops", Severity::Fault),
    ("BUG:", Severity::Fault),
    ("WARNING: ", Severity::Fault),
    ("general protection fault", Severity::Fault),
    ("rcu: INFO:", Severity::Fault),
    ("soft lockup", Severity::Fault),
    ("blocked for more than", Severity::Fault),
    ("Out of memory", Severity::Fault),
    (EJECTION, Severity::Fault),
    ("sched_ext:", Severity::Notice),
];

/// Faults that are the kernel's own and known to be harmless: (series, part of the line, why).
const KNOWN: &[(&str, &str, &str)] = &[(
    "6.12",
    "kernel/sched/deadline.c:",
    "running_bw underflow when a CPU goes offline under any sched_ext scheduler; warned once",
)];

/// A line worth reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// The line.
    pub line: String,
}

/// Collects the console and picks out what matters.
#[derive(Debug)]
pub struct Console {
    series: String,
    partial: Vec<u8>,
    last: VecDeque<String>,
    findings: Vec<Finding>,
}

impl Console {
    /// For a kernel of that series.
    pub fn new(series: &str) -> Self {
        Self {
            series: series.to_owned(),
            partial: Vec::new(),
            last: VecDeque::new(),
            findings: Vec::new(),
        }
    }

    /// Takes what arrived, which may end in the middle of a line.
    pub fn push(&mut self, data: &[u8]) {
        self.partial.extend_from_slice(data);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            self.push_line(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    }

    /// All lines worth reporting.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The last lines, for a report.
    pub fn tail(&self) -> String {
        let mut lines: Vec<String> = self.last.iter().cloned().collect();
        lines.push(String::from_utf8_lossy(&self.partial).into_owned());
        lines.join("\n").trim_end().to_owned()
    }

    fn push_line(&mut self, line: String) {
        let sign = SIGNS.iter().find(|(sign, _)| line.contains(sign));
        if let Some((_, severity)) = sign {
            let known = KNOWN
                .iter()
                .any(|(series, part, _)| *series == self.series && line.contains(part));
            self.findings.push(Finding {
                severity: if known { Severity::Notice } else { *severity },
                line: line.clone(),
            });
        }
        self.last.push_back(line);
        if self.last.len() > KEPT_LINES {
            self.last.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severities(series: &str, text: &str) -> Vec<Severity> {
        let mut console = Console::new(series);
        console.push(text.as_bytes());
        console.findings().iter().map(|f| f.severity).collect()
    }

    #[test]
    fn faults_are_found_across_reads() {
        let mut console = Console::new("7.3");
        console.push(b"[ 1.0] WARN");
        assert!(console.findings().is_empty());
        console.push(b"ING: CPU: 0 PID: 1 at mm/x.c:3\r\n");
        assert_eq!(console.findings()[0].severity, Severity::Fault);
    }

    #[test]
    fn a_known_fault_is_a_notice_on_its_series_only() {
        let line = "WARNING: CPU: 1 PID: 9 at kernel/sched/deadline.c:265 x\n";
        assert_eq!(severities("6.12", line), [Severity::Notice]);
        assert_eq!(severities("7.3", line), [Severity::Fault]);
    }

    #[test]
    fn an_ejection_is_a_fault_and_what_else_sched_ext_says_is_not() {
        let line = "sched_ext: BPF scheduler \"twopool\" disabled (runnable task stall)\n";
        assert_eq!(severities("7.3", line), [Severity::Fault]);
        let line = "sched_ext: twopool: req-1[77] failed to run for 20.001s\n";
        assert_eq!(severities("7.3", line), [Severity::Notice]);
    }

    #[test]
    fn ordinary_lines_are_not_findings() {
        assert!(severities("7.3", "Run /init as init process\n").is_empty());
    }
}
