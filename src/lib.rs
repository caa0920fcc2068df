//! Workflows as plain, checked definitions: compiled into Rust, or run as they are.
//!
//! [`workflow!`] makes a module of a definition. What it generates is described there and in
//! `docs/embedding.md`; [`builtin`] is an example of it.

// Generated code says `::flow`, here as in any other crate.
extern crate self as flow;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod builtin;
mod state;

pub use builtin::Builtin;
pub use flow_macros::workflow;
pub use flow_model::graph::{self, Outcome};
pub use flow_model::tools::ToolError;
pub use flow_model::value::{FaultKind, InputFault, Invalid, Values, accept};
pub use serde_json::Value;
pub use state::UnknownState;

#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
