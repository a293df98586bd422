//! `targets/packed.rs` for the fuzzer.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets/packed.rs"]
mod target;

fuzz_target!(|data: &[u8]| target::run(data));
