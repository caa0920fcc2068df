//! Failure steps as an agent gets them.

use flow_runtime::host::agent::{AgentStepType, TurnStatus};
use serde_json::json;

use super::support::{Server, definition, kind, output, step_id};

const TOLD: &str = "
tools: {x: {}, notify: {}}
steps:
  - {id: bad, type: mcp_call, tool: x}
on_error:
  steps:
    - {id: tell, type: prompt, kind: info, message: 'Failed: {{ error.message }}'}
    - {id: bad, type: mcp_call, tool: notify}
";

#[tokio::test]
async fn failure_steps_are_handed_out_like_any_other_also_after_a_restart() {
    let mut server = Server::new();
    let run = server.start(TOLD, json!({})).await;
    assert_eq!(step_id(&server.next(run, None).await), "bad");
    let turn = server.fail(run, "bad", "nope").await;
    assert_eq!(
        (turn.status, step_id(&turn).as_str()),
        (TurnStatus::Waiting, "tell")
    );
    assert_eq!(definition(&turn, "message"), "Failed: nope");
    server.restart();
    assert_eq!(server.next(run, None).await, turn);
    // An id that the workflow's own steps have had is told apart by its number.
    let turn = server.submit(run, "tell", json!(null)).await;
    assert_eq!(kind(&turn), AgentStepType::McpCall);
    assert_eq!(definition(&turn, "tool"), "notify");
    assert!(step_id(&turn).starts_with("bad~"), "{}", step_id(&turn));
    let again = server.submit(run, "tell", json!(null)).await;
    assert_eq!(again, turn);
    let turn = server.submit(run, &step_id(&turn), json!(null)).await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert_eq!(turn.error.unwrap().message, "nope");
}

#[tokio::test]
async fn a_command_of_the_server_that_fails_leads_to_failure_steps_of_the_agent() {
    let server = Server::new();
    let definition = "
steps:
  - {id: bad, type: shell_command, command: exit 3}
on_error:
  steps:
    - {id: tell, type: prompt, kind: info, message: It failed}
";
    let run = server.start(definition, json!({})).await;
    assert_eq!(step_id(&server.next(run, None).await), "tell");
    let turn = server.try_submit(run, None, json!(null)).await.unwrap();
    assert_eq!(turn.status, TurnStatus::Failed);
}

#[tokio::test]
async fn failure_steps_that_run_once_more_have_names_of_their_own() {
    let server = Server::new();
    let run = server.start(TOLD, json!({})).await;
    server.fail(run, "bad", "nope").await;
    let turn = server.submit(run, "tell", json!(null)).await;
    server.submit(run, &step_id(&turn), json!(null)).await;
    server.agents.resume(run).await.unwrap();
    let turn = server.next(run, None).await;
    let turn = server.fail(run, &step_id(&turn), "nope again").await;
    assert!(step_id(&turn).starts_with("tell~"), "{}", step_id(&turn));
    assert_eq!(definition(&turn, "message"), "Failed: nope again");
}

#[tokio::test]
async fn failure_steps_of_a_task_go_to_its_sub_agent() {
    let server = Server::new();
    let definition = "
tools: {t: {}, sweep: {}}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: go, type: mcp_call, tool: t}
    on_error:
      return: true
      steps:
        - {id: clean, type: mcp_call, tool: sweep}
steps:
  - {id: each, type: foreach, items: [1], task: one, agent: '@task', output_to: out}
";
    let run = server.start(definition, json!({})).await;
    server.next(run, Some("each.0")).await;
    let turn = server.fail(run, "each.0/go", "nope").await;
    assert_eq!(step_id(&turn), "each.0/clean");
    // What has been said is answered as the first time.
    assert_eq!(server.fail(run, "each.0/go", "nope").await, turn);
    let turn = server.submit(run, "each.0/clean", json!(null)).await;
    assert_eq!(turn.status, TurnStatus::Completed);
}

#[tokio::test]
async fn checkpoint_and_fail_leaves_a_checkpoint_at_the_step_that_failed() {
    let mut server = Server::new();
    let definition = "
tools: {x: {}}
steps:
  - {id: bad, type: mcp_call, tool: x}
on_error: checkpoint_and_fail
";
    let run = server.start(definition, json!({})).await;
    server.next(run, None).await;
    assert_eq!(server.agents.last_checkpoint(run).await.unwrap(), None);
    server.fail(run, "bad", "nope").await;
    server.restart();
    let left = server.agents.last_checkpoint(run).await.unwrap().unwrap();
    assert_eq!(
        (left.step.as_deref(), left.reason.as_str()),
        (Some("bad"), "nope")
    );
    server.agents.resume(run).await.unwrap();
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Waiting);
}

#[tokio::test]
async fn a_result_without_a_name_is_not_taken_for_a_step_of_a_task() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps: [{id: go, type: mcp_call, tool: t}]
steps:
  - {id: each, type: foreach, items: [1, 2], task: one, agent: '@task'}
";
    let run = server.start(definition, json!({})).await;
    server.next(run, Some("each.0")).await;
    let refused = server.try_submit(run, None, json!(1)).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "no step of the run itself waits for a result, but steps of its tasks do: \
         name one with submit_step_result: `each.0/go`"
    );
}

/// Failure steps of tasks, of tasks in tasks, of a called workflow and of the run, some of them with
/// ids of other steps.
const EVERYWHERE: &str = "
tools: {t: {}}
tasks:
  inner:
    inputs: {m: {type: integer, required: true}}
    steps: [{id: go, type: mcp_call, tool: t}]
    on_error: {steps: [{id: go, type: mcp_call, tool: t}, {id: clean, type: mcp_call, tool: t}]}
  outer:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: go, type: foreach, items: [1, 2], task: inner, AGENT sequential: true, on_child_error: {strategy: retry_failed, max_retries: 1}}
    on_error: {steps: [{id: clean, type: mcp_call, tool: t}, {id: sub, type: call, workflow: child}]}
