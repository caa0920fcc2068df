//! Documents that nearly follow the grammar, so that most inputs come as far as the graph.
#![no_main]

use arbitrary::Unstructured;
use flow_fuzz::document;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = document::write(&mut Unstructured::new(bytes));
    flow_fuzz::check(text.as_bytes());
});
