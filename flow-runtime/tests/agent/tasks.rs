//! Tasks that sub-agents do.

use std::time::Duration;

use flow_model::graph::Operation;
use flow_runtime::host::agent::{AgentStepType, Patience, Submission, TaskPage, Turn, TurnStatus};
use flow_runtime::run::{Event, Happening, Run};
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

use super::state::update;
use super::support::{PATIENT, Server, definition, kind, output, step_id};

const TASKS: &str = "
inputs: {items: array}
tools: {t: {}}
outputs: {all: '{{ state.all }}'}
tasks:
  double:
    description: Doubles a number.
    inputs: {n: {type: integer, required: true}}
    state: {seen: 0}
    steps:
      - {id: note, type: set_state, updates: {seen: '{{ inputs.n }}'}}
      - {id: twice, type: mcp_call, tool: t, parameters: {n: '{{ state.seen }}'}, output_to: got}
      - {id: give, type: return, value: '{{ state.got.n }}'}
steps:
  - {id: each, type: foreach, items: '{{ inputs.items }}', task: double, agent: '@task', max_parallel: 2, output_to: all}
  - {id: after, type: mcp_call, tool: t}
";

#[tokio::test]
async fn sub_agents_do_the_tasks_and_the_step_is_over_when_they_are() {
    let mut server = Server::new();
    let run = server.start(TASKS, json!({"items": [1, 2, 3]})).await;
    let turn = server.next(run, None).await;
    assert_eq!(
        (step_id(&turn).as_str(), kind(&turn)),
        ("each", AgentStepType::ParallelTasks)
    );
    let id = run.to_string();
    assert_eq!(
        definition(&turn, "tasks"),
        &json!([
            {"task_id": "each.0", "workflow_id": id, "context": {"n": 1}},
            {"task_id": "each.1", "workflow_id": id, "context": {"n": 2}},
            {"task_id": "each.2", "workflow_id": id, "context": {"n": 3}},
        ])
    );
    assert!(
        definition(&turn, "sub_agent_prompt")
            .as_str()
            .unwrap()
            .contains("get_next_step")
    );
    assert_eq!(server.next(run, None).await, turn);

    // Any order, but no more at a time than allowed.
    let third = server.next(run, Some("each.2")).await;
    assert_eq!(step_id(&third), "each.2/twice");
    assert_eq!(definition(&third, "parameters"), &json!({"n": 3}));
    let first = server.next(run, Some("each.0")).await;
    assert_eq!(step_id(&first), "each.0/twice");
    let second = server.next(run, Some("each.1")).await;
    assert_eq!((second.status, second.step), (TurnStatus::Waiting, None));
    let note = second.note.unwrap();
    assert!(note.contains("`max_parallel`"), "{note}");

    let main = server.next(run, None).await;
    assert_eq!(
        (main.status, &main.step),
        (TurnStatus::WaitingForTasks, &None)
    );
    let open: Vec<(&str, bool)> = main
        .open_tasks
        .iter()
        .map(|task| (task.id.as_str(), task.begun))
        .collect();
    assert_eq!(
        open,
        [("each.0", true), ("each.2", true), ("each.1", false)]
    );

    server.restart();
    let done = server.submit(run, "each.2/twice", json!({"n": 6})).await;
    assert_eq!(
        (done.status, done.output.to_json()),
        (TurnStatus::Completed, json!(6))
    );
    // Also for a sub-agent that did not hear the answer.
    let again = server.submit(run, "each.2/twice", json!({"n": 6})).await;
    assert_eq!(again, done);
    let second = server.next(run, Some("each.1")).await;
    server.submit(run, &step_id(&second), json!({"n": 4})).await;
    let last = server.submit(run, "each.0/twice", json!({"n": 2})).await;
    assert_eq!(last.status, TurnStatus::Completed);

    let turn = server.next(run, None).await;
    assert_eq!(step_id(&turn), "after");
    let late = server.next(run, Some("each.1")).await;
    assert_eq!(late.status, TurnStatus::Completed);
    let turn = server.submit(run, "after", json!(null)).await;
    assert_eq!(output(&turn), json!({"all": [2, 4, 6]}));
}

#[tokio::test]
async fn a_sub_agent_that_asks_patiently_begins_when_another_is_done() {
    let server = Server::new();
    let run = server.start(TASKS, json!({"items": [1, 2, 3, 4, 5]})).await;
    server.next(run, None).await;
    let work = |index: usize| {
        let agents = server.agents.clone();
        async move {
            let patience = Patience::of(Duration::from_secs(60)).for_others();
            let task = format!("each.{index}");
            let page = TaskPage::default();
            let turn = agents.next(run, Some(&task), page, patience).await.unwrap();
            let n = definition(&turn, "parameters")["n"].as_i64().unwrap();
            let submission = Submission {
                result: Some(Value::map([("n", Value::Int(n * 2))])),
                ..Submission::default()
            };
            let id = step_id(&turn);
            let turn = agents
                .submit(run, Some(&id), submission, page, patience)
                .await;
            assert_eq!(turn.unwrap().status, TurnStatus::Completed);
        }
    };
    tokio::join!(work(4), work(3), work(0), work(1), work(2));
    assert_eq!(step_id(&server.next(run, None).await), "after");
    let turn = server.submit(run, "after", json!(null)).await;
    assert_eq!(output(&turn), json!({"all": [2, 4, 6, 8, 10]}));
}

