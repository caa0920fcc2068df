//! Running workflows: everything that touches the world outside the language.
//!
//! [`library`] finds definitions by name or path and reads them, within bounds.

pub mod library;
