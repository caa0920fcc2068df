//! The workflow language: read once, checked once, lowered to one graph.
//!
//! A definition passes the modules in this order: [`source`] turns text into a tree that knows
//! where everything stands, the structural pass holds it against the [`grammar`], reading makes a
//! [`document`] without aliases, checking reports [`diagnostic`]s, lowering makes a [`graph`].
//! [`compile()`] does all of it. The crate does no I/O; a [`loader`] brings other files.

mod check;
pub mod command;
mod compile;
pub mod diagnostic;
pub mod document;
pub mod expression;
pub mod grammar;
pub mod graph;
pub mod loader;
mod lower;
pub mod picture;
mod read;
#[cfg(feature = "tooling")]
pub mod reference;
#[cfg(feature = "tooling")]
pub mod schema;
pub mod source;
mod structure;
pub mod suggest;
pub mod tools;
pub mod value;

pub use compile::{Compiled, compile};