#[tokio::test]
async fn a_sequential_foreach_hands_out_one_task_after_another() {
    let server = Server::new();
    let definition_text = TASKS.replace("max_parallel: 2", "sequential: true");
    let run = server
        .start(&definition_text, json!({"items": [5, 6]}))
        .await;
    for (index, n) in [5, 6].into_iter().enumerate() {
        let turn = server.next(run, None).await;
        assert_eq!(kind(&turn), AgentStepType::ParallelTasks);
        let tasks = definition(&turn, "tasks").as_array().unwrap();
        assert_eq!(tasks.len(), 1);
        let task = tasks[0]["task_id"].as_str().unwrap().to_owned();
        assert_eq!(task, format!("each.{index}"));
        let turn = server.next(run, Some(&task)).await;
        assert_eq!(definition(&turn, "parameters"), &json!({"n": n}));
        let done = server
            .submit(run, &step_id(&turn), json!({"n": n * 2}))
            .await;
        assert_eq!(done.status, TurnStatus::Completed);
    }
    let turn = server.next(run, None).await;
    assert_eq!(step_id(&turn), "after");
}

#[tokio::test]
async fn a_failed_task_means_what_on_child_error_says() {
    let server = Server::new();
    let with = |what: &str| TASKS.replace("max_parallel: 2", what);

    // Tried again, by the same sub-agent.
    let retry = with("on_child_error: {strategy: retry_failed, max_retries: 1}");
    let run = server.start(&retry, json!({"items": [1, 2]})).await;
    let turn = server.next(run, Some("each.0")).await;
    let turn = server.fail(run, &step_id(&turn), "first").await;
    assert_eq!(turn.status, TurnStatus::Waiting, "{turn:?}");
    let again = step_id(&turn);
    assert_ne!(again, "each.0/twice");
    let turn = server.fail(run, &again, "second").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert_eq!(turn.error.unwrap().message, "second");
    let turn = server.next(run, Some("each.1")).await;
    let done = server.submit(run, &step_id(&turn), json!({"n": 4})).await;
    assert_eq!(done.status, TurnStatus::Completed);
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert!(turn.error.unwrap().message.contains("1 of 2 children"));
    // The sub-agent of the failed task hears so also after the run is over.
    assert_eq!(
        server.next(run, Some("each.0")).await.status,
        TurnStatus::Failed
    );

    // Its result is null.
    let run = server
        .start(&with("on_child_error: continue"), json!({"items": [1]}))
        .await;
    let turn = server.next(run, Some("each.0")).await;
    let turn = server.fail(run, &step_id(&turn), "no").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    let turn = server.next(run, None).await;
    assert_eq!(step_id(&turn), "after");
    let turn = server.submit(run, "after", json!(null)).await;
    assert_eq!(output(&turn), json!({"all": [null]}));

    // The others are stopped.
    let run = server
        .start(&with("on_child_error: fail_all"), json!({"items": [1, 2]}))
        .await;
    let other = server.next(run, Some("each.1")).await;
    let turn = server.next(run, Some("each.0")).await;
    server.fail(run, &step_id(&turn), "no").await;
    assert_eq!(server.next(run, None).await.status, TurnStatus::Failed);
    let late = server.submit(run, &step_id(&other), json!({"n": 4})).await;
    assert!(late.status.is_over());
}

#[tokio::test]
async fn an_agent_that_cannot_have_its_tasks_done_fails_the_step() {
    let server = Server::new();
    let run = server.start(TASKS, json!({"items": [1, 2]})).await;
    server.next(run, None).await;
    let turn = server.fail(run, "each", "no sub-agents here").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert_eq!(turn.error.unwrap().message, "no sub-agents here");
}

#[tokio::test]
async fn a_named_agent_gets_the_whole_item() {
    let server = Server::new();
    let named = TASKS.replace("'@task'", "'@auditor'");
    let run = server.start(&named, json!({"items": [1, 2]})).await;
    let turn = server.next(run, None).await;
    assert_eq!(definition(&turn, "agent"), "@auditor");
    let turn = server.next(run, Some("each.1")).await;
    assert_eq!(kind(&turn), AgentStepType::Delegate);
    assert_eq!(definition(&turn, "inputs"), &json!({"n": 2}));
    assert_eq!(
        definition(&turn, "instructions"),
        "double: Doubles a number."
    );
    let done = server.submit(run, &step_id(&turn), json!("two")).await;
    assert_eq!(done.status, TurnStatus::Completed);
    let again = server.submit(run, &step_id(&turn), json!("two")).await;
    assert_eq!(again.status, TurnStatus::Completed);
    let turn = server.next(run, Some("each.0")).await;
    let one = json!({"response": "one", "sources": 3});
    server.submit(run, &step_id(&turn), one).await;
    let turn = server.next(run, None).await;
    let turn = server.submit(run, &step_id(&turn), json!(null)).await;
    // As of an agent that the host runs, however the answer was put.
    let all = json!([
        {"response": "one", "sources": 3, "agent_used": "@auditor"},
        {"response": "two", "agent_used": "@auditor"},
    ]);
    assert_eq!(output(&turn), json!({ "all": all }));
}

