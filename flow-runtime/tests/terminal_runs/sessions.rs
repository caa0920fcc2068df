//! Which session a step works in that names none.

use flow_runtime::host::{Report, ReportStatus, StartOptions};
use flow_runtime::run::Happening;
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

/// What a run and its answer say of its session.
fn sessions(report: &Report) -> [Option<String>; 2] {
    let variable = report.variables.get("session_id").and_then(Value::as_str);
    [report.last_session.clone(), variable.map(str::to_owned)]
}

#[tokio::test]
async fn a_run_keeps_its_session_when_a_step_names_another_or_calls_a_run_that_opens_one() {
    let world = World::new(&[("kid", KID)]);
    let text = r#"
inputs: {other: string}
return_values: {DONE: whether it is done}
initial_state: peek
states:
  peek:
    action: {tool: run_command, params: {session_id: "{other}", command: "export DONE=elsewhere"}}
    transitions: [{condition: success, next_state: call}]
  call:
    action: {tool: run_workflow, params: {workflow_name: kid, inputs: {who: K}}}
    transitions: [{condition: success, next_state: work}]
  work:
    action: {tool: run_command, params: {command: "export DONE=here"}}
    transitions: [{condition: success, next_state: named}]
  named:
    action: {tool: run_command, params: {session_id: "{session_id}", command: "echo $DONE"}}
"#;
    let (own, other) = (world.session("").await, world.session("").await);
    let inputs = Value::from(&json!({"other": other}));
    let report = world.run_with(text, inputs, in_session(&own)).await;
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(sessions(&report), [Some(own.clone()), Some(own.clone())]);
    let variables = report.variables.to_json();
    assert_eq!(variables["work_session_id"], json!(own));
    assert_eq!(variables["named_output"], "here\n");
    assert_ne!(variables["call_session_id"], json!(own));
    let returned = report.return_values.map(|values| values.to_json());
    assert_eq!(returned, Some(json!({"DONE": "here"})));
}

#[tokio::test]
async fn a_run_without_a_session_takes_up_the_first_it_works_in_and_never_one_it_has_not_used() {
    let world = World::new(&[("kid", KID)]);
    let terminals = world.terminals.of("here");
    let opened = terminals.call("open_terminal", json!({})).await.unwrap();
    let near = opened["session_id"].as_str().unwrap();
    world.command(near, "export SAID=nothing").await;
    let here = || StartOptions {
        circle: Some("here".to_owned()),
        ..StartOptions::default()
    };
    // It has used none: what is set in one that is near is not its return value.
    let unused = "
return_values: {SAID: what was said}
initial_state: a
states:
  a: {action: {type: shell, command: 'true'}, transitions: [{condition: always, next_state: b}]}
  b: {action: {tool: list_terminal_sessions}}
";
    let report = world.run(unused, here()).await;
    let failed = Some("return_validation_failed");
    assert_eq!(report.final_state.as_deref(), failed);
    assert_eq!(sessions(&report), [None, None]);
    // It names another than the one that is near, and goes on there.
    let other = world.session("export SAID=it").await;
    let named = r#"
inputs: {other: string}
return_values: {SAID: what was said}
initial_state: look
states:
  look:
    action: {tool: get_screen_content, params: {session_id: "{other}"}}
    transitions: [{condition: success, next_state: tell}]
  tell:
    action: {tool: run_command, params: {command: "echo $SAID"}}
"#;
    let inputs = Value::from(&json!({"other": other}));
    let report = world.run_with(named, inputs, here()).await;
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.variables.to_json()["tell_output"], "it\n");
    assert_eq!(sessions(&report), [Some(other.clone()), Some(other)]);
    // What is near serves until then, by its name as well.
    let near_by = r#"
initial_state: tell
states:
  tell:
    action: {tool: run_command, params: {session_id: "{session_id}", command: "echo $SAID"}}
"#;
    let report = world.completed(near_by, here()).await;
    assert_eq!(report.variables.to_json()["tell_output"], "nothing\n");
    assert_eq!(report.session.as_deref(), Some(near));
}

