//! Inputs that nobody should have, and outputs that nobody reads. The program answers and ends.

use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::{POLICY, Place, Run};

#[test]
fn a_fifo_is_refused_without_waiting_for_a_writer() {
    let place = Place::empty();
    let fifo = place.path().join("policy.toml");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    for arguments in [
        "check policy.toml",
        "show --policy policy.toml",
        "test policy.toml",
    ] {
        let run = place.run(arguments).ends_with(66);
        assert_eq!(
            run.stderr,
            "error: cannot read policy.toml: it is a pipe; use - to read standard input\n"
        );
    }
    let place = Place::with(POLICY);
    mknodat(
        CWD,
        place.path().join("threads.tsv"),
        FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .expect("a FIFO");
    place
        .run("explain --policy policy.toml --threads threads.tsv")
        .ends_with(66);
}

#[test]
fn a_device_is_refused() {
    let run = Place::empty().run("check /dev/zero").ends_with(66);
    assert_eq!(run.stderr, "error: cannot read /dev/zero: it is a device\n");
}

#[test]
fn a_directory_without_a_policy_and_one_in_place_of_it() {
    let place = Place::empty();
    fs::create_dir_all(place.path().join("conf/policy.toml")).expect("created");
    fs::create_dir(place.path().join("empty")).expect("created");
    let run = place.run("check conf").ends_with(66);
    assert_eq!(
        run.stderr,
        "error: cannot read conf/policy.toml: it is a directory\n"
    );
    let run = place.run("check empty").ends_with(66);
    assert_eq!(
        run.stderr,
        "error: cannot read empty/policy.toml: no such file or directory\n"
    );
}

#[test]
fn a_huge_file_is_not_read_whole() {
    let place = Place::empty();
    // Sparse: a terabyte that no test machine could hold in memory.
    File::create(place.path().join("policy.toml"))
        .and_then(|file| file.set_len(1 << 40))
        .expect("a sparse file");
    let document = place
        .run("check policy.toml --format json")
        .ends_with(1)
        .json();
    assert_eq!(document["diagnostics"][0]["code"], "limit-exceeded");
}

#[test]
fn bytes_that_are_not_text_are_an_error_with_a_place() {
    let place = Place::empty();
    place.write(
        "policy.toml",
        b"version = 1\ndefault = \"back\xffground\"\n",
    );
    let document = place
        .run("check policy.toml --format json")
        .ends_with(1)
        .json();
    let found = document["diagnostics"].as_array().expect("a list");
    let syntax = found.iter().find(|found| found["code"] == "syntax");
    assert_eq!(syntax.expect("listed")["range"]["start"]["line"], 2);
    let random: Vec<u8> = (0..4096_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    place.write("policy.toml", random);
    place.run("check policy.toml").ends_with(1);
}

#[test]
fn an_empty_file_is_an_error() {
    let place = Place::with("");
    let document = place
        .run("check policy.toml --format json")
        .ends_with(1)
        .json();
    assert_eq!(document["diagnostics"][0]["code"], "empty-policy");
}

#[test]
fn a_file_that_may_not_be_read_is_66() {
    let place = Place::with(POLICY);
    if rustix::process::geteuid().is_root() {
        // Root reads everything; a loop of links cannot be read by anybody.
        fs::remove_file(place.path().join("policy.toml")).expect("removed");
        std::os::unix::fs::symlink("policy.toml", place.path().join("policy.toml"))
            .expect("linked");
    } else {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(
            place.path().join("policy.toml"),
            fs::Permissions::from_mode(0o000),
        )
        .expect("changed");
    }
    let run = place.run("check policy.toml").ends_with(66);
    assert!(
        run.stderr.starts_with("error: cannot read policy.toml: "),
        "{}",
        run.stderr
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::with(POLICY);
    let mut child = place
        .command()
        .args(["show", "--policy", "policy.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut stderr)
        .expect("readable");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(stderr, "");
}

#[test]
fn a_full_disk_under_standard_output_is_an_error() {
    let place = Place::with(POLICY);
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let output = place
        .command()
        .args(["show", "--policy", "policy.toml"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("the program runs");
    let run = Run::of(output).ends_with(69);
    assert!(
        run.stderr
            .starts_with("error: cannot write to standard output: "),
        "{}",
        run.stderr
    );
}

#[test]
fn a_long_list_of_threads_needs_no_more_memory_than_a_short_one() {
    let place = Place::with(POLICY);
    place.write("threads.tsv", format!("thread\n{}", "a\n".repeat(1 << 20)));
    // A tenth of what the million threads and their lines would take.
    let script = format!(
        "ulimit -v 65536; exec {} explain --policy policy.toml --threads threads.tsv | tail -n 1",
        env!("CARGO_BIN_EXE_twopool")
    );
    let mut command = place.command_of("sh");
    let run = Run::of(command.args(["-c", &script]).output().expect("a shell"));
    assert_eq!(
        run.stdout,
        "background  a                a                (default)\n"
    );
    assert_eq!(run.stderr, "");
}

#[test]
fn of_very_many_malformed_rows_the_first_are_named_and_the_rest_is_counted() {
    let place = Place::with(POLICY);
    let long = "x".repeat(1 << 20);
    let list = format!("thread\tnice\n{long}\n{}", "a\n".repeat(100_000));
    place.write("threads.tsv", list);
    let run = place
        .run("explain --policy policy.toml --threads threads.tsv")
        .ends_with(1);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines[0], "error: threads.tsv:2: longer than 65536 bytes");
    assert_eq!(lines[100..], ["error: 99901 more malformed rows"]);
    assert_eq!(run.stdout, "");
}

#[test]
fn names_do_not_act_on_a_terminal_and_json_has_them_as_they_are() {
    let place = Place::with(
        "version = 1\ndefault = 'background'\n[[rule]]\nname = \"a\\u001b[31m\\u202e\\nb\"\n\
         pool = 'critical'\nthread = 'x*'\n",
    );
    place.write("threads.tsv", "thread\nx\u{202e}y\n");
    for arguments in [
        "explain --policy policy.toml --thread x1",
        "explain --policy policy.toml --threads threads.tsv",
        "show --policy policy.toml",
        "check k\u{202e}.toml",
    ] {
        let run = place.run(arguments);
        let text = run.stdout + &run.stderr;
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        // `show` writes TOML.
        let is_escaped = text.contains("\\u{202e}") || text.contains("\\u202E");
        assert!(is_escaped, "{text}");
    }
    let run = place.run("explain --policy policy.toml --threads threads.tsv --format json");
    assert_eq!(run.json()["rule"]["name"], "a\u{1b}[31m\u{202e}\nb");
    assert_eq!(run.json()["thread"]["thread"], "x\u{202e}y");
}

#[test]
fn of_very_many_mistakes_the_first_are_listed_and_all_are_counted() {
    let place = Place::with(&format!("{POLICY}{}", "= \n".repeat(100_000)));
    place.write("other.toml", "= \n".repeat(5_000));
    let run = place.run("check policy.toml --format json").ends_with(1);
    let document = run.json();
    let listed = document["diagnostics"].as_array().expect("a list").len();
    let errors = document["error_count"].as_u64().expect("a count");
    assert!(errors >= 100_000, "{errors}");
    assert_eq!(
        (listed, &document["omitted"]),
        (1_000, &(errors - 1_000).into())
    );
    assert!(run.stdout.len() < 500_000, "{} bytes", run.stdout.len());
    let end = format!(
        "and {} more; `twopool check --format json` lists the first 1000\n\n",
        errors - 200
    );
    assert!(run.stderr.ends_with(&end), "{} bytes", run.stderr.len());
    let both = place
        .run("check policy.toml other.toml --format json")
        .json();
    let listed = both["diagnostics"].as_array().expect("a list").len() as u64;
    assert_eq!(
        both["omitted"].as_u64(),
        both["error_count"].as_u64().map(|errors| errors - listed)
    );
}

/// A list that shrinks between the two walks would look like a whole answer, or like a fault of
/// standard output.
#[test]
fn a_list_that_changes_while_it_is_read_is_to_blame_for_itself() {
    for left in [0, 1 << 16] {
        let place = Place::with(POLICY);
        // More than a pipe holds: when the first byte is out, most of it is still to be read.
        let rows = "some-thread-name\n".repeat(200_000);
        place.write("threads.tsv", format!("thread\n{rows}"));
        let mut child = place
            .command()
            .args(["explain", "--policy", "policy.toml"])
            .args(["--threads", "threads.tsv"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.as_mut().expect("piped");
        stdout.read_exact(&mut [0]).expect("its first byte");
        let list = File::options()
            .write(true)
            .open(place.path().join("threads.tsv"))
            .expect("the list");
        list.set_len(left).expect("cut");
        let run = Run::of(child.wait_with_output().expect("the program ends")).ends_with(66);
        assert!(
            run.stderr
                .starts_with("error: threads.tsv changed while it was read: "),
            "{}",
            run.stderr
        );
    }
}
