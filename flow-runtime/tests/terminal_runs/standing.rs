//! `success` and `error`: how the last state ended, whatever it did.

use flow_runtime::host::{ReportStatus, StartOptions};
use flow_runtime::run::{Allowance, Happening};
use serde_json::json;

use crate::world::{World, in_session};

/// A state that fails, after one that failed with other words; its handler says what it knows.
fn failing(action: &str) -> String {
    format!(
        r#"
initial_state: before
states:
  before:
    action: {{type: shell, command: "echo other words >&2; false"}}
    transitions: [{{condition: failure, next_state: well}}]
  well:
    action: {{tool: open_terminal}}
    transitions: [{{condition: {{field_equals: {{success: true, error: null}}}}, next_state: bad}}]
  bad:
    {action}
    transitions:
      - {{condition: {{field_equals: {{success: false}}, expression: "not success and error"}}, next_state: told}}
  told:
    action: {{type: shell, command: "printf '%s|%s|%s|%s' {{success}} {{bad_success}} {{error}} {{bad_error}}", output_format: text}}
    transitions: [{{condition: success, next_state: end}}]
  end:
    action: {{type: shell, command: "printf '[%s][%s]' {{told_success}} {{error}}"}}
"#
    )
}

async fn told(action: &str) -> String {
    let world = World::new(&[(
        "kid",
        "inputs: {n: {type: integer, required: true}}\nsteps: [{type: return, value: 1}]\n",
    )]);
    let report = world.run(&failing(action), StartOptions::default()).await;
    let log = world.log(report.run);
    assert_eq!(report.final_state.as_deref(), Some("end"), "{log:#?}");
    let variables = report.variables.to_json();
    assert_eq!(variables["end_stdout"], "[true][]", "{variables:#}");
    assert_eq!(variables["before_success"], false);
    let told = log.iter().find(|it| it["state"] == "told").unwrap();
    let text = told["result"]["stdout"].as_str().unwrap().to_owned();
    let parts: Vec<&str> = text.split('|').collect();
    assert_eq!(parts[..2], ["false", "false"], "{text}");
    assert_eq!(parts[2], parts[3], "{text}");
    assert!(!parts[2].contains("other words"), "{text}");
    parts[2].to_owned()
}

#[tokio::test]
async fn a_failure_handler_knows_that_and_why_its_state_failed_whatever_that_did() {
    let cases = [
        (
            "action: {tool: run_workflow, params: {workflow_name: nobody}}",
            "nobody",
        ),
        (
            "action: {tool: run_workflow, params: {workflow_name: kid, inputs: {n: many}}}",
            "an integer",
        ),
        (
            "action: {tool: run_command, params: {command: \"echo so; false\"}}",
            "exit code 1",
        ),
        (
            "action: {type: shell, command: \"echo thus >&2; exit 3\"}",
            "exit code 3: thus",
        ),
        (
            "action: {tool: run_command, params: {command: \"echo {match_text}\"}}",
            "match_text",
        ),
        (
            "action: {tool: run_command, params: {command: \"sleep 30\"}}\n    timeout: 0.3",
            "0.3 s",
        ),
        (
            "action: {type: shell, command: \"sleep 30\"}\n    timeout: 0.3",
            "0.3 s",
        ),
        (
            "action: {tool: await_output, params: {pattern: never, timeout: 20}}\n    timeout: 0.3",
            "0.3 s",
        ),
        (
            "action: {tool: await_output, params: {pattern: never, timeout: \"{{ 'soon' }}\"}}",
            "timeout",
        ),
    ];
    for (action, expected) in cases {
        let why = told(action).await;
        assert!(why.contains(expected), "{action}: {why}");
    }
}

#[tokio::test]
async fn an_await_that_found_nothing_has_succeeded_and_says_what_it_missed() {
    let world = World::new(&[]);
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: look}]
  look:
    action: {tool: await_output, params: {pattern: never, timeout: 0.2}}
    on_timeout: told
  told:
    action: {type: shell, command: "printf '%s|%s' {success} {error}"}