#[tokio::test]
async fn a_task_without_an_agent_is_done_step_by_step_by_the_one_that_drives() {
    let server = Server::new();
    let own = TASKS.replace("agent: '@task', ", "");
    let run = server.start(&own, json!({"items": [1, 2, 3]})).await;
    let mut turn = server.next(run, None).await;
    let mut ids = Vec::new();
    while kind(&turn) == AgentStepType::McpCall && step_id(&turn) != "after" {
        let n = definition(&turn, "parameters")["n"].as_i64().unwrap();
        ids.push(step_id(&turn));
        turn = server
            .submit(run, &step_id(&turn), json!({"n": n * 2}))
            .await;
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    let turn = server.submit(run, "after", json!(null)).await;
    assert_eq!(output(&turn), json!({"all": [2, 4, 6]}));
}

#[tokio::test]
async fn an_own_prompt_replaces_the_standard_one_and_the_rules_stay() {
    let server = Server::new();
    let own = TASKS.replace(
        "max_parallel: 2",
        "prompt: 'Be brief, {{ inputs.items | length }}'",
    );
    let run = server.start(&own, json!({"items": [1]})).await;
    let turn = server.next(run, None).await;
    assert_eq!(definition(&turn, "sub_agent_prompt"), "Be brief, 1");
    assert!(
        definition(&turn, "workflow_server_rules")
            .as_str()
            .unwrap()
            .contains("get_next_step")
    );
    let own = TASKS.replace("max_parallel: 2", "prompt: 'Look at {{ item }}'");
    let run = server.start(&own, json!({"items": [7]})).await;
    let turn = server.next(run, None).await;
    assert_eq!(
        definition(&turn, "tasks")[0]["sub_agent_prompt"],
        "Look at 7"
    );
    // No template is left for anybody to evaluate.
    let shared = definition(&turn, "sub_agent_prompt").as_str().unwrap();
    assert!(
        !shared.contains("{{") && shared.contains("get_next_step"),
        "{shared}"
    );
}

#[tokio::test]
async fn a_prompt_that_cannot_be_made_fails_its_step_before_a_task_is_handed_out() {
    let server = Server::new();
    for prompt in [
        "Look at {{ item.file.name }}",
        "See {{ inputs.items[5].x }}",
    ] {
        let own = TASKS.replace("max_parallel: 2", &format!("prompt: '{prompt}'"));
        let run = server.start(&own, json!({"items": [7]})).await;
        let turn = server.next(run, None).await;
        assert_eq!((turn.status, &turn.step), (TurnStatus::Failed, &None));
        let error = turn.error.unwrap();
        assert_eq!(error.step.as_deref(), Some("each"), "{error:?}");
    }
}

#[tokio::test]
async fn a_step_says_where_its_result_goes() {
    let server = Server::new();
    let run = server
        .start(
            "tools: {t: {}}
state: {results: {}, by: {}}
tasks:
  check:
    inputs: {file: {type: string, required: true}}
    steps:
      - id: lint
        type: mcp_call
        tool: t
        state_update:
          - {path: 'raw.results.{{ inputs.file }}.hints', value: '{{ result }}'}
          - {path: 'by.{{ result }}', value: '{{ inputs.file }}', operation: set}
steps:
  - {id: each, type: foreach, items: [src/a.ts], task: check, agent: '@task'}
",
            json!({}),
        )
        .await;
    server.next(run, None).await;
    let turn = server.next(run, Some("each.0")).await;
    // What only the result can say stays open.
    assert_eq!(
        definition(&turn, "state_update"),
        &json!([
            {"path": "raw.results[\"src/a.ts\"].hints", "operation": "set"},
            {"path": "raw.by.{{ result }}", "operation": "set"},
        ])
    );
}

#[tokio::test]
async fn long_lists_of_tasks_come_in_pages() {
    let server = Server::new();
    let items: Vec<u32> = (0..25).collect();
    let run = server.start(TASKS, json!({"items": items})).await;
    let page = |from| TaskPage {
        from,
        most: Some(10),
    };
    let mut from = 0;
    let mut names = Vec::new();
    loop {
        let turn = server
            .agents
            .next(run, None, page(from), PATIENT)
            .await
            .unwrap();
        let tasks = definition(&turn, "tasks").as_array().unwrap();
        names.extend(tasks.iter().map(|task| task["task_id"].to_string()));
        match turn.step.unwrap().definition.get("next_task") {
            Some(next) => from = usize::try_from(next.as_u64().unwrap()).unwrap(),
            None => break,
        }
    }
    names.dedup();
    assert_eq!(names.len(), 25);
}

#[tokio::test]
async fn a_large_fan_out_is_listed_as_far_as_an_answer_holds_and_done_in_any_order() {
    let server = Server::new();
    let items: Vec<u32> = (0..10_000).collect();
    let run = server.start(TASKS, json!({"items": items})).await;
    let turn = server.next(run, None).await;
    let listed = definition(&turn, "tasks").as_array().unwrap().len();
    assert!((1_000..10_000).contains(&listed), "{listed}");
    assert_eq!(definition(&turn, "total_tasks"), 10_000);
    assert_eq!(definition(&turn, "next_task"), listed);
    assert!(
        turn.step
            .as_ref()
            .unwrap()
            .instructions
            .contains("first_task")
    );
    for n in [9_999, 0, 5_000, 1] {
        let turn = server.next(run, Some(&format!("each.{n}"))).await;
        let done = server.submit(run, &step_id(&turn), json!({"n": n})).await;
        assert_eq!(done.status, TurnStatus::Completed);
    }
    let main = server.next(run, None).await;
    assert_eq!(main.status, TurnStatus::WaitingForTasks);
    assert_eq!((main.open_count, main.open_tasks.len()), (9_996, 100));
    assert_eq!(main.open_next, Some(100));
    let page = |from, most| TaskPage { from, most };
    let next = |page| server.agents.next(run, None, page, PATIENT);
    let rest = next(page(9_900, None)).await.unwrap();
    assert_eq!((rest.open_tasks.len(), rest.open_next), (96, None));
    let none = next(page(usize::MAX, Some(7))).await.unwrap();
    assert_eq!((none.open_tasks.len(), none.open_next), (0, None));
}

#[tokio::test]
async fn open_tasks_are_listed_as_far_as_they_are_short_and_the_rest_page_by_page() {
    let server = Server::new();
    let large = "x".repeat(30_000);
    let items: Vec<String> = (0..20).map(|n| format!("{n} {large}")).collect();
    let definition = "
inputs: {items: array}
tools: {t: {}}
tasks:
  read:
    inputs: {text: {type: string, required: true}}
    steps: [{id: see, type: mcp_call, tool: t}]
steps:
  - {id: each, type: foreach, items: '{{ inputs.items }}', task: read, agent: '@task'}
";
    let run = server.start(definition, json!({"items": items})).await;
    server.next(run, Some("each.0")).await;
    let page = |from, most| TaskPage { from, most };
    let next = |page| server.agents.next(run, None, page, PATIENT);
    let turn = next(page(0, None)).await.unwrap();
    assert_eq!(turn.status, TurnStatus::WaitingForTasks);
    assert_eq!((turn.open_count, turn.open_next), (20, Some(1)));
    // However many are asked for, an answer holds about as much as a list of tasks.
    let turn = next(page(0, Some(20))).await.unwrap();
    assert_eq!((turn.open_tasks.len(), turn.open_next), (6, Some(6)));
    let mut names = Vec::new();
    let mut from = Some(0);
    while let Some(first) = from {
        let turn = next(page(first, None)).await.unwrap();
        names.extend(turn.open_tasks.into_iter().map(|task| task.id));
        from = turn.open_next;
    }
    let wanted: Vec<String> = (0..20).map(|n| format!("each.{n}")).collect();
    assert_eq!(names, wanted);
}

const CHECKS: &str = "
name: checks
inputs: {file: {type: string, required: true}}
tools: {t: {}}
outputs: {found: '{{ state.found }}', first: '{{ state.first }}'}
tasks:
  rule:
    inputs: {name: {type: string, required: true}}
    steps:
      - {id: look, type: mcp_call, tool: t, parameters: {rule: '{{ inputs.name }}'}, output_to: got}
      - {id: again, type: mcp_call, tool: t, parameters: {got: '{{ state.got }}'}, output_to: got}
      - {id: give, type: return, value: '{{ state.got }}'}
steps:
  - {id: open, type: mcp_call, tool: t, parameters: {file: '{{ inputs.file }}'}, output_to: first}
  - {id: rules, type: foreach, items: [a, b], task: rule, agent: '@task', output_to: found}
  - {id: close, type: mcp_call, tool: t, parameters: {file: '{{ inputs.file }}'}}
";

fn checked(sequential: bool) -> String {
    format!(
        "
tools: {{t: {{}}}}
outputs: {{all: '{{{{ state.all }}}}'}}
tasks:
  check:
    inputs: {{file: {{type: string, required: true}}}}
    steps:
      - {{id: run, type: call, workflow: checks, inputs: {{file: '{{{{ inputs.file }}}}'}}, output_to: got}}
      - {{id: note, type: mcp_call, tool: t, parameters: {{n: '{{{{ state.got.found | length }}}}'}}}}
      - {{id: give, type: return, value: '{{{{ state.got }}}}'}}
steps:
  - {{id: each, type: foreach, items: [x, y], task: check, agent: '@task', sequential: {sequential}, output_to: all}}
  - {{id: after, type: mcp_call, tool: t}}
"
    )
}

#[tokio::test]
async fn a_sub_agent_works_through_a_workflow_that_its_task_calls() {
    for sequential in [false, true] {
        let mut server = Server::calling(vec![("checks", CHECKS)]);
        let run = server.start(&checked(sequential), json!({})).await;
        server.next(run, None).await;
        for (task, file) in [("each.0", "x"), ("each.1", "y")] {
            let turn = server.next(run, Some(task)).await;
            assert_eq!(turn.task.as_deref(), Some(task));
            assert_eq!(step_id(&turn), format!("{task}/run/open"));
            assert_eq!(definition(&turn, "parameters"), &json!({"file": file}));
            server.restart();
            assert_eq!(server.next(run, Some(task)).await, turn);

            let turn = server.submit(run, &step_id(&turn), json!(1)).await;
            assert_eq!(turn.task.as_deref(), Some(task));
            assert_eq!(step_id(&turn), format!("{task}/run/rules"));
            // Submitting again is answered as the first time.
            let again = server
                .submit(run, &format!("{task}/run/open"), json!(1))
                .await;
            assert_eq!(again, turn);

            for (index, rule) in ["a", "b"].iter().enumerate() {
                let below = format!("{task}/run/rules.{index}");
                let turn = server.next(run, Some(&below)).await;
                assert_eq!(turn.task.as_deref(), Some(below.as_str()));
                assert_eq!(step_id(&turn), format!("{below}/look"));
                assert_eq!(definition(&turn, "parameters"), &json!({"rule": rule}));
                server.restart();
                let turn = server.submit(run, &step_id(&turn), json!(rule)).await;
                assert_eq!(turn.task.as_deref(), Some(below.as_str()));
                assert_eq!(step_id(&turn), format!("{below}/again"));
                let turn = server.submit(run, &step_id(&turn), json!(rule)).await;
                assert_eq!(output(&turn), json!(rule));
                assert_eq!(turn.task.as_deref(), Some(below.as_str()));
            }
            server.restart();
            let turn = server.next(run, Some(task)).await;
            assert_eq!(step_id(&turn), format!("{task}/run/close"));
            let turn = server.submit(run, &step_id(&turn), json!(null)).await;
            assert_eq!(turn.task.as_deref(), Some(task));
            assert_eq!(step_id(&turn), format!("{task}/note"));
            assert_eq!(definition(&turn, "parameters"), &json!({"n": 2}));
            let turn = server.submit(run, &step_id(&turn), json!(null)).await;
            assert_eq!(turn.task.as_deref(), Some(task));
            assert_eq!(output(&turn), json!({"found": ["a", "b"], "first": 1}));
        }
        let turn = server.next(run, None).await;
        assert_eq!(
            (turn.task.as_deref(), step_id(&turn).as_str()),
            (None, "after")
        );
        let done = server.submit(run, "after", json!(null)).await;
        let each = json!({"found": ["a", "b"], "first": 1});
        assert_eq!(output(&done), json!({"all": [each, each]}));
    }
}

#[tokio::test]
async fn a_task_goes_on_when_the_last_task_below_its_call_is_over() {
    let server = Server::calling(vec![("checks", CHECKS)]);
    let run = server.start(&checked(false), json!({})).await;
    server.next(run, None).await;
    let turn = server.next(run, Some("each.1")).await;
    let turn = server.submit(run, &step_id(&turn), json!(1)).await;
    assert_eq!(kind(&turn), AgentStepType::ParallelTasks);
    for task in ["each.1/run/rules.1", "each.1/run/rules.0"] {
        server.next(run, Some(task)).await;
        let failed = server.fail(run, &format!("{task}/look"), "no").await;
        assert_eq!(failed.status, TurnStatus::Failed);
        assert_eq!(failed.task.as_deref(), Some(task));
    }
    let turn = server.next(run, Some("each.1")).await;
    assert_eq!(
        (turn.status, turn.task.as_deref()),
        (TurnStatus::Failed, Some("each.1"))
    );
    // Who comes late is told how it ended, when the call is over too.
    for task in ["each.1/run/rules.1", "each.1/run/rules.0"] {
        let again = server.next(run, Some(task)).await;
        assert_eq!(again.status, TurnStatus::Failed);
        assert_eq!(again.task.as_deref(), Some(task));
        let again = server.fail(run, &format!("{task}/look"), "no").await;
        assert_eq!(again.status, TurnStatus::Failed);
    }
    // The other one is as it was.
    let turn = server.next(run, Some("each.0")).await;
    assert_eq!(step_id(&turn), "each.0/run/open");
}

const ROUNDS: &str = "
inputs: {rounds: {type: integer, required: true}}
tools: {t: {}}
state: {n: 0}
tasks:
  inner:
    inputs: {m: {type: integer, required: true}}
    steps: [{id: deep, type: mcp_call, tool: t, output_to: got}, {type: return, value: '{{ state.got }}'}]
  outer:
    inputs: {m: {type: integer, required: true}}
    steps:
      - {id: within, type: foreach, items: '{{ [inputs.m] }}', task: inner, agent: '@task', output_to: got}
      - {type: return, value: '{{ state.got }}'}
steps:
  - id: rounds
    type: while
    if: '{{ state.n < inputs.rounds }}'
    max_iterations: 1000
    steps:
      - {id: each, type: foreach, items: '{{ [state.n] }}', task: outer, agent: '@task', output_to: all}
      - {id: next, type: set_state, updates: {n: '{{ state.n + 1 }}'}}
";

#[tokio::test]
async fn what_is_kept_of_past_tasks_does_not_grow_with_their_number() {
    let mut server = Server::new();
    let run = server.start(ROUNDS, json!({"rounds": 60})).await;
    let mut tasks = Vec::new();
    for _ in 0..60 {
        let turn = server.next(run, None).await;
        let outer = definition(&turn, "tasks")[0]["task_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let turn = server.next(run, Some(&outer)).await;
        let inner = definition(&turn, "tasks")[0]["task_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let turn = server.next(run, Some(&inner)).await;
        let step = step_id(&turn);
        let turn = server.submit(run, &step, json!("x".repeat(100))).await;
        assert_eq!(output(&turn), json!("x".repeat(100)));
        // What has just ended is told again as it was, by any server.
        let mut again = server.submit(run, &step, json!("y")).await;
        assert!(again.note.take().is_some());
        assert_eq!(again, turn);
        assert_eq!(server.next(run, Some(&inner)).await, turn);
        let turn = server.next(run, Some(&outer)).await;
        assert_eq!(output(&turn), json!(["x".repeat(100)]));
        tasks.push((outer, inner, step));
    }
    server.restart();
    let (outer, inner, step) = &tasks[58];
    assert_eq!(
        output(&server.next(run, Some(outer)).await),
        json!(["x".repeat(100)])
    );
    assert_eq!(
        output(&server.submit(run, step, json!("y")).await),
        json!("x".repeat(100))
    );
    let (outer, _, _) = &tasks[45];
    assert_eq!(
        output(&server.next(run, Some(outer)).await),
        json!(["x".repeat(100)])
    );
    let (outer, inner_of_old, step) = &tasks[2];
    for late in [
        server.try_next(run, Some(outer)).await,
        server.try_next(run, Some(inner_of_old)).await,
        server.try_submit(run, Some(step), json!("y")).await,
    ] {
        let told = late.unwrap_err().to_string();
        assert!(
            told.contains("is over") && told.contains("no longer kept"),
            "{told}"
        );
    }
    let nobody = format!("{}9", inner);
    assert!(server.try_next(run, Some(&nobody)).await.is_err());
    let host = server.agents.host();
    let mut replayed = Run::new(host.program_of(run).unwrap());
    let mut kept = Vec::new();
    for recorded in host.journal().events(run, 1.., usize::MAX).unwrap() {
        let event: Event = serde_json::from_slice(&recorded.body).unwrap();
        let round = matches!(event.what, Happening::Completed { .. });
        replayed.apply(&event).unwrap();
        if round {
            let data = replayed.data().unwrap();
            let fields = (
                &data.past_tasks,
                &data.past_calls,
                &data.frames,
                &data.waiting,
            );
            kept.push(serde_json::to_string(&fields).unwrap().len());
        }
    }
    // As much after sixty rounds as after forty, but for longer numbers.
    assert_eq!(kept.len(), 60);
    assert!(kept[59].abs_diff(kept[39]) < 200, "{kept:?}");
}

#[tokio::test]
async fn of_a_task_whose_large_result_is_no_longer_kept_that_is_said() {
    let server = Server::new();
    let run = server.start(ROUNDS, json!({"rounds": 24})).await;
    let large = json!("x".repeat(60_000));
    let mut tasks = Vec::new();
    for _ in 0..24 {
        let outer = format!("{}.0", step_id(&server.next(run, None).await));
        let inner = format!("{}.0", step_id(&server.next(run, Some(&outer)).await));
        let step = step_id(&server.next(run, Some(&inner)).await);
        server.submit(run, &step, large.clone()).await;
        tasks.push(inner);
    }
    let turn = server.next(run, Some(&tasks[20])).await;
    assert_eq!((output(&turn), turn.note), (large, None));
    let turn = server.next(run, Some(&tasks[2])).await;
    assert_eq!(output(&turn), Json::Null);
    assert!(turn.note.unwrap().contains("no longer kept"));
}

#[tokio::test]
async fn tasks_within_a_task_are_told_how_they_ended_and_those_that_never_were_are_refused() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: work, type: mcp_call, tool: t, parameters: {n: '{{ inputs.n }}'}, output_to: got}
      - {id: give, type: return, value: '{{ state.got }}'}
  group:
    inputs: {m: {type: integer, required: true}}
    steps:
      - {id: inner, type: foreach, items: '{{ [1, 2, 3] }}', task: one, agent: '@task', max_parallel: 2, on_child_error: fail_all, on_error: continue}
      - {id: sum, type: mcp_call, tool: t}
steps:
  - {id: outer, type: foreach, items: '{{ [1] }}', task: group, agent: '@task'}
  - {id: last, type: mcp_call, tool: t}
";
    let run = server.start(definition, json!({})).await;
    server.next(run, Some("outer.0")).await;
    server.next(run, Some("outer.0/inner.0")).await;
    let turn = server.submit(run, "outer.0/inner.0/work", json!(5)).await;
    assert_eq!(output(&turn), json!(5));
    server.next(run, Some("outer.0/inner.1")).await;
    server.fail(run, "outer.0/inner.1/work", "no luck").await;
    let told = async |after: &str| {
        let turn = server.next(run, Some("outer.0/inner.0")).await;
        assert_eq!(output(&turn), json!(5), "{after}");
        let turn = server.next(run, Some("outer.0/inner.1")).await;
        assert_eq!(turn.status, TurnStatus::Failed, "{after}");
        assert!(turn.error.unwrap().message.contains("no luck"));
        let turn = server.next(run, Some("outer.0/inner.2")).await;
        assert_eq!(turn.status, TurnStatus::Cancelled, "{after}");
        for nobody in ["outer.0/inner.9", "outer.7", "outer.7/inner.0"] {
            let refused = server.try_next(run, Some(nobody)).await.unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains("there is no task"), "{after}: {refused}");
        }
    };
    told("after the inner step").await;
    server.submit(run, "outer.0/sum", json!(0)).await;
    assert_eq!(step_id(&server.next(run, None).await), "last");
    told("after the outer step").await;
    server.submit(run, "last", json!(0)).await;
    told("after the run").await;
}

