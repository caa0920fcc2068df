//! Whole runs: calls, time, state, restarts, the log.

use std::time::Duration;

use flow_model::graph::Operation;
use flow_runtime::host::agent::{
    AgentError, AgentStepType, Conclusion, Patience, TaskPage, Turn, TurnStatus,
};
use flow_runtime::host::{ReportStatus, StartOptions};
use flow_runtime::journal::{Listing, RunId, RunLock, Status};
use flow_runtime::run::Update;
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

use super::steps::{EVERY_KIND, LOOP};
use super::support::{PATIENT, Server, definition, graph, kind, output, step_id};

const ROUNDS: &str = "
inputs: {count: integer}
limits: {max_steps: 100000}
state: {n: 0}
tools: {t: {}}
steps:
  - id: again
    type: while
    if: '{{ state.n < inputs.count }}'
    max_iterations: 100000
    steps:
      - {id: ask, type: mcp_call, tool: t, output_to: got}
      - {id: count, type: set_state, updates: {n: '{{ state.n + 1 }}'}}
";

#[tokio::test]
async fn steps_of_a_called_workflow_come_through_the_one_that_calls() {
    let child = "
name: child
inputs: {files: array}
tools: {lint: {}}
outputs: {found: '{{ state.found }}'}
tasks:
  one:
    inputs: {file: {type: string, required: true}}
    steps:
      - {id: lint, type: mcp_call, tool: lint, parameters: {file: '{{ inputs.file }}'}, output_to: got}
      - {id: give, type: return, value: '{{ state.got }}'}
steps:
  - {id: begin, type: mcp_call, tool: lint}
  - {id: each, type: foreach, items: '{{ inputs.files }}', task: one, agent: '@task', output_to: found}
";
    let parent = "
outputs: {all: '{{ state.all.found }}'}
steps:
  - {id: checks, type: call, workflow: child, inputs: {files: [a, b]}, output_to: all}
";
    let mut server = Server::calling(vec![("child", child)]);
    let run = server.start(parent, json!({})).await;
    let turn = server.next(run, None).await;
    assert_eq!(step_id(&turn), "checks/begin");
    server.restart();
    let turn = server.submit(run, "checks/begin", json!(null)).await;
    assert_eq!(kind(&turn), AgentStepType::ParallelTasks);
    assert_eq!(
        definition(&turn, "tasks")[0],
        json!({"task_id": "checks/each.0", "workflow_id": run.to_string(), "context": {"file": "a"}})
    );
    for (task, result) in [("checks/each.1", 2), ("checks/each.0", 1)] {
        let turn = server.next(run, Some(task)).await;
        assert_eq!(step_id(&turn), format!("{task}/lint"));
        let done = server.submit(run, &step_id(&turn), json!(result)).await;
        assert_eq!(done.status, TurnStatus::Completed);
    }
    let turn = server.next(run, None).await;
    assert_eq!(output(&turn), json!({"all": [1, 2]}));
}

#[tokio::test]
async fn a_judged_transition_is_the_agents() {
    let server = Server::new();
    let run = server
        .start(
            "initial_state: build
states:
  build:
    action: {type: shell, command: make}
    transitions:
      - {condition: {description: the build looks healthy}, next_state: ship}
      - {condition: {description: something smells}, next_state: stop}
  ship: {action: {type: prompt, kind: info, message: shipped}}
  stop: {action: {type: prompt, kind: info, message: stopped}}
",
            json!({}),
        )
        .await;
    let turn = server.next(run, None).await;
    assert_eq!(step_id(&turn), "build");
    let turn = server.submit(run, "build", json!("all green")).await;
    assert_eq!(kind(&turn), AgentStepType::Judge);
    assert_eq!(definition(&turn, "choices")[1]["next_state"], "stop");
    assert_eq!(definition(&turn, "result")["stdout"], "all green");
    for wrong in [
        json!({"transition": 1}),
        json!({"choice": 2}),
        json!("nowhere"),
        json!({}),
    ] {
        let refused = server.try_submit(run, Some(&step_id(&turn)), wrong).await;
        let told = refused.unwrap_err().to_string();
        assert!(
            told.contains("one of 0 (`ship`), 1 (`stop`), or null"),
            "{told}"
        );
    }
    let turn = server
        .submit(run, &step_id(&turn), json!({"choice": 1}))
        .await;
    assert_eq!(definition(&turn, "message"), "stopped");
    let turn = server.submit(run, "stop", json!(null)).await;
    assert_eq!(turn.status, TurnStatus::Completed);
}

