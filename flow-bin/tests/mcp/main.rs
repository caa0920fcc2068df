//! `flow serve` as clients of others use it: the Python SDK, the conformance suite, the inspector.
//!
//! What the Python client does stands in `tests/mcp/`, one case a function.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

mod suites;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Something that `scripts/needs` installs.
fn needed(path: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    let path = target.join("needs").join(path);
    assert!(
        path.exists(),
        "{} is not there: run scripts/needs",
        path.display()
    );
    path
}

/// Runs the cases of a module with the Python client.
fn cases(module: &str) {
    let output = Command::new(needed("venv/bin/python"))
        .args(["-W", "ignore", "harness.py", module])
        .current_dir(root().join("tests/mcp"))
        .env("FLOW", env!("CARGO_BIN_EXE_flow"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_workflow_tools_do_what_they_say_in_every_way_of_connecting() {
    cases("workflows");
}

#[test]
fn questions_of_runs_are_answered_by_the_names_they_are_told_under() {
    cases("answers");
}

#[test]
fn how_a_run_stands_is_told_as_it_is() {
    cases("standing");
}

#[test]
fn every_tool_is_called_once_well_and_once_badly() {
    cases("tools");
}

#[test]
fn the_server_begins_is_reached_and_ends_cleanly() {
    cases("transports");
}

#[test]
fn the_terminal_tools_do_what_they_say_in_every_way_of_connecting() {
    cases("terminals");
}

#[test]
fn workflows_call_tools_over_https_with_the_authorities_that_are_trusted() {
    cases("https");
}

#[test]
fn the_command_line_and_the_server_leave_the_same_journal() {
    cases("journals");
}

#[test]
fn the_examples_of_the_documentation_are_calls_that_were_made() {
    cases("docs");
}

#[test]
fn agents_drive_runs_step_by_step_with_sub_agents_and_over_restarts() {
    cases("agents");
}
