//! The workflow language: read once, checked once, lowered to one graph.

pub mod diagnostic;
pub mod document;
pub mod expression;
pub mod grammar;
pub(crate) mod lower;
pub mod graph;
pub(crate) mod read;
pub mod source;
pub(crate) mod structure;
pub mod suggest;
pub mod tools;
