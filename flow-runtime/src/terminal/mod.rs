//! Terminals: sessions on real shells and programs that never guess.
//!
//! A session runs a program on a pseudo-terminal. Its output is taken apart once and kept in three
//! forms: what is shown (an emulator), what was said (plain text in order, for `await_output`), and
//! what a command wrote, byte for byte (`run_command`). Shells that flow knows are started with a
//! script that marks where prompts and commands begin and end, so that nothing has to be inferred
//! from the look of a prompt.
//!
//! ```
//! use flow_model::tools::{OpenTerminalRequest, RunCommandRequest};
//! use flow_runtime::terminal::{Options, Terminals};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let terminals = Terminals::new(Options::default())?;
//! let opened = terminals.call("open_terminal", json!({"shell": "sh"})).await?;
//! let ran = terminals.call("run_command", json!({"command": "echo hi"})).await?;
//! assert_eq!((&ran["output"], &ran["exit_code"]), (&json!("hi\n"), &json!(0)));
//! terminals.close_all().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod audit;
mod capture;
mod clean;
mod echo;
mod environment;
mod error;
mod key;
mod lag;
mod options;
mod page;
mod pattern;
mod private;
mod process;
mod program;
mod pty;
mod registry;
mod scanner;
mod screen;
mod session;
mod shells;
mod stream;
mod tools;
mod untold;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

pub use environment::{Snapshot, Variable};
pub use error::{CallError, Error};
pub use options::{Options, Policy, Size};
pub(crate) use private::owner_of;
pub use program::Shell;
pub(crate) use registry::Unnamed;
pub use registry::{Place, Terminals};
pub use untold::Untold;

/// A panic elsewhere does not make the data unusable: it is replaced piece by piece.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
