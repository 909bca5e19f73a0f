//! Saves of every kind: what the daemon must notice, and what must change nothing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use twopool_telemetry::{ReloadResult, Status};

use super::{Running, text};
use crate::exit::Exit;

/// Replaces a file in one step.
pub fn save_by_rename(path: &Path, text: &str) {
    let temporary = path.with_extension("toml.tmp");
    fs::write(&temporary, text).expect("written");
    fs::rename(&temporary, path).expect("renamed");
}

#[test]
fn l01_any_number_of_saves_by_rename_reload() {
    let running = Running::start();
    for round in 0..5 {
        let thread = format!("tmp-{round}");
        save_by_rename(&running.policy(), &text(&thread));
        running.kernel.wait_for(&thread);
    }
    for round in 0..5 {
        let thread = format!("backup-{round}");
        fs::rename(running.policy(), running.conf().join("policy.toml~")).expect("renamed");
        fs::write(running.policy(), text(&thread)).expect("written");
        running.kernel.wait_for(&thread);
    }
    let before = running.kernel.count();
    // What editors leave beside the file is no reason to do anything.
    for name in ["4913", ".policy.toml.swp"] {
        fs::write(running.conf().join(name), "x").expect("written");
        fs::remove_file(running.conf().join(name)).expect("removed");
    }
    assert_eq!(running.reload().result, Some(ReloadResult::Unchanged));
    assert_eq!(running.kernel.count(), before);
    assert_eq!(running.stop(), Exit::Done);
}

#[test]
fn l02_a_swapped_link_reloads() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let conf = directory.path().join("conf");
    fs::create_dir_all(conf.join("..v0")).expect("created");
    fs::write(conf.join("..v0/policy.toml"), text("first")).expect("written");
    symlink("..v0", conf.join("..data")).expect("linked");
    symlink("..data/policy.toml", conf.join("policy.toml")).expect("linked");
    let running = Running::start_in(directory);
    for round in 1..=3 {
        let (thread, version) = (format!("swap-{round}"), format!("..v{round}"));
        fs::create_dir(conf.join(&version)).expect("created");
        fs::write(conf.join(&version).join("policy.toml"), text(&thread)).expect("written");
        symlink(&version, conf.join("..data_tmp")).expect("linked");
        fs::rename(conf.join("..data_tmp"), conf.join("..data")).expect("renamed");
        fs::remove_dir_all(conf.join(format!("..v{}", round - 1))).expect("removed");
        running.kernel.wait_for(&thread);
    }
    // The file itself rewritten behind the links.
    fs::write(conf.join("..v3/policy.toml"), text("behind")).expect("written");
    running.kernel.wait_for("behind");
}

#[test]
fn l03_an_empty_file_never_changes_the_policy() {
    let running = Running::start();
    fs::write(running.policy(), "").expect("truncated");
    let verdict = running.reload();
    assert_eq!(
        (verdict.result, verdict.epoch),
        (Some(ReloadResult::Rejected), 1)
    );
    assert!(verdict.text.contains("is empty"), "{}", verdict.text);
    assert_eq!(running.kernel.count(), 1);
    fs::write(running.policy(), text("written")).expect("written");
    assert_eq!(running.kernel.wait_for("written"), 2);
}

/// Else the old policy runs for days, and only a line of the log knows.
#[test]
fn l05_a_policy_that_is_missing_or_empty_is_told_until_it_is_back() {
    let running = Running::start();
    let result = |status: &Status| status.last_reload.as_ref().map(|last| last.result);
    for message in ["is empty", "no such file"] {
        match message {
            "is empty" => fs::write(running.policy(), "").expect("truncated"),
            _ => fs::remove_file(running.policy()).expect("removed"),
        }
        // Nobody asks for a reload: it lasts, so it is told.
        let status = running.wait_for_status(|status| {
            status.last_reload.as_ref().is_some_and(|last| {
                let summary = last.diagnostics.first().map(|found| &found["summary"]);
                let summary = summary.and_then(|summary| summary.as_str());
                summary.is_some_and(|summary| summary.contains(message))
            })
        });
        assert_eq!(result(&status), Some(ReloadResult::Rejected));
        assert_eq!(status.policy.epoch, 1);
        save_by_rename(&running.policy(), &text("first"));
        running.wait_for_status(|status| result(status).is_none());
    }
    assert_eq!(running.kernel.count(), 1);
}

