//! Values from outside against declared fields, and Rust types that have such values.
//!
//! Inputs of a run, parameters and results of a tool, and the outputs of a run are all maps of
//! named values. [`accept`] is the one entrance for them: it makes equal values equal, says every
//! fault at once and fills in defaults. Compiled workflows read the same maps into a [`Record`].

mod accept;
mod record;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

pub use accept::{accept, faults};
pub use record::{Part, Record, Whole, deserialize, read, serialize, validate, values};
pub(crate) use rules::{check, has_type, word};

/// Named values, in order.
pub type Values = serde_json::Map<String, serde_json::Value>;

/// One reason why values are refused. It names the value and never shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputFault {
    /// Which value: `count`, `server.port`, `files[2]`.
    pub path: String,
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// A sentence that names the value and says what it must be.
    pub message: String,
}

impl InputFault {
    /// What is said of the value, without its name: the sentence after `path` in back-quotes.
    #[must_use]
    pub fn predicate(&self) -> &str {
        let named = self.path.len() + 2;
        self.message.get(named..).unwrap_or(&self.message)
    }
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It must be given and is not.
    Missing,
    /// Nothing of this name is declared.
    Unknown,
    /// It has another type.
    WrongType,
    /// It breaks a rule of its declaration.
    Invalid,
}

/// Everything that is wrong with a set of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub Vec<InputFault>);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<&str> = self.0.iter().map(|fault| fault.message.as_str()).collect();
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for Invalid {}
