//! Workflows in terminals, from the command line.

use std::path::Path;

use serde_json::json;

use super::{Place, Ran};

const BUILD: &str = r#"
arguments: {WHERE: the directory, KIND: debug or release}
return_values: {STATUS: how it went}
initial_state: build
states:
  build:
    action: {tool: run_command, params: {command: 'cd "$WHERE" && export STATUS="built as $KIND"'}}
"#;

#[test]
fn a_contract_is_held_against_the_environment_of_the_command() {
    let place = Place::with(&[("build.yaml", BUILD)]);
    let mut command = place.command(&["run", "build.yaml", "--format", "json"]);
    command.env("WHERE", "/").env("KIND", "release");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!(
        result["return_values"],
        json!({"STATUS": "built as release"})
    );
    assert_eq!(result["final_state"], "build");
    let mut command = place.command(&["run", "build.yaml", "--session", "sh", "-q"]);
    command.env("WHERE", "/").env("KIND", "debug");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.json(), json!({"STATUS": "built as debug"}));
}

#[test]
fn missing_arguments_are_told_with_the_line_that_sets_them() {
    let place = Place::with(&[("build.yaml", BUILD)]);
    let mut command = place.command(&["run", "build.yaml", "--format", "json"]);
    command.env_remove("WHERE").env_remove("KIND");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 1);
    assert_eq!(ran.json()["final_state"], "validation_failed");
    assert_eq!(ran.json()["states_executed"], 0);
    let line = "export WHERE=value; export KIND=value";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    // Its session is gone with it: nothing can be set there, and nothing resumed.
    for word in ["t-", "flow resume"] {
        assert!(!ran.stderr.contains(word), "{}", ran.stderr);
    }
    assert!(ran.stderr.contains("`NAME=value` before"), "{}", ran.stderr);
    let shell = place.run(&["run", "build.yaml", "--session", "no-such-shell"]);
    assert_eq!(shell.code, 2);
    assert!(shell.stderr.contains("no-such-shell"), "{}", shell.stderr);
}

#[test]
fn the_built_in_test_runner_runs_tests() {
    let place = Place::new();
    let steady = place.run(&["test-runner", "true"]);
    assert_eq!(steady.code, 0, "{}", steady.stderr);
    assert_eq!(steady.json()["steady"], true);
    let shaky = place.run(&["test-runner", "test -e once || { touch once; false; }"]);
    assert_eq!(shaky.code, 0, "{}", shaky.stderr);
    assert_eq!(shaky.json()["steady"], false);
    assert!(Path::new(&place.path("once")).exists());
    assert_eq!(place.run(&["test-runner", "false"]).code, 1);
}

#[test]
fn a_terminal_that_stays_open_is_said_to_end_with_the_command() {
    let text = "initial_state: open\nstates:\n  open: {action: {tool: open_terminal, params: {shell: sh}}}\n";
    let place = Place::with(&[("open.yaml", text)]);
    let ran = place.run(&["run", "open.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("ends with this command"),
        "{}",
        ran.stderr
    );
}