#[tokio::test]
async fn a_run_that_has_closed_its_session_still_says_which_it_was() {
    let world = World::new(&[]);
    let text = r#"
initial_state: o
states:
  o: {action: {tool: open_terminal}, transitions: [{condition: success, next_state: x}]}
  x: {action: {tool: exit_terminal, params: {session_id: "{session_id}"}}}
"#;
    let report = world.completed(text, StartOptions::default()).await;
    let was = report.variables.to_json()["o_session_id"].clone();
    let was = was.as_str().map(str::to_owned);
    assert_eq!(report.session, None);
    assert_eq!(sessions(&report), [was.clone(), was]);
}

#[tokio::test]
async fn a_task_that_opens_no_session_works_in_that_of_the_run_around_it() {
    let world = World::new(&[]);
    let text = r#"
outputs: {said: "{{ state.said }}"}
tasks:
  greet:
    inputs: {name: {type: string, required: true}}
    steps:
      - {type: mcp_call, tool: run_command, parameters: {command: "echo $WHO {{ inputs.name }}"}, output_to: ran}
      - {type: return, value: "{{ state.ran.output | trim }}"}
steps:
  - {type: mcp_call, tool: open_terminal, parameters: {environment: {WHO: root}}}
  - {type: foreach, items: [a], task: greet, output_to: said}
"#;
    let report = world.completed(text, StartOptions::default()).await;
    assert_eq!(report.output.to_json(), json!({"said": ["root a"]}));
    assert!(report.session.is_some());
    assert_eq!(
        sessions(&report),
        [report.session.clone(), report.session.clone()]
    );
}

/// A run of the same connection.
fn here() -> StartOptions {
    StartOptions {
        circle: Some("here".to_owned()),
        ..StartOptions::default()
    }
}

/// A run that opens a terminal and then waits, and its session.
async fn waiting(world: &World) -> String {
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: ask}]
  ask: {action: {type: prompt, kind: confirm, message: Sure?}}
"#;
    let report = world.run(text, here()).await;
    assert_eq!(report.status, ReportStatus::Waiting, "{:?}", report.error);
    report.session.unwrap()
}

