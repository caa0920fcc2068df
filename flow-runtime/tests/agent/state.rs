//! State that is changed from outside.

use flow_model::graph::Operation;
use flow_runtime::host::agent::TurnStatus;
use flow_runtime::run::Update;
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

use super::support::{Server, definition as definition_of, output, step_id};

pub(crate) fn update(path: &str, operation: Operation, value: &Json) -> Update {
    Update {
        path: path.to_owned(),
        operation,
        value: Value::from(value),
    }
}

/// A list in so many levels.
fn nested(levels: usize) -> Json {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

#[tokio::test]
async fn a_field_nests_in_a_hundred_levels_and_no_more() {
    let server = Server::new();
    let definition = "tools: {t: {}}\nsteps: [{id: go, type: mcp_call, tool: t}]\n";
    let run = server.start(definition, json!({})).await;
    for (path, operation, levels) in [
        ("raw.a", Operation::Set, 100),
        ("raw.b.c", Operation::Set, 99),
        ("raw.d", Operation::Append, 99),
    ] {
        let most = update(path, operation, &nested(levels));
        server.agents.update(run, vec![most]).await.unwrap();
        let more = update(path, operation, &nested(levels + 1));
        let refused = server.agents.update(run, vec![more]).await;
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("nest deeper than 100 levels"), "{told}");
    }
}

#[tokio::test]
async fn a_step_that_is_done_without_a_result_leaves_what_its_agent_has_written() {
    let server = Server::new();
    let definition = "
tools: {lint: {}}
state: {lint: null, lines: null, text: null, data: null, said: null, rounds: 0}
outputs:
  all: {type: array, value: '{{ [state.lint, state.lines, state.text, state.data, state.said, state.rounds] }}'}
steps:
  - {id: a, type: mcp_call, tool: lint, output_to: lint}
  - {id: b, type: shell, command: ls, output_format: lines, output_to: lines}
  - {id: c, type: shell, command: ls, output_format: text, state_update: {path: raw.text}}
  - {id: d, type: shell, command: ls, output_format: json, state_update: {path: raw.data, value: '{{ result.x }}'}}
  - {id: e, type: delegate, instructions: go, output_to: said}
  - {id: f, type: mcp_call, tool: lint, state_update: {path: raw.rounds, operation: increment, value: 1}}
";
    let run = server.start(definition, json!({})).await;
    let mut turn = server.next(run, None).await;
    for (step, field) in [
        ("a", "lint"),
        ("b", "lines"),
        ("c", "text"),
        ("d", "data"),
        ("e", "said"),
    ] {
        assert_eq!(step_id(&turn), step);
        let own = update(&format!("raw.{field}"), Operation::Set, &json!([step]));
        server.agents.update(run, vec![own]).await.unwrap();
        turn = server.done(run, step).await;
    }
    turn = server.done(run, &step_id(&turn)).await;
    let all = json!([["a"], ["b"], ["c"], ["d"], ["e"], 1]);
    assert_eq!(output(&turn), json!({ "all": all }));
}

#[tokio::test]
async fn computed_fields_that_fail_are_named_with_their_reason() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
state: {text: '[1]'}
computed:
  parsed: {from: text, transform: JSON.parse(input)}
  first: {from: parsed, transform: 'input[0]'}
  length: {from: text, transform: input.length}
steps: [{id: go, type: mcp_call, tool: t}]
";
    let run = server.start(definition, json!({})).await;
    let change = |text: &str| vec![update("raw.text", Operation::Set, &json!(text))];
    let said = server.agents.update(run, change("[2")).await.unwrap();
    assert_eq!(said.changed.to_json(), json!({"length": 2}));
    let failed: Vec<&String> = said.failed.keys().collect();
    assert_eq!(failed, ["first", "parsed"]);
    assert!(said.failed["parsed"].starts_with("computing `parsed` failed: "));
    // Whoever reads the state is told as well.
    let told = server.agents.computed_errors(run).await.unwrap();
    assert_eq!(told, said.failed);
    let said = server.agents.update(run, change("[2]")).await.unwrap();
    assert_eq!(said.failed.len(), 0);
    assert_eq!(
        said.changed.to_json(),
        json!({"parsed": [2], "first": 2, "length": 3})
    );
}

