//! What a failing step means, by what its author wrote.

use serde_json::{Value, json};

use super::Place;

#[test]
fn an_exit_code_is_data_unless_the_step_says_what_a_failure_means() {
    let place = Place::with(&[(
        "w.yaml",
        "steps:
  - {id: kept, type: shell_command, command: exit 9, state_update: {path: raw.kept}}
  - {id: replaced, type: shell_command, command: exit 9, fallback_value: {ok: false}, state_update: {path: raw.replaced}}
  - {id: passed, type: shell, command: exit 9, on_error: continue, output_to: passed}
  - id: told
    type: shell_command
    command: exit 9
    on_error: continue
    state_update: {path: raw.told}
    error_state_update: {path: raw.error, value: '{{ error.message }}'}
",
    )]);
    let ran = place.run(&["run", "w.yaml", "--format", "json"]).json();
    let state = &ran["state"];
    assert_eq!(state["kept"]["exit_code"], 9, "{ran}");
    assert_eq!(state["replaced"], json!({"ok": false}));
    assert_eq!(state["passed"]["exit_code"], 9);
    assert_eq!(state.get("told"), None);
    let error = "the command of `told` ended with exit code 9";
    assert_eq!(state["error"], error);
}

#[test]
fn errors_of_steps_that_the_workflow_passes_over_are_collected() {
    let place = Place::with(&[(
        "w.yaml",
        "state: {errors: []}
on_error: {action: continue, collect_to: errors}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: child, type: shell, command: 'exit {{ inputs.n }}'}
steps:
  - {id: first, type: shell, command: exit 3}
  - {id: each, type: foreach, items: [0, 4], task: one}
  - {id: last, type: shell, command: 'true'}
",
    )]);
    let ran = place.run(&["run", "w.yaml", "--format", "json"]).json();
    assert_eq!(ran["status"], "completed", "{ran}");
    let errors = ran["state"]["errors"].as_array().unwrap();
    let steps: Vec<&Value> = errors.iter().map(|error| &error["step"]).collect();
    assert_eq!(steps, ["first", "child"], "{ran}");
    let message = "the command of `first` ended with exit code 3";
    assert_eq!(errors[0]["message"], message);
}