#[test]
fn l05_r04_bad_policies_change_nothing_and_the_next_good_one_applies() {
    let running = Running::start();
    for (bad, code) in [
        ("pool = \"fast\"", "unknown-pool"),
        (
            "pool = \"critical\"\nthread = { regex = '(' }",
            "invalid-regex",
        ),
        (
            "pool = \"critical\"\nthread = { regex = '\\w{1000}{100}' }",
            "pattern-too-large",
        ),
    ] {
        save_by_rename(
            &running.policy(),
            &format!("version = 1\ndefault = \"background\"\n[[rule]]\n{bad}\n"),
        );
        let has_code = |status: &Status| {
            status.last_reload.as_ref().is_some_and(|last| {
                last.result == ReloadResult::Rejected
                    && last.diagnostics.iter().any(|found| found["code"] == code)
            })
        };
        let status = running.wait_for_status(has_code);
        assert_eq!(
            (status.policy.epoch, status.rules[0].name.as_str()),
            (1, "rule first")
        );
    }
    save_by_rename(&running.policy(), &text("good"));
    running.kernel.wait_for("good");
    let status = running.wait_for_status(|status| status.policy.epoch == 2);
    assert_eq!(
        status.last_reload.expect("tried").result,
        ReloadResult::Applied
    );
    assert_eq!(running.kernel.count(), 2);
}

#[test]
fn l07_a_file_or_directory_that_comes_back_is_seen() {
    let running = Running::start();
    fs::remove_file(running.policy()).expect("removed");
    assert_eq!(running.reload().result, Some(ReloadResult::Rejected));
    fs::write(running.policy(), text("back")).expect("written");
    running.kernel.wait_for("back");

    fs::remove_dir_all(running.conf()).expect("removed");
    fs::create_dir(running.conf()).expect("created");
    fs::write(running.policy(), text("again")).expect("written");
    running.kernel.wait_for("again");

    let other = running.directory.path().join("conf.new");
    fs::create_dir(&other).expect("created");
    fs::write(other.join("policy.toml"), text("swapped")).expect("written");
    fs::rename(running.conf(), running.directory.path().join("conf.old")).expect("renamed");
    fs::rename(other, running.conf()).expect("renamed");
    running.kernel.wait_for("swapped");
}

#[test]
fn l09_a_directory_in_place_of_the_file_keeps_the_policy() {
    let running = Running::start();
    fs::remove_file(running.policy()).expect("removed");
    fs::create_dir(running.policy()).expect("created");
    let verdict = running.reload();
    assert_eq!(verdict.result, Some(ReloadResult::Rejected));
    assert!(
        verdict.text.contains("it is a directory"),
        "{}",
        verdict.text
    );
    fs::remove_dir(running.policy()).expect("removed");
    fs::write(running.policy(), text("file")).expect("written");
    running.kernel.wait_for("file");
}

/// Links that lead to themselves stand for whatever keeps a file from being read: unlike a file's mode,
/// they stop root as well.
#[test]
fn l09_a_file_that_cannot_be_read_keeps_the_policy() {
    let running = Running::start();
    fs::remove_file(running.policy()).expect("removed");
    symlink("policy.toml", running.policy()).expect("linked");
    let verdict = running.reload();
    assert_eq!(verdict.result, Some(ReloadResult::Rejected));
    assert!(verdict.text.contains("policy.toml"), "{}", verdict.text);
    assert_eq!(running.status().policy.epoch, 1);
    save_by_rename(&running.policy(), &text("readable"));
    running.kernel.wait_for("readable");
}

#[test]
fn a_policy_that_the_kernel_does_not_take_changes_nothing_and_can_be_tried_again() {
    let running = Running::start();
    running.kernel.is_full.store(true, Ordering::Relaxed);
    save_by_rename(&running.policy(), &text("large"));
    let verdict = running.reload();
    assert_eq!(
        (verdict.result, verdict.epoch),
        (Some(ReloadResult::Rejected), 1)
    );
    assert!(
        verdict.text.contains("the kernel did not take the policy"),
        "{}",
        verdict.text
    );
    assert_eq!(running.kernel.count(), 1, "the first stays in force");
    running.kernel.is_full.store(false, Ordering::Relaxed);
    assert_eq!(running.reload().result, Some(ReloadResult::Applied));
    running.kernel.wait_for("large");
}

