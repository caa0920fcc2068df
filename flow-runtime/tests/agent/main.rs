//! Runs that an agent drives, with a real journal and real commands.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

mod failures;
mod runs;
mod servers;
mod state;
mod steps;
mod support;
mod tasks;
