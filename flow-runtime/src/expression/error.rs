//! What can go wrong when an expression is evaluated.

use thiserror::Error;

use super::DEEPEST;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct EvalError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// One sentence for a person.
    pub message: String,
    /// What is undefined, when that is known.
    pub path: Option<String>,
}

/// The kinds of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text does not parse, or names a filter, test or function nobody defines.
    Syntax,
    /// A value is missing.
    Undefined,
    /// A state field exists but is not among the step's `needs_state`.
    NotInNeedsState {
        /// The field.
        field: String,
    },
    /// A value is of a kind the operation cannot use.
    Type,
    /// The evaluation went beyond a bound.
    Limit(Limit),
    /// JavaScript threw something.
    Thrown,
    /// A value stands where it cannot be made safe for the shell.
    Place,
}

/// The bounds of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Counted work.
    Fuel,
    /// The size of what is produced.
    Size,
    /// The memory of JavaScript.
    Memory,
    /// The wall clock. The only bound that may decide differently when a run is replayed.
    Time,
}

impl EvalError {
    /// An error of a kind, with a sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        EvalError {
            kind,
            message: message.into(),
            path: None,
        }
    }

    pub(super) fn syntax(message: impl Into<String>) -> Self {
        EvalError::new(ErrorKind::Syntax, message)
    }

    pub(super) fn wrong_type(message: impl Into<String>) -> Self {
        EvalError::new(ErrorKind::Type, message)
    }

    pub(super) fn undefined(path: &str) -> Self {
        EvalError {
            path: Some(path.to_owned()),
            ..EvalError::new(ErrorKind::Undefined, format!("`{path}` is undefined"))
        }
    }

    pub(super) fn unset(variable: &str) -> Self {
        let message = format!("the variable `{variable}` has no value yet");
        EvalError {
            path: Some(variable.to_owned()),
            ..EvalError::new(ErrorKind::Undefined, message)
        }
    }

    /// Something is undefined, and only the evaluation knows what.
    pub(super) fn nameless() -> Self {
        EvalError::new(
            ErrorKind::Undefined,
            "something in the expression is undefined, or an `if` in it needs an `else`",
        )
    }

    pub(super) fn thrown(message: impl Into<String>) -> Self {
        EvalError::new(ErrorKind::Thrown, message)
    }

    /// The bound that was reached, if one was.
    #[must_use]
    pub fn limited(&self) -> Option<Limit> {
        match self.kind {
            ErrorKind::Limit(limit) => Some(limit),
            _ => None,
        }
    }

    /// Something is larger than it may be, other than all that is produced.
    pub(super) fn too_large(message: impl Into<String>) -> Self {
        EvalError::new(ErrorKind::Limit(Limit::Size), message)
    }

    /// Lists and maps nest too deeply.
    pub(super) fn too_deep() -> Self {
        EvalError::too_large(format!(
            "the expression produces lists or maps that nest more than {DEEPEST} deep"
        ))
    }

    pub(super) fn limit(limit: Limit) -> Self {
        let message = match limit {
            Limit::Fuel => "the expression does more work than an expression may",
            Limit::Size => "the expression produces more than 32 MiB",
            Limit::Memory => "the expression needs more than 64 MiB of memory",
            Limit::Time => {
                "the expression took longer than 5 seconds, or with the others of its step longer \
                 than 10"
            }
        };
        EvalError::new(ErrorKind::Limit(limit), message)
    }
}
