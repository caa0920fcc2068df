//! Steps as an agent gets them, and what it submits.

use flow_runtime::host::agent::{AgentStepType, Submission, TaskPage, Turn, TurnStatus};
use flow_runtime::host::{Boxed, StartOptions, ToolCall, Tools};
use flow_runtime::run::Failure;
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

use super::support::{PATIENT, Server, definition, graph, kind, output, step_id};

pub(crate) const EVERY_KIND: &str = "
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

#[tokio::test]
async fn the_agent_gets_what_is_its_own_evaluated_and_the_server_does_the_rest() {
    let server = Server::new();
    let run = server.start(EVERY_KIND, json!({"branch": "ma in"})).await;

    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Waiting);
    assert_eq!(
        (step_id(&turn).as_str(), kind(&turn)),
        ("look", AgentStepType::Shell)
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
        ("find", AgentStepType::McpCall)
    );
    assert_eq!(
        definition(&turn, "parameters"),
        &json!({"query": "in ma in", "n": 1})
    );
    // The same step twice is answered as the first time; that another result is not used is said.
    let mut again = server.submit(run, "look", json!({"stdout": "other"})).await;
    let note = again.note.take().unwrap_or_default();
    assert!(note.contains("this one was not used"), "{note}");
    assert_eq!(again, turn);

    let turn = server.submit(run, "find", json!({"hits": 7})).await;
    assert_eq!(kind(&turn), AgentStepType::UserMessage);
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
        ("ask", AgentStepType::UserInput)
    );
    assert_eq!(definition(&told, "validation"), &json!({"min_length": 3}));

    let refused = server.try_submit(run, Some("ask"), json!("no")).await;
    assert!(refused.unwrap_err().to_string().contains("not valid"));
    assert_eq!(server.next(run, None).await, told);
    let turn = server.submit(run, "ask", json!("go on")).await;
    assert_eq!(kind(&turn), AgentStepType::Delegate);
    assert_eq!(definition(&turn, "instructions"), "Think about go on");
    assert_eq!(definition(&turn, "agent"), "@critic");

    let turn = server.submit(run, "think", json!("fine")).await;
    assert_eq!(
        output(&turn),
        json!({"files": ["a.rs", "b.rs"], "hits": 7, "server": "from the server", "said": "go on", "answer": "fine"})
    );
    assert_eq!(server.next(run, None).await.status, TurnStatus::Completed);
}

#[tokio::test]
async fn an_answer_with_a_shape_reads_the_same_however_it_is_put() {
    let definition = |returns: &str| {
        format!(
            "outputs: {{r: '{{{{ state.r }}}}'}}
steps:
  - {{id: rate, type: delegate, instructions: Rate it., {returns}output_to: r}}
"
        )
    };
    let shape = "returns: {type: object, required: [score]}, ";
    let whole = "returns: {type: object, required: [response]}, ";
    let rated = json!({"response": {"score": 5}, "agent_used": "agent"});
    let told = json!({"response": "good", "agent_used": "agent"});
    let cases = [
        (shape, json!({"score": 5}), &rated),
        (shape, json!({"response": {"score": 5}}), &rated),
        (shape, json!("```json\n{\"score\": 5}\n```"), &rated),
        (shape, json!({"response": "{\"score\": 5}"}), &rated),
        (whole, json!({"response": "good"}), &told),
        (whole, json!("{\"response\": \"good\"}"), &told),
        ("", json!("good"), &told),
        ("", json!({"response": "good"}), &told),
    ];
    let server = Server::new();
    for (returns, answer, wanted) in cases {
        let run = server.start(&definition(returns), json!({})).await;
        server.next(run, None).await;
        let turn = server.submit(run, "rate", answer.clone()).await;
        assert_eq!(output(&turn)["r"], *wanted, "{answer}");
    }
}

#[tokio::test]
async fn every_call_may_be_answered_by_another_server() {
    let mut server = Server::new();
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
}

