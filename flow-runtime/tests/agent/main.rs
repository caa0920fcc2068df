//! Runs that an agent drives, with a real journal and real commands.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use flow_model::graph::{Graph, Operation};
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_model::{compile, diagnostic};
use flow_runtime::host::agent::{
    AgentError, Agents, Conclusion, Outcome, Patience, StepKind, Submission, TaskPage, Turn,
    TurnStatus,
};
use flow_runtime::host::{Host, HostOptions, StartOptions, Workflows};
use flow_runtime::journal::{Journal, Listing, RunId, Status};
use flow_runtime::run::{Expressions, Update};
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

fn graph(definition: &str) -> Graph {
    let compiled = compile(Source::new("test.yaml", definition), &NoLoader);
    let findings: Vec<String> = compiled
        .findings
        .iter()
        .map(|f| diagnostic::text(f, &compiled.sources, diagnostic::Style::Plain))
        .collect();
    compiled
        .into_graph()
        .unwrap_or_else(|| panic!("{}", findings.join("\n")))
}

/// Workflows that others call, by name.
struct Shelf(Vec<(&'static str, &'static str)>);

impl Workflows for Shelf {
    fn find(&self, name: &str) -> Result<Graph, String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        let (_, definition) = found.ok_or_else(|| format!("no workflow `{name}`"))?;
        Ok(graph(definition))
    }

    fn compile(&self, _definition: &Value) -> Result<Graph, String> {
        Err("not here".to_owned())
    }
}

/// A server that can be stopped and started again over the same journal.
struct Server {
    agents: Agents,
    journal: PathBuf,
    shelf: Vec<(&'static str, &'static str)>,
    keeping: usize,
}

impl Server {
    fn new(directory: &Path) -> Self {
        Server::with(directory, Vec::new(), 100)
    }

    fn with(directory: &Path, shelf: Vec<(&'static str, &'static str)>, keeping: usize) -> Self {
        let journal = directory.join("journal.db");
        Server {
            agents: Server::agents(&journal, &shelf, keeping),
            journal,
            shelf,
            keeping,
        }
    }

    fn agents(journal: &Path, shelf: &[(&'static str, &'static str)], keeping: usize) -> Agents {
        let directory = journal.parent().unwrap().to_owned();
        let journal = Journal::open(journal).unwrap();
        let mut options = HostOptions::new(journal, directory, |_| Box::new(Expressions::new()));
        options.workflows = std::sync::Arc::new(Shelf(shelf.to_vec()));
        Agents::keeping(Host::new(options), keeping)
    }

    /// Forgets everything but the journal.
    fn restart(&mut self) {
        self.agents = Server::agents(&self.journal, &self.shelf, self.keeping);
    }

    async fn start(&self, definition: &str, inputs: Json) -> RunId {
        let graph = graph(definition);
        let inputs = Value::from(&inputs);
        self.agents
            .start(&graph, &inputs, StartOptions::default())
            .await
            .unwrap()
    }

    async fn next(&self, run: RunId, task: Option<&str>) -> Turn {
        self.agents
            .next(run, task, TaskPage::default(), PATIENT)
            .await
            .unwrap()
    }

    async fn submit(&self, run: RunId, step: &str, result: Json) -> Turn {
        self.try_submit(run, Some(step), result).await.unwrap()
    }

    async fn try_submit(
        &self,
        run: RunId,
        step: Option<&str>,
        result: Json,
    ) -> Result<Turn, AgentError> {
        let submission = Submission {
            result: Some(Value::from(&result)),
            ..Submission::default()
        };
        self.agents
            .submit(run, step, submission, TaskPage::default(), PATIENT)
            .await
    }

    async fn fail(&self, run: RunId, step: &str, error: &str) -> Turn {
        let submission = Submission {
            outcome: Outcome::Failed,
            result: None,
            error: Some(error.to_owned()),
        };
        self.agents
            .submit(run, Some(step), submission, TaskPage::default(), PATIENT)
            .await
            .unwrap()
    }
}

const PATIENT: Patience = Patience::of(Duration::from_secs(30));

fn block<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

#[track_caller]
fn step_id(turn: &Turn) -> String {
    match &turn.step {
        Some(step) => step.id.clone(),
        None => panic!("no step: {turn:?}"),
    }
}

fn definition<'t>(turn: &'t Turn, field: &str) -> &'t Json {
    &turn.step.as_ref().unwrap().definition[field]
}

fn kind(turn: &Turn) -> StepKind {
    turn.step.as_ref().unwrap().kind
}

fn output(turn: &Turn) -> Json {
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    turn.output.to_json()
}

