//! Derived state: what is made, when, and how that can be seen.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::borrow::Cow;
use std::sync::Arc;

use flow_model::compile;
use flow_model::graph::{Graph, Operation};
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::host::{Host, HostOptions, StartOptions};
use flow_runtime::journal::Journal;
use flow_runtime::run::{
    Evaluator, Event, Expressions, Happening, Observer, Program, Run, Start, Transformation, Update,
};
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

fn graph(definition: &str) -> Graph {
    let compiled = compile(Source::new("test.yaml", definition), &NoLoader);
    let findings = format!("{:?}", compiled.findings);
    compiled
        .into_graph()
        .unwrap_or_else(|| panic!("{findings}"))
}

/// A definition with this state and these computed fields that does nothing by itself.
fn fields(state: &str, computed: &str) -> String {
    format!(
        "state: {state}\ncomputed:\n{computed}steps:\n  - {{type: prompt, kind: text, message: wait}}\n"
    )
}

fn begin(definition: &str, watch: Option<&mut dyn Observer>) -> Run {
    begin_as("test", definition, watch)
}

fn begin_as(id: &str, definition: &str, watch: Option<&mut dyn Observer>) -> Run {
    let program = Program::new(Cow::Owned(graph(definition)), Box::new(Expressions::new()));
    let mut run = Run::new(Arc::new(program));
    let started = Start {
        run: id.to_owned(),
        inputs: Value::map::<&str>([]),
        ..Start::default()
    };
    apply(&mut run, Happening::Started(started), watch);
    run
}

fn apply(run: &mut Run, what: Happening, watch: Option<&mut dyn Observer>) {
    let event = Event { at: 1_000, what };
    match watch {
        Some(watch) => run.apply_watched(&event, watch).unwrap(),
        None => run.apply(&event).unwrap(),
    };
}

fn set(path: &str, value: Json) -> Happening {
    Happening::Updated {
        updates: vec![Update {
            path: path.to_owned(),
            operation: Operation::Set,
            value: Value::from(&value),
        }],
    }
}

#[derive(Default)]
struct Seen(Vec<String>);

impl Observer for Seen {
    fn begins(&mut self, _field: &str) {}

    fn evaluated(&mut self, _field: &str) {}

    fn ended(&mut self, made: Transformation<'_>) {
        self.0.push(made.field.name.to_string());
    }
}

/// What became of each field, and why.
#[derive(Default)]
struct Made(Vec<(String, Json, Option<String>)>);

impl Observer for Made {
    fn begins(&mut self, _field: &str) {}

    fn evaluated(&mut self, _field: &str) {}

    fn ended(&mut self, made: Transformation<'_>) {
        let output = made.output.map_or(Json::Null, Value::to_json);
        let error = made.error.map(str::to_owned);
        self.0.push((made.field.name.to_string(), output, error));
    }
}

#[test]
fn a_trace_says_what_a_field_became_and_what_failed_on_the_way() {
    let text = "  missed: {from: n, transform: input, validate: output < 5}
  replaced: {from: n, transform: input, validate: output < 5, on_error: use_fallback, fallback: 1}
  kept: {from: n, transform: input, validate: output < 5, on_error: ignore}
";
    let mut run = begin(&fields("{n: 3}", text), None);
    let mut made = Made::default();
    apply(&mut run, set("n", json!(9)), Some(&mut made));
    let error = |name| Some(format!("`{name}` does not satisfy its `validate`: 9"));
    assert_eq!(
        made.0,
        [
            ("missed".to_owned(), Json::Null, error("missed")),
            ("replaced".to_owned(), json!(1), error("replaced")),
            ("kept".to_owned(), json!(3), error("kept")),
        ]
    );
}

#[test]
fn a_field_made_from_one_that_failed_does_what_its_own_on_error_says() {
    let text = "  parsed: {from: text, transform: JSON.parse(input)}
  first: {from: parsed, transform: 'input[0]'}
  replaced: {from: parsed, transform: 'input[0]', on_error: use_fallback, fallback: 0}
  kept: {from: [parsed, text], transform: 'input[0][0]', on_error: ignore}
  follows: {from: replaced, transform: input + 1}
";
    let mut run = begin(&fields("{text: '[4]'}", text), None);
    let mut made = Made::default();
    apply(&mut run, set("text", json!("[")), Some(&mut made));
    let state = run.flattened().to_json();
    assert_eq!(
        state,
        json!({"replaced": 0, "kept": 4, "follows": 1, "text": "["})
    );
    // Why is told with what became of each.
    let reason = made.0[0].2.clone().unwrap();
    let reason = format!("computing `parsed` failed: {reason}");
    for (field, output, error) in &made.0[1..4] {
        let expected = match field.as_str() {
            "first" => Json::Null,
            "replaced" => json!(0),
            _ => json!(4),
        };
        assert_eq!(
            (output, error.as_ref()),
            (&expected, Some(&reason)),
            "{field}"
        );
    }
    apply(&mut run, set("text", json!("[7]")), None);
    let state = run.flattened().to_json();
    assert_eq!(
        state,
        json!({"parsed": [7], "first": 7, "replaced": 7, "kept": 7, "follows": 8, "text": "[7]"})
    );
}

