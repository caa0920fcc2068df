//! The tools that look into runs.
//!
//! A tool here is a request type, a response type and a `tool!` that joins them, listed in
//! [`TOOLS`]. Its handler is offered in the command, under `serve/debug.rs`. Workflows cannot call
//! these tools.

use super::Tool;

pub(super) static TOOLS: [&Tool; 0] = [];
