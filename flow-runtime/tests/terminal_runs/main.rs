//! Workflows of states in real terminals: contracts, conditions, composition, and what is left when
//! a run ends.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

mod concealing;
mod nested;
mod owning;
mod sessions;
mod standing;
mod world;

use std::fs;
use std::sync::{Arc, Mutex};

use flow_model::tools::{ContractSide, LogEntry};
use flow_runtime::host::{
    Answer, Answers, Asked, Boxed, People, Question, ReportStatus, StartOptions,
};
use flow_runtime::run::{Allowance, FailureKind, Happening};
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

use world::{World, in_session};

const BUILD: &str = r#"
name: build
description: Builds in the session it is given
arguments:
  WHERE: the directory to build in
  KIND: {description: debug or release}
  EXTRA: {description: more flags, required: false}
return_values:
  STATUS: {name: STATUS, description: how it went, required: true}
  TOOK: {description: how long it took, required: false}
initial_state: build
states:
  build:
    action:
      tool: send_input
      params: {input_text: "cd \"$WHERE\" && echo built-as-$KIND\n"}
    transitions: [{condition: success, next_state: look}]
  look:
    action: {tool: await_output, params: {pattern: "built-as-(\\w+)", timeout: 20}}
    transitions:
      - {condition: pattern_match, pattern: "release$", next_state: tell}
      - {condition: success, next_state: no_release}
  tell:
    action: {tool: send_input, params: {input_text: "export STATUS=\"fine: $KIND\"\n"}}
  no_release:
    action: {tool: send_input, params: {input_text: "echo nothing to tell\n"}}
"#;

#[tokio::test]
async fn a_contract_holds_before_and_after_and_nothing_is_typed_for_it() {
    let world = World::new(&[]);
    let session = world
        .session("history -c; export WHERE=/ KIND=release")
        .await;
    let report = world.completed(BUILD, in_session(&session)).await;
    assert_eq!(report.final_state.as_deref(), Some("tell"));
    assert_eq!(report.states_executed, 3);
    assert_eq!(report.session.as_deref(), Some(&*session));
    let values = report.return_values.unwrap().to_json();
    assert_eq!(values, json!({"STATUS": "fine: release"}));
    // What the shell has seen is what the states have typed.
    let history = world.command(&session, "history | grep -v history").await;
    let typed = history["output"].as_str().unwrap();
    assert_eq!(typed.lines().count(), 2, "{typed}");
    let log = world.log(report.run);
    let phases: Vec<&str> = log.iter().map(|it| it["phase"].as_str().unwrap()).collect();
    let expected = [
        "pre_execution_validation",
        "execution",
        "execution",
        "execution",
        "post_execution_validation",
    ];
    assert_eq!(phases, expected);
    assert_eq!(log[0]["validation_result"]["valid"], true);
    let checked = log[0]["validation_result"]["validation_log"].clone();
    let extra = json!({"variable": "EXTRA", "status": "missing", "required": false});
    assert_eq!(checked[2], extra);
    assert_eq!(log[2]["state"], "look");
    assert_eq!(log[2]["tool"], "await_output");
    assert_eq!(log[2]["params"]["session_id"], json!(session));
    assert_eq!(log[2]["result"]["match_text"], "built-as-release");
    assert_eq!(log[2]["tool_success"], true);
    assert_eq!(log[2]["transition"]["to_state"], "tell");
    assert_eq!(log[3]["transition"], Json::Null);
    // In pages, the same.
    let page = world.host.execution_log(report.run, 2, 2).unwrap();
    assert_eq!((page.entries.len(), page.next), (2, Some(4)));
    assert_eq!(serde_json::to_value(&page.entries[0]).unwrap(), log[2]);
}

#[tokio::test]
async fn every_missing_argument_is_told_at_once_and_nothing_has_happened() {
    let world = World::new(&[]);
    let session = world.session("export KIND=").await;
    let report = world.run(BUILD, in_session(&session)).await;
    assert_eq!(report.status, ReportStatus::Failed);
    assert_eq!(report.final_state.as_deref(), Some("validation_failed"));
    assert_eq!(report.states_executed, 0);
    let error = report.error.unwrap();
    assert_eq!(error.kind, FailureKind::Arguments);
    // A variable that is set to nothing is set.
    assert!(
        error.message.contains("export WHERE=value"),
        "{}",
        error.message
    );
    assert!(!error.message.contains("KIND"), "{}", error.message);
    let log = world.log(report.run);
    assert_eq!(log.len(), 2);
    assert_eq!(
        log[0]["validation_result"]["missing_vars"],
        json!(["WHERE"])
    );
    assert_eq!(log[1]["phase"], "error");
    // Once they are set, the same run goes on.
    world.command(&session, "export WHERE=/ KIND=release").await;
    world
        .host
        .record(report.run, Happening::Resumed(Allowance::default()))
        .await
        .unwrap();
    let again = world.host.drive(report.run).await.unwrap();
    assert_eq!(again.status, ReportStatus::Completed, "{:?}", again.error);
    let homeless = world.run(BUILD, StartOptions::default()).await;
    let message = homeless.error.unwrap().message;
    assert!(
        message.contains("WHERE, KIND") && message.contains("no terminal session"),
        "{message}"
    );
}

