//! What generated code calls. Not for anyone else: it changes without notice.

pub use std::fmt;
pub use std::future::Future;
pub use std::str::FromStr;

pub use flow_model::graph::{self, Field, Graph};
pub use flow_model::tools::ToolError;
pub use flow_model::value::{
    Invalid, Part, Record, Values, deserialize, read, serialize, validate, values,
};
pub use serde::{Deserialize, Deserializer, Serialize, Serializer};
pub use serde_json::Value;

#[cfg(feature = "runtime")]
pub use crate::engine::{Asked, Error, NoState, Told, Typed};
pub use crate::state::{UnknownState, deserialize_name, find, parse};
pub use crate::{states, with_runtime};
#[cfg(feature = "runtime")]
pub use flow_runtime::{
    host::{Boxed, Host},
    journal::RunId,
};

use flow_model::graph::Literal;

/// A literal of a definition as an open value.
#[must_use]
pub fn open<T: Part + Default>(literal: &Literal) -> T {
    T::from_value(Value::from(literal)).unwrap_or_default()
}

/// Stands for a value that must not be shown.
#[derive(Clone, Copy)]
pub struct Secret;

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Items that need the engine: there, or not, as the crate is built. Whoever generates them cannot
/// know.
#[cfg(feature = "runtime")]
#[doc(hidden)]
#[macro_export]
macro_rules! with_runtime {
    ($($items:tt)*) => { $($items)* };
}

/// Items that need the engine: there, or not, as the crate is built. Whoever generates them cannot
/// know.
#[cfg(not(feature = "runtime"))]
#[doc(hidden)]
#[macro_export]
macro_rules! with_runtime {
    ($($items:tt)*) => {};
}

/// States as types, each with its outcomes and where they lead.
#[doc(hidden)]
#[macro_export]
macro_rules! states {
    ($($from:ident { $($(#[$said:meta])* $outcome:ident: $to:tt,)* })*) => {
        $(
            pub struct $from;

            impl $from {
                pub fn state(&self) -> super::State {
                    super::State::$from
                }

                $(
                    $(#[$said])*
                    pub fn $outcome(self) -> $to {
                        $to
                    }
                )*
            }
        )*
    };
}