const EVERY_KIND: &str = "
inputs: {branch: string}
state: {n: 0}
tools: {search: {}}
outputs: {files: '{{ state.files }}', hits: '{{ state.found.hits }}', server: '{{ state.server }}', said: '{{ state.goal.input }}', answer: '{{ state.answer.response }}'}
steps:
  - {id: count, type: set_state, updates: {n: '{{ state.n + 1 }}'}}
  - {id: look, type: shell, command: 'git diff {{ inputs.branch }}', output_format: lines, output_to: files}
  - {id: here, type: shell_command, command: echo from the server, output_format: text, state_update: {path: raw.server}}
  - {id: find, type: mcp_call, tool: search, parameters: {query: 'in {{ inputs.branch }}', n: '{{ state.n }}'}, output_to: found}
  - {id: tell, type: prompt, kind: info, message: 'On {{ inputs.branch }}'}
  - {id: ask, type: prompt, kind: text, message: What now?, validation: {min_length: 3}, output_to: goal}
  - {id: think, type: delegate, instructions: 'Think about {{ state.goal.input }}', agent: '@critic', output_to: answer}
";

#[test]
fn the_agent_gets_what_is_its_own_evaluated_and_the_server_does_the_rest() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let run = server.start(EVERY_KIND, json!({"branch": "ma in"})).await;

        let turn = server.next(run, None).await;
        assert_eq!(turn.status, TurnStatus::Waiting);
        assert_eq!(
            (step_id(&turn).as_str(), kind(&turn)),
            ("look", StepKind::Shell)
        );
        assert_eq!(definition(&turn, "command"), "git diff 'ma in'");
        assert_eq!(definition(&turn, "output_format"), "lines");
        assert_eq!(definition(&turn, "timeout"), 30.0);
        assert_eq!(
            definition(&turn, "state_update"),
            &json!({"path": "raw.files", "operation": "set"})
        );
        let step = turn.step.as_ref().unwrap();
        assert_eq!(
            Json::Object(step.variable_replacements.clone()),
            json!({"{{ inputs.branch }}": "ma in"})
        );
        assert_eq!(
            step.original_expression.as_deref(),
            Some("git diff {{ inputs.branch }}")
        );
        // Asking again gives the same step.
        assert_eq!(server.next(run, None).await, turn);

        let result = json!({"stdout": "a.rs\nb.rs\n", "stderr": "", "exit_code": 0});
        let turn = server.submit(run, "look", result.clone()).await;
        assert_eq!(
            (step_id(&turn).as_str(), kind(&turn)),
            ("find", StepKind::McpCall)
        );
        assert_eq!(
            definition(&turn, "parameters"),
            &json!({"query": "in ma in", "n": 1})
        );
        // The same step twice is answered as the first time, whatever it says.
        let again = server.submit(run, "look", json!({"stdout": "other"})).await;
        assert_eq!(again, turn);

        let turn = server.submit(run, "find", json!({"hits": 7})).await;
        assert_eq!(kind(&turn), StepKind::UserMessage);
        assert_eq!(definition(&turn, "message"), "On ma in");
        let told = server
            .agents
            .submit(
                run,
                None,
                Submission::default(),
                TaskPage::default(),
                PATIENT,
            )
            .await
            .unwrap();
        assert_eq!(
            (step_id(&told).as_str(), kind(&told)),
            ("ask", StepKind::UserInput)
        );
        assert_eq!(definition(&told, "validation"), &json!({"min_length": 3}));

        let refused = server.try_submit(run, Some("ask"), json!("no")).await;
        assert!(refused.unwrap_err().to_string().contains("not valid"));
        assert_eq!(server.next(run, None).await, told);
        let turn = server.submit(run, "ask", json!("go on")).await;
        assert_eq!(kind(&turn), StepKind::Delegate);
        assert_eq!(definition(&turn, "instructions"), "Think about go on");
        assert_eq!(definition(&turn, "agent"), "@critic");

        let turn = server.submit(run, "think", json!("fine")).await;
        assert_eq!(
            output(&turn),
            json!({"files": ["a.rs", "b.rs"], "hits": 7, "server": "from the server", "said": "go on", "answer": "fine"})
        );
        assert_eq!(server.next(run, None).await.status, TurnStatus::Completed);
    });
}

