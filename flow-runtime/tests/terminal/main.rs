//! Terminals on the real shells and programs.

#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

mod asking;
mod awaiting;
mod between;
mod commands;
mod ending;
mod environment;
mod following;
mod opening;
mod support;
mod typing;
mod volume;
