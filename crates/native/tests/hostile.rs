//! No image, however damaged, makes the C code read outside of it or run away: the masks hold.
//! Checked by sanitizers over random images, since the verifier's word counts only for BPF.

// the sanitizers watch a process of its own, which has to be built and run
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: &str = "400";

/// Compilers to try, best first; a sanitizer's runtime may be missing for any of them.
const COMPILERS: &[&str] = &["clang", "clang-19", "clang-20", "clang-18", "gcc", "cc"];
const SANITIZE: &str = "-fsanitize=address,undefined";

#[test]
fn random_images_are_read_within_their_bounds() {
    let out = tempdir();
    let program = build(&out);
    for seed in ["1", "2", "3", "4"] {
        let run = Command::new(&program)
            .args([seed, ROUNDS])
            .output()
            .expect("the program that was just built runs");
        assert!(
            run.status.success(),
            "seed {seed}: {}\n{}",
            run.status,
            String::from_utf8_lossy(&run.stderr)
        );
        let rules: u64 = String::from_utf8_lossy(&run.stdout)
            .trim()
            .parse()
            .expect("it prints how many threads got past the default");
        assert!(rules > 30, "seed {seed}: only {rules} threads met a rule");
    }
    std::fs::remove_dir_all(out).expect("the directory is ours");
}

fn tempdir() -> PathBuf {
    let dir =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("cargo's directory for tests is writable");
    dir
}

/// Builds with sanitizers where some compiler can; else plainly, and says so.
fn build(out: &Path) -> PathBuf {
    let program = out.join("hostile");
    let attempts = COMPILERS
        .iter()
        .map(|compiler| (compiler, true))
        .chain([(&"cc", false)]);
    for (compiler, sanitize) in attempts {
        if compile(compiler, sanitize, &program) {
            if !sanitize {
                eprintln!("no compiler here has sanitizers: only crashes are seen");
            }
            return program;
        }
    }
    panic!("no compiler builds tests/hostile.c");
}

fn compile(compiler: &str, sanitize: bool, program: &Path) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(compiler);
    command
        .args(["-std=gnu11", "-O1", "-g", "-fno-strict-aliasing", "-w"])
        .arg("-I")
        .arg(root.join("../../bpf"))
        .arg(root.join("tests/hostile.c"))
        .arg("-o")
        .arg(program);
    if sanitize {
        command.args([SANITIZE, "-fno-sanitize-recover=all"]);
    }
    command.output().is_ok_and(|output| output.status.success())
}
