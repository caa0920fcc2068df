//! That every run can be ended: by its own bounds, and by whoever cancels it.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use flow_model::compile;
use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::expression::{Patience, as_judged, judged};
use flow_runtime::host::{Host, HostOptions, Report, ReportStatus, StartOptions};
use flow_runtime::journal::{Append, Error, Journal, RunUpdate, Status};
use flow_runtime::run::{
    Effect, Evaluator, Event, Expressions, Happening, Program, Run, Start, Status as RunStatus,
};
use flow_runtime::value::Value;
use serde_json::json;

const NO_TIME: Duration = Duration::ZERO;
const MUCH_TIME: Duration = Duration::from_secs(1_000);

fn graph(definition: &str) -> Graph {
    let compiled = compile(Source::new("test.yaml", definition), &NoLoader);
    let findings = format!("{:?}", compiled.findings);
    compiled
        .into_graph()
        .unwrap_or_else(|| panic!("{findings}"))
}

fn program(definition: &str) -> Arc<Program> {
    let graph = Cow::Owned(graph(definition));
    Arc::new(Program::new(graph, Box::new(Expressions::new())))
}

fn started() -> Happening {
    Happening::Started(Start {
        run: "r-1".to_owned(),
        inputs: Value::map::<&str>([]),
        ..Start::default()
    })
}

#[test]
fn a_run_gives_way_when_its_time_is_up_and_a_replay_gives_way_where_it_did() {
    let program = program(
        "state: {n: 0}
steps:
  - type: while
    if: '{{ true }}'
    max_iterations: 5
    steps: [{type: set_state, updates: [{path: n, operation: increment}]}]
",
    );
    for (stretch, turns) in [(NO_TIME, 11), (MUCH_TIME, 1)] {
        let patience = Patience {
            one: MUCH_TIME,
            all: MUCH_TIME,
            stretch,
        };
        let mut run = Run::new(Arc::clone(&program));
        let mut replayed = Run::new(Arc::clone(&program));
        let mut what = started();
        let mut events = 0;
        while run.status() == RunStatus::Running {
            let event = Event { at: 0, what };
            let (effects, decided) = judged(patience, || run.apply(&event).unwrap());
            let again = as_judged(&decided, || replayed.apply(&event).unwrap());
            assert_eq!(again, effects);
            assert_eq!(replayed.data(), run.data());
            let gives_way = effects.contains(&Effect::Yield);
            assert_eq!(gives_way, run.status() == RunStatus::Running);
            assert_eq!(decided.gave_way.is_some(), gives_way);
            events += 1;
            // Saying so leads nowhere: the run goes on when it is told to.
            let said = Happening::Late {
                evaluations: decided.late,
                gave_way: decided.gave_way,
            };
            let said = Event { at: 0, what: said };
            for run in [&mut run, &mut replayed] {
                let steps = run.data().unwrap().executed();
                assert_eq!(run.apply(&said).unwrap(), []);
                assert_eq!(run.data().unwrap().executed(), steps);
            }
            what = Happening::Continued;
        }
        assert_eq!(run.flattened().to_json(), json!({"n": 5}));
        assert_eq!(events, turns);
    }
}

#[test]
fn all_expressions_of_a_step_share_a_time_and_a_replay_ends_the_same_ones() {
    let program = program(
        "expressions: js
state: {n: 0}
computed:
  a: {from: n, transform: input + 1, on_error: use_fallback, fallback: -1}
  b: {from: n, transform: input + 2, on_error: use_fallback, fallback: -2}
  c: {from: a, transform: input + 3, on_error: use_fallback, fallback: -3}
steps: [{id: write, type: set_state, updates: {n: '{{ 1 + 1 }}'}, on_error: continue}]
",
    );
    let apply = |all| {
        let patience = Patience {
            one: MUCH_TIME,
            all,
            stretch: MUCH_TIME,
        };
        let event = Event {
            at: 0,
            what: started(),
        };
        let mut run = Run::new(Arc::clone(&program));
        let (_, decided) = judged(patience, || run.apply(&event).unwrap());
        let mut replayed = Run::new(Arc::clone(&program));
        as_judged(&decided, || replayed.apply(&event).unwrap());
        assert_eq!(replayed.data(), run.data());
        (run.flattened().to_json(), decided.late.len())
    };
    let in_time = json!({"a": 3, "b": 4, "c": 6, "n": 2});
    assert_eq!(apply(MUCH_TIME), (in_time, 0));
    let late = json!({"a": -1, "b": -2, "c": -3, "n": 0});
    assert_eq!(apply(NO_TIME), (late, 4));
}

