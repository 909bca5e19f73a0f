//! Ends that the kernel chose.

use std::fs;

use twopool_telemetry::{ReloadResult, State};

use super::files::save_by_rename;
use super::{Running, stall, text};

#[test]
fn k06_an_ejection_is_reported_and_ends_in_another_attempt() {
    let running = Running::start();
    *running.kernel.ejection.lock().expect("unpoisoned") = Some(stall());
    running.wait_for_status(|status| status.state == State::Ejected);
    let dumps: Vec<_> = fs::read_dir(running.directory.path().join("state"))
        .expect("saved")
        .collect();
    assert_eq!(dumps.len(), 1);
    running.wait_for_status(|status| status.state == State::Attached);
    assert_eq!(*running.kernel.starts.lock().expect("unpoisoned"), 2);
}

#[test]
fn an_ejection_soon_after_a_reload_takes_it_back() {
    let running = Running::start();
    save_by_rename(&running.policy(), &text("bad-idea"));
    running.kernel.wait_for("bad-idea");
    running.wait_for_status(|status| status.policy.epoch == 2);
    *running.kernel.ejection.lock().expect("unpoisoned") = Some(stall());
    let status = running
        .wait_for_status(|status| status.policy.epoch == 3 && status.state == State::Attached);
    assert_eq!(status.rules[0].name, "rule first");
    assert_eq!(
        status.last_reload.expect("tried").result,
        ReloadResult::RolledBack
    );
    running.kernel.wait_for("first");
}
