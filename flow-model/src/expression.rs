//! Expressions of both dialects.

use serde::{Deserialize, Serialize};

/// How the text between `{{` and `}}` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Jinja, as minijinja reads it.
    #[default]
    Jinja,
    /// JavaScript.
    Js,
}