/// What a state answered that was to fail.
fn failed(report: &Report, state: &str) -> String {
    assert_eq!(report.status, ReportStatus::Failed);
    let variables = report.variables.to_json();
    assert_eq!(
        variables[format!("{state}_session_id")],
        json!(null),
        "{variables:#}"
    );
    let error = report.error.as_ref();
    error.map(|error| error.message.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_run_that_has_closed_its_own_session_goes_on_in_nobody_elses() {
    let world = World::new(&[]);
    let theirs = waiting(&world).await;
    let terminals = world.terminals.of("here");
    let opened = terminals.call("open_terminal", json!({})).await.unwrap();
    let by_hand = opened["session_id"].as_str().unwrap();
    let text = |last: &str| {
        format!(
            r#"
initial_state: near
states:
  near:
    action: {{tool: get_screen_content}}
    transitions: [{{condition: success, next_state: o}}]
  o:
    action: {{tool: open_terminal}}
    transitions: [{{condition: success, next_state: x}}]
  x:
    action: {{tool: exit_terminal}}
    transitions: [{{condition: success, next_state: y}}]
  y: {{action: {last}}}
"#
        )
    };
    for last in [
        "{tool: exit_terminal}",
        "{tool: run_command, params: {command: echo str''ayed}}",
        "{tool: get_screen_content}",
    ] {
        let report = world.run(&text(last), here()).await;
        let said = failed(&report, "y");
        let own = report.variables.to_json()["o_session_id"].clone();
        let own = own.as_str().unwrap();
        let expected = format!("no terminal session is open: the run's own, `{own}`, was closed");
        assert!(said.contains(&expected), "{last}: {said}");
    }
    assert_eq!(world.terminals.sessions(), [&*theirs, by_hand]);
    let shown = world.terminals.screen(by_hand).unwrap();
    assert!(!shown.contains("ayed"), "{shown}");
}

#[tokio::test]
async fn a_run_without_a_session_works_in_none_that_another_run_has_opened_and_not_left() {
    let world = World::new(&[]);
    let terminals = world.terminals.of("here");
    let opened = terminals.call("open_terminal", json!({})).await.unwrap();
    let by_hand = opened["session_id"].as_str().unwrap();
    let theirs = waiting(&world).await;
    let look = "initial_state: a\nstates:\n  a: {action: {tool: get_screen_content}}\n";
    let report = world.completed(look, here()).await;
    assert_eq!(report.session.as_deref(), Some(by_hand));
    let closed = world.terminals.close(by_hand).await;
    assert!(closed.unwrap());
    let report = world.run(look, here()).await;
    let said = failed(&report, "a");
    assert!(said.contains("is no other run's"), "{said}");
    // By name it may.
    let named = look.replace(
        "get_screen_content",
        &format!("get_screen_content, params: {{session_id: {theirs}}}"),
    );
    let report = world.completed(&named, here()).await;
    assert_eq!(report.session, Some(theirs));
}

#[tokio::test]
async fn a_run_closes_what_it_has_not_opened_only_by_its_name() {
    let world = World::new(&[]);
    let terminals = world.terminals.of("here");
    let opened = terminals.call("open_terminal", json!({})).await.unwrap();
    let by_hand = opened["session_id"].as_str().unwrap();
    let text = |close: &str| {
        format!(
            r#"
initial_state: work
states:
  work:
    action: {{tool: run_command, params: {{command: "true"}}}}
    transitions: [{{condition: success, next_state: y}}]
  y: {{action: {{tool: exit_terminal, params: {close}}}}}
"#
        )
    };
    let report = world.run(&text("{}"), here()).await;
    let said = failed(&report, "y");
    let expected = "name the one to close with `session_id`";
    assert!(said.contains(expected), "{said}");
    assert_eq!(world.terminals.sessions(), [by_hand]);
    let named = text("{session_id: \"{session_id}\"}");
    world.completed(&named, here()).await;
    assert_eq!(world.terminals.sessions().len(), 0);
    // What it was given it may close without that.
    let given = world.session("").await;
    world.completed(&text("{}"), in_session(&given)).await;
    assert_eq!(world.terminals.sessions().len(), 0);
}

#[tokio::test]
async fn a_run_that_is_given_up_interrupts_the_command_it_has_typed_and_nothing_else() {
    let world = World::new(&[]);
    let text = r#"
initial_state: a
states:
  a: {action: {tool: run_command, params: {command: "echo st''arted; sleep 600; echo over"}}}
"#;
    for shell in ["bash", "zsh", "fish", "dash"] {
        let opened = world
            .terminals
            .call("open_terminal", json!({"shell": shell}));
        let opened = opened.await.unwrap();
        let session = opened["session_id"].as_str().unwrap();
        let run = world.start(text, Value::Null, in_session(session)).await;
        let driven = world.host.drive_in_background(run);
        let waits = json!({"session_id": session, "pattern": "^started$", "timeout": 60});
        let found = world.terminals.call("await_output", waits).await.unwrap();
        assert_eq!(found["match_text"], "started", "{shell}: {found:#}");
        let cancelled = Happening::Cancelled {
            reason: "enough".to_owned(),
        };
        world.host.record(run, cancelled).await.unwrap();
        let report = driven.end().await.unwrap();
        let status = report.as_ref().as_ref().unwrap().status;
        assert_eq!(status, ReportStatus::Cancelled, "{shell}");
        let next = world.command(session, "echo next").await;
        assert_eq!(next["output"], "next\n", "{shell}: {next:#}");
        assert_eq!(next["status"], "finished", "{shell}: {next:#}");
        // So does one whose time is up.
        let options = StartOptions {
            timeout: Some(1.0),
            ..in_session(session)
        };
        let report = world.run(text, options).await;
        assert_eq!(report.status, ReportStatus::Failed, "{shell}");
        let next = world.command(session, "echo next").await;
        assert_eq!(next["output"], "next\n", "{shell}: {next:#}");
        // What it did not type goes on.
        let input = "sh -c 'echo be''gun; exec sleep 600'\n";
        let typed = json!({"session_id": session, "input_text": input});
        world.terminals.call("send_input", typed).await.unwrap();
        let begun = json!({"session_id": session, "pattern": "^begun$", "timeout": 60});
        let found = world.terminals.call("await_output", begun).await.unwrap();
        assert_eq!(found["match_text"], "begun", "{shell}: {found:#}");
        let waits = r#"
initial_state: a
states:
  a: {action: {tool: await_output, params: {pattern: never, timeout: 600}}}
"#;
        let options = StartOptions {
            timeout: Some(1.0),
            ..in_session(session)
        };
        let report = world.run(waits, options).await;
        assert_eq!(report.status, ReportStatus::Failed, "{shell}");
        let next = world.command(session, "echo next").await;
        assert_eq!(next["status"], "busy", "{shell}: {next:#}");
    }
}
