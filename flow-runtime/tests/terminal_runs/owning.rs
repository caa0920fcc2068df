//! Whose own a session is, from its first moment to what becomes of it when its run ends.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flow_runtime::host::agent::{
    Agents, Conclusion, Outcome, Patience, Submission, TaskPage, TurnStatus,
};
use flow_runtime::host::{ReportStatus, StartOptions};
use flow_runtime::journal::RunId;
use flow_runtime::run::Happening;
use flow_runtime::value::Value;
use serde_json::json;

use crate::world::{World, graph, in_session};

/// A run of one connection.
fn here() -> StartOptions {
    StartOptions {
        circle: Some("here".to_owned()),
        ..StartOptions::default()
    }
}

/// A pipe that a shell waits for while it starts.
struct Gate(PathBuf);

impl Gate {
    fn new(world: &World) -> Gate {
        let gate = world.root.path().join("gate");
        assert!(
            Command::new("mkfifo")
                .arg(&gate)
                .status()
                .unwrap()
                .success()
        );
        let startup = format!("read word < '{}'\n", gate.display());
        std::fs::write(world.root.path().join(".bashrc"), startup).unwrap();
        Gate(gate)
    }

    /// Returns when the shell has come to it; closing what is given lets the shell in.
    async fn reached(&self) -> File {
        let gate = self.0.clone();
        let opened = tokio::task::spawn_blocking(move || File::options().write(true).open(gate));
        opened.await.unwrap().unwrap()
    }
}

/// A workflow that opens a session, from a home with startup files of its own, and then asks.
fn opening(home: &Path) -> String {
    format!(
        r#"
initial_state: open
states:
  open:
    action: {{tool: open_terminal, params: {{environment: {{HOME: "{}"}}}}}}
    transitions: [{{condition: success, next_state: ask}}]
  ask: {{action: {{type: prompt, kind: confirm, message: Sure?}}}}
"#,
        home.display()
    )
}

const LOOK: &str = "initial_state: a\nstates:\n  a: {action: {tool: get_screen_content}}\n";

#[tokio::test]
async fn a_session_is_its_runs_own_while_it_is_being_opened() {
    let world = World::new(&[]);
    let gate = Gate::new(&world);
    let text = opening(world.root.path());
    let first = world.start(&text, Value::Null, here()).await;
    let driven = world.host.drive_in_background(first);
    let mut door = gate.reached().await;
    assert_eq!(world.terminals.sessions().len(), 1);
    let second = world.run(LOOK, here()).await;
    assert_eq!(second.status, ReportStatus::Failed);
    let error = second.error.map(|error| error.message).unwrap_or_default();
    assert!(error.contains("is no other run's"), "{error}");
    door.write_all(b"in\n").unwrap();
    drop(door);
    let report = driven.end().await.unwrap().unwrap();
    assert_eq!(report.status, ReportStatus::Waiting, "{:?}", report.error);
    assert_eq!(world.terminals.sessions(), [report.session.unwrap()]);
}

#[tokio::test]
async fn a_session_that_is_being_opened_is_closed_when_its_run_is_cancelled() {
    let world = World::new(&[]);
    let gate = Gate::new(&world);
    let text = opening(world.root.path());
    let run = world.start(&text, Value::Null, here()).await;
    let driven = world.host.drive_in_background(run);
    let door = gate.reached().await;
    world.host.record(run, cancelled()).await.unwrap();
    assert_eq!(world.terminals.sessions().len(), 0);
    drop(door);
    let report = driven.end().await.unwrap().unwrap();
    assert_eq!(report.status, ReportStatus::Cancelled);
}

#[tokio::test]
async fn an_opening_that_outlasts_its_time_leaves_no_session() {
    let world = World::new(&[]);
    // Nobody lets the shell in.
    let _gate = Gate::new(&world);
    let home = world.root.path().display();
    let states = format!(
        r#"
initial_state: open
states:
  open:
    action: {{tool: open_terminal, params: {{environment: {{HOME: "{home}"}}}}}}
    timeout: 0.2
    on_timeout: look
  look: {{action: {{tool: list_terminal_sessions}}}}
"#
    );
    let report = world.completed(&states, here()).await;
    assert_eq!(report.session, None);
    let log = world.log(report.run);
    let looked = log.iter().find(|entry| entry["state"] == "look").unwrap();
    assert_eq!(looked["result"]["total_sessions"], 0, "{looked:#}");
    let steps = format!(
        r#"
steps:
  - id: open
    type: mcp_call
    tool: open_terminal
    parameters: {{environment: {{HOME: "{home}"}}}}
    timeout: 200ms
    retry: {{attempts: 3}}
    on_error: continue
"#
    );
    world.completed(&steps, here()).await;
    assert!(world.terminals.sessions().is_empty());
    world.terminals.close_all().await;
}

fn cancelled() -> Happening {
    Happening::Cancelled {
        reason: "enough".to_owned(),
    }
}

const WAITING: &str = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: ask}]
  ask: {action: {type: prompt, kind: confirm, message: Sure?}}
"#;