#[tokio::test]
async fn whoever_goes_on_with_open_tasks_gets_the_prompt_and_the_rules_for_their_sub_agents() {
    let mut server = Server::new();
    let own = TASKS.replace(
        "output_to: all}",
        "output_to: all, prompt: 'Double {{ item }}.'}",
    );
    let run = server.start(&own, json!({"items": [1, 2, 3]})).await;
    let step = server.next(run, None).await.step.unwrap();
    server.next(run, Some("each.1")).await;
    server.submit(run, "each.1/twice", json!({"n": 4})).await;
    server.next(run, Some("each.2")).await;
    server.restart();
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::WaitingForTasks);
    let open = turn.open_step.unwrap();
    let rules = "workflow_server_rules";
    assert_eq!(open.definition[rules], step.definition[rules]);
    // Each stands in one place.
    assert_eq!(open.definition.get("tasks"), None);
    let told: Vec<(&str, serde_json::Value, Option<&str>)> = turn
        .open_tasks
        .iter()
        .map(|task| {
            (
                task.id.as_str(),
                task.context.to_json(),
                task.prompt.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("each.2", json!({"n": 3}), Some("Double 3.")),
            ("each.0", json!({"n": 1}), Some("Double 1.")),
        ]
    );
    assert!(open.instructions.contains("2 of 3 tasks are not over"));
}

