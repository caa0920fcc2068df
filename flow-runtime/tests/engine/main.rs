//! What the engine promises beyond single steps: counters, resuming, schemas, narrow views, waiting.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

mod waiting;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flow_model::compile;
use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::host::agent::{Agents, Patience, Submission, TaskPage};
use flow_runtime::host::{
    Host, HostOptions, NoWorkflow, Pending, Report, ReportStatus, StartOptions, Watch, Workflows,
};
use flow_runtime::journal::{Append, Journal, NewRun, RunId, RunUpdate, Status};
use flow_runtime::run::{
    ActionId, Allowance, Deed, Effect, Ending, Evaluator, Event, Expressions, FailureKind,
    Happening, Program, Run, Start,
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

fn evaluator(_graph: &Graph) -> Box<dyn Evaluator> {
    Box::new(Expressions::new())
}

/// A directory with a journal, and hosts that come and go.
struct Place {
    directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

struct Children(Vec<(&'static str, &'static str)>);

impl Workflows for Children {
    fn find(&self, name: &str) -> Result<Graph, NoWorkflow> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, definition)| graph(definition))
            .ok_or_else(|| NoWorkflow::Unknown(format!("no {name}")))
    }

    fn compile(&self, _definition: &Value) -> Result<Graph, NoWorkflow> {
        Err(NoWorkflow::Invalid("not here".to_owned()))
    }
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

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self) -> HostOptions {
        let journal = Journal::open(self.path("journal.db")).unwrap();
        HostOptions::new(journal, self.directory.path().to_owned(), evaluator)
    }

    fn host(&self) -> Host {
        Host::new(self.options())
    }

    fn start(&self, host: &Host, definition: &str) -> Report {
        let graph = graph(definition);
        self.runtime.block_on(async {
            let none = Value::map::<&str>([]);
            let run = host.start(&graph, &none, StartOptions::default());
            let run = run.await.unwrap();
            host.drive(run).await.unwrap()
        })
    }

    fn resume(&self, host: &Host, run: RunId) -> Report {
        self.runtime.block_on(async {
            host.record(run, Happening::Resumed(Allowance::default()))
                .await
                .unwrap();
            host.drive(run).await.unwrap()
        })
    }

    fn run(&self, definition: &str) -> Report {
        self.start(&self.host(), definition)
    }
}

fn state(report: &Report) -> Json {
    report.state.to_json()
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

const COUNTED: &str =
    "state: {steps_completed: [], steps_failed: [], retry_counts: {}, last_error: null}
computed:
  tries: {from: retry_counts, transform: 'input.flaky || 0'}
steps:
  - {id: first, type: shell, command: 'echo first >> log'}
  - id: flaky
    type: shell
    command: 'echo flaky >> log; test -e go'
    retry: {attempts: 3, delay: 0}
  - {id: last, type: shell, command: 'echo last >> log'}
";

#[test]
fn counters_that_a_definition_declares_are_kept() {
    let place = Place::new();
    let host = place.host();
    let failed = place.start(&host, COUNTED);
    assert_eq!(failed.status, ReportStatus::Failed);
    let kept = state(&failed);
    assert_eq!(kept["steps_completed"], json!(["first"]));
    assert_eq!(kept["steps_failed"], json!(["flaky"]));
    assert_eq!(kept["retry_counts"], json!({"flaky": 2}));
    assert_eq!(kept["tries"], json!(2));
    assert_eq!(kept["last_error"]["step"], "flaky");
    std::fs::write(place.path("go"), "").unwrap();
    let done = place.resume(&host, failed.run);
    assert_eq!(done.status, ReportStatus::Completed, "{:?}", done.error);
    let kept = state(&done);
    assert_eq!(kept["steps_completed"], json!(["first", "flaky", "last"]));
    assert_eq!(kept["steps_failed"], json!([]));
    assert_eq!(kept["retry_counts"], json!({"flaky": 2}));
    let log = lines(&place.path("log"));
    assert_eq!(log, ["first", "flaky", "flaky", "flaky", "flaky", "last"]);
}

#[test]
fn counters_that_nobody_declares_do_not_appear() {
    let place = Place::new();
    let report = place.run("steps:\n  - {id: a, type: shell, command: 'true'}\n");
    assert_eq!(state(&report), json!({}));
}

#[test]
fn resuming_does_what_on_resume_says() {
    for (key, log) in [
        ("reset_error_counts: true", vec!["first", "flaky", "last"]),
        (
            "skip_completed_steps: false",
            vec!["first", "flaky", "first", "flaky", "last"],
        ),
        ("retry_failed_steps: false", vec!["first", "flaky", "last"]),
    ] {
        let place = Place::new();
        let host = place.host();
        let definition =
            format!("on_resume: {{{key}}}\n{COUNTED}").replace("attempts: 3", "attempts: 1");
        let failed = place.start(&host, &definition);
        assert_eq!(failed.status, ReportStatus::Failed);
        if !key.starts_with("retry") {
            std::fs::write(place.path("go"), "").unwrap();
        }
        let done = place.resume(&host, failed.run);
        assert_eq!(
            done.status,
            ReportStatus::Completed,
            "{key}: {:?}",
            done.error
        );
        let written = lines(&place.path("log"));
        let expected = match key.starts_with("reset") {
            true => vec!["first", "flaky", "flaky", "last"],
            false => log,
        };
        assert_eq!(written, expected, "{key}");
        let error = &state(&done)["last_error"];
        assert_eq!(error.is_null(), key.starts_with("reset"), "{key}");
    }
}

const DELEGATES: &str = "steps:
  - id: review
    type: delegate
    instructions: Is it safe?
    returns: {type: object, required: [safe], properties: {safe: {type: boolean}}}
    output_to: review
";

fn delegated(answers: &[&str]) -> (Report, Vec<String>) {
    let place = Place::new();
    for (index, answer) in answers.iter().enumerate() {
        std::fs::write(place.path(&format!("answer{index}")), answer).unwrap();
    }
    let mut options = place.options();
    // Says what it has prepared, one after another, and keeps what it was told.
    let agent = "cat >> told; echo '###' >> told; n=$(cat n 2>/dev/null || echo 0); cat answer$n; echo $((n + 1)) > n";
    options.agent = Some(format!("sh -c '{}'", agent.replace('\'', r"'\''")));
    let report = place.start(&Host::new(options), DELEGATES);
    let told = std::fs::read_to_string(place.path("told")).unwrap();
    let told = told.split("###\n").filter(|it| !it.is_empty());
    (report, told.map(str::to_owned).collect())
}

#[test]
fn an_answer_that_satisfies_its_schema_is_read() {
    let (report, told) = delegated(&["```json\n{\"safe\": true}\n```"]);
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(state(&report)["review"]["response"], json!({"safe": true}));
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("JSON Schema"), "{told:?}");
}