const DIAMOND: &str = "  low: {from: n, transform: 'Math.min(input, 10)'}
  left: {from: low, transform: input + 1}
  right: {from: low, transform: input * 2}
  both: {from: [left, right], transform: 'input[0] + input[1]'}
";

#[test]
fn each_field_is_made_once_after_everything_it_is_made_from() {
    let mut seen = Seen::default();
    let run = begin(&fields("{n: 3}", DIAMOND), Some(&mut seen));
    assert_eq!(seen.0, ["low", "left", "right", "both"]);
    assert_eq!(run.flattened().get("both"), Some(&Value::Int(10)));
}

#[test]
fn a_value_that_stays_the_same_makes_nothing_else_due() {
    let mut run = begin(&fields("{n: 30}", DIAMOND), None);
    let mut seen = Seen::default();
    apply(&mut run, set("n", json!(40)), Some(&mut seen));
    assert_eq!(seen.0, ["low"]);
    seen.0.clear();
    apply(&mut run, set("n", json!(4)), Some(&mut seen));
    assert_eq!(seen.0, ["low", "left", "right", "both"]);
}

#[test]
fn a_field_is_made_again_only_when_what_it_is_made_from_is_another_value() {
    let text = "  timeout: {from: raw.config.timeout, transform: input}
  whole: {from: config, transform: Object.keys(input).length}
  first: {from: list.0, transform: input}
  length: {from: list, transform: input.length}
";
    let state = "{config: {timeout: 5, other: 1}, list: [1]}";
    let mut run = begin(&fields(state, text), None);
    let mut made = |what: Happening| {
        let mut seen = Seen::default();
        apply(&mut run, what, Some(&mut seen));
        seen.0
    };
    let none: [&str; 0] = [];
    assert_eq!(made(set("raw.config.timeout", json!(5))), none);
    assert_eq!(made(set("raw.list", json!([1]))), none);
    assert_eq!(made(set("raw.config.other", json!(2))), ["whole"]);
    assert_eq!(
        made(set("raw.config.timeout", json!(6))),
        ["timeout", "whole"]
    );
    assert_eq!(made(set("raw.config", json!({"timeout": 6}))), ["whole"]);
    assert_eq!(made(set("raw.config", json!({}))), ["whole"]);
    assert_eq!(made(set("raw.list.0", json!(2))), ["first", "length"]);
    assert_eq!(made(set("raw.list.1", json!(3))), ["length"]);
    // The field is in the raw tier alone, so this is where the view is written.
    let both = ["timeout", "whole"];
    assert_eq!(made(set("state.config.timeout", json!(7))), both);
}

