//! Rules that single out init or the daemon for `background`.
//!
//! A policy whose default is background puts them there too, and works. What is worth a word is a
//! rule that is about them: one whose pattern begins with their name, or with their cgroup.

use twopool_diag::{Code, Diagnostic, Findings};

use crate::image::Image;
use crate::policy::{Conditions, Pattern, Policy, Pool};
use crate::thread::Thread;

/// Bytes that a pattern shares with a name to be about it.
const BEGINNING: usize = 4;

/// Somebody whom everybody else waits for.
struct Essential {
    name: &'static str,
    cgroup: &'static str,
    /// Cgroups that begin so are about it.
    home: &'static str,
    what: &'static str,
    /// What a rule that keeps it out looks like.
    remedy: &'static str,
}

const ESSENTIALS: [Essential; 3] = [
    Essential {
        name: "systemd",
        cgroup: "/init.scope",
        home: "/init.scope",
        what: "init, which starts and reaps everything",
        remedy: "add `not = { cgroup = \"/init.scope\" }`",
    },
    Essential {
        name: "init",
        cgroup: "/",
        home: "/init.scope",
        what: "init, which starts and reaps everything",
        remedy: "add `not = { process = \"init\", user = 0 }`",
    },
    Essential {
        name: "twopool",
        cgroup: "/system.slice/twopool.service",
        home: "/system.slice/twopool",
        what: "twopool itself, so that edits of the policy wait for the critical pool",
        remedy: "let an earlier rule take it: `pool = \"critical\"`, `process = \"twopool\"`, `user = 0`",
    },
];

/// One finding for each of them that is singled out.
pub fn lint(policy: &Policy, image: &Image, found: &mut Findings) {
    for essential in &ESSENTIALS {
        let thread = Thread {
            cgroup: essential.cgroup.as_bytes().to_vec(),
            ..Thread::named(essential.name.as_bytes())
        };
        let taken = usize::from(image.classify(&thread).rule).checked_sub(1);
        let Some(rule) = taken.map(|index| &policy.rules[index]) else {
            continue;
        };
        let Some(pattern) = rule
            .tables_to_meet()
            .find_map(|table| about(essential, table))
        else {
            continue;
        };
        if rule.pool == Pool::Background {
            let summary = "a rule that puts an essential process into `background`";
            found.push(
                Diagnostic::new(Code::EssentialInBackground, pattern.at.0, summary)
                    .label(format!("takes {}", essential.what))
                    .help(essential.remedy),
            );
        }
    }
}

/// A pattern of the table that is about it.
fn about<'a>(essential: &Essential, table: &'a Conditions) -> Option<&'a Pattern> {
    let beginning = &essential.name[..BEGINNING];
    let mut cgroups = table.patterns("cgroup").iter();
    table
        .names()
        .find(|pattern| pattern.text.starts_with(beginning))
        .or_else(|| cgroups.find(|pattern| pattern.text.starts_with(essential.home)))
}
