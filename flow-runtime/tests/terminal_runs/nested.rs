//! Workflows that states call with `run_workflow`.

use flow_runtime::host::{ReportStatus, StartOptions};
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

use crate::world::World;

/// The variables of a run that calls once and then ends, whatever came of the call.
async fn called(world: &World, parameters: Json, variables: Json) -> Json {
    let text = json!({
        "initial_state": "call",
        "states": {
            "call": {
                "action": {"tool": "run_workflow", "params": parameters},
                "transitions": [{"condition": "always", "next_state": "end"}],
            },
            "end": {"action": {"tool": "list_terminal_sessions"}},
        },
    });
    let options = StartOptions {
        variables: Value::from(&variables),
        ..StartOptions::default()
    };
    let report = world.run(&text.to_string(), options).await;
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    report.variables.to_json()
}

const GREET: &str = r#"
inputs: {who: {type: string, required: true}, times: {type: integer, default: 1}}
outputs: {said: "{{ inputs.who }} {{ inputs.times }}"}
initial_state: a
states:
  a: {action: {tool: list_terminal_sessions}}
"#;

#[tokio::test]
async fn inputs_and_variables_can_be_one_value_each() {
    let world = World::new(&[("greet", GREET)]);
    let cases = [
        json!({"vars": {"who": "Ada", "times": 2}}),
        // A text that is a map is read as one.
        json!({"vars": r#"{"who": "Ada", "times": 2}"#}),
    ];
    for given in cases {
        for parameter in ["inputs", "initial_variables"] {
            let parameters = json!({"workflow_name": "greet", parameter: "{vars}"});
            let variables = called(&world, parameters, given.clone()).await;
            assert_eq!(variables["call_output"], json!({"said": "Ada 2"}));
        }
    }
    let parameters = json!({"workflow_name": "greet", "initial_variables": "{vars}"});
    let variables = called(&world, parameters, json!({"vars": 5})).await;
    let error = "`initial_variables` must be a map of names to values, not a number";
    assert_eq!(variables["call_error"], error);
    assert_eq!(variables["call_final_state"], "error");
}

#[tokio::test]
async fn a_call_that_comes_to_nothing_is_answered_like_one_that_did_something() {
    let world = World::new(&[("greet", GREET)]);
    let cases = [
        (json!({"workflow_name": "nobody"}), "workflow_not_found"),
        (
            json!({"workflow_definition": "{text}"}),
            "definition_invalid",
        ),
        (json!({"workflow_name": "greet"}), "validation_failed"),
        (
            json!({"workflow_name": "greet", "inputs": {"who": "a"}, "session_id": "t-none"}),
            "validation_failed",
        ),
        (
            json!({"workflow_name": "greet", "inputs": {"who": "a"}, "max_states": "{text}"}),
            "error",
        ),
        (
            json!({"workflow_name": "greet", "inputs": {"who": "a"}}),
            "a",
        ),
    ];
    let mut shapes = Vec::new();
    for (parameters, final_state) in cases {
        let given = json!({"text": "steps: nothing"});
        let variables = called(&world, parameters, given).await;
        assert_eq!(variables["call_final_state"], final_state, "{variables:#}");
        assert_eq!(variables["workflow_final_state"], final_state);
        assert_eq!(variables["call_success"], final_state == "a");
        assert_eq!(
            variables["call_error"].as_str().is_some_and(str::is_empty),
            final_state == "a"
        );
        let own = variables.as_object().unwrap().keys();
        let mut own: Vec<String> = own.filter(|it| it.starts_with("call_")).cloned().collect();
        // What there is none of is no variable.
        let absent = ["call_workflow_id", "call_workflow_name", "call_output"];
        own.retain(|name| !absent.contains(&name.as_str()));
        shapes.push(own);
    }
    shapes.dedup();
    assert_eq!(shapes.len(), 1, "{shapes:#?}");
}

#[tokio::test]
async fn a_transition_can_tell_why_a_call_came_to_nothing() {
    let world = World::new(&[]);
    let text = r#"
initial_state: call
states:
  call:
    action: {tool: run_workflow, params: {workflow_name: nobody}}
    transitions:
      - {condition: {field_equals: {final_state: workflow_not_found}}, next_state: missing}
      - {condition: always, next_state: other}
  missing: {action: {tool: list_terminal_sessions}}
  other: {action: {tool: list_terminal_sessions}}
"#;
    let report = world.completed(text, StartOptions::default()).await;
    assert_eq!(report.final_state.as_deref(), Some("missing"));
}

#[tokio::test]
async fn a_definition_of_steps_runs_as_a_child_like_one_of_states() {
    let world = World::new(&[]);
    let steps = json!({
        "inputs": {"who": "string"},
        "outputs": {"said": "{{ state.said }}"},
        "steps": [
            {"type": "shell", "command": "echo hello {{ inputs.who }}", "output_format": "text",
             "output_to": "said"},
        ],
    });
    let parameters = json!({"workflow_definition": steps, "inputs": {"who": "Ada"}});
    let variables = called(&world, parameters, json!({})).await;
    assert_eq!(variables["call_output"], json!({"said": "hello Ada"}));
    assert_eq!(variables["call_final_state"], "completed");
}

#[tokio::test]
async fn a_value_becomes_what_the_parameter_takes_or_the_error_names_both() {
    let world = World::new(&[]);
    let text = r#"
initial_state: o
states:
  o: {action: {tool: open_terminal}, transitions: [{condition: success, next_state: c}]}
  c:
    action: {tool: run_command, params: {command: "echo {n}", timeout: "{wait}"}}
    transitions: [{condition: success, next_state: t}]
  t:
    action: {tool: send_input, params: {input_text: "{n}"}}
    transitions: [{condition: success, next_state: x}]
  x:
    action: {tool: run_command, params: {command: "true", timeout: "{word}"}}
"#;
    let options = StartOptions {
        variables: Value::from(&json!({"n": 5, "wait": "20", "word": "soon"})),
        ..StartOptions::default()
    };
    let report = world.run(text, options).await;
    let variables = report.variables.to_json();
    assert_eq!(variables["c_output"], "5\n");
    assert_eq!(variables["t_success"], true);
    let error = report.error.map(|error| error.message).unwrap_or_default();
    for part in ["`x`", "`timeout`", "must be a number", "not a string"] {
        assert!(error.contains(part), "{error}");
    }
}
