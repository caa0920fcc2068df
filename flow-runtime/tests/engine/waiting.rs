//! Runs that wait for somebody: who may answer, and until when.

use std::sync::Arc;
use std::time::Duration;

use super::*;

/// A run that began long ago and has waited since.
fn began_long_ago(place: &Place, host: &Host, definition: &str) -> RunId {
    let id = RunId::new(1_000, 7);
    begin_long_ago(place, host, definition, id, None);
    id
}

fn begin_long_ago(place: &Place, host: &Host, definition: &str, id: RunId, caller: Option<RunId>) {
    let graph = graph(definition);
    let hash = host
        .journal()
        .put_definition(&serde_json::to_vec(&graph).unwrap());
    let start = Start {
        run: id.to_string(),
        inputs: Value::map::<&str>([]),
        ..Start::default()
    };
    let event = Event {
        at: 1_000,
        what: Happening::Started(start),
    };
    let mut new = NewRun::new("old".to_owned(), hash.unwrap(), 1_000);
    if let Some(caller) = caller {
        new = new.parent(caller);
    }
    let body = serde_json::to_vec(&event).unwrap();
    let append = Append::start(id, new).event(1_000, "started", body);
    let journal = host.journal();
    place
        .runtime
        .block_on(async { journal.submit(append).await })
        .unwrap();
}

fn answer_to(host: &Host, run: RunId, result: &Json) -> Happening {
    let pending = host.pending(&host.report(run).unwrap()).unwrap();
    Happening::Completed {
        action: pending.first().unwrap().action.id,
        result: Value::from(result),
    }
}

#[test]
fn whoever_is_waited_for_has_no_limit_that_the_definition_does_not_state() {
    let place = Place::new();
    let host = place.host();
    let run = began_long_ago(&place, &host, DELEGATES);
    let driven = || place.runtime.block_on(host.drive(run)).unwrap();
    let waiting = driven();
    assert_eq!(waiting.status, ReportStatus::Waiting, "{:?}", waiting.error);
    assert_eq!(host.pending(&waiting).unwrap()[0].answer_by, None);
    let answer = answer_to(&host, run, &json!({"response": {"safe": true}}));
    place.runtime.block_on(host.record(run, answer)).unwrap();
    assert_eq!(driven().status, ReportStatus::Completed);
}

/// Questions that wait a minute: by themselves, or within what does.
const WAITS: &str =
    "  - {id: ask, type: prompt, kind: confirm, message: 'Go?', timeout: 60, on_error: continue}
";
const WAITS_INSIDE: &str = "  - id: each
    type: foreach
    items: [1]
    timeout: 60
    on_error: continue
    steps:
      - {id: ask, type: prompt, kind: confirm, message: 'Go?'}
";

#[test]
fn an_agent_is_told_as_well_that_its_answer_comes_too_late() {
    let patience = Patience::of(Duration::from_secs(30));
    let page = TaskPage::default;
    let cases: [(&str, &[Option<&str>]); 2] = [
        (WAITS, &[Some("ask"), None]),
        (WAITS_INSIDE, &[Some("ask")]),
    ];
    for (step, names) in cases {
        let definition = format!("steps:\n{step}  - {{type: return, value: late}}\n");
        for named in names {
            let place = Place::new();
            let host = place.host();
            let run = began_long_ago(&place, &host, &definition);
            let agents = Agents::keeping(host, 10);
            let answer = Submission {
                result: Some(Value::from(&json!(true))),
                ..Submission::default()
            };
            let told = agents.submit(run, *named, answer, page(), patience);
            let told = place.runtime.block_on(told).unwrap();
            assert_eq!(told.output, Value::text("late"), "{told:?}");
            let note = told
                .note
                .unwrap_or_else(|| panic!("{named:?} in\n{definition}"));
            assert!(note.contains("`ask` comes too late"), "{note}");
        }
        // Nobody is handed a question whose time is over.
        let place = Place::new();
        let host = place.host();
        let run = began_long_ago(&place, &host, &definition);
        let agents = Agents::keeping(host, 10);
        let next = agents.next(run, None, page(), patience);
        let next = place.runtime.block_on(next).unwrap();
        assert_eq!(next.output, Value::text("late"), "{next:?}");
    }
}

