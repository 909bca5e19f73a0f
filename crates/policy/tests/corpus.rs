//! The inputs that fuzzing keeps, on every run of the tests: what was once a fault stays mended.

#![allow(clippy::disallowed_methods, reason = "the inputs are files")]

use std::fs;
use std::path::Path;

use twopool_policy::generate::fuzz::TARGETS;

#[test]
fn kept_inputs_find_no_fault() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let directory = corpus.join(name);
        let entries = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{directory:?}: {e}"));
        let mut inputs = 0;
        for entry in entries {
            let path = entry.expect("a listing").path();
            println!("{}", path.display());
            target(&fs::read(&path).expect("readable"));
            inputs += 1;
        }
        assert!(inputs >= 10, "{name}: {inputs} inputs");
    }
}
