//! Documents that nearly follow the grammar, which any bytes seldom do.
#![no_main]

use arbitrary::Unstructured;
use flow_fuzz::document;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = document::write(&mut Unstructured::new(bytes));
    flow_fuzz::check(text.as_bytes());
});