#[test]
fn an_answer_after_the_time_that_the_definition_states_is_refused_and_the_run_goes_on() {
    for step in [WAITS, WAITS_INSIDE] {
        let definition = format!("steps:\n{step}  - {{type: return, value: late}}\n");
        let place = Place::new();
        let host = place.host();
        let run = began_long_ago(&place, &host, &definition);
        let waiting = host.report(run).unwrap();
        assert_eq!(host.pending(&waiting).unwrap()[0].answer_by, Some(61_000));
        let answer = answer_to(&host, run, &json!({"confirmed": true}));
        let refused = place.runtime.block_on(host.record(run, answer));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("too late"), "{refused}");
        assert!(refused.contains("1970-01-01T00:01:01"), "{refused}");
        let report = place.runtime.block_on(host.drive(run)).unwrap();
        assert_eq!(report.output, Value::text("late"), "{:?}", report.error);

        // The time is that of one of them, and the other was stopped.
        let visits = host.visits(run).unwrap();
        let late = visits
            .iter()
            .filter(|it| matches!(it.ending, Some(Ending::Timeout(_))));
        assert_eq!(late.count(), 1, "{visits:?}");

        // Whoever resumes it finds the same.
        let place = Place::new();
        let host = place.host();
        let run = began_long_ago(&place, &host, &definition);
        let report = place.runtime.block_on(host.drive(run)).unwrap();
        assert_eq!(report.output, Value::text("late"), "{:?}", report.error);
    }
}

const ASKS: &str = "name: asks
steps:
  - {id: ask, type: prompt, kind: confirm, message: 'Go?', output_to: go}
  - {id: mark, type: shell, command: touch answered}
";

/// A host whose workflows can call one that asks, and one that calls that.
fn host_that_calls(place: &Place) -> Host {
    let middle =
        "name: middle\nlimits: {timeout: 60}\nsteps: [{id: m, type: call, workflow: asks}]\n";
    let mut options = place.options();
    options.workflows = Arc::new(Children(vec![("asks", ASKS), ("middle", middle)]));
    Host::new(options)
}

#[test]
fn a_run_that_is_busy_goes_on_with_what_was_answered_to_a_run_it_called() {
    let place = Place::new();
    let host = host_that_calls(&place);
    let definition = "tasks:
  each:
    inputs: {kind: {type: string, required: true}}
    steps:
      - {id: c, type: call, when: '{{ inputs.kind == \"ask\" }}', workflow: middle}
      - id: work
        type: shell
        when: '{{ inputs.kind == \"work\" }}'
        command: 'while [ ! -e answered ]; do sleep 0.02; done'
steps:
  - {id: all, type: foreach, items: [ask, work], task: each}
";
    let report = place.runtime.block_on(async {
        let inputs = Value::map::<&str>([]);
        let graph = graph(definition);
        let start = host.start(&graph, &inputs, StartOptions::default());
        let run = start.await.unwrap();
        let driven = host.drive_in_background(run);
        driven.clone().asks().await;
        let elsewhere = place.host();
        let pending = elsewhere.pending(&elsewhere.report(run).unwrap()).unwrap();
        let asked = pending.iter().find(|awaited| awaited.asked).unwrap();
        let answer = Happening::Completed {
            action: asked.action.id,
            result: Value::from(&json!({"confirmed": true})),
        };
        elsewhere.record(asked.run, answer).await.unwrap();
        driven.end().await.unwrap().unwrap()
    });
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
}

#[test]
fn time_that_is_given_for_an_answer_keeps_no_host_waiting_for_it() {
    let question = "{id: ask, type: prompt, kind: confirm, message: 'Go?'}";
    for inside in [
        question,
        "{id: c, type: call, workflow: asks}",
        "{id: c, type: call, workflow: middle}",
    ] {
        let place = Place::new();
        let host = host_that_calls(&place);
        let definition = format!(
            "steps:
  - {{id: box, type: condition, if: '{{{{ true }}}}', timeout: 60, then: [{inside}]}}
"
        );
        let report = place.start(&host, &definition);
        assert_eq!(report.status, ReportStatus::Waiting, "{:?}", report.error);
        let listed = host.journal().run(report.run).unwrap();
        let until = host.pending(&report).unwrap()[0].answer_by;
        assert!(until.is_some(), "{inside}");
        assert_eq!(listed.wake_at, until, "{inside}");
    }
}

/// Tells when a run is over.
struct Over(tokio::sync::mpsc::UnboundedSender<RunId>);

