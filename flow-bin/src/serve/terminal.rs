//! Terminal sessions for agents.

use super::tool::Offer;

pub(super) fn offers() -> Vec<Offer> {
    Vec::new()
}
