//! Which session a step works in that names none.

use flow_runtime::host::{ReportStatus, StartOptions};
use flow_runtime::value::Value;
use serde_json::json;

use crate::world::{World, in_session};

const KID: &str = r#"
inputs: {who: string}
initial_state: o
states:
  o:
    action: {tool: open_terminal, params: {environment: {WHO: "{who}"}}}
    transitions: [{condition: success, next_state: c}]
  c:
    action: {tool: run_command, params: {command: "echo i am $WHO"}}
"#;

fn called(name: &str) -> String {
    format!(
        r#"
initial_state: a
states:
  a:
    action: {{tool: run_workflow, params: {{workflow_name: {name}, inputs: {{who: A}}}}}}
    transitions: [{{condition: success, next_state: b}}]
  b:
    action: {{tool: run_workflow, params: {{workflow_name: {name}, inputs: {{who: B}}}}}}
"#
    )
}

/// The output of the last command of a called run.
fn said(variables: &Value, state: &str, inner: &str) -> String {
    let variables = variables.to_json();
    let said = &variables[format!("{state}_final_variables")][format!("{inner}_output")];
    said.as_str().unwrap_or_default().trim().to_owned()
}

#[tokio::test]
async fn a_called_run_works_in_the_session_it_has_opened_itself() {
    let world = World::new(&[("kid", KID)]);
    let report = world
        .completed(&called("kid"), StartOptions::default())
        .await;
    assert_eq!(said(&report.variables, "a", "c"), "i am A");
    assert_eq!(said(&report.variables, "b", "c"), "i am B");
    // What its caller was given does not come before it either.
    let session = world.session("export WHO=nobody").await;
    let report = world.completed(&called("kid"), in_session(&session)).await;
    assert_eq!(said(&report.variables, "b", "c"), "i am B");
    assert_eq!(report.session.as_deref(), Some(&*session));
}

#[tokio::test]
async fn called_runs_that_close_what_they_opened_leave_nothing_to_the_next() {
    let kid = format!(
        "{KID}    transitions: [{{condition: success, next_state: x}}]\n  \
         x: {{action: {{tool: exit_terminal}}}}\n"
    );
    let world = World::new(&[("tidy", &kid)]);
    let report = world
        .completed(&called("tidy"), StartOptions::default())
        .await;
    assert_eq!(said(&report.variables, "b", "c"), "i am B");
    assert_eq!(report.session, None);
    assert_eq!(world.terminals.sessions().len(), 0);
}

#[tokio::test]
async fn a_session_that_the_run_has_closed_is_not_the_one_it_goes_on_in() {
    let world = World::new(&[]);
    let text = r#"
initial_state: x
states:
  x:
    action: {tool: exit_terminal}
    transitions: [{condition: success, next_state: o}]
  o:
    action: {tool: open_terminal, params: {environment: {WHO: the second}}}
    transitions: [{condition: success, next_state: p}]
  p:
    action: {tool: open_terminal, params: {environment: {WHO: the third}}}
    transitions: [{condition: success, next_state: c}]
  c:
    action: {tool: run_command, params: {command: "echo $WHO"}}
    transitions: [{condition: success, next_state: y}]
  y:
    action: {tool: exit_terminal}
    transitions: [{condition: success, next_state: d}]
  d:
    action: {tool: run_command, params: {command: "echo $WHO"}}
"#;
    let session = world.session("").await;
    let report = world.completed(text, in_session(&session)).await;
    let variables = report.variables.to_json();
    assert_eq!(variables["c_output"], "the third\n");
    assert_eq!(variables["d_output"], "the second\n");
    assert_eq!(variables["d_session_id"], variables["o_session_id"]);
}

#[tokio::test]
async fn tasks_side_by_side_work_each_in_the_session_it_has_opened() {
    let world = World::new(&[]);
    let text = r#"
inputs: {names: array}
outputs: {said: "{{ state.said }}"}
tasks:
  greet:
    inputs: {name: {type: string, required: true}}
    steps:
      - {type: mcp_call, tool: open_terminal, parameters: {environment: {WHO: "{{ inputs.name }}"}}}
      - {id: c, type: mcp_call, tool: run_command, parameters: {command: "echo $WHO"}, output_to: ran}
      - {type: return, value: "{{ state.ran.output | trim }}"}
steps:
  - {type: foreach, items: "{{ inputs.names }}", task: greet, output_to: said}
"#;
    let inputs = Value::from(&json!({"names": ["one", "two", "three"]}));
    let report = world.run_with(text, inputs, StartOptions::default()).await;
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    let expected = json!({"said": ["one", "two", "three"]});
    assert_eq!(report.output.to_json(), expected);
}

#[tokio::test]
async fn a_contract_is_looked_up_in_the_session_that_the_run_works_in() {
    let world = World::new(&[]);
    let text = "
arguments: {ARG_A: what to say}
return_values: {SAID: what was said}
initial_state: say
states:
  say: {action: {tool: run_command, params: {command: export SAID=$ARG_A}}}
";
    let terminals = world.terminals.of("here");
    let opened = terminals.call("open_terminal", json!({})).await.unwrap();
    let session = opened["session_id"].as_str().unwrap();
    world.command(session, "export ARG_A=hello").await;
    let here = || StartOptions {
        circle: Some("here".to_owned()),
        ..StartOptions::default()
    };
    let report = world.completed(text, here()).await;
    let values = report.return_values.unwrap().to_json();
    assert_eq!(values, json!({"SAID": "hello"}));
    assert_eq!(report.session.as_deref(), Some(session));
    let log = world.log(report.run);
    assert_eq!(log[0]["phase"], "pre_execution_validation");
    assert_eq!(log[1]["params"]["session_id"], json!(session));
    // Elsewhere that session is none.
    let elsewhere = world.run(text, StartOptions::default()).await;
    assert_eq!(elsewhere.final_state.as_deref(), Some("validation_failed"));
}
