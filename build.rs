//! Compiles `bpf/twopool.bpf.c` and generates its Rust skeleton into OUT_DIR.
//!
//! Invariant: nothing but the files under `bpf/` and the clang that is found decides the object:
//! no vmlinux.h, no kernel headers of the build host (libbpf's own come with libbpf-sys).

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use libbpf_cargo::SkeletonBuilder;

/// Oldest clang whose BPF back end has what the program uses (bpf_core_enum_value, mcpu v3).
const OLDEST_CLANG: u32 = 17;

/// Tried in this order. 19 comes first because every kernel's verifier was tried with its code.
const CANDIDATES: [&str; 6] = [
    "clang-19", "clang-20", "clang-18", "clang-21", "clang-22", "clang",
];

/// Each flag with its reason. libbpf-cargo itself adds `-O2` (the verifier refuses the unoptimised
/// form of most loops), `-g` (CO-RE and the skeleton's types come from BTF), `-target bpf` and
/// `-fno-stack-protector` (some distributions' clang has it on; BPF has no such thing).
const FLAGS: [&str; 3] = [
    "-Wall", // A warning in code that runs in the kernel is a fault.
    "-Werror",
    // v3 (32-bit registers and jumps) is known to every kernel with sched_ext; v4 is not needed.
    "-mcpu=v3",
];

fn main() {
    let bpf = Path::new("bpf");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TWOPOOL_CLANG");
    // A directory is watched as a whole: every header counts.
    println!("cargo::rerun-if-changed={}", bpf.display());

    let clang = find_clang().unwrap_or_else(|message| fail(&message));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let result = SkeletonBuilder::new()
        .source(bpf.join("twopool.bpf.c"))
        .clang(&clang)
        .clang_args(FLAGS)
        .build_and_generate(out.join("twopool.skel.rs"));
    if let Err(error) = result {
        fail(&format!(
            "{clang} could not compile bpf/twopool.bpf.c: {error:#}"
        ));
    }
}

/// The clang to use: `TWOPOOL_CLANG`, else the first candidate that is there and new enough.
fn find_clang() -> Result<String, String> {
    if let Ok(named) = env::var("TWOPOOL_CLANG") {
        return match version(&named) {
            Some(found) if found >= OLDEST_CLANG => Ok(named),
            Some(found) => Err(format!(
                "TWOPOOL_CLANG={named} is clang {found}; {OLDEST_CLANG} or newer is needed"
            )),
            None => Err(format!("TWOPOOL_CLANG={named} cannot be run")),
        };
    }
    CANDIDATES.iter().find(|name| version(name).is_some_and(|found| found >= OLDEST_CLANG)).map_or_else(
        || {
            Err(format!(
                "no clang {OLDEST_CLANG} or newer found (looked for {}): install one, for example \
                 `apt install clang-19`, or name it in TWOPOOL_CLANG",
                CANDIDATES.join(", ")
            ))
        },
        |name| Ok((*name).to_owned()),
    )
}

/// The major version of a clang, if it runs and is one.
fn version(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, rest) = text.split_once("clang version ")?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// Ends the build with a message that cargo shows whole.
fn fail(message: &str) -> ! {
    for line in message.lines() {
        println!("cargo::error={line}");
    }
    exit(1)
}
