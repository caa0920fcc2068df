//! Servers that come and go, and several over one journal.

use std::fs;

use flow_runtime::host::StartOptions;
use flow_runtime::host::agent::{AgentError, TurnStatus};
use flow_runtime::value::Value;
use serde_json::json;

use super::support::{Server, graph, step_id};

const BETWEEN: &str = "
steps:
  - {id: a, type: delegate, instructions: go}
  - {id: s1, type: shell, by: server, command: echo s1 >> side}
  - {id: b, type: delegate, instructions: go}
  - {id: s2, type: shell, by: server, command: echo s2 >> side}
  - {id: c, type: delegate, instructions: go}
  - {id: s3, type: shell, by: server, command: echo s3 >> side}
";

#[tokio::test]
async fn what_one_server_has_done_another_does_not_do_again() {
    for agent_driven in [true, false] {
        let one = Server::new();
        let other = one.beside();
        let options = StartOptions {
            agent_driven,
            ..StartOptions::default()
        };
        let host = one.agents.host();
        let started = host.start(&graph(BETWEEN), &Value::Null, options).await;
        let run = started.unwrap();
        // Both have the run in memory before anything happens.
        for server in [&one, &other] {
            assert_eq!(step_id(&server.next(run, None).await), "a");
        }
        for (server, step, next) in [(&other, "a", "b"), (&one, "b", "c")] {
            let turn = server.submit(run, step, json!(1)).await;
            assert_eq!(step_id(&turn), next, "{agent_driven}");
        }
        let turn = other.submit(run, "c", json!(1)).await;
        assert_eq!(turn.status, TurnStatus::Completed);
        let turn = one.next(run, None).await;
        assert_eq!(turn.status, TurnStatus::Completed);
        let side = fs::read_to_string(one.directory().join("side")).unwrap();
        assert_eq!(side, "s1\ns2\ns3\n", "{agent_driven}");
    }
}

const SECRET: &str = "
inputs: {tok: {type: string, secret: true, required: true}}
steps:
  - {id: p, type: delegate, instructions: go}
  - {id: e, type: shell, command: 'echo {{ inputs.tok }} > out'}
";

#[tokio::test]
async fn a_secret_that_only_the_server_before_knew_is_asked_for_and_never_an_agents() {
    for agent_driven in [true, false] {
        let mut server = Server::new();
        let options = StartOptions {
            agent_driven,
            ..StartOptions::default()
        };
        let inputs = Value::from(&json!({"tok": "s3cr3t value"}));
        let host = server.agents.host();
        let started = host.start(&graph(SECRET), &inputs, options).await;
        let run = started.unwrap();
        assert_eq!(step_id(&server.next(run, None).await), "p");
        server.restart();
        let turn = server.submit(run, "p", json!(1)).await;
        assert_eq!((turn.status, &turn.step), (TurnStatus::Waiting, &None));
        assert_eq!(turn.missing_secrets, ["tok"]);
        let note = turn.note.unwrap();
        let way = format!("`resume_workflow` with workflow_id {run} and `inputs: {{\"tok\": …}}`");
        assert!(
            note.contains(&way) && note.contains("FLOW_SECRET_TOK"),
            "{note}"
        );
        let refused = server.try_submit(run, Some("e"), json!("done")).await;
        assert!(matches!(refused, Err(AgentError::NotPending { .. })));
        let host = server.agents.host();
        for wrong in [json!({"other": "whatever"}), json!({"tok": "abc"})] {
            let refused = host.give_secrets(run, &Value::from(&wrong)).unwrap_err();
            assert!(refused.to_string().contains("secret"), "{refused}");
        }
        host.give_secrets(run, &Value::from(&json!({"tok": "s3cr3t value"})))
            .unwrap();
        server.agents.resume(run).await.unwrap();
        let turn = server.next(run, None).await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
        let out = fs::read_to_string(server.directory().join("out")).unwrap();
        assert_eq!(out, "s3cr3t value\n");
    }
}

const ASKS: &str = "
inputs: {tok: {type: string, secret: true, required: true}}
steps:
  - {id: p, type: user_input, prompt: go on?}
  - {id: e, type: shell, command: 'echo {{ inputs.tok }} > out'}
";