#[tokio::test]
async fn a_number_that_no_step_had_is_no_result_that_was_taken_before() {
    let server = Server::new();
    let text = "steps:\n  - {id: again, type: while, condition: '{{ state.n < 3 }}', max_iterations: 9, \
                body: [{id: look, type: delegate, instructions: Look., output_to: a}, \
                {id: count, type: set_state, updates: {n: '{{ state.n + 1 }}'}}]}\nstate: {n: 0}\n";
    let run = server.start(text, json!({})).await;
    let first = server.next(run, None).await;
    let second = server.submit(run, &step_id(&first), json!("a")).await;
    let (first, second) = (step_id(&first), step_id(&second));
    let again = server.try_submit(run, Some(&first), json!("a")).await;
    assert!(again.is_ok(), "the same again is answered as before");
    let third: u64 = second.rsplit_once('~').unwrap().1.parse().unwrap();
    for number in 1..third {
        let name = format!("look~{number}");
        if name == first {
            continue;
        }
        let refused = server.try_submit(run, Some(&name), json!("a")).await;
        let told = format!("step `{name}` does not wait for a result; `{second}` does");
        assert_eq!(refused.unwrap_err().to_string(), told);
    }
}

#[tokio::test]
async fn what_the_server_has_done_takes_no_result() {
    let server = Server::new();
    let text = "steps:\n  - {id: s, type: shell, by: server, command: echo s}\n  \
                - {id: look, type: delegate, instructions: Look.}\n";
    let run = server.start(text, json!({})).await;
    let turn = server.next(run, None).await;
    let refused = server.try_submit(run, Some("s"), json!("s")).await;
    let told = format!(
        "step `s` does not wait for a result; `{}` does",
        step_id(&turn)
    );
    assert_eq!(refused.unwrap_err().to_string(), told);
}

#[tokio::test]
async fn a_step_that_does_not_wait_is_refused_by_naming_the_one_that_does() {
    let server = Server::new();
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
}

#[tokio::test]
async fn failures_go_through_retries_and_on_error() {
    let server = Server::new();
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
}

pub(crate) const LOOP: &str = "
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

#[tokio::test]
async fn a_step_in_a_loop_is_another_step_each_time_round() {
    let server = Server::new();
    let run = server.start(LOOP, json!({})).await;
    let mut turn = server.next(run, None).await;
    let mut seen = Vec::new();
    while turn.step.is_some() {
        assert_eq!(kind(&turn), AgentStepType::AgentShellCommand);
        assert_eq!(definition(&turn, "reason"), "it is theirs");
        let command = definition(&turn, "command").as_str().unwrap().to_owned();
        let id = step_id(&turn);
        assert!(!seen.contains(&id), "{id} again");
        turn = server.submit(run, &id, json!(command[5..])).await;
        // What was submitted before changes nothing, and whoever means the round at hand is told.
        for old in &seen {
            let mut again = server.submit(run, old, json!("late")).await;
            let note = again.note.take();
            assert_eq!(again, turn);
            assert!(note.is_some_and(|note| note.contains("was not used")));
        }
        seen.push(id);
    }
    assert_eq!(seen[0], "do");
    assert_eq!(output(&turn), json!({"done": ["a", "b", "c"], "left": 0}));
}

#[tokio::test]
async fn the_id_of_a_run_is_a_name_in_both_dialects() {
    let server = Server::new();
    for dialect in ["jinja", "js"] {
        let definition = format!(
            "expressions: {dialect}\nsteps: [{{id: say, type: prompt, kind: info, message: 'resume {{{{ workflow_id }}}}'}}]\n"
        );
        let run = server.start(&definition, json!({})).await;
        let turn = server.next(run, None).await;
        assert_eq!(
            self::definition(&turn, "message"),
            &json!(format!("resume {run}"))
        );
    }
}

#[tokio::test]
async fn a_step_that_waits_is_the_same_step_whatever_becomes_of_the_state() {
    let server = Server::new();
    let text = "
state: {n: 1}
steps: [{id: say, type: prompt, kind: info, message: 'n is {{ state.n }}'}]
";
    let run = server.start(text, json!({})).await;
    let turn = server.next(run, None).await;
    let change = super::state::update("raw.n", flow_model::graph::Operation::Set, &json!(2));
    server.agents.update(run, vec![change]).await.unwrap();
    assert_eq!(server.next(run, None).await, turn);
    let step = turn.step.unwrap();
    assert_eq!(
        json!(step.variable_replacements),
        json!({"{{ state.n }}": 1})
    );
}

