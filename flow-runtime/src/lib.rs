//! Running workflows.

pub mod expression;
pub mod value;