#[test]
fn an_answer_that_misses_its_schema_is_asked_for_once_more() {
    let (report, told) = delegated(&["it is", "{\"safe\": false}"]);
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(state(&report)["review"]["response"], json!({"safe": false}));
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("is not of type"), "{told:?}");
}

#[test]
fn two_answers_that_miss_their_schema_fail_the_step_with_every_fault() {
    let (report, told) = delegated(&["{}", "{\"safe\": \"very\"}"]);
    assert_eq!(report.status, ReportStatus::Failed);
    let error = report.error.unwrap();
    assert_eq!(error.kind, FailureKind::Validation);
    assert!(error.message.contains("/safe"), "{}", error.message);
    assert_eq!(told.len(), 2);
}

#[test]
fn a_jump_that_was_taken_often_enough_lets_its_loop_go_on() {
    // The last step of the body; within a condition; to the loop itself, which begins anew.
    let bodies = [
        ("{id: back, type: goto, target: top, max_iterations: 2}", 4),
        (
            "{type: condition, if: '{{ true }}', then: [{type: goto, target: top, max_iterations: 2}]}",
            4,
        ),
        ("{id: back, type: goto, target: each, max_iterations: 1}", 3),
    ];
    for (last, wanted) in bodies {
        for head in [
            "type: foreach\n    items: [a, b]",
            "type: while\n    if: '{{ loop.index < 2 }}'\n    max_iterations: 2",
        ] {
            let report = Place::new().run(&format!(
                "state: {{n: 0}}
limits: {{max_steps: 100}}
steps:
  - id: each
    {head}
    steps:
      - {{id: top, type: set_state, updates: {{n: '{{{{ state.n + 1 }}}}'}}}}
      - {last}
"
            ));
            let shown = format!("{head} {last}: {:?}", report.error);
            assert_eq!(report.status, ReportStatus::Completed, "{shown}");
            assert_eq!(state(&report)["n"], wanted, "{shown}");
        }
    }
}

#[test]
fn an_output_has_the_type_that_is_declared() {
    let run = |ty: &str, value: &str| {
        Place::new().run(&format!(
            "outputs: {{o: {{type: {ty}, value: '{{{{ {value} }}}}'}}}}\nsteps: []\n"
        ))
    };
    for (ty, value, wanted) in [
        ("integer", "\"42\\n\"", json!(42)),
        ("number", "1.5", json!(1.5)),
        ("string", "42", json!("42")),
        ("boolean", "\"true\"", json!(true)),
        ("array", "\"[1]\"", json!([1])),
        ("object", "{\"a\": 1}", json!({"a": 1})),
        ("integer", "none", json!(null)),
    ] {
        let report = run(ty, value);
        assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
        assert_eq!(report.output.to_json()["o"], wanted, "{ty} {value}");
    }
    for (ty, value, said) in [
        ("integer", "\"abc\"", "must be a whole number, not `abc`"),
        ("integer", "1.5", "must be an integer"),
        ("array", "{}", "must be an array, not an object"),
        ("string", "[1]", "must be a string, not an array"),
    ] {
        // The checker knows what is written out.
        let report = run(ty, &format!("({value}) | tojson | parse_json"));
        assert_eq!(report.status, ReportStatus::Failed, "{ty} {value}");
        let error = report.error.unwrap();
        assert_eq!(error.kind, FailureKind::Validation);
        assert!(
            error.message.starts_with("the output `o`"),
            "{}",
            error.message
        );
        assert!(error.message.contains(said), "{}", error.message);
    }
}

