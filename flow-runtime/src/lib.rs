//! Running workflows.

pub mod value;
