//! Terminals on the real shells and programs.

#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

mod commands;
mod environment;
mod support;