"#;
    let report = world.completed(text, StartOptions::default()).await;
    let variables = report.variables.to_json();
    let said = variables["told_stdout"].as_str().unwrap();
    assert!(
        said.starts_with("true|`look`: the pattern `never` was not found"),
        "{said}"
    );
}

#[tokio::test]
async fn what_a_state_gave_the_time_before_is_gone_when_it_fails() {
    let world = World::new(&[]);
    let text = r#"
state: {turn: 0}
initial_state: try
states:
  try:
    action: {type: shell, command: "echo {{ 6 // (1 - state.turn) }}"}
    transitions: [{condition: success, next_state: again}, {condition: failure, next_state: end}]
  again:
    action: {type: set_state, updates: {turn: "{{ state.turn + 1 }}"}}
    transitions: [{condition: always, next_state: try}]
  end:
    action: {type: shell, command: "echo {try_stdout}"}
"#;
    let report = world.run(text, StartOptions::default()).await;
    let variables = report.variables.to_json();
    assert_eq!(variables["try_success"], false);
    assert_eq!(variables.get("try_stdout"), None);
    let error = report.error.unwrap().message;
    assert!(error.contains("try_stdout"), "{error}");
}

#[tokio::test]
async fn a_transition_that_cannot_be_decided_is_no_failure_of_the_tool() {
    let world = World::new(&[]);
    let text = r#"
initial_state: say
states:
  say:
    action: {type: shell, command: "echo word"}
    transitions: [{condition: {expression: "(stdout | int) > 3"}, next_state: end}]
  end: {action: {type: shell, command: "true"}}
"#;
    let report = world.run(text, StartOptions::default()).await;
    let error = report.error.unwrap().message;
    assert!(error.contains("cannot be made a number"), "{error}");
    let log = world.log(report.run);
    assert_eq!(log[0]["tool_success"], true, "{log:#?}");
    assert_eq!(log[0]["error"], serde_json::Value::Null);
    let message = log[0]["transition"]["message"].as_str().unwrap();
    assert!(message.contains("cannot be made a number"), "{message}");
}

#[tokio::test]
async fn patterns_of_transitions_meet_every_line_as_those_of_awaits_do() {
    let world = World::new(&[]);
    let text = r#"
initial_state: say
states:
  say:
    action: {type: shell, command: "printf 'one\\ntwo 2\\r\\nthree\\n'"}
    transitions:
      - {condition: {pattern_match: "^two \\d$", pattern_not_match: "^wo"}, next_state: end}
  end:
    action: {type: shell, command: "echo last"}
    transitions: [{condition: {pattern_match: "last$"}, next_state: over}]
  over: {action: {type: shell, command: "true"}}
"#;
    let report = world.completed(text, StartOptions::default()).await;
    assert_eq!(report.final_state.as_deref(), Some("over"));
}

#[tokio::test]
async fn the_log_says_what_was_asked_of_every_state() {
    let world = World::new(&[]);
    let text = r#"
inputs: {n: integer}
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: look}]
  look:
    action: {tool: await_output, params: {pattern: never, timeout: 0.2}}
    on_timeout: nap
  nap:
    action: {type: wait, duration_seconds: 0.01}
    transitions: [{condition: success, next_state: note}]
  note:
    action: {type: set_state, updates: {seen: "{error}", again: "{{ inputs.n + 1 }}"}}
"#;
    let inputs = flow_runtime::value::Value::from(&serde_json::json!({"n": 1}));
    let report = world.run_with(text, inputs, StartOptions::default()).await;
    let log = world.log(report.run);
    assert_eq!(log[1]["tool_success"], true, "{log:#?}");
    let missed = log[1]["error"].as_str().unwrap();
    assert!(
        missed.contains("the pattern `never` was not found"),
        "{missed}"
    );
    assert_eq!(log[2]["tool"], "wait");
    assert_eq!(log[2]["params"]["duration_seconds"], 0.01);
    assert_eq!(log[3]["tool"], "set_state");
    let updates = serde_json::json!({"seen": "{error}", "again": "{{ inputs.n + 1 }}"});
    assert_eq!(log[3]["params"]["updates"], updates);
}

