//! Runs tests one after the other, each in a process of its own, and reports as cargo's harness does.

use crate::guest::{self, wait_until};
use crate::{TOPICS, Test};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The argument with which the harness calls itself for one test.
pub const RUN_ONE: &str = "--run-one";

/// Tests whose names contain one of the filters; all without filters.
pub fn selected(filters: &[&str]) -> Vec<&'static Test> {
    TOPICS
        .iter()
        .flat_map(|topic| topic.iter())
        .filter(|test| filters.is_empty() || filters.iter().any(|f| test.name.contains(f)))
        .collect()
}

/// Runs one test in this process; it panics if it fails.
pub fn run_here(name: &str) {
    let test = selected(&[])
        .into_iter()
        .find(|test| test.name == name)
        .unwrap_or_else(|| panic!("no test is named {name}"));
    (test.run)();
}

/// On a host: says which tests are not run, so that nobody takes silence for success. Whoever runs
/// them in guests of their own sets TWOPOOL_GUEST_TESTS=elsewhere and is not told.
pub fn report_not_run(filters: &[&str]) {
    if std::env::var("TWOPOOL_GUEST_TESTS").is_ok_and(|value| value == "elsewhere") {
        println!("tests that need a guest run elsewhere");
        return;
    }
    let tests = selected(filters);
    println!("\nrunning {} tests", tests.len());
    for test in &tests {
        println!(
            "test {} ... ignored, needs a guest: cargo xtask test",
            test.name
        );
    }
    println!(
        "\ntest result: ok. 0 passed; 0 failed; {} ignored; 0 measured; 0 filtered out\n",
        tests.len()
    );
}

enum Verdict {
    Passed,
    Failed(String),
    Ignored(String),
}

/// In a guest: runs the tests and reports.
pub fn run_all(filters: &[&str]) -> ExitCode {
    let tests = selected(filters);
    println!("\nrunning {} tests", tests.len());
    let mut counts = [0usize; 3];
    let mut failures = Vec::new();
    for test in tests {
        println!("begin {}", test.name);
        let begin = Instant::now();
        let verdict = run_one(test);
        let took = begin.elapsed().as_secs_f32();
        let (slot, word) = match &verdict {
            Verdict::Passed => (0, "ok".to_owned()),
            Verdict::Failed(_) => (1, "FAILED".to_owned()),
            Verdict::Ignored(why) => (2, format!("ignored, {why}")),
        };
        counts[slot] += 1;
        println!("test {} ... {word} ({took:.1} s)", test.name);
        if let Verdict::Failed(output) = verdict {
            failures.push((test.name, output));
        }
    }
    for (name, output) in &failures {
        println!("\n---- {name} ----\n{}", output.trim_end());
    }
    let [passed, failed, ignored] = counts;
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out\n"
    );
    ExitCode::from(u8::from(failed > 0))
}

fn run_one(test: &Test) -> Verdict {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < test.cpus {
        return Verdict::Ignored(format!("needs {} CPUs", test.cpus));
    }
    let path = "/tmp/test-output";
    let result = run_process(test, path);
    let mut output = std::fs::read_to_string(path).unwrap_or_default();
    if let Ok(log) = std::fs::read_to_string(guest::DAEMON_LOG) {
        output.push_str("\n-- the daemon's log --\n");
        output.push_str(&log);
    }
    let verdict = match result {
        Ok(Some(status)) if status.success() => Verdict::Passed,
        Ok(Some(status)) => Verdict::Failed(format!("{output}\n{status}")),
        Ok(None) => Verdict::Failed(format!("{output}\nnot done after {} s", test.limit_s)),
        Err(error) => Verdict::Failed(format!("cannot run the test: {error}")),
    };
    match (clean_up(), verdict) {
        (Err(why), Verdict::Passed) => Verdict::Failed(format!("{output}\nafter the test: {why}")),
        (_, verdict) => verdict,
    }
}

/// The exit status, or `None` when the limit was reached.
fn run_process(test: &Test, output: &str) -> std::io::Result<Option<ExitStatus>> {
    let file = std::fs::File::create(output)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([RUN_ONE, test.name])
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()?;
    let done = wait_until(Duration::from_secs(test.limit_s), || {
        child.try_wait().transpose()
    });
    if done.is_none() {
        child.kill()?;
        child.wait()?;
    }
    done.transpose()
}

/// Leaves the guest as the next test expects it.
fn clean_up() -> Result<(), String> {
    guest::kill_everything_else();
    for leftover in [guest::DAEMON_LOG, guest::POLICY] {
        // Not every test makes them.
        let _ = std::fs::remove_file(leftover);
    }
    guest::remove_cgroups();
    for directory in [guest::RUNTIME, guest::STATE] {
        clear(directory).map_err(|error| format!("cannot clear {directory}: {error}"))?;
    }
    wait_until(Duration::from_secs(60), || {
        (guest::sched_ext("state") == "disabled").then_some(())
    })
    .ok_or_else(|| format!("sched_ext is still {}", guest::sched_ext("state")))?;
    match ejection() {
        Some(line) => Err(format!("the kernel ejected a scheduler: {line}")),
        None => Ok(()),
    }
}

/// An ejection since the last call that no test means to cause. The kernel tells of those that it
/// decides on itself as errors, of ends on request (a daemon's, SysRq-S) not.
fn ejection() -> Option<String> {
    let dmesg = Command::new("dmesg").args(["-r", "-c"]).output().ok()?;
    let log = String::from_utf8_lossy(&dmesg.stdout).into_owned();
    let mut errors = log.lines().filter(|line| line.starts_with("<3>"));
    let line = errors.find(|line| line.contains("sched_ext: BPF scheduler"))?;
    Some(line.to_owned())
}

/// Empties a directory of the daemon's, over which a test may have mounted something.
fn clear(directory: &str) -> std::io::Result<()> {
    let mounts = std::fs::read_to_string("/proc/mounts")?;
    for _ in mounts
        .lines()
        .filter(|line| line.split(' ').nth(1) == Some(directory))
    {
        let unmounted = Command::new("umount").args(["-l", directory]).status()?;
        if !unmounted.success() {
            return Err(std::io::Error::other("it stays mounted"));
        }
    }
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