impl Watch for Over {
    fn effect(&self, run: RunId, _graph: &Graph, effect: &Effect) {
        if matches!(effect, Effect::Finish(_)) {
            let _ = self.0.send(run);
        }
    }

    fn output(&self, _run: RunId, _step: &str, _text: &[u8]) {}
}

#[test]
fn a_run_that_was_let_go_of_goes_on_when_the_time_for_an_answer_is_up() {
    let of_a_prompt = "name: states
initial_state: ask
states:
  ask:
    action: {type: prompt, kind: confirm, message: 'Go?'}
    timeout: 0.2
    on_timeout: again
  again:
    action: {type: prompt, kind: confirm, message: 'Now?'}
    timeout: 0.2
    on_timeout: late
  late: {action: {type: shell, command: 'true'}}
";
    let of_a_call = "name: calls
steps:
  - {id: c, type: call, workflow: middle, timeout: 0.2, on_error: continue}
  - {type: return, value: late}
";
    let behind_an_answer = "name: behind
steps:
  - {id: c, type: call, workflow: middle}
  - {id: q, type: prompt, kind: confirm, message: 'Now?', timeout: 0.2, on_error: continue}
";
    for definition in [of_a_prompt, of_a_call, behind_an_answer] {
        let place = Place::new();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut options = place.options();
        let middle = "name: middle\nsteps: [{id: m, type: call, workflow: asks}]\n";
        options.workflows = Arc::new(Children(vec![("asks", ASKS), ("middle", middle)]));
        options.watch = Arc::new(Over(tell));
        let host = Host::new(options);
        place.runtime.block_on(async {
            let keeper = host.clone();
            tokio::spawn(async move { keeper.keep_times().await });
            let graph = graph(definition);
            let inputs = Value::map::<&str>([]);
            let start = host.start(&graph, &inputs, StartOptions::default());
            let run = start.await.unwrap();
            let mut stands = host.drive(run).await.unwrap();
            if definition == behind_an_answer {
                let pending = host.pending(&stands).unwrap();
                let answer = Happening::Completed {
                    action: pending[0].action.id,
                    result: Value::from(&json!({"confirmed": true})),
                };
                host.record(pending[0].run, answer).await.unwrap();
                stands = host.drive(run).await.unwrap();
            }
            assert_eq!(stands.status, ReportStatus::Waiting, "{:?}", stands.error);
            while told.recv().await != Some(run) {}
            if let Some(driven) = host.driven(run) {
                driven.end().await.unwrap().unwrap();
            }
            let report = host.report(run).unwrap();
            assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
        });
    }
}

#[test]
fn the_time_of_a_call_runs_while_what_it_called_waits_for_somebody() {
    let of_the_call = "  - {id: c, type: call, workflow: asks, timeout: 60, on_error: continue}\n";
    let around_it = "  - id: box
    type: condition
    if: '{{ true }}'
    timeout: 60
    on_error: continue
    then: [{id: c, type: call, workflow: asks}]
";
    for step in [of_the_call, around_it] {
        let definition = format!("steps:\n{step}  - {{type: return, value: late}}\n");
        let began = |place: &Place, host: &Host| {
            let run = began_long_ago(place, host, &definition);
            let call = host.report(run).unwrap().pending.remove(0).action;
            let called = Host::called_by(run, &call);
            begin_long_ago(place, host, ASKS, called, Some(run));
            (run, called)
        };
        let place = Place::new();
        let host = host_that_calls(&place);
        let (run, called) = began(&place, &host);
        // Whoever asks about the called run alone hears of the same time.
        for run in [run, called] {
            let pending = host.pending(&host.report(run).unwrap()).unwrap();
            assert_eq!(pending[0].answer_by, Some(61_000));
        }
        let answer = answer_to(&host, run, &json!({"confirmed": true}));
        let refused = place.runtime.block_on(host.record(called, answer));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("`ask` comes too late"), "{refused}");
        assert!(refused.contains("1970-01-01T00:01:01"), "{refused}");
        let report = place.runtime.block_on(host.drive(run)).unwrap();
        assert_eq!(report.output, Value::text("late"), "{:?}", report.error);
        let status = host.journal().run(called).unwrap().status;
        assert_eq!(status, flow_runtime::journal::Status::Cancelled);

        // An agent that answers then is told so, by the name that it knows.
        let answer = Submission {
            result: Some(Value::from(&json!(true))),
            ..Submission::default()
        };
        let agents = Agents::keeping(host, 10);
        let patience = Patience::of(Duration::from_secs(30));
        let told = agents.submit(run, Some("c/ask"), answer, TaskPage::default(), patience);
        let note = place.runtime.block_on(told).unwrap().note.unwrap();
        assert!(note.contains("`c/ask` comes too late"), "{note}");

        // Whoever resumes it finds the same.
        let place = Place::new();
        let host = host_that_calls(&place);
        let (run, called) = began(&place, &host);
        let report = place.runtime.block_on(host.drive(run)).unwrap();
        assert_eq!(report.output, Value::text("late"), "{:?}", report.error);
        let status = host.journal().run(called).unwrap().status;
        assert_eq!(status, flow_runtime::journal::Status::Cancelled);
    }
}