#[tokio::test]
async fn a_return_value_that_is_not_set_fails_the_run() {
    let world = World::new(&[]);
    let session = world.session("export WHERE=/ KIND=debug").await;
    let report = world.run(BUILD, in_session(&session)).await;
    assert_eq!(report.status, ReportStatus::Failed);
    assert_eq!(
        report.final_state.as_deref(),
        Some("return_validation_failed")
    );
    assert_eq!(report.states_executed, 3);
    let message = report.error.unwrap().message;
    assert!(
        message.contains("STATUS") && !message.contains("values: TOOK"),
        "{message}"
    );
    let log = world.log(report.run);
    let check = &log[log.len() - 2];
    assert_eq!(check["phase"], "post_execution_validation");
    assert_eq!(
        check["validation_result"]["missing_vars"],
        json!(["STATUS"])
    );
    // The session is the caller's and stays.
    assert!(world.terminals.exists(&session));
}

#[tokio::test]
async fn a_session_that_is_busy_or_gone_is_told_as_such() {
    let world = World::new(&[]);
    let session = world.session("").await;
    world.terminals.close(&session).await.unwrap();
    let other = world.session("").await;
    for text in [BUILD, BRANCHES] {
        let named = StartOptions {
            variables: Value::from(&json!({"session_id": session})),
            ..StartOptions::default()
        };
        for options in [in_session(&session), named] {
            let gone = world.refused(text, options).await;
            assert!(gone.contains(&session) && gone.contains(&other), "{gone}");
        }
    }
    let leaving = r#"
return_values: {STATUS: how it went}
initial_state: leave
states:
  leave: {action: {tool: exit_terminal}}
"#;
    let session = world.session("export STATUS=fine").await;
    let left = world.run(leaving, in_session(&session)).await;
    assert_eq!(
        left.final_state.as_deref(),
        Some("return_validation_failed")
    );
}

#[tokio::test]
async fn an_argument_that_stands_for_another_variable_has_its_value() {
    let world = World::new(&[]);
    let session = world
        .session(
            "OTHER=val; LIST=(x 'y z'); declare -n NEAR=OTHER FAR=NEAR ITEM='LIST[1]' GONE=NONE",
        )
        .await;
    let text = r#"
arguments: {NEAR: a, FAR: a, ITEM: a}
initial_state: tell
states:
  tell:
    action: {tool: run_command, params: {command: "printf '%s|' {{ env.NEAR }} {{ env.FAR }} {{ env.ITEM }} \"$ITEM\""}}
"#;
    let report = world.completed(text, in_session(&session)).await;
    let told = report.variables.get("tell_output");
    assert_eq!(told, Some(&Value::text("val|val|y z|y z|")));
    let text = "arguments: {GONE: a}\ninitial_state: a\nstates: {a: {action: {tool: get_screen_content}}}\n";
    let report = world.run(text, in_session(&session)).await;
    let error = report.error.unwrap().message;
    assert!(error.contains("export GONE=value"), "{error}");
}

#[tokio::test]
async fn a_list_is_said_to_be_one_and_the_way_out_leads_out() {
    let world = World::new(&[]);
    let look = "initial_state: a\nstates: {a: {action: {tool: get_screen_content}}}\n";
    for shell in ["bash", "zsh"] {
        let opened = json!({"shell": shell});
        let opened = world.terminals.call("open_terminal", opened).await.unwrap();
        let session = opened["session_id"].as_str().unwrap();
        world.command(session, "FILES=(a b); RESULT=(c)").await;
        let takes = format!("arguments: {{FILES: a, PLAIN: b}}\n{look}");
        let report = world.run(&takes, in_session(session)).await;
        let error = report.error.unwrap().message;
        let what = "missing required environment variables: FILES, PLAIN; FILES is a list (an array) there";
        assert!(error.starts_with(what), "{shell}: {error}");
        let (_, way) = error.split_once("first: ").unwrap();
        assert_eq!(way, "unset FILES; export FILES=value; export PLAIN=value");
        let gone = world.command(session, way).await;
        assert_eq!(gone["exit_code"], 0, "{shell}: {gone:#}");
        world.completed(&takes, in_session(session)).await;
        let gives = format!("return_values: {{RESULT: a}}\n{look}");
        let report = world.run(&gives, in_session(session)).await;
        let error = report.error.unwrap().message;
        let what =
            "RESULT is a list (an array) there, and contracts take plain values: `unset RESULT`";
        assert!(error.contains(what), "{shell}: {error}");
    }
}

#[tokio::test]
async fn templates_see_the_arguments() {
    let world = World::new(&[]);
    let session = world.session("export TARGET='two words'").await;
    let text = "
arguments: {TARGET: where to}
state: {first: '{{ env.TARGET }}'}
outputs: {first: '{{ state.first }}', said: '{{ state.said }}'}
steps:
  - {id: say, type: shell, command: 'echo to {{ env.TARGET }}', output_format: text, output_to: said}
";
    let report = world.completed(text, in_session(&session)).await;
    let expected = json!({"first": "two words", "said": "to two words"});
    assert_eq!(report.output.to_json(), expected);
}