#[tokio::test]
async fn a_run_that_waits_for_a_time_says_when() {
    let server = Server::new();
    let run = server
        .start(
            "tools: {t: {}}
steps:
  - {id: pause, type: wait, duration_seconds: 3600}
  - {id: go, type: mcp_call, tool: t}
",
            json!({}),
        )
        .await;
    let turn = server.next(run, None).await;
    assert_eq!((turn.status, &turn.step), (TurnStatus::Sleeping, &None));
    assert!(turn.wakes.is_some());
    server
        .agents
        .conclude(run, Conclusion::Cancelled, "enough")
        .await
        .unwrap();
    assert_eq!(server.next(run, None).await.status, TurnStatus::Cancelled);
}

#[tokio::test]
async fn a_run_that_slept_when_its_server_ended_wakes_when_it_is_asked_for() {
    let mut server = Server::new();
    let pause = "
tools: {t: {}}
steps:
  - {id: pause, type: wait, duration_seconds: 1}
  - {id: go, type: mcp_call, tool: t}
";
    let run = server.start(pause, json!({})).await;
    let page = TaskPage::default();
    let turn = server
        .agents
        .next(run, None, page, Patience::of(Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(turn.status, TurnStatus::Sleeping);
    server.agents.host().interrupt();
    server.agents.settled().await;
    server.restart();
    // A look alone does not wake it.
    let turn = server.agents.next(run, None, page, Patience::NONE).await;
    assert_eq!(turn.unwrap().step, None);
    assert_eq!(step_id(&server.next(run, None).await), "go");
}

#[tokio::test]
async fn state_changes_from_outside_are_atomic_and_derived_state_follows() {
    let server = Server::new();
    let run = server.start(LOOP, json!({})).await;
    server.next(run, None).await;
    let update = |path: &str, operation, value: Json| Update {
        path: path.to_owned(),
        operation,
        value: Value::from(&value),
    };
    let changed = server
        .agents
        .update(
            run,
            vec![
                update("raw.todo", Operation::Append, json!("d")),
                update("state.who", Operation::Set, json!("me")),
            ],
        )
        .await
        .unwrap();
    assert_eq!(changed.changed.to_json(), json!({"left": 4}));
    let refused = server
        .agents
        .update(
            run,
            vec![
                update("raw.todo", Operation::Set, json!([])),
                update("computed.left", Operation::Set, json!(0)),
            ],
        )
        .await;
    assert!(refused.unwrap_err().to_string().contains("computed"));
    let state = server.agents.state(run).await.unwrap().to_json();
    assert_eq!(state["left"], 4);
    assert_eq!(state["who"], "me");
}

#[tokio::test]
async fn a_checkpoint_is_found_again_and_a_run_can_be_given_up() {
    let mut server = Server::new();
    let run = server.start(EVERY_KIND, json!({"branch": "x"})).await;
    server.next(run, None).await;
    let marked = server
        .agents
        .checkpoint(run, Some("look".to_owned()), "context is full".to_owned())
        .await
        .unwrap();
    // Only what is in the run can be marked.
    let nowhere = server
        .agents
        .checkpoint(run, Some("nowhere".to_owned()), "x".to_owned())
        .await;
    assert_eq!(
        nowhere.unwrap_err().to_string(),
        "there is no step `nowhere` in this run; `look` waits for a result"
    );
    server.restart();
    let found = server.agents.last_checkpoint(run).await.unwrap();
    assert_eq!(found.unwrap(), marked);
    assert_eq!(step_id(&server.next(run, None).await), "look");

    let refused = server.agents.conclude(run, Conclusion::Success, "").await;
    assert!(matches!(refused, Err(AgentError::NotOver)));
    server
        .agents
        .conclude(run, Conclusion::Failed, "it makes no sense")
        .await
        .unwrap();
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert_eq!(turn.error.unwrap().message, "it makes no sense");
    // Over is over.
    let again = server.agents.conclude(run, Conclusion::Failed, "").await;
    assert!(again.is_ok());
    let refused = server.agents.conclude(run, Conclusion::Cancelled, "").await;
    assert!(matches!(refused, Err(AgentError::Ended { .. })));
    assert_eq!(server.next(run, None).await.status, TurnStatus::Failed);
}

#[tokio::test]
async fn more_runs_than_are_kept_in_memory_go_on_side_by_side() {
    let server = Server::keeping(5);
    let mut runs = Vec::new();
    for _ in 0..40 {
        runs.push(server.start(LOOP, json!({})).await);
    }
    let mut going: Vec<(RunId, Turn)> = Vec::new();
    for run in runs {
        going.push((run, server.next(run, None).await));
    }
    let listing = Listing::new().status(Status::Waiting);
    let waiting = server.agents.host().journal().list(&listing, 100).unwrap();
    assert_eq!(waiting.runs.len(), 40);
    assert_eq!(waiting.runs[0].pending.as_deref(), Some("do"));
    for _ in 0..3 {
        for (run, turn) in &mut going {
            *turn = server.submit(*run, &step_id(turn), json!("x")).await;
            assert!(server.agents.kept() <= 6, "{}", server.agents.kept());
        }
    }
    for (_, turn) in &going {
        assert_eq!(output(turn)["done"], json!(["x", "x", "x"]));
    }
}

#[tokio::test]
async fn a_command_of_the_server_goes_on_while_sub_agents_work() {
    let server = Server::new();
    let gate = server.directory().join("gate");
    let definition_text = format!(
        "
expressions: js
tools: {{t: {{}}}}
sub_agent_tasks:
  work:
    inputs: {{name: {{type: string, required: true}}}}
    steps:
      - {{id: wait, type: shell_command, command: 'test {{{{ inputs.name }}}} = slow && until test -e {gate}; do sleep 0.01; done; true', timeout: 20000}}
      - {{id: act, type: mcp_call, tool: t}}
steps:
  - {{id: both, type: parallel_foreach, items: '{{{{ [\"slow\", \"quick\"] }}}}', sub_agent_task: work}}
",
        gate = gate.display()
    );
    let run = server.start(&definition_text, json!({})).await;
    server.next(run, None).await;
    let agents = server.agents.clone();
    let slow = tokio::spawn(async move {
        let page = TaskPage::default();
        agents.next(run, Some("both.0"), page, PATIENT).await
    });
    let turn = server.next(run, Some("both.1")).await;
    let turn = server.submit(run, &step_id(&turn), json!(null)).await;
    assert_eq!(turn.status, TurnStatus::Completed);
    let impatient = server
        .agents
        .next(run, Some("both.0"), TaskPage::default(), Patience::NONE)
        .await
        .unwrap();
    assert_eq!(
        (impatient.status, impatient.step),
        (TurnStatus::Running, None)
    );
    std::fs::write(&gate, "").unwrap();
    let turn = slow.await.unwrap().unwrap();
    let turn = server.submit(run, &step_id(&turn), json!(null)).await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert_eq!(server.next(run, None).await.status, TurnStatus::Completed);
}

#[tokio::test]
async fn what_holds_a_secret_is_done_by_the_server_and_never_shown() {
    let server = Server::new();
    let run = server
        .start(
            "inputs: {token: {type: string, secret: true, required: true}}
tools: {t: {}}
outputs: {size: '{{ state.size }}', said: '{{ state.said.echo }}'}
steps:
  - {id: login, type: shell, command: 'printf %s {{ inputs.token }} | wc -c', output_format: text, output_to: size}
  - {id: show, type: prompt, kind: info, message: 'Logged in with {{ inputs.token }}'}
  - {id: say, type: mcp_call, tool: t, output_to: said}
",
            json!({"token": "hunter2-hunter2"}),
        )
        .await;
    let turn = server.next(run, None).await;
    assert_eq!(step_id(&turn), "show");
    assert_eq!(
        definition(&turn, "message"),
        "Logged in with [secret token]"
    );
    assert_eq!(
        server.agents.state(run).await.unwrap().to_json(),
        json!({"size": "15"})
    );
    let turn = server.submit(run, "show", json!(null)).await;
    // What an agent has seen elsewhere is not recorded either.
    let turn = server
        .submit(
            run,
            &step_id(&turn),
            json!({"echo": "it is hunter2-hunter2"}),
        )
        .await;
    assert_eq!(
        output(&turn),
        json!({"size": "15", "said": "it is [secret token]"})
    );
}

#[tokio::test]
async fn looking_at_a_run_does_not_let_it_go_on() {
    let server = Server::new();
    let made = server.directory().join("made");
    let definition_text = format!(
        "steps:\n  - {{id: make, type: shell_command, command: touch {}}}\n",
        made.display()
    );
    let run = server.start(&definition_text, json!({})).await;
    let page = TaskPage::default();
    let turn = server.agents.next(run, None, page, Patience::NONE).await;
    assert_eq!(turn.unwrap().status, TurnStatus::Running);
    server.agents.state(run).await.unwrap();
    server.agents.report(run).await.unwrap();
    assert!(!made.exists());
    assert_eq!(server.next(run, None).await.status, TurnStatus::Completed);
    assert!(made.exists());
}

#[tokio::test]
async fn the_log_is_the_same_in_pages_of_any_size_and_while_the_run_goes_on() {
    let server = Server::new();
    let host = server.agents.host();
    let run = server.start(ROUNDS, json!({"count": 150})).await;
    let other = server.start(ROUNDS, json!({"count": 2})).await;
    let whole = |run| host.execution_log(run, 0, usize::MAX).unwrap();
    let mut turn = server.next(run, None).await;
    server.next(other, None).await;
    let mut read = Vec::new();
    while turn.step.is_some() {
        turn = server.submit(run, &step_id(&turn), json!(1)).await;
        // Whatever there is by now, from where the last page ended.
        let page = host.execution_log(run, read.len(), 5).unwrap();
        read.extend(page.entries);
        whole(other);
    }
    while let page = host.execution_log(run, read.len(), 5).unwrap()
        && !page.entries.is_empty()
    {
        read.extend(page.entries);
    }
    let all = whole(run);
    assert!(all.entries.len() > 300, "{}", all.entries.len());
    assert_eq!(all.next, None);
    assert_eq!(read, all.entries);
    for size in [1, 64, 1000] {
        let mut pages = Vec::new();
        let mut next = Some(0);
        while let Some(first) = next {
            let page = host.execution_log(run, first, size).unwrap();
            pages.extend(page.entries);
            next = page.next;
        }
        assert_eq!(pages, all.entries);
    }
    // Backwards, and beyond the end.
    let page = host.execution_log(run, 3, 2).unwrap();
    assert_eq!(
        (page.entries.as_slice(), page.next),
        (&all.entries[3..5], Some(5))
    );
    let page = host.execution_log(run, all.entries.len() + 5, 2).unwrap();
    assert_eq!((page.entries.len(), page.next), (0, None));
}

#[tokio::test]
async fn what_a_container_had_no_more_time_for_is_not_handed_out_by_whoever_comes_later() {
    let mut server = Server::new();
    let definition = "
tools: {t: {}}
steps:
  - id: hurry
    type: condition
    if: '{{ true }}'
    timeout: 1
    on_error: continue
    then:
      - {id: inside, type: mcp_call, tool: t}
  - {id: after, type: mcp_call, tool: t}
";
    // No time at all, so that it has passed whenever somebody comes.
    let mut graph = graph(definition);
    graph.body.nodes.to_mut()[0].timeout = Some(0.0);
    let (inputs, options) = (Value::map::<&str>([]), StartOptions::default());
    let run = server.agents.start(&graph, &inputs, options).await.unwrap();
    server.restart();
    assert_eq!(step_id(&server.next(run, None).await), "after");
    let late = server.try_submit(run, Some("inside"), json!(1)).await;
    assert_eq!(step_id(&late.unwrap()), "after");
}

#[tokio::test]
async fn what_a_container_had_no_more_time_for_is_not_begun_again_by_another_host() {
    let mut server = Server::new();
    let definition = "
steps:
  - id: hurry
    type: condition
    if: '{{ true }}'
    timeout: 1
    on_error: continue
    then:
      - {id: inside, type: shell, command: touch inside}
  - {id: after, type: shell, command: touch after}
";
    let mut graph = graph(definition);
    graph.body.nodes.to_mut()[0].timeout = Some(0.0);
    let (inputs, options) = (Value::map::<&str>([]), StartOptions::default());
    let host = server.agents.host();
    let run = host.start(&graph, &inputs, options).await.unwrap();
    server.restart();
    let report = server.agents.host().drive(run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Completed);
    let is_there = |name: &str| server.directory().join(name).exists();
    assert!(is_there("after") && !is_there("inside"));
}

#[tokio::test]
async fn an_empty_name_is_said_to_be_one() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
steps: [{id: go, type: mcp_call, tool: t}]
";
    let run = server.start(definition, json!({})).await;
    server.next(run, None).await;
    let said = |refused: AgentError| refused.to_string();
    let refused = server
        .try_submit(run, Some(""), json!(1))
        .await
        .unwrap_err();
    assert_eq!(
        said(refused),
        "a step without a name does not wait for a result; `go` does"
    );
    let refused = server.try_next(run, Some(" ")).await.unwrap_err();
    assert_eq!(
        said(refused),
        "the name of the task is empty: there is none, and no task is open in this run"
    );
    let at = Some(String::new());
    let refused = server.agents.checkpoint(run, at, "why".to_owned()).await;
    assert_eq!(
        said(refused.unwrap_err()),
        "the name of the step is empty: there is none in this run; `go` waits for a result"
    );
}

/// Another host that has a run, of another process.
fn held_elsewhere(server: &Server, run: RunId) -> RunLock {
    let lock = server.agents.host().journal().lock(run).unwrap();
    let file = server.directory().join("locks").join(run.to_string());
    std::fs::write(file, "1\n").unwrap();
    lock
}

#[tokio::test]
async fn a_call_that_was_answered_takes_no_run_over_from_a_host_that_dies_later() {
    let mut server = Server::new();
    let definition = "steps: [{id: say, type: shell_command, command: echo a >> log}]";
    let run = server.start(definition, json!({})).await;
    server.restart();
    let is_held = || server.agents.host().journal().is_held(run);
    let lock = held_elsewhere(&server, run);
    let page = TaskPage::default();
    let at_once = Patience::of(Duration::ZERO);
    let turn = server.agents.next(run, None, page, at_once).await.unwrap();
    assert_eq!(turn.status, TurnStatus::Running);
    // Nobody waits for this one any more either.
    let given_up = server.next(run, None);
    assert!(
        tokio::time::timeout(Duration::ZERO, given_up)
            .await
            .is_err()
    );
    server.agents.report(run).await.unwrap();
    drop(lock);

    server.agents.report(run).await.unwrap();
    assert!(!is_held());
    let looked = server.agents.next(run, None, page, Patience::NONE);
    assert_eq!(looked.await.unwrap().status, TurnStatus::Running);
    assert!(!is_held());

    // Whoever waits takes it over.
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    let log = std::fs::read_to_string(server.directory().join("log"));
    assert_eq!(log.unwrap(), "a\n");
}

#[tokio::test]
async fn a_run_that_another_process_has_is_left_to_it_when_one_that_it_called_is_over() {
    let child = "{name: child, tools: {t: {}}, steps: [{id: go, type: mcp_call, tool: t}]}";
    let parent = "
steps:
  - {id: asks, type: call, workflow: child}
  - {id: say, type: shell_command, command: echo a >> log}
";
    let server = Server::calling(vec![("child", child)]);
    let run = server.start(parent, json!({})).await;
    assert_eq!(step_id(&server.next(run, None).await), "asks/go");
    let journal = server.agents.host().journal();
    let all = journal.list(&Listing::new(), 10).unwrap().runs;
    let called = all.iter().find(|it| it.parent == Some(run)).unwrap().id;
    server.agents.report(run).await.unwrap();
    let lock = held_elsewhere(&server, run);
    let turn = server.submit(called, "go", json!(1)).await;
    assert_eq!(turn.status, TurnStatus::Completed);
    for _ in 0..10 {
        server.agents.report(run).await.unwrap();
    }
    drop(lock);
    server.agents.report(run).await.unwrap();
    assert!(!journal.is_held(run));
    assert!(!server.directory().join("log").exists());
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
}

#[tokio::test]
async fn called_runs_that_wait_are_in_the_journal_alone_until_they_are_answered() {
    let inner = "
name: inner
outputs: {said: '{{ state.got.input }}'}
steps: [{id: ask, type: prompt, kind: text, message: Well?, output_to: got}]
";
    let middle = "
name: middle
outputs: {said: '{{ state.got.said }}'}
steps: [{id: asks, type: call, workflow: inner, output_to: got}]
";
    let outer = "
steps:
  - {id: calls, type: call, workflow: middle, output_to: got}
  - {id: say, type: shell_command, command: 'echo {{ state.got.said }} >> log'}
";
    let server = Server::calling(vec![("inner", inner), ("middle", middle)]);
    let host = server.agents.host();
    let outer = graph(outer);
    let begun = host.start(&outer, &Value::Null, StartOptions::default());
    let run = begun.await.unwrap();
    for _ in 0..2 {
        let turn = server.next(run, None).await;
        assert_eq!(step_id(&turn), "calls/asks/ask");
        // Answered after what the call before has left behind was seen to.
        server.agents.report(run).await.unwrap();
        let runs = host.journal().list(&Listing::new(), 10).unwrap().runs;
        assert_eq!(runs.len(), 3);
        for record in runs {
            let is_held = || host.journal().is_held(record.id);
            let mut turns = 0..1000;
            while is_held() && turns.next().is_some() {
                tokio::task::yield_now().await;
            }
            assert!(!is_held(), "{}", record.workflow);
        }
    }
    let turn = server.submit(run, "calls/asks/ask", json!("yes")).await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    let log = std::fs::read_to_string(server.directory().join("log"));
    assert_eq!(log.unwrap(), "yes\n");
}
