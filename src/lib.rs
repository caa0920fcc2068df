//! Workflows as plain, checked definitions: compiled into Rust, or run as they are.
//!
//! [`workflow!`] makes a module of a definition. What it generates is described there and in
//! `docs/embedding.md`; [`builtin`] is an example of it. With the feature `runtime`, which is on by
//! default, a [`Host`] runs it: durably, with typed inputs, outputs and tools.

// Generated code says `::flow`, here as in any other crate.
extern crate self as flow;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod builtin;
#[cfg(feature = "runtime")]
mod engine;
mod state;

pub use builtin::Builtin;
#[cfg(feature = "runtime")]
pub use engine::{Call, Error, NoState, Run, Typed, Workflow};
pub use flow_macros::workflow;
pub use flow_model::graph::{self, Outcome};
pub use flow_model::tools::ToolError;
pub use flow_model::value::{FaultKind, InputFault, Invalid, Values, accept};
#[cfg(feature = "runtime")]
pub use flow_runtime as runtime;
#[cfg(feature = "runtime")]
pub use flow_runtime::{
    host::{Boxed, Host, HostOptions},
    journal::{RunId, Status},
};
pub use serde_json::Value;
pub use state::UnknownState;

#[cfg(all(doctest, feature = "runtime"))]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