#[tokio::test]
async fn a_name_alone_means_the_computed_field_and_a_tier_before_it_that_tier() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
state: {size: 1, n: 2}
computed:
  size: {from: n, transform: input * 10}
  seen: {from: raw.size, transform: input + 1}
steps:
  - {id: go, type: mcp_call, tool: t}
  - {id: by_step, type: set_state, updates: {raw.size: 7}}
  - {id: end, type: mcp_call, tool: t}
";
    let run = server.start(definition, json!({})).await;
    server.next(run, None).await;
    let set = |path: &str| vec![update(path, Operation::Set, &json!(5))];
    for path in ["size", "size.x", "computed.size"] {
        let refused = server.agents.update(run, set(path)).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`size` is computed and cannot be written: write the fields it is made from; it follows"
        );
    }
    let said = server.agents.update(run, set("raw.size")).await.unwrap();
    assert_eq!(said.changed.to_json(), json!({"seen": 6}));
    server.submit(run, "go", json!(null)).await;
    let state = server.agents.state(run).await.unwrap().to_json();
    assert_eq!(state, json!({"size": 20, "n": 2, "seen": 8}));
}

#[tokio::test]
async fn a_path_with_an_empty_part_is_none() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
inputs: {name: string}
state: {by: {}}
steps:
  - {id: go, type: mcp_call, tool: t}
  - {id: note, type: set_state, updates: {'by.{{ inputs.name }}': 1}}
";
    let run = server.start(definition, json!({"name": ""})).await;
    server.next(run, None).await;
    for path in ["", "a..b", "state..x", "raw.", "a.", ".a", "by. "] {
        let changes = vec![update(path, Operation::Set, &json!(1))];
        let refused = server.agents.update(run, changes).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "`{path}` is not a state path: write a field, or fields joined by dots, such as \
                 `results.first`"
            )
        );
    }
    // In a step it may come about as the run goes.
    let turn = server.submit(run, "go", json!(null)).await;
    let error = turn.error.unwrap();
    assert_eq!(
        error.message,
        "`note`: `by.` is not a state path: a part of it is empty"
    );
    assert_eq!(error.step.as_deref(), Some("note"));
}

/// Includes `scores`, which sets what it computes from.
const CHILD: &str = "
state: {round: 7, points: [3, 4]}
computed:
  score: {from: points, transform: 'input.length * 10'}
  best: {from: points, transform: 'Math.max(...input)'}
steps: [{type: return, value: null}]
";

#[tokio::test]
async fn an_included_workflow_adds_its_computed_fields_and_nothing_else() {
    let server = Server::calling(vec![("scores", CHILD)]);
    let definition = "
state: {round: 1}
computed: {best: {from: round, transform: input}}
outputs:
  all: {type: array, value: '{{ [state.round, state.score, computed.score, state.best, state.points is defined] }}'}
steps:
  - {id: go, type: call, workflow: scores, shares_computed: true}
";
    let run = server.start(definition, json!({})).await;
    let turn = server.next(run, None).await;
    assert_eq!(output(&turn), json!({"all": [1, 20, 20, 1, false]}));
}

#[tokio::test]
async fn what_is_made_from_an_included_field_is_made_when_that_is_there() {
    let server = Server::calling(vec![("scores", CHILD)]);
    let definition = "
computed:
  twice: {from: score, transform: input * 2}
  told: {from: computed.best, transform: '`best ${input} of ${score}`'}
  thrice: {from: twice, transform: input + score}
outputs:
  all: {type: array, value: '{{ [state.twice, state.told, state.thrice] }}'}
steps:
  - {id: go, type: call, workflow: scores, shares_computed: true}
";
    let run = server.start(definition, json!({})).await;
    let turn = server.next(run, None).await;
    assert_eq!(output(&turn), json!({"all": [40, "best 4 of 20", 60]}));
}

