//! Running workflows: everything that touches the world outside the language.
//!
//! [`library`] finds definitions by name or path and reads them, within bounds; [`briefs`] finds
//! agents and prompts. [`run`] is the pure core: events in, effects out; [`expression`] evaluates
//! for it. [`journal`] keeps what happened. [`host`] does what runs want, [`terminal`] keeps terminal
//! sessions, and [`secret`] keeps what must not be told.

pub mod briefs;
pub mod expression;
pub mod host;
pub mod input;
pub mod journal;
pub mod library;
pub mod run;
pub mod secret;
pub mod terminal;
pub mod value;