const BRANCHES: &str = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: {success: true}, next_state: test}]
  test:
    action: {tool: send_input, params: {session_id: "{session_id}", input_text: "{command}\n"}}
    transitions: [{condition: {success: true}, next_state: wait}]
  wait:
    action:
      tool: await_output
      params: {session_id: "{open_session_id}", pattern: "\\d+ passing|\\d+ failing", timeout: "{patience}"}
    timeout: 60
    on_timeout: slow
    transitions:
      - {condition: {pattern_match: "[1-9]\\d* failing"}, next_state: bad}
      - {condition: {pattern_match: passing, pattern_not_match: flaky}, next_state: good}
      - {condition: {field_contains: {match_text: passing}}, next_state: flaky}
  good:
    action: {tool: get_screen_content, params: {content_mode: tail, line_count: 5}}
    transitions: [{condition: {field_equals: {process_running: true}}, next_state: close}]
  bad:
    action: {tool: list_terminal_sessions, params: {}}
    transitions: [{condition: {field_equals: {total_sessions: 1}}, next_state: close}]
  flaky: {action: {tool: exit_terminal, params: {session_id: "{session_id}"}}}
  slow: {action: {tool: exit_terminal, params: {session_id: "{session_id}"}}}
  close: {action: {tool: exit_terminal, params: {session_id: "{session_id}"}}}
"#;

const SOUGHT: &str = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: success, next_state: print}]
  print:
    action: {tool: run_command, params: {command: "echo '1x5 (all)'; echo 1.5 '(all)' 2026"}}
    transitions:
      - {condition: {pattern_match: "(?m)^{version}$"}, next_state: close}
      - {condition: {pattern_match: '(?m)^{version} \d{4}$'}, next_state: type}
  type:
    action: {tool: send_input, params: {input_text: "echo is {{ version | sh }} 42; echo is 1x5\n"}}
    transitions: [{condition: success, next_state: wait}]
  wait:
    action: {tool: await_output, params: {pattern: 'is {version} \d{2}', timeout: 20}}
    transitions:
      - {condition: {pattern_match: "^{{ choice | unquoted }}"}, next_state: close}
      - {condition: {pattern_not_match: "{version}"}, next_state: print}
      - {condition: {pattern_match: "{match_text}"}, next_state: end}
  end: {action: {tool: exit_terminal, params: {session_id: "{session_id}"}}}
  close: {action: {tool: exit_terminal, params: {session_id: "{session_id}"}}}
"#;

#[tokio::test]
async fn a_value_that_is_quoted_by_hand_and_typed_is_read_as_it_is() {
    let world = World::new(&[]);
    let text = r#"
inputs: {shell: string, value: string}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: "{shell}"}}
    transitions: [{condition: success, next_state: type}]
  type:
    action: {tool: send_input, params: {input_text: "printf %s {{ value | sh }} >typed; echo do''ne\n"}}
    transitions: [{condition: success, next_state: wait}]
  wait:
    action: {tool: await_output, params: {pattern: done$, timeout: 60}}
    transitions: [{condition: success, next_state: exit}]
  exit: {action: {tool: exit_terminal}}
"#;
    let value = "^x\n^y\n\n^'^z\n\\^";
    for shell in ["bash", "zsh", "fish", "dash"] {
        let inputs = Value::from(&json!({"shell": shell, "value": value}));
        let report = world.run_with(text, inputs, StartOptions::default()).await;
        let error = &report.error;
        assert_eq!(report.status, ReportStatus::Completed, "{shell}: {error:?}");
        let typed = std::fs::read_to_string(world.root.path().join("typed")).unwrap();
        assert_eq!(typed, value, "{shell}");
    }
}

#[tokio::test]
async fn a_variable_in_a_pattern_is_found_as_it_is_and_nothing_else() {
    let world = World::new(&[]);
    let given = variables(json!({"version": "1.5 (all)", "choice": "(was|will be)"}));
    let report = world.completed(SOUGHT, given).await;
    assert_eq!(report.final_state.as_deref(), Some("end"));
    assert_eq!(report.states_executed, 5);
    let given = variables(json!({"version": "1.5 (all)", "choice": "(is|was) 1."}));
    let report = world.completed(SOUGHT, given).await;
    assert_eq!(report.final_state.as_deref(), Some("close"));
}

fn variables(pairs: Json) -> StartOptions {
    StartOptions {
        variables: Value::from(&pairs),
        ..StartOptions::default()
    }
}

#[tokio::test]
async fn states_branch_on_what_a_real_shell_says() {
    let world = World::new(&[]);
    let cases = [
        (
            "echo 12 passing",
            20.0,
            "close",
            vec!["open", "test", "wait", "good", "close"],
        ),
        (
            "echo 3 failing",
            20.0,
            "close",
            vec!["open", "test", "wait", "bad", "close"],
        ),
        (
            "echo flaky, 12 passing",
            20.0,
            "flaky",
            vec!["open", "test", "wait", "flaky"],
        ),
        (
            "echo nothing of interest",
            0.2,
            "slow",
            vec!["open", "test", "wait", "slow"],
        ),
    ];
    for (command, patience, last, states) in cases {
        let given = json!({"command": command, "patience": patience});
        let report = world.run(BRANCHES, variables(given)).await;
        assert_eq!(
            report.status,
            ReportStatus::Completed,
            "{command}: {:?}",
            report.error
        );
        let log = world.log(report.run);
        assert_eq!(
            report.final_state.as_deref(),
            Some(last),
            "{command}: {log:#?}"
        );
        let visited: Vec<&str> = log.iter().map(|it| it["state"].as_str().unwrap()).collect();
        assert_eq!(visited, states, "{command}");
        let variables = report.variables.to_json();
        assert_eq!(variables["command"], command);
        assert_eq!(variables["open_session_id"], variables["session_id"]);
        assert!(variables["timestamp"].is_string() && variables["message"].is_string());
        assert!(!log[1]["params"].to_string().contains("{session_id}"));
    }
    assert_eq!(world.terminals.sessions(), Vec::<String>::new());
}

