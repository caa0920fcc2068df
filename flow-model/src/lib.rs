//! The workflow language: read once, checked once, lowered to one graph.

pub mod expression;
pub mod graph;
pub mod picture;
