//! Any bytes, from a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| flow_fuzz::terminal::check(bytes));
