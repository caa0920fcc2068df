//! The workflow language: read once, checked once, lowered to one graph.

pub mod diagnostic;
pub mod document;
pub mod expression;
pub mod grammar;
pub mod graph;
mod lower;
mod read;
pub mod reference;
pub mod schema;
pub mod source;
mod structure;
pub mod suggest;
pub mod tools;
