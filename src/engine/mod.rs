//! Compiled workflows run by the engine, with the types of their definitions.

mod error;
mod run;
mod tools;

use std::str::FromStr;

use flow_model::graph::Graph;
use flow_model::value::Whole;

pub use error::Error;
pub use run::Run;
#[doc(hidden)]
pub use tools::{Asked, Told};
pub use tools::{Call, Typed};

use crate::UnknownState;

/// A workflow that is part of the program. `workflow!` implements it for the `Workflow` of every
/// module it makes.
pub trait Workflow: 'static {
    /// What a run is given.
    type Inputs: Whole;
    /// What a run gives.
    type Output: Whole;
    /// Where a run can be.
    type State: FromStr<Err = UnknownState>;

    /// The checked definition.
    fn graph() -> &'static Graph;
}

/// The states of a workflow that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoState {}

impl FromStr for NoState {
    type Err = UnknownState;

    fn from_str(name: &str) -> Result<Self, UnknownState> {
        crate::state::parse(&[], &[], name)
    }
}
