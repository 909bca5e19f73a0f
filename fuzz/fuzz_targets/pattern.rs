#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| twopool_policy::generate::fuzz::pattern(data));