/// A run that an agent drives, until it asks something.
async fn asking(agents: &Agents, text: &str) -> RunId {
    let started = agents.start(&graph(text), &Value::Null, here()).await;
    let run = started.unwrap();
    let patience = Patience::of(Duration::from_secs(60));
    let turn = agents.next(run, None, TaskPage::default(), patience).await;
    assert_eq!(turn.unwrap().status, TurnStatus::Waiting);
    run
}

#[tokio::test]
async fn a_run_that_is_given_up_closes_its_own_sessions_and_those_of_the_runs_it_called() {
    let calling = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: call}]
  call: {action: {tool: run_workflow, params: {workflow_name: kid}}}
"#;
    let world = World::new(&[("kid", WAITING)]);
    let theirs = world.session("").await;
    let agents = Agents::new(world.host.clone());
    for (text, opened) in [(WAITING, 1), (calling, 2)] {
        for how in [Conclusion::Failed, Conclusion::Cancelled] {
            let run = asking(&agents, text).await;
            assert_eq!(world.terminals.sessions().len(), 1 + opened);
            agents.conclude(run, how, "enough").await.unwrap();
            assert_eq!(world.terminals.sessions(), [&*theirs], "{how:?}");
        }
    }
    // So does one that is not driven by an agent.
    let report = world.run(WAITING, here()).await;
    assert_eq!(report.status, ReportStatus::Waiting);
    let given_up = agents.conclude(report.run, Conclusion::Failed, "enough");
    given_up.await.unwrap();
    assert_eq!(world.terminals.sessions(), [theirs]);
}

#[tokio::test]
async fn a_run_of_an_agent_leaves_its_session_when_it_completes_and_closes_it_when_it_fails() {
    let text = |ending: &str| {
        format!(
            r#"
initial_state: open
states:
  open:
    action: {{tool: open_terminal}}
    transitions: [{{condition: success, next_state: end}}]
  end: {{action: {{tool: run_command, params: {{command: "{ending}"}}}}}}
"#
        )
    };
    let world = World::new(&[]);
    let agents = Agents::new(world.host.clone());
    let patience = Patience::of(Duration::from_secs(60));
    for (ending, status, left) in [
        ("false", TurnStatus::Failed, 0),
        ("true", TurnStatus::Completed, 1),
    ] {
        let graph = graph(&text(ending));
        let started = agents.start(&graph, &Value::Null, here()).await;
        let run = started.unwrap();
        let turn = agents.next(run, None, TaskPage::default(), patience).await;
        assert_eq!(turn.unwrap().status, status);
        assert_eq!(world.terminals.sessions().len(), left);
    }
    // It is nobody's now.
    world.completed(LOOK, here()).await;
}

#[tokio::test]
async fn a_waiting_run_that_another_process_cancels_closes_its_session() {
    let world = World::new(&[]);
    let report = world.run(WAITING, here()).await;
    let session = report.session.unwrap();
    let (other, _) = World::host(world.root.path(), |_| {});
    other.record(report.run, cancelled()).await.unwrap();
    // A wait is over when the program is.
    let never = json!({"session_id": session, "pattern": "never", "timeout": 600});
    let waited = world.terminals.call("await_output", never).await.unwrap();
    assert_eq!(waited["match_text"], json!(null));
    assert_eq!(world.terminals.sessions().len(), 0);
}

#[tokio::test]
async fn a_run_goes_on_where_its_session_is_when_the_run_it_waits_for_ends_elsewhere() {
    let asking = "steps: [{id: ask, type: prompt, kind: confirm, message: Sure?}]";
    let between = "steps: [{id: call, type: call, workflow: asks}]";
    let world = World::new(&[("asks", asking), ("between", between)]);
    let calling = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: call}]
  call:
    action: {tool: run_workflow, params: {workflow_name: between}}
    transitions: [{condition: failure, next_state: exit}]
  exit: {action: {tool: exit_terminal}}
"#;
    let report = world.run(calling, here()).await;
    assert_eq!(report.status, ReportStatus::Waiting, "{:?}", report.error);
    let (other, _) = World::host(world.root.path(), |_| {});
    let pending = other.pending(&other.report(report.run).unwrap()).unwrap();
    other.record(pending[0].run, cancelled()).await.unwrap();
    // A wait is over when the program is.
    let never = json!({"session_id": report.session, "pattern": "never", "timeout": 60});
    world.terminals.call("await_output", never).await.unwrap();
    if let Some(driven) = world.host.driven(report.run) {
        driven.end().await.unwrap().unwrap();
    }
    let report = world.host.report(report.run).unwrap();
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
}