#[tokio::test]
async fn a_run_without_a_session_says_in_its_log_what_it_was_not_given() {
    let world = World::new(&[]);
    let text = "
arguments: {FIRST: the first, SECOND: {description: the second, required: false}}
initial_state: a
states:
  a: {action: {tool: list_terminal_sessions}}
";
    let report = world.run(text, StartOptions::default()).await;
    assert_eq!(report.final_state.as_deref(), Some("validation_failed"));
    let log = world.log(report.run);
    assert_eq!(log[0]["phase"], "pre_execution_validation", "{log:#?}");
    assert_eq!(log[0]["validation_result"]["valid"], false);
    let missing = &log[0]["validation_result"]["missing_vars"];
    assert_eq!(*missing, json!(["FIRST"]));
    assert_eq!(log.len(), 2, "{log:#?}");
    let optional = text.replace("FIRST: the first, ", "");
    let report = world.completed(&optional, StartOptions::default()).await;
    let log = world.log(report.run);
    assert_eq!(log[0]["phase"], "pre_execution_validation", "{log:#?}");
    assert_eq!(log[0]["validation_result"]["valid"], true);
    assert_eq!(log.len(), 2, "{log:#?}");
}

#[tokio::test]
async fn a_run_without_a_session_says_in_its_log_what_it_did_not_set() {
    let world = World::new(&[]);
    let text = "
return_values: {LAST: the last}
initial_state: a
states:
  a: {action: {tool: list_terminal_sessions}}
";
    let report = world.run(text, StartOptions::default()).await;
    let log = world.log(report.run);
    let phases: Vec<&str> = log.iter().filter_map(|it| it["phase"].as_str()).collect();
    let expected = ["execution", "post_execution_validation", "error"];
    assert_eq!(phases, expected, "{log:#?}");
    let missing = &log[1]["validation_result"]["missing_vars"];
    assert_eq!(*missing, json!(["LAST"]));
}

#[tokio::test]
async fn a_state_that_was_too_late_says_how_long_it_had() {
    let world = World::new(&[]);
    let text = "
initial_state: slow
states:
  slow:
    action: {type: shell, command: sleep 100}
    timeout: 0.2
    on_timeout: end
  end: {action: {tool: list_terminal_sessions}}
";
    let report = world.completed(text, StartOptions::default()).await;
    let log = world.log(report.run);
    let error = "`slow` did not end within 0.2 s; `timeout` gives it longer";
    assert_eq!(log[0]["error"], error);
}

#[tokio::test]
async fn a_run_that_never_began_does_not_count() {
    let world = World::new(&[]);
    let text = "
name: counted
arguments: {NEEDED: what it needs}
initial_state: a
states:
  a: {action: {tool: list_terminal_sessions}}
";
    let count = || {
        let tally = world.host.journal().tally("counted").unwrap();
        tally.map(|tally| (tally.run_count, tally.success_count))
    };
    let session = world.session("").await;
    let report = world.run(text, in_session(&session)).await;
    assert_eq!(report.final_state.as_deref(), Some("validation_failed"));
    assert_eq!(count(), None);
    world.run(text, StartOptions::default()).await;
    assert_eq!(count(), None);
    world.command(&session, "export NEEDED=it").await;
    // The same run begins when it has what it needs.
    let again = Happening::Resumed(Allowance::default());
    world.host.record(report.run, again).await.unwrap();
    let report = world.host.drive(report.run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(count(), Some((1, 1)));
    world.completed(text, in_session(&session)).await;
    assert_eq!(count(), Some((2, 2)));
}
