use crate::graph::Graph;
/// x
#[must_use]
pub fn ascii(_graph: &Graph) -> String { String::new() }
