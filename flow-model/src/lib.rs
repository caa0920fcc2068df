//! The workflow language: read once, checked once, lowered to one graph.

pub mod diagnostic;
pub mod expression;
pub mod grammar;
pub mod graph;
pub mod schema;
pub mod source;
pub(crate) mod structure;
pub mod suggest;
pub mod tools;