#[tokio::test]
async fn where_values_come_from_is_said_in_the_words_of_the_author() {
    let server = Server::new();
    let states = "
initial_state: ask
inputs: {who: string}
states:
  ask:
    action: {type: prompt, kind: info, message: 'Hello {who}'}
";
    let run = server.start(states, json!({"who": "Ann"})).await;
    let step = server.next(run, None).await.step.unwrap();
    assert_eq!(step.original_expression.as_deref(), Some("Hello {who}"));
    assert_eq!(json!(step.variable_replacements), json!({"{who}": "Ann"}));

    let failing = "
tools: {t: {}}
on_error: {steps: [{id: tell, type: prompt, kind: info, message: 'It said {{ error.message }}'}]}
steps: [{id: go, type: mcp_call, tool: t}]
";
    let run = server.start(failing, json!({})).await;
    server.next(run, None).await;
    let step = server.fail(run, "go", "no luck").await.step.unwrap();
    assert_eq!(
        json!(step.variable_replacements),
        json!({"{{ error.message }}": "no luck"})
    );
}

#[tokio::test]
async fn only_a_step_whose_result_is_written_says_where() {
    let server = Server::new();
    let judged = "
tools: {t: {}}
initial_state: look
states:
  look:
    action: {type: mcp_call, tool: t, output_to: got}
    transitions: [{condition: {description: it is fine}, next_state: end}]
  end:
    action: {type: mcp_call, tool: t}
";
    let run = server.start(judged, json!({})).await;
    let turn = server.next(run, None).await;
    assert_eq!(definition(&turn, "state_update")["path"], "raw.got");
    let judge = server.submit(run, "look", json!(1)).await.step.unwrap();
    assert_eq!(judge.kind, AgentStepType::Judge);
    assert!(!judge.definition.contains_key("state_update"));
}

#[tokio::test]
async fn a_step_that_waits_for_its_turn_or_never_was_takes_no_result() {
    let server = Server::new();
    let run = server
        .start(
            "inputs: {list: array}
limits: {max_parallel: 100}
tasks: {ask: {inputs: {n: integer}, steps: [{id: q, type: prompt, kind: text, message: 'What is {{ inputs.n }}?'}]}}
steps:
  - {id: all, type: foreach, items: '{{ inputs.list }}', task: ask, max_parallel: 100}
",
            json!({"list": (0..60).collect::<Vec<_>>()}),
        )
        .await;
    let turn = server.next(run, None).await;
    let first = step_id(&turn);
    assert_eq!(first, "all.0/q");
    for name in ["all.55/q", "all.70/q", "q~1", "q~900", "nothing~2"] {
        let refused = server.try_submit(run, Some(name), json!("x")).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("`all.0/q`"), "{name}: {refused}");
    }
    // Results make room, and the ones that waited are heard then.
    for item in 0..60 {
        server
            .submit(run, &format!("all.{item}/q"), json!("x"))
            .await;
    }
    let turn = server.next(run, None).await;
    assert_eq!(turn.status, TurnStatus::Completed);
}

#[tokio::test]
async fn whoever_is_asked_again_is_told_what_was_taken_and_what_is_wanted() {
    let server = Server::new();
    let asks = "
inputs: {who: string}
state: {kind: novel}
steps:
  - id: name
    type: delegate
    instructions: 'Name a {{ state.kind }} for {{ inputs.who }}.'
    returns: {type: object, required: [title]}
    output_to: book
";
    let run = server.start(asks, json!({"who": "Ann"})).await;
    let turn = server.next(run, None).await;
    let made_from = json!({"{{ state.kind }}": "novel", "{{ inputs.who }}": "Ann"});
    let replaced = |turn: &Turn| json!(turn.step.as_ref().unwrap().variable_replacements);
    assert_eq!(replaced(&turn), made_from);
    let again = server
        .submit(run, &step_id(&turn), json!({"response": "x"}))
        .await;
    assert_eq!(
        definition(&again, "complaint"),
        r#""x" is not of type "object"; an object with "title" is wanted"#
    );
    let told = &again.step.as_ref().unwrap().instructions;
    assert!(told.contains("`response`, that is taken"), "{told}");
    assert_eq!(replaced(&again), made_from);
    let done = server
        .submit(run, &step_id(&again), json!({"title": "Emma"}))
        .await;
    assert_eq!(done.status, TurnStatus::Completed, "{done:?}");
}

const DECLARED: &str = "
tools:
  search: {returns: {hits: {type: integer, required: true}, names: array, at: {type: object, validation: {properties: {line: integer}}}}}
  count: {returns: integer}
outputs: {hits: '{{ state.found.hits }}', count: '{{ state.count }}'}
steps:
  - {id: find, type: mcp_call, tool: search, output_to: found}
  - {id: sum, type: mcp_call, tool: count, output_to: count}
";