#[tokio::test]
async fn a_loop_of_states_ends_at_its_limit() {
    let world = World::new(&[]);
    let text = "
initial_state: again
states:
  again:
    action: {tool: list_terminal_sessions}
    transitions: [{condition: success, next_state: again}]
";
    let options = StartOptions {
        max_steps: Some(5),
        ..StartOptions::default()
    };
    let report = world.run(text, options).await;
    assert_eq!(report.status, ReportStatus::Failed);
    let error = report.error.unwrap();
    assert_eq!(error.kind, FailureKind::Limit);
    assert!(error.message.contains('5'), "{}", error.message);
}

#[tokio::test]
async fn a_run_that_takes_longer_than_it_may_fails_and_its_terminal_ends() {
    let world = World::new(&[]);
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: wait}]
  wait: {action: {tool: await_output, params: {pattern: "never said", timeout: 250}}, timeout: 280}
"#;
    let options = StartOptions {
        timeout: Some(0.5),
        ..StartOptions::default()
    };
    let report = world.run(text, options).await;
    assert_eq!(report.status, ReportStatus::Failed);
    assert_eq!(report.error.unwrap().kind, FailureKind::TimeLimit);
    assert_eq!(world.terminals.sessions(), Vec::<String>::new());
}

#[tokio::test]
async fn sessions_of_a_failed_run_are_closed_and_those_of_a_completed_one_stay() {
    let world = World::new(&[]);
    let text = r#"
inputs: {ending: {type: string, required: true}}
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: end}]
  end: {action: {tool: run_command, params: {command: "{{ inputs.ending | unquoted }}"}}}
"#;
    let ending = |word: &str| Value::map([("ending", Value::text(word))]);
    let failed = world
        .run_with(text, ending("false"), StartOptions::default())
        .await;
    assert_eq!(failed.status, ReportStatus::Failed);
    assert_eq!(world.terminals.sessions(), Vec::<String>::new());
    let done = world
        .run_with(text, ending("true"), StartOptions::default())
        .await;
    assert_eq!(done.status, ReportStatus::Completed, "{:?}", done.error);
    assert_eq!(world.terminals.sessions(), [done.session.unwrap()]);
}

/// Whether somebody is asked now; whoever asks waits for ever.
#[derive(Default)]
struct Silent(tokio::sync::Notify);

impl People for Silent {
    fn ask<'a>(&'a self, _question: Question<'a>) -> Boxed<'a, Answer> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn cancelling_a_run_closes_what_it_and_the_runs_it_called_have_opened() {
    let silent = Arc::new(Silent::default());
    let people = Arc::clone(&silent);
    let child = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: ask}]
  ask: {action: {type: prompt, kind: confirm, message: Sure?}}
"#;
    let world = World::with(&[("child", child)], |options| options.people = people);
    let theirs = world.session("").await;
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: call}]
  call: {action: {tool: run_workflow, params: {workflow_name: child}}}
"#;
    let run = world
        .start(text, Value::Null, StartOptions::default())
        .await;
    let driven = world.host.drive_in_background(run);
    silent.0.notified().await;
    assert_eq!(world.terminals.sessions().len(), 3);
    let cancelled = Happening::Cancelled {
        reason: "enough".to_owned(),
    };
    world.host.record(run, cancelled).await.unwrap();
    let report = driven.end().await.unwrap();
    assert_eq!(
        report.as_ref().as_ref().unwrap().status,
        ReportStatus::Cancelled
    );
    assert_eq!(world.terminals.sessions(), [theirs]);
}

const LINT: &str = r#"
inputs: {target: {type: string, default: .}}
initial_state: lint
states:
  lint:
    action: {tool: run_command, params: {command: "echo linting {{ inputs.target }}"}}
"#;
const CHECKS: &str = r#"
initial_state: test
states:
  test:
    action: {tool: run_command, params: {command: "test {kind} = unit"}}
    transitions: [{condition: success, next_state: passed}]
  passed: {action: {tool: run_command, params: {command: "echo passed"}}}
"#;
const NOTIFY: &str = r#"
initial_state: tell
states:
  tell: {action: {tool: run_command, params: {command: "echo {stage} failed"}}}
"#;
const PIPELINE: &str = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: lint}]
  lint:
    action: {tool: run_workflow, params: {workflow_name: lint, initial_variables: {target: src}}}
    transitions:
      - {condition: {success: true}, next_state: test}
      - {condition: {success: false}, next_state: broken}
  test:
    action: {tool: run_workflow, params: {workflow_name: checks, initial_variables: {kind: "{kind}"}}}
    transitions:
      - {condition: {success: true, field_equals: {final_state: passed}}, next_state: deploy}
      - {condition: {success: false}, next_state: broken}
  deploy: {action: {tool: run_command, params: {command: "echo {workflow_final_state} after {lint_final_state}"}}}
  broken:
    action: {tool: run_workflow, params: {workflow_name: notify, initial_variables: {stage: testing}}}
"#;