/// Tasks within tasks.
const NESTED: &str = "
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
  - {id: outer, type: foreach, items: '{{ [1, 2] }}', task: group, agent: '@task', output_to: all}
outputs: {all: '{{ state.all }}'}
";

/// The tasks that a step hands out, with how they stand.
fn handed(turn: &Turn) -> Vec<(String, String)> {
    assert_eq!(kind(turn), AgentStepType::ParallelTasks);
    let tasks = definition(turn, "tasks").as_array().unwrap().iter();
    let text = |task: &Json, field: &str| task[field].as_str().unwrap_or_default().to_owned();
    tasks
        .map(|task| (text(task, "task_id"), text(task, "status")))
        .collect()
}

fn named(tasks: &[(&str, &str)]) -> Vec<(String, String)> {
    let tasks = tasks.iter();
    tasks
        .map(|(task, status)| ((*task).to_owned(), (*status).to_owned()))
        .collect()
}

#[tokio::test]
async fn a_run_that_is_taken_up_hands_its_open_tasks_out_again_also_within_tasks() {
    let mut server = Server::new();
    let run = server.start(NESTED, json!({})).await;
    server.next(run, Some("outer.1")).await;
    server.next(run, Some("outer.1/inner.0")).await;
    server.submit(run, "outer.1/inner.0/work", json!(3)).await;
    server.next(run, Some("outer.1/inner.1")).await;
    // As long as nobody says that the sub-agents are gone they may be at work.
    server.restart();
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::WaitingForTasks);
    server.agents.resume(run).await.unwrap();
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Waiting);
    let open = [("outer.1", "running"), ("outer.0", "waiting")];
    assert_eq!(handed(&turn), named(&open));
    assert_eq!(server.next(run, None).await, turn);
    let turn = server.next(run, Some("outer.1")).await;
    assert_eq!(handed(&turn), named(&[("outer.1/inner.1", "running")]));
    assert_eq!(definition(&turn, "total_tasks"), 2);
    let turn = server.next(run, Some("outer.1/inner.1")).await;
    assert_eq!(step_id(&turn), "outer.1/inner.1/work");
    // Both have their sub-agents now.
    for task in [None, Some("outer.1")] {
        let turn = server.next(run, task).await;
        assert_eq!(turn.status, TurnStatus::WaitingForTasks, "{task:?}");
    }
    server.submit(run, "outer.1/inner.1/work", json!(4)).await;
    let turn = server.next(run, Some("outer.1")).await;
    assert_eq!(output(&turn), json!([3, 4]));
}