#[test]
fn a_container_that_fails_gives_its_fallback_and_the_run_goes_on() {
    for container in [
        "type: condition\n    if: '{{ true }}'\n    then:",
        "type: while\n    if: '{{ true }}'\n    max_iterations: 3\n    steps:",
        "type: foreach\n    items: [1, 2]\n    steps:",
    ] {
        let report = Place::new().run(&format!(
            "state: {{after: false}}
steps:
  - id: c
    fallback_value: 7
    {container}
      - {{type: shell, command: 'false'}}
  - {{type: set_state, updates: {{after: true}}}}
"
        ));
        assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
        assert_eq!(state(&report)["after"], true, "{container}");
    }
}

#[test]
fn a_fallback_that_is_null_is_a_fallback() {
    let report = Place::new().run(
        "state: {got: old}
steps:
  - {id: a, type: shell, command: 'false', output_format: text, fallback_value: null, output_to: got}
  - id: b
    type: condition
    if: '{{ true }}'
    fallback_value: null
    then: [{type: shell, command: 'false'}]
",
    );
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(state(&report)["got"], Json::Null);
}

#[test]
fn a_name_in_two_tiers_has_a_value_in_each() {
    let report = Place::new().run(
        "default_state: {raw: {both: from raw}, state: {both: by hand}}
outputs: {raw: '{{ raw.both }}', view: '{{ state.both }}'}
steps: [{type: set_state, updates: [{path: state.both, value: new}]}]
",
    );
    let found = json!({"raw": "from raw", "view": "from raw"});
    assert_eq!(report.output.to_json(), found);
}

#[test]
fn state_dot_a_field_is_written_where_it_is_read() {
    let report = Place::new().run(
        "state: {n: 0, seen: []}
default_state: {state: {note: old}}
computed:
  twice: {from: n, transform: input * 2}
steps:
  - id: count
    type: while
    if: '{{ state.n < 3 }}'
    max_iterations: 5
    steps:
      - type: set_state
        updates:
          - {path: state.n, operation: increment}
          - {path: state.seen, operation: append, value: '{{ state.n }}'}
          - {path: 'state.{{ \"note\" }}', value: 'at {{ state.n }}'}
          - {path: state.fresh.at, value: '{{ state.n }}'}
",
    );
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(
        state(&report),
        json!({"n": 3, "seen": [0, 1, 2], "note": "at 2", "twice": 6, "fresh": {"at": 2}})
    );
}