#[tokio::test]
async fn workflows_are_composed_of_others_in_one_session() {
    let world = World::new(&[("lint", LINT), ("checks", CHECKS), ("notify", NOTIFY)]);
    let report = world
        .run(PIPELINE, variables(json!({"kind": "unit"})))
        .await;
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.final_state.as_deref(), Some("deploy"));
    assert_eq!(report.recursion_depth, 1);
    let log = world.log(report.run);
    assert_eq!(log[1]["tool"], "run_workflow");
    assert_eq!(
        log[1]["params"]["initial_variables"],
        json!({"target": "src"})
    );
    assert_eq!(log[1]["result"]["session_id"], json!(report.session));
    assert_eq!(log[3]["result"]["output"], "passed after lint\n");
    assert_eq!(world.terminals.sessions().len(), 1);
    let report = world
        .run(PIPELINE, variables(json!({"kind": "load"})))
        .await;
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.final_state.as_deref(), Some("broken"));
    let log = world.log(report.run);
    let failed = log.iter().find(|it| it["state"] == "test").unwrap();
    assert_eq!(failed["tool_success"], false);
    assert!(failed["error"].is_string(), "{failed:#}");
    assert_eq!(failed["result"]["success"], false);
    assert!(failed["result"]["error"].is_string());
}

#[tokio::test]
async fn a_workflow_that_calls_itself_stops_five_deep() {
    let endless = r#"
initial_state: look
states:
  look:
    action: {tool: list_terminal_sessions}
    transitions:
      - {condition: {field_equals: {total_sessions: 7}}, next_state: enough}
      - {condition: success, next_state: again}
  again: {action: {tool: run_workflow, params: {workflow_name: endless}}}
  enough: {action: {tool: list_terminal_sessions}}
"#;
    let world = World::new(&[("endless", endless)]);
    let report = world.run(endless, StartOptions::default()).await;
    assert_eq!(report.status, ReportStatus::Failed);
    let message = report.error.unwrap().message;
    assert!(message.contains("more than 5 deep"), "{message}");
    for once in ["the workflow `endless` failed", "would lead on"] {
        assert!(message.matches(once).count() <= 1, "{message}");
    }
    let mut deepest = report.run;
    let mut depth = 0;
    while let [child] = &world.host.called(deepest).unwrap()[..] {
        deepest = child.id;
        depth += 1;
    }
    assert_eq!(depth, 5);
}

#[tokio::test]
async fn an_inline_workflow_that_succeeds_is_kept_and_named() {
    let world = World::new(&[]);
    let text = |save: &str| {
        format!(
            r#"
initial_state: call
states:
  call:
    action:
      tool: run_workflow
      params:
        workflow_definition:
          initial_state: look
          states: {{look: {{action: {{tool: list_terminal_sessions}}}}}}
        {save}
    transitions: [{{condition: success, next_state: tell}}]
  tell: {{action: {{type: shell, command: "echo {{{{ workflow_saved }}}} {{{{ saved_workflow_name | default('none') }}}}", output_format: text, output_to: said}}}}
"#
        )
    };
    let said = async |save: &str| {
        let report = world.run(&text(save), StartOptions::default()).await;
        assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
        report.state.to_json()["said"].as_str().unwrap().to_owned()
    };
    assert_eq!(said("save_on_success: false").await, "false none");
    let first = said("").await;
    let name = first.strip_prefix("true ").unwrap();
    assert!(name.starts_with("workflow_"), "{first}");
    assert_eq!(said("").await, format!("false {name}"));
    let stored = world
        .root
        .path()
        .join(format!(".flow/workflows/{name}.json"));
    assert!(stored.exists());
}

const DEBUG: &str = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: success, next_state: start}]
  start:
    action: {tool: send_input, params: {input_text: "python3 -m pdb script.py\n"}}
    transitions: [{condition: success, next_state: ready}]
  ready:
    action: {tool: await_output, params: {pattern: "\\(Pdb\\)", timeout: 60}}
    timeout: 70
    transitions: [{condition: {pattern_match: "Pdb"}, next_state: ask}]
  ask:
    action: {type: prompt, kind: choice, message: "What now?", options: [list, step, quit]}
    transitions:
      - {condition: {field_equals: {selected: list}}, next_state: list}
      - {condition: {field_equals: {selected: step}}, next_state: step}
      - {condition: {field_equals: {selected: quit}}, next_state: quit}
  list:
    action: {tool: send_input, params: {input_text: "l\n"}}
    transitions: [{condition: success, next_state: ready}]
  step:
    action: {tool: send_input, params: {input_text: "n\n"}}
    transitions: [{condition: success, next_state: ready}]
  quit:
    action: {tool: send_input, params: {input_text: "q\n"}}
    transitions: [{condition: success, next_state: back}]
  back:
    action: {tool: run_command, params: {command: "echo back in the shell"}}
    transitions: [{condition: success, next_state: close}]
  close: {action: {tool: exit_terminal}}
"#;