steps:
  - {id: each, type: foreach, items: [1], task: outer, AGENT output_to: out}
on_error:
  steps: [{id: each, type: mcp_call, tool: t}, {id: sub, type: call, workflow: child}]
";
const FAILS: &str = "
name: child
tools: {t: {}}
steps: [{id: go, type: mcp_call, tool: t}]
on_error: {steps: [{id: go, type: mcp_call, tool: t}]}
";

#[tokio::test]
async fn every_step_that_is_handed_out_is_taken_under_its_name() {
    for agent in ["", "agent: '@task',"] {
        let mut server = Server::calling(vec![("child", FAILS)]);
        let definition = EVERYWHERE.replace("AGENT", agent);
        let run = server.start(&definition, json!({})).await;
        let mut seen = Vec::new();
        let mut open = vec![None];
        while let Some(task) = open.pop() {
            let mut turn = server.next(run, task.as_deref()).await;
            while let Some(step) = turn.step.take() {
                if step.kind == AgentStepType::ParallelTasks {
                    let tasks = step.definition["tasks"].as_array().unwrap();
                    open.push(task.clone());
                    let ids = tasks.iter().map(|task| task["task_id"].as_str());
                    open.extend(ids.map(|id| id.map(str::to_owned)));
                    break;
                }
                assert!(!seen.contains(&step.id), "{} twice: {seen:?}", step.id);
                let pending = server.agents.host().report(run).unwrap();
                let pending = server.agents.host().pending(&pending).unwrap();
                let names: Vec<&str> = pending.iter().map(|it| it.step.as_str()).collect();
                assert!(
                    names.contains(&step.id.as_str()),
                    "{} in {names:?}",
                    step.id
                );
                if seen.len() % 3 == 0 {
                    server.restart();
                }
                turn = server.fail(run, &step.id, "no").await;
                // A task that is tried again may have to wait; every result is used.
                let mut notes = turn.note.iter();
                assert!(
                    notes.all(|it| it.contains("waits for its turn")),
                    "{turn:?}"
                );
                seen.push(step.id);
            }
        }
        assert_eq!(server.next(run, None).await.status, TurnStatus::Failed);
        assert!(seen.len() >= 9, "{seen:?}");
    }
}

#[tokio::test]
async fn a_failure_that_is_said_to_be_final_is_not_repeated() {
    let server = Server::new();
    for (on_error, status) in [
        ("on_error: fail, ", TurnStatus::Failed),
        ("on_error: continue, ", TurnStatus::Completed),
        ("on_error: retry, ", TurnStatus::Waiting),
        ("", TurnStatus::Waiting),
    ] {
        let definition = format!(
            "tools: {{t: {{}}}}\nsteps: [{{id: go, type: mcp_call, tool: t, {on_error}retry_count: 3}}]\n"
        );
        let run = server.start(&definition, json!({})).await;
        server.next(run, None).await;
        let turn = server.fail(run, "go", "no luck").await;
        assert_eq!(turn.status, status, "{on_error}");
    }
}

#[tokio::test]
async fn a_result_within_a_task_that_is_tried_again_because_of_it_is_answered() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: work, type: mcp_call, tool: t, output_to: got}
      - {id: give, type: return, value: '{{ state.got }}'}
  group:
    inputs: {m: {type: integer, required: true}}
    steps:
      - {id: inner, type: foreach, items: '{{ [1, 2] }}', task: one, agent: '@task', output_to: all}
      - {id: give, type: return, value: '{{ state.all }}'}
steps:
  - {id: outer, type: foreach, items: '{{ [1] }}', task: group, agent: '@task', on_child_error: retry_failed, output_to: all}
outputs: {all: '{{ state.all }}'}
";
    let run = server.start(definition, json!({})).await;
    server.next(run, Some("outer.0")).await;
    server.next(run, Some("outer.0/inner.0")).await;
    server.next(run, Some("outer.0/inner.1")).await;
    let turn = server.fail(run, "outer.0/inner.0/work", "no luck").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    // The last one to end fails the task around both, which begins once more.
    let turn = server.submit(run, "outer.0/inner.1/work", json!(2)).await;
    assert_eq!(output(&turn), json!(2));
    let told = async |when: &str| {
        let turn = server.submit(run, "outer.0/inner.1/work", json!(3)).await;
        assert_eq!(output(&turn), json!(2), "{when}");
        let turn = server.next(run, Some("outer.0/inner.0")).await;
        assert_eq!(turn.status, TurnStatus::Failed, "{when}");
        let nobody = server.try_next(run, Some("outer.0/inner.7")).await;
        assert!(nobody.is_err(), "{when}");
    };
    told("before the next try").await;
    let turn = server.next(run, Some("outer.0")).await;
    let again = step_id(&turn);
    assert!(again.starts_with("outer.0/inner~"), "{again}");
    told("during the next try").await;
    for item in 0..2 {
        let task = format!("{again}.{item}");
        let turn = server.next(run, Some(&task)).await;
        let turn = server.submit(run, &step_id(&turn), json!(item + 4)).await;
        assert_eq!(output(&turn), json!(item + 4));
    }
    told("after the next try").await;
    assert_eq!(
        output(&server.next(run, None).await),
        json!({"all": [[4, 5]]})
    );
}