#[tokio::test]
async fn in_javascript_an_input_is_nearer_than_a_field_of_the_same_name() {
    let server = Server::new();
    let definition = "
expressions: js
inputs: {file: string}
state: {file: old}
outputs: {all: {type: array, value: '{{ [file, state.file, inputs.file] }}'}}
steps: [{id: go, type: set_state, updates: {seen: '{{ file }}'}}]
";
    let run = server.start(definition, json!({"file": "new"})).await;
    let turn = server.next(run, None).await;
    assert_eq!(output(&turn), json!({"all": ["new", "old", "new"]}));
    let state = server.agents.state(run).await.unwrap();
    assert_eq!(state.to_json()["seen"], "new");
}

#[tokio::test]
async fn a_computed_field_that_has_no_value_here_is_that_of_the_included_workflow() {
    let server = Server::calling(vec![("scores", CHILD)]);
    // As where the file is imported too: its rules are here, and what they are made from is not.
    let definition = "
computed:
  score: {from: points, transform: 'input.length * 10'}
  twice: {from: score, transform: input * 2}
outputs: {all: {type: array, value: '{{ [state.score, computed.score, state.twice] }}'}}
steps:
  - {id: go, type: call, workflow: scores, shares_computed: true}
";
    let run = server.start(definition, json!({})).await;
    let turn = server.next(run, None).await;
    assert_eq!(output(&turn), json!({"all": [20, 20, 40]}));
    let host = server.agents.host();
    let included = host.included(run).unwrap();
    let fields: Vec<&str> = included.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["best", "score"]);
    let maker = host.maker(run, "score").unwrap();
    assert_eq!(maker, included[1].1);
    let traces = host.traces(maker, Some("score")).unwrap().traces;
    assert_eq!(traces[0].output.as_ref().unwrap().to_json(), 20);
    assert_eq!(host.maker(run, "twice").unwrap(), run);
}

#[tokio::test]
async fn computed_fields_of_an_included_workflow_are_read_only() {
    let server = Server::calling(vec![("scores", CHILD)]);
    let definition = "
tools: {t: {}}
state: {best: mine}
steps:
  - {id: go, type: call, workflow: scores, shares_computed: true}
  - {id: own, type: set_state, updates: {best: still mine}}
  - {id: ask, type: mcp_call, tool: t}
  - {id: write, type: set_state, updates: {score: 1}}
";
    let run = server.start(definition, json!({})).await;
    assert_eq!(step_id(&server.next(run, None).await), "ask");
    for path in ["score", "raw.score", "computed.score", "this.score"] {
        let change = vec![update(path, Operation::Set, &json!(1))];
        let refused = server.agents.update(run, change).await.unwrap_err();
        let refused = refused.to_string();
        assert!(refused.starts_with("`score` is computed"), "{refused}");
    }
    let change = vec![update("best", Operation::Set, &json!("ours"))];
    server.agents.update(run, change).await.unwrap();
    let turn = server.submit(run, "ask", json!(null)).await;
    let failed = turn.error.unwrap().message;
    assert!(
        failed.contains("`score` is computed by a workflow that is included"),
        "{failed}"
    );
    let state = server.agents.state(run).await.unwrap();
    assert_eq!(state.to_json(), json!({"score": 20, "best": "ours"}));
}

