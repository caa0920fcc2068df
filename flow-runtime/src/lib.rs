//! Running workflows.

pub mod input;
pub mod run;
pub mod value;