#[test]
fn every_call_may_be_answered_by_another_server() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::new(directory.path());
        let run = server.start(EVERY_KIND, json!({"branch": "main"})).await;
        let answers = [
            json!({"stdout": "x", "exit_code": 0}),
            json!({"hits": 1}),
            json!(null),
            json!({"input": "go on"}),
            json!({"response": "fine"}),
        ];
        let mut turn = server.next(run, None).await;
        for answer in answers {
            server.restart();
            assert_eq!(server.next(run, None).await, turn);
            server.restart();
            turn = server.submit(run, &step_id(&turn), answer).await;
        }
        assert_eq!(output(&turn)["answer"], "fine");
    });
}

#[test]
fn a_step_that_does_not_wait_is_refused_by_naming_the_one_that_does() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let run = server.start(EVERY_KIND, json!({"branch": "main"})).await;
        server.next(run, None).await;
        let refused = server.try_submit(run, Some("find"), json!(1)).await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "step `find` does not wait for a result; `look` does"
        );
        let refused = server
            .agents
            .next(run, Some("look.3"), TaskPage::default(), PATIENT)
            .await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "there is no task `look.3`, and no task is open in this run"
        );
    });
}

#[test]
fn failures_go_through_retries_and_on_error() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let run = server
            .start(
                "tools: {t: {}}
state: {errors: []}
outputs: {got: '{{ state.got }}', kept: '{{ state.kept | default(\"none\") }}'}
steps:
  - {id: try, type: mcp_call, tool: t, retry: {attempts: 2, delay: 0}, output_to: got}
  - {id: spare, type: mcp_call, tool: t, on_error: continue, output_to: kept}
  - {id: last, type: mcp_call, tool: t}
",
                json!({}),
            )
            .await;
        assert_eq!(step_id(&server.next(run, None).await), "try");
        let turn = server.fail(run, "try", "no network").await;
        // Another attempt is another step.
        let second = step_id(&turn);
        assert_ne!(second, "try");
        assert_eq!(definition(&turn, "attempt"), 2);
        assert_eq!(step_id(&server.fail(run, "try", "once more").await), second);
        let turn = server.submit(run, &second, json!(5)).await;
        assert_eq!(step_id(&turn), "spare");
        let turn = server.fail(run, "spare", "not there").await;
        assert_eq!(step_id(&turn), "last");
        let turn = server.fail(run, "last", "no use").await;
        assert_eq!(turn.status, TurnStatus::Failed);
        assert_eq!(turn.error.unwrap().message, "no use");

        // A failed run goes on from where it failed.
        server.agents.resume(run).await.unwrap();
        let turn = server.next(run, None).await;
        let turn = server.submit(run, &step_id(&turn), json!(1)).await;
        assert_eq!(output(&turn), json!({"got": 5, "kept": "none"}));
        assert!(server.agents.resume(run).await.is_err());
    });
}

const LOOP: &str = "
expressions: js
state_schema:
  computed:
    left: {from: raw.todo, transform: 'input.length'}
    busy: {from: computed.left, transform: 'input > 0'}
default_state: {raw: {todo: [a, b, c], done: []}}
outputs: {done: '{{ done }}', left: '{{ left }}'}
steps:
  - id: again
    type: while
    condition: '{{ busy }}'
    max_iterations: 10
    body:
      - {id: do, type: agent_shell_command, command: 'echo {{ todo[0] }}', reason: it is theirs, output_format: text, state_update: {path: raw.done, operation: append}}
      - {type: state_update, path: raw.todo, value: '{{ todo.slice(1) }}'}
";

#[test]
fn a_step_in_a_loop_is_another_step_each_time_round() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let run = server.start(LOOP, json!({})).await;
        let mut turn = server.next(run, None).await;
        let mut seen = Vec::new();
        while turn.step.is_some() {
            assert_eq!(kind(&turn), StepKind::AgentShellCommand);
            assert_eq!(definition(&turn, "reason"), "it is theirs");
            let command = definition(&turn, "command").as_str().unwrap().to_owned();
            let id = step_id(&turn);
            assert!(!seen.contains(&id), "{id} again");
            turn = server.submit(run, &id, json!(command[5..])).await;
            // What was submitted before changes nothing.
            for old in &seen {
                assert_eq!(server.submit(run, old, json!("late")).await, turn);
            }
            seen.push(id);
        }
        assert_eq!(seen[0], "do");
        assert_eq!(output(&turn), json!({"done": ["a", "b", "c"], "left": 0}));
    });
}

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

#[test]
fn sub_agents_do_the_tasks_and_the_step_is_over_when_they_are() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::new(directory.path());
        let run = server.start(TASKS, json!({"items": [1, 2, 3]})).await;
        let turn = server.next(run, None).await;
        assert_eq!(
            (step_id(&turn).as_str(), kind(&turn)),
            ("each", StepKind::ParallelTasks)
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
    });
}

