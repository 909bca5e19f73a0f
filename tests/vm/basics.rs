//! What every other test takes for granted.

use crate::Test;
use crate::guest::sched_ext;

pub const TESTS: &[Test] = &[
    Test {
        name: "basics::the_kernel_has_sched_ext",
        cpus: 1,
        limit_s: 60,
        run: the_kernel_has_sched_ext,
    },
    Test {
        name: "basics::the_kernel_describes_its_types",
        cpus: 1,
        limit_s: 60,
        run: the_kernel_describes_its_types,
    },
];

/// Without this every other test would fail for a reason that is not its own.
fn the_kernel_has_sched_ext() {
    assert_eq!(sched_ext("state"), "disabled");
    assert_eq!(sched_ext("nr_rejected"), "0");
}

fn the_kernel_describes_its_types() {
    let btf = std::fs::read("/sys/kernel/btf/vmlinux").expect("the kernel has BTF");
    assert_eq!(&btf[..2], &[0x9f, 0xeb], "BTF's magic number");
}
