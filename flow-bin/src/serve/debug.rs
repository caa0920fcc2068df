//! Looking into runs: dependencies and traces of computed state, expressions tried out, plans.
//!
//! Requests and responses are declared in `flow_model::tools` (`debug.rs`); their handlers go here
//! as [`Offer`]s, over `server.host`.

use super::tool::Offer;

pub(super) fn offers() -> Vec<Offer> {
    Vec::new()
}