#[tokio::test]
async fn paths_from_outside_mean_what_they_say_or_are_refused() {
    let server = Server::new();
    let definition = "
tools: {t: {}}
inputs: {n: integer}
state: {l: [1, {a: 2}], m: {}}
computed: {size: {from: l, transform: input.length}}
steps: [{id: go, type: mcp_call, tool: t}]
";
    let run = server.start(definition, json!({"n": 5})).await;
    let set = |path: &str| vec![update(path, Operation::Set, &json!(7))];
    for path in ["l[0]", "this.m.x", "raw.l[1].a", "m[\"a.b\"]", "state.l.2"] {
        server.agents.update(run, set(path)).await.unwrap();
    }
    for (path, reason) in [
        (
            "raw",
            "all of the state, not a field of it: write a field, such as `raw.count`",
        ),
        ("state", "all of the state"),
        ("this", "all of the state"),
        ("inputs", "inputs are read-only"),
        (
            "inputs.n",
            "inputs are read-only; a field of the state that has this name is `raw.inputs.n`",
        ),
        ("m[0]", "an item of `m`, which is an object"),
        (
            "new[0]",
            "an item of `new`, which is not set: set `new` to a list first",
        ),
        ("l[9]", "`l` is an array of 3 and has no `9`"),
        ("l[x]", "is not a state path"),
    ] {
        let refused = server.agents.update(run, set(path)).await.unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains(reason), "{path}: {refused}");
    }
    // What one change of a batch makes the next can go on with.
    let both = vec![
        update("new", Operation::Set, &json!([1])),
        update("new[1]", Operation::Set, &json!(2)),
    ];
    server.agents.update(run, both).await.unwrap();
    let paths = [
        "l[1].a",
        "raw.l[0]",
        "computed.size",
        "inputs.n",
        "state.new",
        "this.m.x",
        "raw.size",
        "computed.l",
        "raw.m",
        "computed",
        "nothing",
    ];
    let paths = paths.map(str::to_owned).to_vec();
    let values = server.agents.values(run, paths).await.unwrap();
    let values: Vec<Json> = values
        .into_iter()
        .map(|value| value.map_or(Json::Null, |value| value.to_json()))
        .collect();
    assert_eq!(
        values,
        [
            json!(7),
            json!(7),
            json!(3),
            json!(5),
            json!([1, 2]),
            json!(7),
            Json::Null,
            Json::Null,
            json!({"x": 7, "a.b": 7}),
            json!({"size": 3}),
            Json::Null,
        ]
    );
}

#[tokio::test]
async fn the_state_of_a_failed_run_can_be_mended_before_it_is_resumed() {
    let mut server = Server::new();
    let definition = "
tools: {t: {}}
state: {by: 0}
computed: {next: {from: by, transform: input + 1}}
outputs: {left: '{{ state.left }}'}
steps:
  - {id: go, type: mcp_call, tool: t}
  - {id: divide, type: set_state, updates: {left: '{{ 12 // state.by }}'}}
";
    let run = server.start(definition, json!({})).await;
    server.next(run, None).await;
    let turn = server.submit(run, "go", json!(null)).await;
    assert_eq!(turn.status, TurnStatus::Failed);
    server.restart();
    let mend = vec![update("by", Operation::Set, &json!(4))];
    let said = server.agents.update(run, mend.clone()).await.unwrap();
    assert_eq!(said.changed.to_json(), json!({"next": 5}));
    assert_eq!(server.next(run, None).await.status, TurnStatus::Failed);
    server.agents.resume(run).await.unwrap();
    assert_eq!(output(&server.next(run, None).await), json!({"left": 3}));
    let refused = server.agents.update(run, mend).await.unwrap_err();
    assert_eq!(refused.to_string(), "the run is over: it completed");
}

#[tokio::test]
async fn a_step_says_where_its_result_goes_as_an_update_would() {
    let server = Server::new();
    let definition = "
state: {res: {}}
tools: {ask: {}}
steps:
  - id: each
    type: foreach
    items: [a.ts, b]
    steps:
      - {id: one, type: mcp_call, tool: ask, state_update: {path: 'raw.res.{{ item }}'}}
";
    let run = server.start(definition, json!({})).await;
    let turn = server.next(run, None).await;
    let path = definition_of(&turn, "state_update")["path"]
        .as_str()
        .unwrap();
    assert_eq!(path, "raw.res[\"a.ts\"]");
    let path = path.to_owned();
    let turn = server.submit(run, &step_id(&turn), json!(7)).await;
    let values = server.agents.values(run, vec![path]).await.unwrap();
    assert_eq!(values, [Some(Value::Int(7))]);
    let next = definition_of(&turn, "state_update")["path"]
        .as_str()
        .unwrap();
    assert_eq!(next, "raw.res.b");
}
