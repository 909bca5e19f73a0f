//! The texts of the policy in force: what another policy is compared with.

use std::fs;

use twopool_policy::compile::Role;

use super::files::save_by_rename;
use super::{DEADLINE, Running, text};
use crate::cmd::client;
use crate::daemon::protocol::{Kind, PolicyTexts, Request};
use crate::exit::Exit;

fn texts(running: &Running) -> PolicyTexts {
    let request = Request::new(Kind::Policy);
    client::ask(running.directory.path(), &request, DEADLINE).expect("the texts")
}

/// Files that were never put in force are what it is compared against, not with.
#[test]
fn they_are_those_of_the_policy_in_force_and_not_of_the_disk() {
    let running = Running::start();
    fs::create_dir(running.conf().join("policy.d")).expect("created");
    save_by_rename(
        &running.conf().join("policy.d/50-x.toml"),
        "[[rule]]\npool = \"background\"\nnice = 19\n",
    );
    save_by_rename(&running.policy(), &text("second"));
    running.kernel.wait_for("second");
    running.reload();
    fs::write(running.policy(), "version = 2\n").expect("written");
    let told = texts(&running);
    let status = running.status();
    assert_eq!(
        (told.epoch, &told.hash),
        (status.policy.epoch, &status.policy.hash)
    );
    let names: Vec<&str> = told.files.iter().map(|file| file.name.as_str()).collect();
    let paths = [running.policy(), running.conf().join("policy.d/50-x.toml")];
    assert_eq!(names, paths.map(|path| path.display().to_string()));
    assert_eq!(told.files[0].text, text("second"));
    assert_eq!(told.files[1].role, Role::DropIn);
    assert_eq!(running.stop(), Exit::Done);
}