#[tokio::test]
async fn a_failed_run_that_tries_again_hands_out_the_tasks_that_have_not_ended_well() {
    let server = Server::new();
    let run = server.start(NESTED, json!({})).await;
    for outer in 0..2 {
        for inner in 0..2 {
            server.next(run, Some(&format!("outer.{outer}"))).await;
            let task = format!("outer.{outer}/inner.{inner}");
            server.next(run, Some(&task)).await;
            let step = format!("{task}/work");
            match (outer, inner) {
                (1, 1) => server.fail(run, &step, "no luck").await,
                _ => server.submit(run, &step, json!(outer * 10 + inner)).await,
            };
        }
    }
    assert_eq!(server.next(run, None).await.status, TurnStatus::Failed);
    server.agents.resume(run).await.unwrap();
    let turn = server.next(run, None).await;
    let outer = format!("{}.1", step_id(&turn));
    assert_eq!(handed(&turn), named(&[(outer.as_str(), "waiting")]));
    let turn = server.next(run, Some(&outer)).await;
    let inner = format!("{}.1", step_id(&turn));
    assert_eq!(handed(&turn), named(&[(inner.as_str(), "waiting")]));
    let turn = server.next(run, Some(&inner)).await;
    server.submit(run, &step_id(&turn), json!(12)).await;
    let all = json!([[0, 1], [10, 12]]);
    assert_eq!(output(&server.next(run, None).await), json!({ "all": all }));
}

