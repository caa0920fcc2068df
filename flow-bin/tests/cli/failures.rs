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

#[test]
fn a_command_that_runs_nothing_says_so_as_the_object_of_a_run() {
    let place = Place::with(&[
        ("bad.yaml", super::BAD),
        (
            "w.yaml",
            "inputs: {n: {type: integer, required: true}}\nsteps: [{id: a, type: shell, command: 'echo {{ inputs.n }}'}]\n",
        ),
    ]);
    for (words, code, final_state) in [
        (&["run", "bad.yaml"][..], 3, json!("definition_invalid")),
        (&["run", "w.yaml"], 2, json!("validation_failed")),
        (&["run", "w.yaml", "many"], 2, json!("validation_failed")),
        (&["run", "nothing"], 2, json!(null)),
        (&["run", "w.yaml", "--nothing"], 2, json!(null)),
        (&["resume", "r-01m7k5hxqthr0r3y3m"], 2, json!(null)),
        (&["answer", "latest", "x"], 2, json!(null)),
    ] {
        for format in ["json", "jsonl"] {
            let words = [words, &["--format", format]].concat();
            let ran = place.run(&words);
            assert_eq!(ran.code, code, "{words:?}: {}", ran.stderr);
            let object = ran.json();
            assert_eq!(object["status"], "failed", "{words:?}");
            assert_eq!(object["final_state"], final_state, "{words:?}");
            assert_eq!(object["pending"], json!([]));
            assert!(!object["error"].as_str().unwrap().is_empty(), "{words:?}");
        }
        assert_eq!(place.run(words).stdout, "", "{words:?}");
    }
}

#[test]
fn a_loop_in_which_a_step_failed_has_failed() {
    let place = Place::with(&[(
        "w.yaml",
        "steps:
  - id: outer
    type: while
    if: '{{ true }}'
    max_iterations: 2
    steps:
      - {id: each, type: foreach, items: [1], steps: [{id: bad, type: shell, command: exit 3}]}
",
    )]);
    let ran = place.run(&["run", "w.yaml"]);
    assert_eq!(ran.code, 1);
    // The failure is told once.
    assert_eq!(ran.stderr.matches('✗').count(), 1, "{}", ran.stderr);
    let shown = place.run(&["show", "latest", "--format", "json"]).json();
    for step in shown["steps"].as_array().unwrap() {
        assert_eq!(step["outcome"], "failure", "{step}");
    }
}

#[test]
fn a_call_whose_inputs_do_not_fit_is_named() {
    let place = Place::with(&[
        (
            "w.yaml",
            "steps:\n  - {id: k, type: call, workflow: '{{ \"child\" }}', inputs: {n: x}}\n",
        ),
        (
            ".flow/workflows/child.yaml",
            "inputs: {n: {type: integer, required: true}}\nsteps: [{type: shell, command: 'echo {{ inputs.n }}'}]\n",
        ),
    ]);
    let ran = place.run(&["run", "w.yaml", "--format", "json"]);
    let error = ran.json()["error"].as_str().unwrap().to_owned();
    assert!(
        error.starts_with("`k` cannot call `child` with these inputs: "),
        "{error}"
    );
}

#[test]
fn a_field_keeps_the_type_that_is_declared_for_it() {
    let place = Place::with(&[(
        "w.yaml",
        "expressions: jinja
state_schema: {raw: {count: integer, names: array}}
steps:
  - {id: none, type: set_state, updates: {names: null}}
  - {id: write, type: set_state, updates: {other: 1, count: '{{ inputs.count }}'}, on_error: continue, error_state_update: {path: failed, value: '{{ error.message }}'}}
  - {id: add, type: set_state, updates: [{path: names, operation: append, value: a}]}
",
    )]);
    let ran = |count: &str| {
        let ran = place.run(&[
            "run",
            "w.yaml",
            "-p",
            &format!("count={count}"),
            "--format",
            "json",
        ]);
        ran.json()["state"].clone()
    };
    assert_eq!(ran("3"), json!({"names": ["a"], "other": 1, "count": 3}));
    let refused = ran("three");
    let error = "`write`: `count` is declared as `integer` and cannot be a string";
    assert_eq!(refused, json!({"names": ["a"], "failed": error}));
}
