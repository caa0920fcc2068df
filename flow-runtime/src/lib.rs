//! Running workflows.

pub mod journal;
pub mod value;
