//! States by their names.

use std::str::FromStr;

use flow_model::suggest;
use serde::{Deserialize, Deserializer, de};

/// A name that no state has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no state `{name}`{}", .near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
pub struct UnknownState {
    name: String,
    near: Option<&'static str>,
}

/// The state of a name.
pub fn find<S: Copy>(all: &[S], names: &[&str], name: &str) -> Option<S> {
    let at = names.iter().position(|known| *known == name)?;
    all.get(at).copied()
}

/// The state of a name.
///
/// # Errors
///
/// There is none, and perhaps a similar one.
pub fn parse<S: Copy>(all: &[S], names: &[&'static str], name: &str) -> Result<S, UnknownState> {
    find(all, names, name).ok_or_else(|| UnknownState {
        name: name.to_owned(),
        near: suggest::nearest(name, names.iter().copied()),
    })
}

/// Reads a state by its name.
///
/// # Errors
///
/// What the deserializer says, or that there is no such state.
pub fn deserialize_name<'de, S, D>(from: D) -> Result<S, D::Error>
where
    S: FromStr<Err = UnknownState>,
    D: Deserializer<'de>,
{
    let name = String::deserialize(from)?;
    name.parse().map_err(de::Error::custom)
}