#[test]
fn a_field_outside_needs_state_is_refused_however_it_is_reached() {
    let reads = [
        ("jinja", "{{ state[state.key] }}"),
        ("jinja", "{% set s = state %}{{ s['hid' ~ 'den'] }}"),
        ("js", "{{ state[state.key] }}"),
        ("js", "{{ this['hid' + 'den'] }}"),
        (
            "js",
            "{{ (() => { try { return state[state.key] } catch (e) { return 1 } })() }}",
        ),
        ("js", "{{ ((s) => s[s.key])(state) }}"),
    ];
    for (dialect, read) in reads {
        let report = Place::new().run(&format!(
            "expressions: {dialect}
state: {{key: hidden, hidden: secret, open: 1}}
steps:
  - {{id: see, type: set_state, needs_state: [key, open], updates: {{x: \"{read}\"}}}}
"
        ));
        assert_eq!(report.status, ReportStatus::Failed, "{read}");
        let error = report.error.unwrap();
        assert_eq!(
            error.kind,
            FailureKind::StateAccess,
            "{read}: {}",
            error.message
        );
        assert!(
            error
                .message
                .contains("`hidden` is not listed in `needs_state`"),
            "{}",
            error.message
        );
    }
}

#[test]
fn looking_at_what_is_visible_is_allowed() {
    for (dialect, read) in [
        ("jinja", "{{ state | length }}"),
        ("js", "{{ Object.keys(state).length }}"),
        ("js", "{{ JSON.parse(JSON.stringify(state)).open + 1 }}"),
    ] {
        let report = Place::new().run(&format!(
            "expressions: {dialect}
state: {{key: hidden, hidden: secret, open: 1}}
steps:
  - {{id: see, type: set_state, needs_state: [key, open], updates: {{x: \"{read}\"}}}}
"
        ));
        assert_eq!(
            report.status,
            ReportStatus::Completed,
            "{read}: {:?}",
            report.error
        );
        assert_eq!(state(&report)["x"], json!(2), "{read}");
    }
}

#[test]
fn a_command_longer_than_an_argument_may_be_runs() {
    let place = Place::new();
    let text = "x".repeat(300 * 1024);
    let report = place.run(&format!(
        "limits: {{max_state_bytes: 2000000}}
state: {{text: {text}}}
outputs: {{said: '{{{{ state.said }}}}'}}
steps:
  - {{id: long, type: shell, command: \"printf %s {{{{ state.text }}}} | wc -c; echo end\", output_format: lines, output_to: said}}
"
    ));
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    let said = report.output.to_json();
    assert_eq!(said["said"][0].as_str().unwrap().trim(), "307200");
    assert_eq!(said["said"][1], "end");
}

/// Calls a workflow that asks somebody, within a time.
const CALLS: &str = "limits: {timeout: 10}
steps:
  - {id: inner, type: call, workflow: asks}
";

#[test]
fn the_time_of_a_run_stands_still_while_a_run_it_called_waits_for_somebody() {
    let program = Program::new(Cow::Owned(graph(CALLS)), Box::new(Expressions::new()));
    let mut run = Run::new(Arc::new(program));
    let mut apply = |at, what| run.apply(&Event { at, what }).unwrap();
    let started = Start {
        run: "test".to_owned(),
        inputs: Value::map::<&str>([]),
        ..Start::default()
    };
    let effects = apply(1_000, Happening::Started(started));
    let until = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Sleep { until, .. } => Some(*until),
            _ => None,
        })
    };
    assert_eq!(until(&effects), Some(11_000));
    let effects = apply(3_000, Happening::Rested);
    assert!(matches!(effects[..], [Effect::Stop(_)]), "{effects:?}");
    let effects = apply(1_000_000, Happening::Continued);
    assert_eq!(until(&effects), Some(1_008_000));
}

#[test]
fn a_host_says_when_a_run_that_was_called_waits_for_somebody() {
    let place = Place::new();
    let mut options = place.options();
    options.workflows = Arc::new(Children(vec![(
        "asks",
        "name: asks\nsteps:\n  - {id: name, type: prompt, kind: text, message: 'Who?', output_to: name}\n",
    )]));
    let host = Host::new(options);
    let waiting = place.start(&host, CALLS);
    assert_eq!(waiting.status, ReportStatus::Waiting);
    let kinds = || {
        let events = host.journal().events(waiting.run, 1.., usize::MAX).unwrap();
        let kinds = events.into_iter().map(|event| event.kind);
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(kinds(), ["started"]);
    let pending = host.pending(&waiting).unwrap();
    let Pending {
        run: child, action, ..
    } = pending.first().unwrap();
    assert!(matches!(action.what, Deed::Prompt { .. }));
    let answer = Happening::Completed {
        action: action.id,
        result: Value::from(&json!({"input": "Ada"})),
    };
    let done = place.runtime.block_on(async {
        host.record(*child, answer).await.unwrap();
        host.drive(waiting.run).await.unwrap()
    });
    assert_eq!(done.status, ReportStatus::Completed, "{:?}", done.error);
    assert_eq!(kinds(), ["started", "rested", "continued", "completed"]);
}

/// Works long enough for the clock to be looked at, in its first step and after an answer.
const SLOW: &str = "expressions: js
state: {n: 0}
computed:
  sum: {from: n, transform: 'let s = 0; for (let i = 0; i < 300000; i++) s += input; return s', on_error: use_fallback, fallback: -1}
  other: {from: n, transform: input + 1}
steps:
  - {id: begin, type: set_state, updates: {n: 1}}
  - {id: ask, type: prompt, kind: confirm, message: 'Go on?'}
  - {id: work, type: set_state, updates: {n: 2}}
  - {id: end, type: prompt, kind: confirm, message: 'Done?'}
";

fn host_with(place: &Place, expression_time: Duration) -> Host {
    let mut options = place.options();
    options.expression_time = expression_time;
    options.stretch_time = Duration::from_secs(1_000);
    Host::new(options)
}

fn confirm(place: &Place, host: &Host, report: &Report) -> Report {
    let answer = Happening::Completed {
        action: report.pending[0].action.id,
        result: Value::from(&json!({"confirmed": true})),
    };
    place.runtime.block_on(async {
        host.record(report.run, answer).await.unwrap();
        host.drive(report.run).await.unwrap()
    })
}

#[test]
fn what_the_clock_decided_is_decided_again_on_any_machine() {
    const NO_TIME: Duration = Duration::ZERO;
    const MUCH_TIME: Duration = Duration::from_secs(1_000);
    for (first, then, sum) in [(NO_TIME, MUCH_TIME, -1), (MUCH_TIME, NO_TIME, 600_000)] {
        let place = Place::new();
        let host = host_with(&place, first);
        let asks = place.start(&host, SLOW);
        let ends = confirm(&place, &host, &asks);
        assert_eq!(ends.status, ReportStatus::Waiting, "{:?}", ends.error);
        assert_eq!(state(&ends)["sum"], json!(sum));
        assert_eq!(state(&ends)["other"], json!(3));
        // Another machine, much faster or much slower, sees the same run.
        let other = host_with(&place, then);
        assert_eq!(other.report(ends.run).unwrap().state, ends.state);
        assert_eq!(
            other.history(ends.run).unwrap(),
            host.history(ends.run).unwrap()
        );
        let kinds = other.journal().events(ends.run, 1.., usize::MAX).unwrap();
        let late = kinds.iter().filter(|event| event.kind == "late").count();
        assert_eq!(late, if first == NO_TIME { 2 } else { 0 });
    }
}

#[test]
fn hostile_expressions_end_and_are_failures_of_their_step() {
    for (dialect, hostile) in [
        ("js", "{{ (() => { while (true) {} })() }}"),
        ("js", "{{ 'a'.repeat(1e9) }}"),
        ("js", "{{ /^(a+)+$/.test('a'.repeat(40) + 'b') }}"),
        ("js", "{{ (function f() { return f() })() }}"),
        ("js", "{{ Array(1e8).fill('x').join('y') }}"),
        ("jinja", "{{ '%1000000000d' | format(1) }}"),
        (
            "jinja",
            "{% set x = 'aaaaaaaaaa' * 10000000 %}{{ x * 10000 }}",
        ),
        (
            "jinja",
            "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        ),
    ] {
        let report = Place::new().run(&format!(
            "expressions: {dialect}
steps:
  - {{id: bad, type: set_state, updates: {{x: \"{hostile}\"}}}}
"
        ));
        assert_eq!(report.status, ReportStatus::Failed, "{hostile}");
        let error = report.error.unwrap();
        assert_eq!(
            error.step.as_deref(),
            Some("bad"),
            "{hostile}: {}",
            error.message
        );
    }
}

#[test]
fn a_resumed_call_goes_on_in_the_run_that_was_called_where_that_failed() {
    let place = Place::new();
    let mut options = place.options();
    options.workflows = Arc::new(Children(vec![(
        "child",
        "name: child\nsteps:\n  - {id: one, type: shell, command: 'echo one >> log'}\n  - {id: two, type: shell, command: 'echo two >> log; test -e ready'}\noutputs: {v: {type: string, value: done}}\n",
    )]));
    let host = Host::new(options);
    let definition = "name: caller
steps:
  - {id: sub, type: call, workflow: child, output_to: r}
outputs: {v: {type: string, value: '{{ state.r.v }}'}}
";
    let failed = place.start(&host, definition);
    assert_eq!(failed.status, ReportStatus::Failed);
    std::fs::write(place.path("ready"), "").unwrap();
    let done = place.resume(&host, failed.run);
    assert_eq!(done.status, ReportStatus::Completed, "{:?}", done.error);
    assert_eq!(lines(&place.path("log")), ["one", "two", "two"]);
    assert_eq!(done.output.to_json(), json!({"v": "done"}));
    assert_eq!(host.called(failed.run).unwrap().len(), 1);
}

#[test]
fn a_call_that_is_tried_again_calls_again() {
    let place = Place::new();
    let mut options = place.options();
    options.workflows = Arc::new(Children(vec![(
        "child",
        "name: child\nsteps:\n  - {id: one, type: shell, command: 'echo one >> log; test $(wc -l < log) -gt 1'}\n",
    )]));
    let host = Host::new(options);
    let definition =
        "name: caller\nsteps: [{id: sub, type: call, workflow: child, retry: {attempts: 2}}]\n";
    let done = place.start(&host, definition);
    assert_eq!(done.status, ReportStatus::Completed, "{:?}", done.error);
    assert_eq!(host.called(done.run).unwrap().len(), 2);
}

#[test]
fn a_task_that_returns_its_error_is_tried_again_and_collected_first() {
    let place = Place::new();
    let report = place.run(
        "
state: {errors: []}
tasks:
  upload:
    inputs: {file: {type: string, required: true}}
    steps:
      - id: send
        type: shell
        command: echo {{ inputs.file }} >> sent; test {{ inputs.file }} = good || test $(grep -c {{ inputs.file }} sent) = 2 -a {{ inputs.file }} = later
    on_error:
      return: true
      steps: [{id: undo, type: shell, command: 'echo {{ inputs.file }} >> undone'}]
steps:
  - id: each
    type: foreach
    items: [good, later, never]
    task: upload
    sequential: true
    on_child_error: {strategy: retry_failed, max_retries: 2, collect_to: errors}
    output_to: uploads
",
    );
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    let tried = lines(&place.path("sent"));
    let tries = |file: &str| tried.iter().filter(|line| *line == file).count();
    assert_eq!((tries("good"), tries("later"), tries("never")), (1, 2, 3));
    assert_eq!(lines(&place.path("undone")).len(), 4);
    let state = state(&report);
    assert_eq!(state["uploads"][2]["error"]["step"], "send");
    assert!(state["uploads"][0].get("error").is_none());
    assert!(state["uploads"][1].get("error").is_none());
    let collected = state["errors"].as_array().unwrap();
    assert_eq!(collected.len(), 1, "{collected:?}");
    assert_eq!(collected[0]["index"], 2);
}

/// What a definition leaves in the state, or why it failed.
fn outcome(definition: &str) -> Result<Json, String> {
    let report = Place::new().run(definition);
    match report.status {
        ReportStatus::Completed => Ok(state(&report)),
        _ => Err(report.error.unwrap().message),
    }
}

#[test]
fn a_batch_with_a_computed_field_that_only_the_run_can_tell_is_refused() {
    let head = "inputs: {f: {type: string, default: c}}
state: {n: 1}
computed: {c: {from: n, transform: 'input + 1'}}
";
    for step in [
        "{type: set_state, updates: {ok: 1, '{{ inputs.f }}': 9}}",
        "{type: set_state, updates: [{path: ok, value: 1}, {path: '{{ inputs.f }}', value: 9}]}",
        "{type: set_state, updates: {ok: 1, 'raw.{{ inputs.f }}': 9}}",
        "{type: shell, command: 'true', output_to: '{{ inputs.f }}'}",
    ] {
        for dialect in ["jinja", "js"] {
            let definition = format!("expressions: {dialect}\n{head}steps:\n  - {step}\n");
            let refused = outcome(&definition).unwrap_err();
            assert!(
                refused.contains("`c` is computed and cannot be written"),
                "{step}: {refused}"
            );
            let on = format!("{}, on_error: continue}}", step.strip_suffix('}').unwrap());
            let left = outcome(&definition.replace(step, &on)).unwrap();
            assert_eq!(left, json!({"n": 1, "c": 2}), "{step}");
        }
    }
    let shared = format!(
        "{head}tasks:\n  t:\n    shares_state: true\n    steps:\n      - {{type: set_state, updates: {{'{{{{ inputs.f }}}}': 9}}}}\n\
         \x20   inputs: {{f: string}}\nsteps:\n  - {{type: foreach, items: [c], task: t}}\n"
    );
    let refused = outcome(&shared).unwrap_err();
    assert!(refused.contains("`c` is computed"), "{refused}");
}

#[test]
fn the_result_of_set_state_is_the_new_values() {
    let definition = "state: {n: 1, l: [1]}
steps:
  - type: set_state
    updates: [{path: m, value: 2}, {path: n, operation: increment}, {path: l, operation: append, value: 2}]
    output_to: r
    state_update: [{path: m2, value: '{{ result.m + m }}'}, {path: all, operation: append}]
";
    let new = json!({"m": 2, "n": 2, "l": [1, 2]});
    let left = outcome(definition).unwrap();
    assert_eq!(left["r"], new);
    assert_eq!(left["m2"], 4);
    assert_eq!(left["all"], json!([new]));
    let field = "state: {result: 5}
steps:
  - {type: set_state, updates: {m: '{{ result }}'}, output_to: r}
";
    assert_eq!(outcome(field).unwrap()["r"], json!({"m": 5}));
}

#[test]
fn a_fallback_that_cannot_be_written_leaves_the_step_failed() {
    let head = "state: {s: text}\nsteps:\n";
    for step in [
        "{type: shell, command: 'echo a', output_to: s.x, fallback_value: 1, on_error: continue}",
        "{type: shell, command: 'exit 1', output_format: text, output_to: s.x, fallback_value: 1, on_error: continue}",
        "{type: shell, command: 'exit 1', output_to: r, fallback_value: '{{ state.s.x }}', on_error: continue}",
    ] {
        let definition =
            format!("{head}  - {step}\n  - {{type: set_state, updates: {{after: true}}}}\n");
        let left = outcome(&definition).unwrap();
        assert_eq!(left["after"], true, "{step}");
        let without = definition.replace(", on_error: continue", "");
        assert!(outcome(&without).is_err(), "{step}");
    }
}

#[test]
fn a_fallback_takes_the_place_of_what_set_state_could_not_set() {
    let definition = "state: {s: text}
steps:
  - type: set_state
    updates: [{path: ok, value: 1}, {path: s, operation: increment}]
    fallback_value: none
    output_to: r
";
    assert_eq!(
        outcome(definition).unwrap(),
        json!({"s": "text", "r": "none"})
    );
}

#[test]
fn what_goes_wrong_while_an_error_is_handled_does_not_hide_the_error() {
    let head = "state: {log: text}\nsteps:\n  - ";
    for step in [
        "{id: s, type: shell, command: 'exit 7', error_state_update: {path: log, operation: append, value: 1}}",
        "{id: s, type: shell, command: 'exit 7', fallback_value: '{{ state.log.x }}'}",
    ] {
        let failed = outcome(&format!("{head}{step}\n")).unwrap_err();
        assert!(failed.contains("exit code 7"), "{failed}");
        assert!(failed.contains("has no effect"), "{failed}");
    }
    for action in ["continue", "fail"] {
        let definition = format!(
            "{head}{{id: s, type: shell, command: 'exit 7'}}\non_error: {{action: {action}, collect_to: log}}\n"
        );
        let failed = outcome(&definition).unwrap_err();
        assert!(failed.contains("exit code 7"), "{failed}");
        assert!(failed.contains("`log` is a string"), "{failed}");
        assert_eq!(failed.matches("cannot be collected").count(), 1, "{failed}");
    }
    for strategy in ["continue", "fail_all"] {
        let definition = format!(
            "tasks: {{t: {{steps: [{{type: shell, command: 'exit 7'}}]}}}}
{head}{{id: all, type: foreach, items: [1], task: t, on_child_error: {{strategy: {strategy}, collect_to: log}}}}\n"
        );
        let failed = outcome(&definition).unwrap_err();
        assert!(failed.contains("exit code 7"), "{failed}");
        assert!(failed.contains("`log` is a string"), "{failed}");
    }
}

#[test]
fn a_choice_without_options_is_a_failure_of_its_step() {
    let step = "{id: pick, type: prompt, kind: choice, message: Which?, options: '{{ state.o }}'}";
    let definition = format!("state: {{o: []}}\nsteps:\n  - {step}\n");
    let failed = outcome(&definition).unwrap_err();
    assert!(failed.contains("nothing to choose from"), "{failed}");
    let other = definition.replace("kind: choice", "kind: choice, fallback_value: none");
    assert!(outcome(&other).is_ok());
}

#[test]
fn a_sum_that_is_no_number_is_refused() {
    for (now, by) in [("9223372036854775807", "1"), ("1.5e308", "1.5e308")] {
        let failed = outcome(&format!(
            "state: {{n: {now}}}
steps: [{{type: set_state, updates: [{{path: n, operation: increment, value: {by}}}]}}]
"
        ));
        let failed = failed.unwrap_err();
        assert!(failed.contains("cannot be incremented by"), "{failed}");
        assert!(failed.contains("larger than a number can be"), "{failed}");
    }
}

#[test]
fn large_whole_numbers_are_written_in_digits() {
    for (text, written) in [
        ("{{ inputs.n }}", "9007199254740993"),
        ("{{ inputs.n + 0 }}", "9007199254740992"),
        ("{{ 1760000000000000000 }}", "1760000000000000000"),
    ] {
        let left = outcome(&format!(
            "expressions: js
inputs: {{n: {{type: integer, default: 9007199254740993}}}}
steps:
  - {{type: set_state, updates: {{t: \"is {text}\"}}}}
  - {{type: shell, command: \"printf %s {text}\", output_format: text, output_to: c}}
  - {{type: shell, command: \"printf %s $N\", env: {{N: \"{text}\"}}, output_format: text, output_to: e}}
"
        ));
        let left = left.unwrap();
        assert_eq!(left["t"], format!("is {written}"));
        assert_eq!(left["c"], written);
        assert_eq!(left["e"], written);
    }
}

#[test]
fn a_byte_that_no_command_can_be_given_is_named_with_its_place() {
    for (keys, place) in [
        ("command: \"echo {{ 'a\\0b' }}\"", "`nul`"),
        ("command: \"echo a\\0b\"", "the command"),
        (
            "command: env, env: {WORD: \"{{ 'a\\0b' }}\"}",
            "`WORD` of `env`",
        ),
    ] {
        let failed = outcome(&format!("steps: [{{id: nul, type: shell, {keys}}}]\n"));
        let failed = failed.unwrap_err();
        assert!(failed.contains("NUL byte"), "{failed}");
        assert!(failed.contains(place), "{failed}");
    }
}

#[test]
fn what_is_only_read_is_not_a_place_to_write() {
    for path in ["{{ 'this' }}.x", "{{ 'inputs' }}.x"] {
        let definition = format!("steps: [{{type: set_state, updates: {{\"{path}\": 1}}}}]\n");
        let failed = outcome(&definition).unwrap_err();
        assert!(failed.contains("cannot be written"), "{failed}");
    }
}

#[test]
fn null_that_is_thrown_is_said_to_be_thrown() {
    let definition = "expressions: js
steps: [{type: set_state, updates: {x: \"{{ (() => { throw null })() }}\"}}]
";
    let failed = outcome(definition).unwrap_err();
    assert!(failed.contains("JavaScript threw null"), "{failed}");
}

#[test]
fn what_a_task_includes_is_in_the_state_of_the_task() {
    let place = Place::new();
    let mut options = place.options();
    options.workflows = Arc::new(Children(vec![(
        "kid",
        "name: kid
inputs: {n: integer}
state: {base: 1}
computed: {dbl: {from: base, transform: 'input * 2'}}
steps: [{type: set_state, updates: {base: '{{ inputs.n }}'}}]
",
    )]));
    let host = Host::new(options);
    let definition = "tasks:
  k:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: c, type: call, shares_computed: true, workflow: kid, inputs: {n: '{{ inputs.n }}'}}
      - {type: return, value: '{{ [state.dbl, state] }}'}
steps:
  - {type: foreach, items: [1, 2], task: k, output_to: r}
";
    let report = place.start(&host, definition);
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(
        state(&report),
        json!({"r": [[2, {"dbl": 2}], [4, {"dbl": 4}]]})
    );
}

#[test]
fn a_computed_field_that_failed_in_an_included_workflow_fails_whoever_reads_it() {
    let place = Place::new();
    let mut options = place.options();
    options.workflows = Arc::new(Children(vec![
        (
            "kid",
            "name: kid
state: {base: 2}
computed: {bad: {from: base, transform: 'if (input == 2) throw new Error(\"two\"); return input'}}
steps: [{type: set_state, updates: {base: 2}}]
",
        ),
        (
            "between",
            "name: between\nsteps: [{type: call, workflow: kid, shares_computed: true}]\n",
        ),
    ]));
    let host = Host::new(options);
    for step in [
        "{type: return, value: '{{ state.bad }}'}",
        "{type: foreach, items: [1], task: own}",
    ] {
        let definition = format!(
            "steps:
  - {{type: call, workflow: between, shares_computed: true}}
  - {step}
tasks:
  own:
    steps:
      - {{type: call, workflow: kid, shares_computed: true}}
      - {{type: return, value: '{{{{ state.bad }}}}'}}
"
        );
        let report = place.start(&host, &definition);
        let error = report.error.unwrap().message;
        let told = "computing `bad` failed: Error: two";
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_workflow_that_is_run_again_has_no_error_while_it_goes_on() {
    let place = Place::new();
    let report = place.run(
        "on_error: retry_workflow
steps:
  - {id: once, type: shell, command: 'test -e tried || { touch tried; exit 3; }'}
  - {id: ask, type: prompt, kind: confirm, message: Well?}
",
    );
    assert_eq!(report.status, ReportStatus::Waiting);
    assert_eq!(report.error, None);
}

#[test]
fn every_visit_counts_when_a_workflow_is_run_again() {
    let place = Place::new();
    let report = place.run(
        "on_error: {action: retry_workflow}
steps:
  - {id: a, type: shell, command: 'true'}
  - {id: b, type: shell, command: 'echo x >> tries; test $(wc -l < tries) -ge 2'}
  - {id: c, type: shell, command: 'true'}
",
    );
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.states_executed, 5);
}

#[test]
fn how_deep_a_caller_allows_calls_holds_below_it() {
    let place = Place::new();
    let mut options = place.options();
    options.workflows = Arc::new(Children(vec![
        ("a", "steps:\n  - {id: down, type: call, workflow: b}\n"),
        ("b", "steps:\n  - {type: shell, command: 'true'}\n"),
    ]));
    let host = Host::new(options);
    let calls = "steps:\n  - {type: call, workflow: a}\n";
    let report = place.start(&host, &format!("limits: {{max_depth: 1}}\n{calls}"));
    assert_eq!(report.status, ReportStatus::Failed);
    let message = report.error.unwrap().message;
    assert!(message.contains("more than 1 deep"), "{message}");
    let report = place.start(&host, &format!("limits: {{max_depth: 2}}\n{calls}"));
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
}

#[test]
fn a_whole_result_holds_what_a_small_state_has_room_for() {
    let report = Place::new().run(
        "limits: {max_state_bytes: 3000}
steps:
  - {type: shell, command: 'head -c 5000 /dev/zero | tr \"\\0\" x', output_to: r}
",
    );
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    let result = &state(&report)["r"];
    assert_eq!(result["truncated"], true);
    let kept = result["stdout"].as_str().unwrap().len() as u64;
    assert!(kept > 1000, "{kept}");
    assert_eq!(result["dropped"]["stdout"].as_u64(), Some(5000 - kept));
}
