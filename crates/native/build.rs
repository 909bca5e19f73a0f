//! Builds `bpf/native.c`, the classification of the kernel program, for the host.

fn main() {
    let bpf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf");
    println!("cargo::rerun-if-changed={bpf}");
    cc::Build::new()
        .file(format!("{bpf}/native.c"))
        .include(bpf)
        .std("gnu11")
        // speed is the point, whatever the profile: tests judge millions of threads
        .opt_level(2)
        // names and tables are read through pointers of other types, as in the kernel
        .flag("-fno-strict-aliasing")
        // the headers serve several programs, each of which leaves some functions out
        .flag("-Wno-unused-function")
        .flag("-Wno-unused-parameter")
        .warnings_into_errors(true)
        .compile("twopool_native");
}
