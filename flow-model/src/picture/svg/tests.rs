//! Properties that every picture has.
#![allow(clippy::unwrap_used, reason = "a missing value is a failed test")]

use super::*;
use crate::picture::samples;

#[test]
fn samples_can_be_looked_at() {
    let Some(folder) = std::env::var_os("FLOW_PICTURES") else {
        return;
    };
    for (name, graph) in samples::all() {
        let path = std::path::Path::new(&folder).join(format!("{name}.svg"));
        std::fs::write(path, svg(&graph)).unwrap();
    }
}