#[tokio::test]
async fn a_session_that_a_called_run_has_only_worked_in_is_not_its_callers_to_close() {
    let named = r#"
inputs: {other: string}
initial_state: work
states:
  work: {action: {tool: run_command, params: {session_id: "{other}", command: "true"}}}
"#;
    let given = "initial_state: work\nstates:\n  \
                 work: {action: {tool: run_command, params: {command: 'true'}}}\n";
    let opens = r#"
initial_state: open
states:
  open: {action: {tool: open_terminal}}
"#;
    let world = World::new(&[("named", named), ("given", given), ("opens", opens)]);
    let calling = |parameters: &str| {
        format!(
            r#"
inputs: {{other: string}}
initial_state: call
states:
  call:
    action: {{tool: run_workflow, params: {{{parameters}}}}}
    transitions: [{{condition: success, next_state: again}}]
  again:
    action: {{tool: get_screen_content}}
    transitions: [{{condition: success, next_state: exit}}]
  exit: {{action: {{tool: exit_terminal}}}}
"#
        )
    };
    let theirs = world.session("").await;
    let inputs = Value::from(&json!({"other": theirs}));
    for parameters in [
        "workflow_name: named, inputs: {other: \"{other}\"}",
        "workflow_name: given, session_id: \"{other}\"",
    ] {
        let text = calling(parameters);
        let report = world.run_with(&text, inputs.clone(), here()).await;
        let error = report.error.map(|error| error.message).unwrap_or_default();
        let expected = "name the one to close with `session_id`";
        assert!(error.contains(expected), "{parameters}: {error}");
        assert_eq!(report.session, Some(theirs.clone()), "{parameters}");
        assert_eq!(world.terminals.sessions(), [&*theirs], "{parameters}");
    }
    // One that it has opened is; what tells them apart is nobody else's to see.
    let report = world
        .completed(&calling("workflow_name: opens"), here())
        .await;
    assert_eq!(world.terminals.sessions(), [theirs]);
    let log = serde_json::to_string(&world.log(report.run)).unwrap();
    let said = format!("{log}{}", report.variables.to_json());
    assert!(said.contains("call_session_id"), "{said}");
    assert!(!said.contains("session_opened"), "{said}");
}

#[tokio::test]
async fn a_cancel_is_over_when_it_is_answered() {
    let world = World::new(&[]);
    // Who waits so hears of an interrupt whenever it comes.
    let slow = "sh -c 'trap \\\"sleep 0.4; exit\\\" INT; echo st\\\"\\\"arted; sleep 600 & wait'";
    let quick = "echo st''arted; sleep 600";
    for shell in ["bash", "zsh", "fish", "dash"] {
        let opened = json!({"shell": shell});
        let opened = world.terminals.call("open_terminal", opened).await.unwrap();
        let session = opened["session_id"].as_str().unwrap();
        for command in [quick, slow] {
            let text = format!(
                "initial_state: a\nstates:\n  \
                 a: {{action: {{tool: run_command, params: {{command: \"{command}\"}}}}}}\n"
            );
            let run = world.start(&text, Value::Null, in_session(session)).await;
            let _driven = world.host.drive_in_background(run);
            let waits = json!({"session_id": session, "pattern": "^started$", "timeout": 60});
            let found = world.terminals.call("await_output", waits).await.unwrap();
            assert_eq!(found["match_text"], "started", "{shell}: {found:#}");
            world.host.record(run, cancelled()).await.unwrap();
            let next = world.command(session, "echo next").await;
            assert_eq!(next["output"], "next\n", "{shell}: {command}: {next:#}");
        }
    }
}

#[tokio::test]
async fn a_session_is_free_again_whenever_the_run_that_works_in_it_is_cancelled() {
    let world = World::new(&[]);
    let text = "initial_state: a\nstates:\n  \
                a: {action: {tool: run_command, params: {command: sleep 600}}}\n";
    for shell in ["bash", "zsh", "fish", "dash"] {
        let opened = json!({"shell": shell});
        let opened = world.terminals.call("open_terminal", opened).await.unwrap();
        let session = opened["session_id"].as_str().unwrap();
        for turns in (0..60).step_by(6) {
            let run = world.start(text, Value::Null, in_session(session)).await;
            let _driven = world.host.drive_in_background(run);
            // The command is about to be typed, or to begin.
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            world.host.record(run, cancelled()).await.unwrap();
            let next = world.command(session, "echo next").await;
            assert_eq!(next["output"], "next\n", "{shell}: {turns}: {next:#}");
        }
    }
}

#[tokio::test]
async fn what_follows_from_an_answer_is_typed_by_whoever_has_the_run_then() {
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: ask}]
  ask:
    action: {type: prompt, kind: confirm, message: Sure?}
    transitions: [{condition: success, next_state: type}]
  type: {action: {tool: run_command, params: {command: echo once}}}
"#;
    let world = World::new(&[]);
    let report = world.run(text, here()).await;
    assert_eq!(report.status, ReportStatus::Waiting);
    let run = report.run;
    // Somebody still has the run when the answer comes.
    let lock = world.host.journal().lock(run).unwrap();
    let agents = Agents::new(world.host.clone());
    let answer = Submission {
        outcome: Outcome::Success,
        result: Some(Value::from(&json!(true))),
        error: None,
    };
    let answered = agents.submit(run, None, answer, TaskPage::default(), Patience::NONE);
    answered.await.unwrap();
    drop(lock);
    let report = world.host.drive(run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.variables.to_json()["type_output"], "once\n");
}
