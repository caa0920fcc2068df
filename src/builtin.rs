//! Workflows that come with flow, compiled from `workflows/`.

use crate::graph::Graph;

/// A workflow that is part of the program.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// The name it is found by.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// The checked definition; its inputs are among the rest.
    pub graph: &'static Graph,
    /// The definition as it was written.
    pub source: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The built-in workflow of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}