#[tokio::test]
async fn a_result_that_a_declared_tool_does_not_return_is_refused_and_its_step_stays_open() {
    let server = Server::new();
    let run = server.start(DECLARED, json!({})).await;
    let turn = server.next(run, None).await;
    assert_eq!(
        definition(&turn, "returns")["hits"],
        json!({"type": "integer", "required": true})
    );
    let refused = [
        (
            json!({"hits": "many"}),
            "`result.hits` must be an integer, and is a string",
        ),
        (
            json!({"structuredContent": {"hits": 2.5}}),
            "`result.hits` must be an integer, and is a number with a fraction",
        ),
        (
            json!({"names": []}),
            "`result.hits` must be given (an integer)",
        ),
        (
            json!({"hits": 1, "at": {"line": true}}),
            "`result.at.line` must be an integer, and is a boolean",
        ),
        (
            json!("two hits"),
            "`result` must be an object, and is a string",
        ),
    ];
    for (result, fault) in refused {
        for step in [Some("find"), None] {
            let error = server.try_submit(run, step, result.clone()).await;
            let error = error.unwrap_err().to_string();
            let said = "the result is not what the tool `search` is declared to return: ";
            assert_eq!(error, format!("{said}{fault}"));
            assert_eq!(server.next(run, None).await, turn);
        }
    }
    // A tool may return more than a definition uses.
    let found = json!({"hits": 2, "at": {"line": 1, "column": 2}, "more": null, "took": "3 ms"});
    let turn = server.submit(run, "find", found).await;
    assert_eq!(definition(&turn, "returns"), "integer");
    let error = server.try_submit(run, None, json!("2")).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.ends_with("`result` must be an integer, and is a string"),
        "{error}"
    );
    let turn = server.submit(run, "sum", json!(2)).await;
    assert_eq!(output(&turn), json!({"hits": 2, "count": 2}));
}

#[tokio::test]
async fn a_result_counts_the_same_with_and_without_the_name_of_its_step() {
    let definition = "
tools: {t: {}}
tasks: {one: {inputs: {n: integer}, steps: [{id: do, type: mcp_call, tool: t}]}}
steps:
  - {id: first, type: mcp_call, tool: t}
  - {id: each, type: foreach, items: [1], task: one, agent: '@task'}
";
    let server = Server::new();
    let run = server.start(definition, json!({})).await;
    let turn = server.try_submit(run, None, json!({"n": 1})).await.unwrap();
    assert_eq!((step_id(&turn).as_str(), &turn.note), ("each", &None));
    assert_eq!(server.submit(run, "first", json!({"n": 1})).await, turn);
    let other = server.submit(run, "first", json!({"n": 2})).await;
    let note = "`first` had another result before, which counts; this one was not used";
    assert_eq!(other.note.as_deref(), Some(note));
    let note = "`each` is over when its tasks are: a result for it is not used";
    for step in [Some("each"), None] {
        let turn = server.try_submit(run, step, json!([1])).await.unwrap();
        assert_eq!(turn.note.as_deref(), Some(note));
    }
}

/// A tool of the host that returns what it was made with.
struct Returns(Json);

impl Tools for Returns {
    fn has(&self, _tool: &str) -> bool {
        true
    }

    fn call<'a>(&'a self, _call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        let returned = Value::from(&self.0);
        Box::pin(async move { Ok(returned) })
    }
}

#[tokio::test]
async fn a_tool_of_the_host_that_does_not_return_what_it_is_declared_to_fails_its_step() {
    let definition = "
tools: {search: {returns: {hits: integer}}}
outputs: {hits: '{{ state.found.hits }}'}
steps:
  - {id: find, type: mcp_call, tool: search, output_to: found}
";
    let server = Server::new();
    let host = server.agents.host();
    for (returned, failed) in [
        (json!({"hits": 3, "more": true}), None),
        (
            json!({"hits": "many"}),
            Some(
                "`find`: the result is not what the tool `search` is declared to return: \
                 `result.hits` must be an integer, and is a string",
            ),
        ),
    ] {
        let host = host.with_tools(Returns(returned));
        let graph = graph(definition);
        let started = host.start(&graph, &Value::Null, StartOptions::default());
        let report = host.drive(started.await.unwrap()).await.unwrap();
        let error = report.error.map(|error| error.message);
        assert_eq!(error.as_deref(), failed);
        if failed.is_none() {
            assert_eq!(report.output.to_json(), json!({"hits": 3}));
        }
    }
}
