//! Documents, policies and registries: complete, numbered, and true about the tree.

use std::path::{Path, PathBuf};

use super::{File, assert_none, files, has_extension, root};

const ARCHITECTURE_LINES: usize = 200;

/// Where the architecture's paths start from.
const PATH_BASES: &[&str] = &[
    "",
    "bpf",
    "docs",
    "crates/policy/src",
    "crates/twopool",
    "crates/twopool/daemon",
];

/// A policy that we support says what it is meant to do, in a form that is checked.
#[test]
fn policies_have_tests() {
    let complaints: Vec<String> = files(&["toml"])
        .iter()
        .filter(|file| {
            file.path.starts_with("policies/") || file.path.starts_with("examples/policies/")
        })
        .filter(|file| !file.text.lines().any(|line| line.trim() == "[[test]]"))
        .map(|file| format!("{}: no [[test]]", file.path))
        .collect();
    assert_none(&complaints);
}

/// Every code that a user may meet has a page, and every page is of a code.
#[test]
fn diagnostic_codes_are_documented() {
    let dir = root().join("docs/diagnostics");
    let mut complaints = Vec::new();
    for code in twopool_diag::Code::ALL {
        if !dir.join(format!("{}.md", code.as_str())).is_file() {
            complaints.push(format!("docs/diagnostics/{}.md is missing", code.as_str()));
        }
    }
    let pages: Vec<PathBuf> = std::fs::read_dir(&dir)
        .expect("docs/diagnostics")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| has_extension(path, &["md"]))
        .collect();
    for page in pages {
        let stem = page
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !twopool_diag::Code::ALL
            .iter()
            .any(|code| code.as_str() == stem)
        {
            complaints.push(format!("docs/diagnostics/{stem}.md is of no code"));
        }
    }
    assert_none(&complaints);
}

/// A bad policy without its complaint tests nothing, and a complaint without a policy is left over.
#[test]
fn bad_policies_have_complaints() {
    let mut complaints = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/ui"))
        .expect("tests/ui")
        .flatten()
    {
        let path = entry.path();
        let other = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => path.with_extension("stderr"),
            Some("stderr" | "d") => path.with_extension("toml"),
            _ if entry.file_name() == ".gitattributes" => continue,
            _ => {
                complaints.push(format!("{}: neither policy nor complaint", path.display()));
                continue;
            }
        };
        if !other.exists() {
            complaints.push(format!("{} is missing", other.display()));
        }
    }
    assert_none(&complaints);
}

/// Numbers are what other texts refer to: no gap, no number twice.
#[test]
fn decisions_are_numbered() {
    let decisions: Vec<File> = files(&["md"])
        .into_iter()
        .filter(|file| file.path.starts_with("docs/decisions/"))
        .collect();
    let mut complaints = Vec::new();
    for (index, file) in decisions.iter().enumerate() {
        let number = format!("{:04}", index + 1);
        if !file.path.starts_with(&format!("docs/decisions/{number}-")) {
            complaints.push(format!("{}: expected number {number}", file.path));
        }
        if !file.text.starts_with(&format!("# {number}: ")) {
            complaints.push(format!(
                "{}: the title does not begin with {number}",
                file.path
            ));
        }
    }
    assert!(!decisions.is_empty(), "docs/decisions is empty");
    assert_none(&complaints);
}

/// A dependency without a reason is one that nobody decided on.
#[test]
fn dependencies_have_reasons() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let reasons = std::fs::read_to_string(root().join("docs/decisions/0001-dependencies.md"))
        .expect("the table of reasons");
    let listed: Vec<&str> = reasons
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .flat_map(|(crates, _)| crates.split(", "))
        .collect();
    let complaints: Vec<String> = manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .filter(|(name, _)| !name.starts_with("twopool-") && !listed.contains(name))
        .map(|(name, _)| format!("{name}: no row in docs/decisions/0001-dependencies.md"))
        .collect();
    assert_none(&complaints);
}

/// The kernel takes no program without a licence, and tells nobody which file lacks it.
#[test]
fn kernel_sources_name_their_licence() {
    let complaints: Vec<String> = files(&["h", "c"])
        .iter()
        .filter(|file| file.path.starts_with("bpf/"))
        .filter(|file| {
            !file
                .text
                .starts_with("/* SPDX-License-Identifier: GPL-2.0-only */\n")
        })
        .map(|file| format!("{}: no licence in its first line", file.path))
        .collect();
    assert_none(&complaints);
}

/// An overview that nobody reads to its end, or that shows the way to what is gone, is none.
#[test]
fn the_architecture_is_short_and_true() {
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the overview");
    let mut complaints = Vec::new();
    let lines = text.lines().count();
    if lines > ARCHITECTURE_LINES {
        complaints.push(format!("{lines} lines, limit {ARCHITECTURE_LINES}"));
    }
    // What stands in backquotes and looks like a path: every second piece.
    for word in text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| is_path(word))
    {
        let word = word.trim_end_matches("/*");
        if !PATH_BASES
            .iter()
            .any(|base| root().join(base).join(word).exists())
        {
            complaints.push(format!("docs/ARCHITECTURE.md: `{word}` does not exist"));
        }
    }
    assert_none(&complaints);
}

/// `/name` is what the text says of cgroups; all other words with a slash or a suffix are ours.
fn is_path(word: &str) -> bool {
    let suffixed = [".rs", ".h", ".c", ".md"]
        .iter()
        .any(|suffix| word.ends_with(suffix));
    let slashed = word.contains('/') && !word.starts_with('/');
    !word.contains([' ', '\n', '<']) && word != "vmlinux.h" && (suffixed || slashed)
}

/// A link that leads nowhere is a promise that was not kept.
#[test]
fn links_lead_somewhere() {
    let mut complaints = Vec::new();
    for file in files(&["md"]) {
        let directory = Path::new(&file.path).parent().expect("below the root");
        for rest in file.text.split("](").skip(1) {
            let (target, _) = rest.split_once(')').unwrap_or((rest, ""));
            let (target, _) = target.split_once('#').unwrap_or((target, ""));
            let is_outside = target.is_empty() || target.contains("://");
            if !is_outside && !root().join(directory).join(target).exists() {
                complaints.push(format!("{}: `{target}` does not exist", file.path));
            }
        }
    }
    assert_none(&complaints);
}

/// A guest test whose file is not in the registry never runs.
#[test]
fn guest_tests_are_registered() {
    let main = std::fs::read_to_string(root().join("tests/vm/main.rs")).expect("the registry");
    let complaints: Vec<String> = files(&["rs"])
        .iter()
        .filter(|file| file.path.starts_with("tests/vm/") && file.text.contains("pub const TESTS"))
        .filter_map(|file| {
            let topic = Path::new(&file.path).file_stem()?.to_str()?.to_owned();
            (!main.contains(&format!("{topic}::TESTS")))
                .then(|| format!("{}: not in TOPICS", file.path))
        })
        .collect();
    assert_none(&complaints);
}