#[test]
fn drop_ins_that_come_and_go_are_seen() {
    let running = Running::start();
    let drop_ins = running.conf().join("policy.d");
    fs::create_dir(&drop_ins).expect("created");
    fs::write(
        drop_ins.join("10-x.toml"),
        "[[rule]]\nname = \"x\"\npool = \"critical\"\nthread = \"dropped\"\n",
    )
    .expect("written");
    running.kernel.wait_for("dropped");
    assert_eq!(
        running
            .wait_for_status(|status| status.policy.epoch == 2)
            .rules
            .len(),
        2
    );
    fs::remove_file(drop_ins.join("10-x.toml")).expect("removed");
    assert_eq!(
        running
            .wait_for_status(|status| status.policy.epoch == 3)
            .rules
            .len(),
        1
    );
}

#[test]
fn a_reload_that_waits_sees_the_file_as_it_is_now() {
    let running = Running::start();
    for round in 0..20 {
        save_by_rename(&running.policy(), &text(&format!("now-{round}")));
        let verdict = running.reload();
        // The watcher may have been faster; then there is nothing left to do.
        assert!(
            matches!(
                verdict.result,
                Some(ReloadResult::Applied | ReloadResult::Unchanged)
            ),
            "{verdict:?}"
        );
        assert_eq!(running.status().rules[0].name, format!("rule now-{round}"));
    }
}

#[test]
fn a_comment_alone_is_another_policy_file_and_touching_it_is_not() {
    let running = Running::start();
    let contents = fs::read_to_string(running.policy()).expect("readable");
    save_by_rename(&running.policy(), &contents);
    let verdict = running.reload();
    assert_eq!(
        (verdict.result, verdict.epoch),
        (Some(ReloadResult::Unchanged), 1)
    );
    save_by_rename(&running.policy(), &format!("# why\n{contents}"));
    assert_ne!(running.reload().hash, verdict.hash);
}

#[test]
fn what_check_proves_is_in_the_verdict_also_of_a_policy_that_is_in_force() {
    let running = Running::start();
    let twice = format!(
        "{}[[rule]]\nname = \"too late\"\npool = \"background\"\nthread = \"again\"\n",
        // Where critical is the default, a rule by name alone is no finding of its own.
        text("again").replace("default = \"background\"", "default = \"critical\"")
    );
    save_by_rename(&running.policy(), &twice);
    for _ in 0..2 {
        let check = running.reload().check.expect("a document");
        assert_eq!(check["diagnostics"][0]["code"], "duplicate-rule", "{check}");
    }
}

/// Tests that only `check` ran would guard nothing: whoever edits them expects the next reload to
/// be held to them.
#[test]
fn tests_beside_the_policy_are_run_at_every_reload() {
    let running = Running::start();
    let tests = running.conf().join("policy.test.toml");
    let test =
        |pool: &str| format!("[[test]]\nthread = \"new\"\nexpect = {{ pool = \"{pool}\" }}\n");
    fs::write(&tests, test("background")).expect("written");
    fs::write(running.policy(), text("new")).expect("written");
    let verdict = running.reload();
    assert_eq!(
        (verdict.result, verdict.epoch),
        (Some(ReloadResult::Rejected), 1)
    );
    assert!(verdict.text.contains("failed-test"), "{}", verdict.text);
    // The policy stays as it is, its tests alone change: that is noticed too.
    fs::write(&tests, test("critical")).expect("written");
    assert_eq!(running.kernel.wait_for("new"), 2);
}

/// A valid prefix of a policy is a policy. On a busy host a writer can be held up for longer than any
/// settling time in the middle of a file.
#[test]
fn l03_a_writer_that_pauses_is_waited_for() {
    let running = Running::start();
    // The look at a start, before anybody watches, sees whatever is there.
    save_by_rename(&running.policy(), &text("watched"));
    let before = running.kernel.wait_for("watched");
    let mut file = fs::File::create(running.policy()).expect("truncated");
    file.write_all(text("half").as_bytes()).expect("written");
    std::thread::sleep(Duration::from_secs(1));
    let rest = "[[rule]]\npool = \"critical\"\nthread = \"whole\"\n";
    file.write_all(rest.as_bytes()).expect("written");
    drop(file);
    assert_eq!(
        running.kernel.wait_for("whole"),
        before + 1,
        "half of it was in force"
    );
    assert_eq!(running.stop(), Exit::Done);
}