struct Place {
    directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

fn evaluator(_graph: &Graph) -> Box<dyn Evaluator> {
    Box::new(Expressions::new())
}

fn reads_nothing(_graph: &Graph) -> Box<dyn Evaluator> {
    panic!("the run is read")
}

impl Place {
    fn new() -> Self {
        Place {
            directory: tempfile::tempdir().unwrap(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    fn host(&self, evaluator: fn(&Graph) -> Box<dyn Evaluator>) -> Host {
        let journal = Journal::open(self.directory.path().join("journal.db")).unwrap();
        let directory = self.directory.path().to_owned();
        Host::new(HostOptions::new(journal, directory, evaluator))
    }

    fn start(&self, host: &Host, definition: &str) -> Report {
        self.runtime.block_on(async {
            let none = Value::map::<&str>([]);
            let graph = graph(definition);
            let run = host.start(&graph, &none, StartOptions::default());
            host.drive(run.await.unwrap()).await.unwrap()
        })
    }
}

#[test]
fn whoever_cancels_a_run_need_not_be_as_fast_as_the_run() {
    let place = Place::new();
    let host = place.host(evaluator);
    let waits = place.start(
        &host,
        "steps:
  - {type: shell, command: 'true'}
  - {type: prompt, kind: confirm, message: 'Go on?'}
",
    );
    assert_eq!(waits.status, ReportStatus::Waiting);
    // To follow a run that does not wait is to come too late each time.
    let other = place.host(reads_nothing);
    let reason = "enough".to_owned();
    let cancelled = other.record(waits.run, Happening::Cancelled { reason });
    place.runtime.block_on(cancelled).unwrap();
    let report = host.report(waits.run).unwrap();
    assert_eq!(report.status, ReportStatus::Cancelled);
    assert_eq!(report.error.unwrap().message, "enough");
    let record = host.journal().run(waits.run).unwrap();
    assert_eq!(record.status, Status::Cancelled);
    let at_end = Append::at_end(waits.run)
        .event(1, "late", "{}")
        .update(RunUpdate::at(1));
    let refused = host.journal().append(at_end).unwrap_err();
    assert!(matches!(refused, Error::Fenced { .. }), "{refused}");
}

#[test]
fn a_run_that_never_waits_is_cancelled_while_it_runs() {
    let place = Place::new();
    let host = place.host(evaluator);
    let definition = "state: {n: 0}
limits: {max_steps: 100000000}
steps:
  - type: while
    if: '{{ true }}'
    max_iterations: 4294967295
    steps: [{type: set_state, updates: [{path: n, operation: increment}]}]
";
    let report = place.runtime.block_on(async {
        let none = Value::map::<&str>([]);
        let graph = graph(definition);
        let run = host.start(&graph, &none, StartOptions::default());
        let run = run.await.unwrap();
        let other = place.host(evaluator);
        let reason = "enough".to_owned();
        let cancel = other.record(run, Happening::Cancelled { reason });
        let (report, cancelled) = tokio::join!(host.drive(run), cancel);
        cancelled.unwrap();
        report.unwrap()
    });
    assert_eq!(report.status, ReportStatus::Cancelled);
}

fn ran(definition: &str) -> Report {
    let place = Place::new();
    let host = place.host(evaluator);
    place.start(&host, definition)
}

#[test]
fn a_computed_wait_keeps_to_the_bounds_of_a_written_one() {
    for (dialect, seconds) in [
        ("jinja", "{{ 1e17 }}"),
        ("jinja", "{{ 2592001 }}"),
        ("jinja", "{{ 0 - 1 }}"),
        ("jinja", "{{ '31d' }}"),
        ("jinja", "{{ 'soon' }}"),
        ("jinja", "{{ none }}"),
        ("js", "{{ 1e308 * 10 }}"),
    ] {
        let step = format!("{{id: w, type: wait, duration_seconds: \"{seconds}\"");
        let head = format!("expressions: {dialect}\nsteps:\n  - {step}");
        let failed = ran(&format!("{head}}}\n")).error.unwrap().message;
        assert!(failed.contains("`duration_seconds` is"), "{failed}");
        assert!(failed.contains("from 0 to 2592000 seconds"), "{failed}");
        let fallback = format!("{head}, fallback_value: 1, output_to: r}}\n");
        let report = ran(&fallback);
        assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
        assert_eq!(report.state.to_json(), json!({"r": 1}));
    }
    for seconds in ["{{ 0 }}", "{{ '0s' }}", "{{ '1ms' }}", "{{ '0' }}"] {
        let definition =
            format!("steps: [{{id: w, type: wait, duration_seconds: \"{seconds}\"}}]\n");
        let report = ran(&definition);
        assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    }
}