#[test]
fn a_field_that_fails_leaves_the_others_of_its_pass_alone() {
    let run = begin(
        &fields(
            "{n: 3}",
            "  a: {from: n, transform: input + 1}
  thrown: {from: n, transform: 'null.x'}
  b: {from: n, transform: input + 2}
  endless: {from: n, transform: 'while (true) {} return 1', on_error: use_fallback, fallback: -1}
  c: {from: n, transform: input + 3}
  greedy: {from: n, transform: \"'x'.repeat(1e9)\", on_error: use_fallback, fallback: -2}
  d: {from: n, transform: input + 4}
  refused: {from: n, transform: input, validate: output > 5, on_error: use_fallback, fallback: 6}
  e: {from: n, transform: input + 5}
",
        ),
        None,
    );
    let state = run.flattened().to_json();
    assert_eq!(
        state,
        json!({"a": 4, "b": 5, "endless": -1, "c": 6, "greedy": -2, "d": 7, "refused": 6, "e": 8, "n": 3})
    );
}

#[test]
fn what_looks_at_all_of_the_state_sees_the_fields_before_it() {
    let run = begin(
        &fields(
            "{n: 3}",
            "  a: {from: n, transform: input + 1}
  names: {from: n, transform: 'Object.keys(this).sort().join()'}
  b: {from: names, transform: input.length}
",
        ),
        None,
    );
    assert_eq!(run.flattened().get("names"), Some(&Value::text("a,n")));
    assert_eq!(run.flattened().get("b"), Some(&Value::Int(3)));
}

#[test]
fn watching_changes_nothing() {
    let computed = "  id: {from: n, transform: Math.random()}
  other: {from: n, transform: 'Math.random() + Date.now()'}
  text: {from: n, value: \"{{ uuid() }} {{ state.n }}\"}
  list: {from: n, transform: '[input, input]'}
  sum: {from: [list, id], transform: 'input[0].length + input[1]'}
";
    let definition = fields("{n: 1}", computed);
    let (mut plain, mut watched) = (
        begin(&definition, None),
        begin(&definition, Some(&mut Seen::default())),
    );
    for n in 2..5 {
        apply(&mut plain, set("n", json!(n)), None);
        apply(&mut watched, set("n", json!(n)), Some(&mut Seen::default()));
    }
    assert_eq!(plain.data(), watched.data());
    assert!(plain.flattened().get("sum").is_some());
}

#[test]
fn what_is_random_differs_between_runs_and_stays_with_its_run() {
    let definition = fields(
        "{n: 1, id: '{{ uuid() }}'}",
        "  random: {from: n, transform: Math.random()}\n",
    );
    let of = |id: &str| {
        let run = begin_as(id, &definition, None);
        ["id", "random"].map(|field| run.flattened().get(field).cloned().unwrap())
    };
    let (first, again, other) = (of("r-1"), of("r-1"), of("r-2"));
    assert_eq!(first, again);
    assert_ne!(first[0], other[0]);
    assert_ne!(first[1], other[1]);
}

#[test]
fn a_thousand_fields_follow_one_write() {
    let computed: String = (0..1_000)
        .map(|n| format!("  c{n}: {{from: n, transform: input + {n}}}\n"))
        .collect();
    let mut run = begin(&fields("{n: 0}", &computed), None);
    apply(&mut run, set("n", json!(7)), None);
    for n in 0..1_000 {
        assert_eq!(
            run.flattened().get(&format!("c{n}")),
            Some(&Value::Int(7 + n))
        );
    }
}

fn evaluator(_graph: &Graph) -> Box<dyn Evaluator> {
    Box::new(Expressions::new())
}

#[test]
fn a_trace_says_what_a_field_was_made_from_and_why() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path().join("journal.db")).unwrap();
    let options = HostOptions::new(journal, directory.path().to_owned(), evaluator);
    let host = Host::new(options);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let definition = fields(
        "{n: 1}",
        "  double: {from: n, transform: input * 2}
  part: {from: [double, n], transform: 'if (input[1] > 1) throw new Error(\"too much\"); return input[0]'}
",
    );
    let traces = runtime.block_on(async {
        let none = Value::map::<&str>([]);
        let run = host
            .start(&graph(&definition), &none, StartOptions::default())
            .await
            .unwrap();
        host.drive(run).await.unwrap();
        host.record(run, set("n", json!(5))).await.unwrap();
        let before = host.journal().events(run, 1.., usize::MAX).unwrap().len();
        let (all, part) = (
            host.traces(run, None).unwrap(),
            host.traces(run, Some("part")).unwrap(),
        );
        assert_eq!(
            host.journal().events(run, 1.., usize::MAX).unwrap().len(),
            before
        );
        assert_eq!(host.sizes(run).unwrap().transformations, 4);
        (all, part)
    });
    let (all, part) = traces;
    let fields: Vec<&str> = all
        .traces
        .iter()
        .map(|trace| trace.field.as_str())
        .collect();
    assert_eq!(fields, ["double", "part", "double", "part"]);
    assert_eq!(
        all.fields
            .iter()
            .map(|field| field.count)
            .collect::<Vec<_>>(),
        [2, 2]
    );
    let [first, second] = part.traces.as_slice() else {
        panic!("{part:?}");
    };
    assert_eq!(first.cause, None);
    assert_eq!(first.output, Some(Value::Int(2)));
    assert_eq!(first.error, None);
    assert_eq!(second.cause.as_deref(), Some("n"));
    assert_eq!(
        second.inputs,
        [
            ("double".to_owned(), Value::Int(10)),
            ("n".to_owned(), Value::Int(5))
        ]
    );
    assert_eq!(second.output, None);
    assert!(second.error.as_deref().unwrap().contains("too much"));
    assert!(second.event > first.event);
}