/// Answers in turn.
struct InTurn(Mutex<Vec<&'static str>>);

impl People for InTurn {
    fn ask<'a>(&'a self, question: Question<'a>) -> Boxed<'a, Answer> {
        assert!(matches!(question.kind, Asked::Prompt(_, options) if options.len() == 3));
        let next = self.0.lock().unwrap().remove(0);
        let answer = Value::map([("selected", Value::text(next))]);
        Box::pin(async move { Answer::Given(answer) })
    }
}

#[tokio::test]
async fn a_person_debugs_a_real_program_step_by_step() {
    let people = Arc::new(InTurn(Mutex::new(vec![
        "list", "step", "step", "list", "quit",
    ])));
    let world = World::with(&[], |options| options.people = people);
    let script = "total = 0\nfor n in range(3):\n    total += n\nprint('total', total)\n";
    fs::write(world.root.path().join("script.py"), script).unwrap();
    let report = world.completed(DEBUG, StartOptions::default()).await;
    assert_eq!(report.final_state.as_deref(), Some("close"));
    let log = world.log(report.run);
    let asked = log.iter().filter(|it| it["state"] == "ask").count();
    assert_eq!(asked, 5);
    // The debugger has shown where the program is, before and after two steps.
    let shown: Vec<&str> = log
        .iter()
        .filter(|it| it["state"] == "ready")
        .map(|it| it["result"]["screen_content"].as_str().unwrap())
        .collect();
    assert!(shown[0].contains("-> total = 0"), "{}", shown[0]);
    assert!(
        shown[3].contains("->     total += n") || shown[3].contains("total += n"),
        "{}",
        shown[3]
    );
    let back = log.iter().find(|it| it["state"] == "back").unwrap();
    assert_eq!(back["result"]["output"], "back in the shell\n");
}

#[tokio::test]
async fn a_prompt_in_a_terminal_workflow_waits_for_its_answer() {
    let answers = Answers::new(&Value::from(&json!({"ask": "quit"}))).unwrap();
    let world = World::with(&[], |options| options.people = Arc::new(answers));
    fs::write(world.root.path().join("script.py"), "x = 1\n").unwrap();
    world.completed(DEBUG, StartOptions::default()).await;
}

#[tokio::test]
async fn what_a_dead_host_typed_is_not_typed_again() {
    let world = World::new(&[]);
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: type}]
  type:
    action: {tool: send_input, params: {input_text: "echo typed >> typed\n"}}
    transitions:
      - {condition: success, next_state: done}
      - {condition: failure, next_state: lost}
  lost: {action: {type: shell, command: "cat typed 2>/dev/null || echo nothing", output_format: text, output_to: said}}
  done: {action: {type: shell, command: "echo not here", output_format: text, output_to: said}}
"#;
    // A host that dies between wanting and knowing: its events end with the terminal being open.
    let run = world
        .start(text, Value::Null, StartOptions::default())
        .await;
    let report = world.host.report(run).unwrap();
    let open = report.pending[0].action.id;
    let opened = json!({"success": true, "session_id": "t-gone", "shell": "bash"});
    let happening = Happening::Completed {
        action: open,
        result: Value::from(&opened),
    };
    world.host.record(run, happening).await.unwrap();
    let (other, _terminals) = World::host(world.root.path(), |_| {});
    let report = other.drive(run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.state.to_json()["said"], "nothing");
    let log = other.execution_log(run, 0, 10).unwrap().entries;
    let lost = log.iter().find_map(|entry| match entry {
        LogEntry::Execution {
            state,
            tool_success,
            ..
        } if state == "type" => Some(tool_success),
        _ => None,
    });
    assert_eq!(lost, Some(&false));
}

#[tokio::test]
async fn a_contract_that_is_resumed_elsewhere_fails_and_says_why_its_session_is_gone() {
    let world = World::new(&[]);
    let text = r#"
arguments: {WHERE: where to work}
return_values: {STATUS: how it went}
initial_state: ask
states:
  ask: {action: {type: prompt, kind: text, message: "Go on?"}}
"#;
    let session = world.session("export WHERE=/ STATUS=fine").await;
    let report = world.run(text, in_session(&session)).await;
    assert_eq!(report.status, ReportStatus::Waiting, "{:?}", report.error);
    let answered = Happening::Completed {
        action: report.pending[0].action.id,
        result: Value::map([("input", Value::text("yes"))]),
    };
    world.host.record(report.run, answered).await.unwrap();

    let (other, _terminals) = World::host(world.root.path(), |_| {});
    let resumed = other.drive(report.run).await.unwrap();
    assert_eq!(resumed.status, ReportStatus::Failed);
    let error = resumed.error.unwrap();
    assert!(error.message.contains(&session), "{error:?}");
    assert!(error.message.contains("with the process"), "{error:?}");

    // Where the session lives, the same run goes on to its end.
    let resume = world
        .host
        .record(report.run, Happening::Resumed(Allowance::default()))
        .await;
    resume.unwrap();
    let report = world.host.drive(report.run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    let values = report.return_values.unwrap().to_json();
    assert_eq!(values, json!({"STATUS": "fine"}));
}

#[tokio::test]
async fn a_state_that_nothing_leads_out_of_says_so_in_the_log() {
    let world = World::new(&[]);
    let text = r#"
initial_state: look
states:
  look:
    action: {tool: list_terminal_sessions}
    transitions: [{condition: {field_equals: {total_sessions: 7}}, next_state: done}]
  done: {action: {tool: list_terminal_sessions}}
"#;
    let report = world.run(text, StartOptions::default()).await;
    assert_eq!(
        report.error.as_ref().unwrap().kind,
        FailureKind::NoTransition
    );
    let log = world.log(report.run);
    assert_eq!(log.len(), 2);
    assert_eq!(log[0]["result"]["total_sessions"], 0);
    assert_eq!(log[0]["transition"]["condition_met"], false);
    assert!(log[0]["transition"]["message"].is_string());
    assert_eq!(log[1]["phase"], "error");
}

#[test]
fn sides_of_a_contract_have_their_words() {
    let side = serde_json::to_value(ContractSide::ReturnValues).unwrap();
    assert_eq!(side, "return_values");
}

#[tokio::test]
async fn a_value_in_a_command_of_a_terminal_is_never_code() {
    let world = World::new(&[]);
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: bare}]
  bare:
    action: {tool: run_command, params: {command: "printf '<%s>' {v} a{{ v }}"}}
    transitions: [{condition: success, next_state: double}]
  double:
    action: {tool: run_command, params: {command: "printf '<%s>' \"a {v}\" '{{ v }}'"}}