#[test]
fn a_sub_agent_that_asks_patiently_begins_when_another_is_done() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
    });
}

#[test]
fn a_sequential_foreach_hands_out_one_task_after_another() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let definition_text = TASKS.replace("max_parallel: 2", "sequential: true");
        let run = server
            .start(&definition_text, json!({"items": [5, 6]}))
            .await;
        for (index, n) in [5, 6].into_iter().enumerate() {
            let turn = server.next(run, None).await;
            assert_eq!(kind(&turn), StepKind::ParallelTasks);
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
    });
}

#[test]
fn a_failed_task_means_what_on_child_error_says() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
    });
}

#[test]
fn an_agent_that_cannot_have_its_tasks_done_fails_the_step() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let run = server.start(TASKS, json!({"items": [1, 2]})).await;
        server.next(run, None).await;
        let turn = server.fail(run, "each", "no sub-agents here").await;
        assert_eq!(turn.status, TurnStatus::Failed);
        assert_eq!(turn.error.unwrap().message, "no sub-agents here");
    });
}

#[test]
fn a_named_agent_gets_the_whole_item() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let named = TASKS.replace("'@task'", "'@auditor'");
        let run = server.start(&named, json!({"items": [1, 2]})).await;
        let turn = server.next(run, None).await;
        assert_eq!(definition(&turn, "agent"), "@auditor");
        let turn = server.next(run, Some("each.1")).await;
        assert_eq!(kind(&turn), StepKind::Delegate);
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
        server.submit(run, &step_id(&turn), json!("one")).await;
        let turn = server.next(run, None).await;
        let turn = server.submit(run, &step_id(&turn), json!(null)).await;
        assert_eq!(output(&turn), json!({"all": ["one", "two"]}));
    });
}

#[test]
fn a_task_without_an_agent_is_done_step_by_step_by_the_one_that_drives() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let own = TASKS.replace("agent: '@task', ", "");
        let run = server.start(&own, json!({"items": [1, 2, 3]})).await;
        let mut turn = server.next(run, None).await;
        let mut ids = Vec::new();
        while kind(&turn) == StepKind::McpCall && step_id(&turn) != "after" {
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
    });
}

#[test]
fn an_own_prompt_replaces_the_standard_one_and_the_rules_stay() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
    });
}

#[test]
fn long_lists_of_tasks_come_in_pages() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
    });
}

#[test]
fn steps_of_a_called_workflow_come_through_the_one_that_calls() {
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
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::with(directory.path(), vec![("child", child)], 100);
        let run = server.start(parent, json!({})).await;
        let turn = server.next(run, None).await;
        assert_eq!(step_id(&turn), "checks/begin");
        server.restart();
        let turn = server.submit(run, "checks/begin", json!(null)).await;
        assert_eq!(kind(&turn), StepKind::ParallelTasks);
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
    });
}

#[test]
fn a_judged_transition_is_the_agents() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
        assert_eq!(kind(&turn), StepKind::Judge);
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
    });
}

#[test]
fn a_run_that_waits_for_a_time_says_when() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
    });
}

#[test]
fn state_changes_from_outside_are_atomic_and_derived_state_follows() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
        assert_eq!(changed.to_json(), json!({"left": 4}));
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
    });
}

#[test]
fn a_checkpoint_is_found_again_and_a_run_can_be_given_up() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::new(directory.path());
        let run = server.start(EVERY_KIND, json!({"branch": "x"})).await;
        server.next(run, None).await;
        let marked = server
            .agents
            .checkpoint(run, Some("look".to_owned()), "context is full".to_owned())
            .await
            .unwrap();
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
        server
            .agents
            .conclude(run, Conclusion::Cancelled, "")
            .await
            .unwrap();
        assert_eq!(server.next(run, None).await.status, TurnStatus::Failed);
    });
}

#[test]
fn more_runs_than_are_kept_in_memory_go_on_side_by_side() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::with(directory.path(), Vec::new(), 5);
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
    });
}

#[test]
fn a_command_of_the_server_goes_on_while_sub_agents_work() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let gate = directory.path().join("gate");
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
    });
}

#[test]
fn what_holds_a_secret_is_done_by_the_server_and_never_shown() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
    });
}

#[test]
fn a_large_fan_out_is_listed_as_far_as_an_answer_holds_and_done_in_any_order() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
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
    });
}

#[test]
fn looking_at_a_run_does_not_let_it_go_on() {
    block(async {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::new(directory.path());
        let made = directory.path().join("made");
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
    });
}
