//! JavaScript taken as it is.

use super::super::{Analysis, Fault, Named};

pub(super) const PARSES: bool = false;

pub(super) fn expression(_: &str) -> Result<Analysis, Fault> {
    Ok(Analysis::default())
}

pub(super) fn body(_: &str) -> Result<Analysis, Fault> {
    Ok(Analysis::default())
}

pub(super) fn first_text(_: &str) -> Option<Named> {
    None
}