#[tokio::test]
async fn a_prompt_for_an_item_is_made_when_the_step_begins_and_for_that_item() {
    let server = Server::new();
    let own = "
tools: {t: {}}
state: {tone: kind}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    shares_state: true
    steps:
      - {id: work, type: mcp_call, tool: t}
  group:
    inputs: {m: {type: integer, required: true}}
    shares_state: true
    steps:
      - {id: inner, type: foreach, items: '{{ [7, 8] }}', task: one, agent: '@task', prompt: 'Be {{ state.tone }} to {{ item }}, {{ loop.iteration }} of {{ loop.length }}.'}
steps:
  - {id: outer, type: foreach, items: '{{ [1] }}', task: group, agent: '@task'}
";
    let run = server.start(own, json!({})).await;
    let told = |turn: &Turn| {
        let tasks = definition(turn, "tasks").as_array().unwrap().iter();
        let prompts = tasks.map(|task| task["sub_agent_prompt"].as_str().unwrap().to_owned());
        prompts.collect::<Vec<_>>()
    };
    let expected = ["Be kind to 7, 1 of 2.", "Be kind to 8, 2 of 2."];
    let turn = server.next(run, Some("outer.0")).await;
    assert_eq!(told(&turn), expected);
    let rude = update("tone", Operation::Set, &json!("rude"));
    server.agents.update(run, vec![rude]).await.unwrap();
    assert_eq!(told(&server.next(run, Some("outer.0")).await), expected);
}

#[tokio::test]
async fn a_sub_agent_beyond_what_may_wait_at_once_is_told_to_wait() {
    let server = Server::new();
    let many = TASKS.replace("max_parallel: 2", "max_parallel: 100");
    let items: Vec<usize> = (0..52).collect();
    let run = server.start(&many, json!({"items": items})).await;
    for item in 0..50 {
        let turn = server.next(run, Some(&format!("each.{item}"))).await;
        assert!(turn.step.is_some());
    }
    let turn = server.next(run, Some("each.50")).await;
    assert_eq!((turn.status, turn.step), (TurnStatus::Waiting, None));
    server.submit(run, "each.0/twice", json!({"n": 0})).await;
    let turn = server.next(run, Some("each.50")).await;
    assert_eq!(step_id(&turn), "each.50/twice");
}