"#;
    for hostile in [
        r#"x; echo gone $(echo sub) `echo back` "q" 'it'"'s' !! \"#,
        "lines\n^gone^sub^\n!!\n'\n^",
    ] {
        let options = StartOptions {
            variables: Value::map([("v", Value::text(hostile))]),
            ..StartOptions::default()
        };
        let report = world.completed(text, options).await;
        let variable = |name: &str| report.variables.get(name).map(ToString::to_string);
        let printed = |parts: [&str; 2]| {
            Some(Value::text(format!("<{}><{}>", parts[0], parts[1])).to_string())
        };
        let after_a = format!("a{hostile}");
        assert_eq!(variable("bare_output"), printed([hostile, &after_a]));
        let after_space = format!("a {hostile}");
        assert_eq!(variable("double_output"), printed([&after_space, hostile]));
    }
}

/// States whose first action ends by the limit of its own tool, and the ways out of it.
fn timed_out(action: &str, ways: &str) -> String {
    format!(
        "
initial_state: open
states:
  open:
    action: {{tool: open_terminal, params: {{shell: bash}}}}
    transitions: [{{condition: success, next_state: slow}}]
  slow:
    action: {action}
    {ways}
  late: {{action: {{type: shell, command: 'true'}}}}
  other: {{action: {{type: shell, command: 'true'}}}}
"
    )
}

#[tokio::test]
async fn a_tool_that_its_own_limit_ends_has_timed_out() {
    let naps = "
name: naps
steps: [{id: nap, type: wait, duration_seconds: 60}]
";
    let ways = [
        "transitions: [{condition: timeout, next_state: late}, {condition: failure, next_state: other}]",
        "transitions: [{condition: success, next_state: other}]\n    on_timeout: late",
        "transitions: [{condition: {timeout_occurred: true}, next_state: late}, {condition: always, next_state: other}]",
    ];
    let world = World::new(&[("naps", naps)]);
    for (action, ways) in [
        (
            "{tool: run_command, params: {command: 'sleep 60', timeout: 0.2}}",
            &ways[..],
        ),
        (
            "{tool: await_output, params: {pattern: 'never said', timeout: 0.2}}",
            &ways[..],
        ),
        // A second is the least that a run may take.
        (
            "{tool: run_workflow, params: {workflow_name: naps, execution_timeout: 1}}",
            &ways[..1],
        ),
    ] {
        for ways in ways {
            let text = timed_out(action, ways);
            let report = world.completed(&text, StartOptions::default()).await;
            assert_eq!(report.final_state.as_deref(), Some("late"), "{action}");
        }
    }
}

#[tokio::test]
async fn what_a_terminal_tool_did_not_do_is_told_with_its_state() {
    let world = World::new(&[]);
    for (action, told) in [
        (
            "{tool: run_command, params: {command: 'echo half done; (exit 3)'}}",
            "`slow` ended in failure, and no transition of it holds: `slow` failed: `echo half \
             done; (exit 3)` ended with exit code 3; its last line is: half done; a transition \
             for `failure` would lead on",
        ),
        (
            "{tool: await_output, params: {pattern: 'never said', timeout: 0.2}}",
            "`slow` ended in timeout, and no transition of it holds: the pattern `never said` was \
             not found within 0.2 s",
        ),
        (
            "{tool: send_input, params: {input_text: '{match_text}'}}",
            "`slow` ended in failure, and no transition of it holds: the variable `match_text` \
             has no value yet",
        ),
        (
            "{tool: send_input, params: {input_text: '{open_match_text}{other_stdout}'}}",
            "`slow` ended in failure, and no transition of it holds: the variable `other_stdout` \
             has no value yet",
        ),
    ] {
        let way = "transitions: [{condition: success, next_state: other}]";
        let text = timed_out(action, way).replace("  late: ", "  # late: ");
        let report = world.run(&text, StartOptions::default()).await;
        let error = report.error.unwrap();
        assert!(error.message.starts_with(told), "{}", error.message);
        assert_eq!(error.step.as_deref(), Some("slow"));
    }
}

#[tokio::test]
async fn a_match_that_an_await_did_not_find_again_is_gone() {
    let world = World::new(&[]);
    let text = r#"
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: success, next_state: say}]
  say:
    action: {tool: run_command, params: {command: "echo re''ady"}}
    transitions: [{condition: success, next_state: look}]
  look:
    action: {tool: await_output, params: {pattern: "ready", timeout: 0.3}}
    transitions: [{condition: success, next_state: clear}]
    on_timeout: tell
  clear:
    action: {tool: run_command, params: {command: "clear; true"}}
    transitions: [{condition: always, next_state: look}]
  tell:
    action: {tool: send_input, params: {input_text: "{look_match_text}"}}