#[test]
fn what_was_over_in_time_counts_although_it_is_heard_of_late() {
    const CHILD: &str = "name: child
steps:
  - {id: ask, type: prompt, kind: confirm, message: 'Go?', output_to: go}
";
    let of_the_call = "  - {id: c, type: call, workflow: child, timeout: 60, on_error: continue}
  - {type: return, value: in time, when: '{{ state.last_error is none }}'}
";
    let around_it = "  - id: box
    type: condition
    if: '{{ true }}'
    timeout: 60
    on_error: continue
    then: [{id: c, type: call, workflow: child}, {type: return, value: in time}]
";
    for step in [of_the_call, around_it] {
        for (answered_at, output) in [(2_000, "in time"), (62_000, "late")] {
            let definition = format!(
                "state: {{last_error: null}}\nsteps:\n{step}  - {{type: return, value: late}}\n"
            );
            let place = Place::new();
            let mut options = place.options();
            options.workflows = Arc::new(Children(vec![("child", CHILD)]));
            let host = Host::new(options);
            let run = began_long_ago(&place, &host, &definition);
            let call = host.report(run).unwrap().pending.remove(0).action;
            let called = Host::called_by(run, &call);
            begin_long_ago(&place, &host, CHILD, called, Some(run));
            let event = Event {
                at: answered_at,
                what: answer_to(&host, called, &json!({"confirmed": true})),
            };
            let body = serde_json::to_vec(&event).unwrap();
            let over = RunUpdate::at(answered_at).status(Status::Completed);
            let append = Append::after(called, 1)
                .event(answered_at, "completed", body)
                .update(over);
            let journal = host.journal();
            place
                .runtime
                .block_on(async { journal.submit(append).await })
                .unwrap();
            let report = place.runtime.block_on(host.drive(run)).unwrap();
            assert_eq!(
                report.output,
                Value::text(output),
                "{step}: {:?}",
                report.error
            );
        }
    }
}

#[test]
fn of_two_answers_the_second_is_told_which_one_counts() {
    const ASKS: &str = "steps:
  - {id: ask, type: prompt, kind: confirm, message: 'Go?', output_to: go}
";
    let seen_by_both = |first: Happening| {
        let place = Place::new();
        let (host, other) = (place.host(), place.host());
        let run = place.start(&host, ASKS).run;
        let answer = answer_to(&other, run, &json!({"confirmed": false}));
        let first = match first {
            Happening::Completed { .. } => answer_to(&host, run, &json!({"confirmed": true})),
            Happening::Declined { reason, .. } => Happening::Declined {
                action: answer.ends().unwrap(),
                reason,
            },
            other => other,
        };
        place.runtime.block_on(host.record(run, first)).unwrap();
        let refused = || place.runtime.block_on(other.record(run, answer.clone()));
        let told = refused().unwrap_err().to_string();
        let report = place.runtime.block_on(host.drive(run)).unwrap();
        // Nor does it count when the run is over.
        assert!(refused().is_err());
        assert_eq!(host.report(run).unwrap().state, report.state);
        (told, state(&report))
    };
    let action = ActionId(0);
    let result = Value::Null;
    let (told, state) = seen_by_both(Happening::Completed { action, result });
    let why = "`ask` has been answered already: {\"confirmed\":true}; this answer is not used";
    assert_eq!(told, why);
    assert_eq!(state["go"], json!({"confirmed": true}));
    let reason = "no".to_owned();
    let (told, _) = seen_by_both(Happening::Declined { action, reason });
    assert!(told.contains("declined already"), "{told}");
    let reason = "no".to_owned();
    let (told, _) = seen_by_both(Happening::Cancelled { reason });
    assert!(told.contains("the run was cancelled"), "{told}");
}
