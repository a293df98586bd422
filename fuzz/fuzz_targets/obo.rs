//! `targets/obo.rs` for the fuzzer.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets/obo.rs"]
mod target;

fuzz_target!(|data: &[u8]| target::run(data));