"#;
    let report = world.run(text, StartOptions::default()).await;
    let message = report.error.unwrap().message;
    assert!(message.contains("`look_match_text`"), "{message}");
    let log = Json::from(world.log(report.run)).to_string();
    assert!(log.contains("\"clear\""), "it was found once: {log}");
}

#[tokio::test]
async fn what_was_just_found_decides_before_what_is_still_on_the_screen() {
    let world = World::new(&[]);
    let look = |pattern: &str| {
        format!(
            r#"
initial_state: open
states:
  open:
    action: {{tool: open_terminal, params: {{shell: bash}}}}
    transitions: [{{condition: success, next_state: say}}]
  say:
    action: {{tool: run_command, params: {{command: "echo old fail''ure"}}}}
    transitions: [{{condition: success, next_state: type}}]
  type:
    action: {{tool: send_input, params: {{input_text: "echo all re''ady\n"}}}}
    transitions: [{{condition: success, next_state: look}}]
  look:
    action: {{tool: await_output, params: {{pattern: "{pattern}", timeout: 20}}}}
    transitions:
      - {{condition: pattern_match, pattern: "failure", next_state: bad}}
      - {{condition: pattern_match, pattern: "all ready", next_state: good}}
      - {{condition: success, next_state: other}}
  bad: {{action: {{type: shell, command: 'true'}}}}
  good: {{action: {{type: shell, command: 'true'}}}}
  other: {{action: {{type: shell, command: 'true'}}}}
"#
        )
    };
    for (pattern, state) in [
        ("all ready", "good"),
        // Nothing of it is in what was found: then the screen decides, in the order written.
        ("rea[a-z]y", "bad"),
    ] {
        let report = world
            .completed(&look(pattern), StartOptions::default())
            .await;
        assert_eq!(report.final_state.as_deref(), Some(state), "{pattern}");
    }
}

#[tokio::test]
async fn a_contract_is_not_waited_for_where_only_somebody_who_types_could_help() {
    let world = World::new(&[]);
    let inner = r#"
return_values: {OUT: what came of it}
initial_state: start
states:
  start:
    action: {tool: send_input, params: {input_text: "bash --norc\n"}}
    transitions: [{condition: success, next_state: set}]
  set: {action: {tool: send_input, params: {input_text: "export OUT=1\n"}}}
"#;
    let session = world.session("").await;
    let options = StartOptions {
        timeout: Some(60.0),
        ..in_session(&session)
    };
    let report = world.run(inner, options).await;
    assert_eq!(
        report.final_state.as_deref(),
        Some("return_validation_failed")
    );
    let error = report.error.unwrap();
    assert_eq!(error.kind, FailureKind::ReturnValues);
    let told = format!(
        "the return values OUT cannot be looked up: in the session `{session}` bash is in front \
         and waits for input"
    );
    assert!(error.message.starts_with(&told), "{}", error.message);

    for shell in ["bash", "dash"] {
        let opened = world
            .terminals
            .call("open_terminal", json!({"shell": shell}));
        let opened = opened.await.unwrap();
        let session = opened["session_id"].as_str().unwrap();
        let typed = json!({"session_id": session, "input_text": "python3 -q\n"});
        world.terminals.call("send_input", typed).await.unwrap();
        let ready = json!({"session_id": session, "pattern": "^>>> ", "timeout": 60});
        let found = world.terminals.call("await_output", ready).await.unwrap();
        assert_eq!(found["match_text"], ">>> ", "{shell}: {found:#}");
        let options = StartOptions {
            timeout: Some(60.0),
            ..in_session(session)
        };
        let message = world.run(BUILD, options).await.error.unwrap();
        let told = format!("in the session `{session}` python3 is in front and waits for input");
        assert!(message.message.contains(&told), "{}", message.message);
    }

    let typed = json!({"session_id": world.session("").await, "input_text": "half a li"});
    world
        .terminals
        .call("send_input", typed.clone())
        .await
        .unwrap();
    let half = typed["session_id"].as_str().unwrap();
    let message = world.run(BUILD, in_session(half)).await.error.unwrap();
    let told = "holds text that was typed and not entered";
    assert!(message.message.contains(told), "{}", message.message);

    let opened = world
        .terminals
        .call("open_terminal", json!({"shell": "cat"}));
    let opened = opened.await.unwrap();
    let other = opened["session_id"].as_str().unwrap();
    let message = world.run(BUILD, in_session(other)).await.error.unwrap();
    assert!(
        message.message.contains("`cat` is not a shell"),
        "{}",
        message.message
    );
}

#[tokio::test]
async fn return_values_that_are_not_there_when_the_time_is_up_are_told_as_such() {
    let world = World::new(&[]);
    let text = r#"
return_values: {OUT: what came of it}
initial_state: start
states:
  start: {action: {tool: send_input, params: {input_text: "sleep 100\n"}}}
"#;
    let session = world.session("").await;
    let options = StartOptions {
        timeout: Some(2.0),
        ..in_session(&session)
    };
    let error = world.run(text, options).await.error.unwrap();
    assert_eq!(error.kind, FailureKind::ReturnValues);
    let told = "the return values OUT cannot be looked up: ";
    assert!(error.message.starts_with(told), "{}", error.message);
    assert!(error.message.contains("in time"), "{}", error.message);
}
