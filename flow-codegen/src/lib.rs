//! Workflow definitions as Rust.
//!
//! [`module`] turns a checked graph into a module: typed inputs and outputs, a state machine, the
//! traits an embedder implements, the graph itself. [`expand`] starts from a definition's text and
//! reports what is wrong with it; the `workflow!` macro is a call of it. [`compile_dir`] does the
//! same for every file of a directory, from a build script.

#[cfg(feature = "format")]
mod directory;
mod doc;
mod expand;
mod files;
#[cfg(feature = "format")]
mod format;
mod literal;
mod machine;
mod module;
mod names;
mod record;
mod tools;

#[cfg(feature = "format")]
pub use directory::{Fault, compile_dir, compile_dir_with};
pub use expand::{Expansion, Finding, Invocation, expand, expand_graph};
pub use files::Files;
#[cfg(feature = "format")]
pub use format::format;
pub use module::{Module, Options, module};
pub use names::{Clash, module_name};