const HANDS_ON: &str = "
inputs: {tok: {type: string, secret: true, required: true}}
steps:
  - {id: c, type: call, workflow: uses, inputs: {tok: '{{ inputs.tok }}'}}
  - {id: d, type: call, workflow: uses, inputs: {tok: 'in the clear'}}
";

#[tokio::test]
async fn a_secret_that_a_called_run_waits_for_is_told_and_given_to_the_one_that_called_it() {
    for agent_driven in [true, false] {
        let mut server = Server::calling(vec![("uses", ASKS)]);
        let options = StartOptions {
            agent_driven,
            ..StartOptions::default()
        };
        let given = Value::from(&json!({"tok": "s3cr3t value"}));
        let host = server.agents.host();
        let started = host.start(&graph(HANDS_ON), &given, options).await;
        let run = started.unwrap();
        let turn = server.next(run, None).await;
        assert_eq!(step_id(&turn), "c/p", "{agent_driven}");
        server.restart();
        server.submit(run, "c/p", json!({"input": "yes"})).await;
        let turn = server.next(run, None).await;
        assert_eq!(turn.status, TurnStatus::Waiting, "{agent_driven}: {turn:?}");
        assert_eq!(turn.missing_secrets, ["tok"], "{agent_driven}");
        let host = server.agents.host();
        host.give_secrets(run, &given).unwrap();
        server.agents.resume(run).await.unwrap();
        let turn = server.next(run, None).await;
        assert_eq!(step_id(&turn), "d/p", "{agent_driven}: {turn:?}");
        let out = || fs::read_to_string(server.directory().join("out")).unwrap();
        assert_eq!(out(), "s3cr3t value\n");
        let turn = server.submit(run, "d/p", json!({"input": "yes"})).await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
        assert_eq!(out(), "in the clear\n");
    }
}

#[tokio::test]
async fn another_result_for_a_step_is_said_to_be_unused_whoever_took_the_first() {
    let mut server = Server::new();
    let run = server.start(BETWEEN, json!({})).await;
    server.submit(run, "a", json!({"n": 1})).await;
    for _ in 0..2 {
        let turn = server.submit(run, "a", json!({"n": 1})).await;
        assert_eq!((step_id(&turn).as_str(), turn.note), ("b", None));
        let turn = server.submit(run, "a", json!({"n": 2})).await;
        let note = "`a` had another result before, which counts; this one was not used";
        assert_eq!(turn.note.as_deref(), Some(note));
        let turn = server.fail(run, "a", "no").await;
        assert_eq!(turn.note.as_deref(), Some(note));
        server.restart();
    }
    server.submit(run, "b", json!(1)).await;
    let turn = server.submit(run, "c", json!(1)).await;
    assert_eq!(turn.status, TurnStatus::Completed);
}

#[tokio::test]
async fn time_passes_for_a_run_that_somebody_goes_on_with() {
    let server = Server::new();
    let run = server.start(BETWEEN, json!({})).await;
    server.next(run, None).await;
    let host = server.agents.host();
    let stood = host.report(run).unwrap().elapsed_ms;
    assert_eq!(host.report(run).unwrap().elapsed_ms, stood);
    let held = host.journal().lock(run).unwrap();
    while host.report(run).unwrap().elapsed_ms == stood {
        tokio::task::yield_now().await;
    }
    drop(held);
    assert_eq!(host.report(run).unwrap().elapsed_ms, stood);
}

#[tokio::test]
async fn who_asks_for_a_task_that_is_no_sub_agents_is_led_to_its_step() {
    let server = Server::new();
    let definition = "
tasks:
  t:
    inputs: {n: {type: integer, required: true}}
    steps: [{id: one, type: delegate, instructions: go}]
steps:
  - {id: f, type: foreach, items: [1], task: t, agent: '@task'}
";
    let (host, graph) = (server.agents.host(), graph(definition));
    let started = host.start(&graph, &Value::Null, StartOptions::default());
    let run = started.await.unwrap();
    assert_eq!(step_id(&server.next(run, None).await), "f.0/one");
    let refused = server.try_next(run, Some("f.0")).await.unwrap_err();
    let told = refused.to_string();
    assert!(
        told.contains("`f.0/one`") && told.contains("without a task_id"),
        "{told}"
    );
}
