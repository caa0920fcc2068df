//! Whole runs, with a real journal and real commands.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::sync::Arc;

use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_model::{compile, diagnostic};
use flow_runtime::host::{Answers, Host, HostOptions, Report, ReportStatus, StartOptions};
use flow_runtime::journal::Journal;
use flow_runtime::run::{Effect, Evaluator, Event, Expressions, Happening, Program, Run, Start};
use flow_runtime::value::Value;
use serde_json::json;

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

fn evaluator(_graph: &Graph) -> Box<dyn Evaluator> {
    Box::new(Expressions::new())
}

struct Bench {
    host: Host,
    runtime: tokio::runtime::Runtime,
    directory: tempfile::TempDir,
}

impl Bench {
    fn new(answers: serde_json::Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("journal.db")).unwrap();
        let mut options = HostOptions::new(journal, directory.path().to_owned(), evaluator);
        options.people = Arc::new(Answers::new(&Value::from(&answers)).unwrap());
        Bench {
            host: Host::new(options),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
            directory,
        }
    }

    fn run(&self, definition: &str, inputs: serde_json::Value) -> Report {
        let graph = graph(definition);
        self.runtime.block_on(async {
            let id = self
                .host
                .start(&graph, &Value::from(&inputs), StartOptions::default())
                .await
                .unwrap();
            self.host.drive(id).await.unwrap()
        })
    }
}

fn run(definition: &str) -> Report {
    Bench::new(json!({})).run(definition, json!({}))
}

fn completed(definition: &str) -> serde_json::Value {
    let report = run(definition);
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    report.output.to_json()
}

fn failed(definition: &str) -> String {
    let report = run(definition);
    assert_eq!(report.status, ReportStatus::Failed);
    report.error.unwrap().message
}

#[test]
fn a_command_gives_its_output() {
    let output = completed(
        "outputs: {said: '{{ state.said }}'}
steps:
  - {type: shell, command: echo hello, output_format: text, output_to: said}
",
    );
    assert_eq!(output, json!({"said": "hello"}));
}

#[test]
fn the_lines_of_a_command_are_all_that_it_wrote() {
    for (written, lines) in [
        ("", json!([])),
        ("x", json!(["x"])),
        (r"x\n", json!(["x"])),
        (r"x\n\n", json!(["x", ""])),
        (r"\n", json!([""])),
        (r"\r\nx\r\n", json!(["", "x"])),
    ] {
        let output = completed(&format!(
            "steps:
  - {{type: shell, command: \"printf '{}'\", output_format: lines, output_to: said}}
  - {{type: return, value: '{{{{ state.said }}}}'}}
",
            written.replace('\\', r"\\")
        ));
        assert_eq!(output, lines, "{written}");
    }
}

#[test]
fn a_value_never_becomes_code_of_the_shell() {
    let bench = Bench::new(json!({}));
    let report = bench.run(
        "inputs: {name: string}
outputs: {said: '{{ state.said }}'}
steps:
  - {type: shell, command: \"printf '%s' {{ inputs.name }}\", output_format: text, output_to: said}
",
        json!({"name": "$(echo pwned); `id` 'x' \"y\""}),
    );
    assert_eq!(
        report.output.to_json(),
        json!({"said": "$(echo pwned); `id` 'x' \"y\""})
    );
}

#[test]
fn loops_branches_and_jumps_go_where_they_say() {
    let output = completed(
        "state: {n: 0, seen: []}
outputs: {n: '{{ state.n }}', seen: '{{ state.seen }}'}
steps:
  - id: count
    type: while
    if: '{{ state.n < 10 }}'
    max_iterations: 20
    steps:
      - {type: set_state, updates: [{path: n, operation: increment}]}
      - {type: continue, when: '{{ state.n == 2 }}'}
      - {type: set_state, updates: [{path: seen, operation: append, value: '{{ state.n }}'}]}
      - type: condition
        if: '{{ state.n >= 4 }}'
        then: [{type: break}]
",
    );
    assert_eq!(output, json!({"n": 4, "seen": [1, 3, 4]}));
}

#[test]
fn a_default_bound_fails_the_run_and_an_explicit_one_falls_through() {
    let definition = |bound: &str| {
        format!(
            "state: {{n: 0}}
outputs: {{n: '{{{{ state.n }}}}'}}
steps:
  - type: while
    if: 'true'
    {bound}
    steps:
      - {{type: set_state, updates: [{{path: n, operation: increment}}]}}
"
        )
    };
    assert!(failed(&definition("")).contains("has run 100 times"));
    assert_eq!(completed(&definition("max_iterations: 7")), json!({"n": 7}));
}

#[test]
fn foreach_runs_inline_steps_in_order_with_item_and_loop() {
    let output = completed(
        "state: {seen: []}
outputs: {seen: '{{ state.seen }}'}
steps:
  - type: foreach
    items: [a, b, c]
    steps:
      - type: set_state
        updates:
          - {path: seen, operation: append, value: '{{ item }}{{ loop.iteration }}/{{ loop.length }}'}
",
    );
    assert_eq!(output, json!({"seen": ["a1/3", "b2/3", "c3/3"]}));
}

#[test]
fn a_fan_out_gives_results_in_item_order_and_drops_none() {
    let output = completed(
        "outputs: {all: '{{ state.all }}'}
steps:
  - {type: foreach, items: '{{ range(25) | list }}', task: double, max_parallel: 3, output_to: all}
tasks:
  double:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {type: shell, command: 'echo $(( {{ inputs.n }} * 2 ))', output_format: json, output_to: out}
      - {type: return, value: '{{ state.out }}'}
",
    );
    let doubled: Vec<i64> = (0..25).map(|n| n * 2).collect();
    assert_eq!(output, json!({"all": doubled}));
}

#[test]
fn a_failed_child_fails_its_fan_out_unless_it_may_not() {
    let definition = |rule: &str| {
        format!(
            "outputs: {{all: '{{{{ state.all }}}}'}}
steps:
  - {{type: foreach, items: [0, 1, 0], task: exit, output_to: all, on_child_error: {rule}}}
tasks:
  exit:
    inputs: {{code: {{type: integer, required: true}}}}
    steps:
      - {{type: shell, command: 'exit {{{{ inputs.code }}}}'}}
      - {{type: return, value: ok}}
"
        )
    };
    assert!(failed(&definition("fail")).contains("1 of 3 children"));
    assert_eq!(
        completed(&definition("continue")),
        json!({"all": ["ok", null, "ok"]})
    );
}

#[test]
fn computed_fields_follow_what_they_are_made_from() {
    let output = completed(
        "state: {files: [a.rs, b.md]}
computed:
  sources: {from: files, transform: \"input.filter(f => f.endsWith('.rs'))\"}
  count: {from: computed.sources, transform: input.length}
  report: {from: [sources, count], transform: \"({first: input[0][0], n: input[1]})\"}
outputs: {report: '{{ state.report }}'}
steps:
  - {type: set_state, updates: [{path: files, operation: append, value: c.rs}]}
",
    );
    assert_eq!(output, json!({"report": {"first": "a.rs", "n": 2}}));
}

#[test]
fn failures_are_retried_replaced_recorded_or_jumped_from() {
    let output = completed(
        "state: {errors: [], note: ''}
outputs: {errors: '{{ state.errors }}', note: '{{ state.note }}', value: '{{ state.value }}'}
steps:
  - {id: replaced, type: shell, command: exit 3, fallback_value: none, output_to: value, output_format: text}
  - id: recorded
    type: shell
    command: exit 4
    on_error: continue
    error_state_update: {path: errors, operation: append, value: '{{ error.message }}'}
  - {id: jumps, type: shell, command: exit 5, on_error: {goto: landed}}
  - {id: skipped, type: set_state, updates: {note: wrong}}
  - {id: landed, type: set_state, updates: {note: landed}}
",
    );
    assert_eq!(output["note"], "landed");
    assert_eq!(output["value"], "none");
    assert!(
        output["errors"][0]
            .as_str()
            .unwrap()
            .contains("exit code 4")
    );
}

#[test]
fn a_retry_tries_again_until_it_works() {
    let output = completed(
        "outputs: {tries: '{{ state.tries }}'}
steps:
  - type: shell
    command: 'echo x >> tries; test $(wc -l < tries) -ge 3 && wc -l < tries'
    output_format: json
    output_to: tries
    retry: {attempts: 5, delay: 0.001}
",
    );
    assert_eq!(output, json!({"tries": 3}));
}

#[test]
fn a_run_waits_for_an_answer_and_goes_on_from_it() {
    let bench = Bench::new(json!({}));
    let definition = "outputs: {name: '{{ state.name.input }}'}
steps:
  - {id: ask, type: prompt, kind: text, message: Who?, output_to: name, validation: {min_length: 2}}
";
    let report = bench.run(definition, json!({}));
    assert_eq!(report.status, ReportStatus::Waiting);
    assert_eq!(report.pending[0].action.node, "ask");
    let action = report.pending[0].action.id;
    let answer = |text: &str| Happening::Completed {
        action,
        result: Value::map([("input", Value::text(text))]),
    };
    bench.runtime.block_on(async {
        let refused = bench.host.record(report.run, answer("x")).await;
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("at least 2 characters")
        );
        bench.host.record(report.run, answer("Ada")).await.unwrap();
        let done = bench.host.drive(report.run).await.unwrap();
        assert_eq!(done.status, ReportStatus::Completed);
        assert_eq!(done.output.to_json(), json!({"name": "Ada"}));
    });
}

#[test]
fn prepared_answers_are_given_by_step() {
    let bench = Bench::new(json!({"sure": true, "which": "b"}));
    let report = bench.run(
        "outputs: {which: '{{ state.which.selected }}'}
steps:
  - {id: sure, type: prompt, kind: confirm, message: Sure?, output_to: sure}
  - {type: return, when: '{{ not state.sure.confirmed }}'}
  - {id: which, type: prompt, kind: choice, message: Which?, options: [a, b], output_to: which}
",
        json!({}),
    );
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.output.to_json(), json!({"which": "b"}));
}

#[test]
fn states_follow_conditions_and_fail_when_none_holds() {
    let definition = |command: &str| {
        format!(
            "initial_state: try
states:
  try:
    action: {{type: shell, command: '{command}', output_to: out}}
    transitions:
      - {{condition: {{field_equals: {{exit_code: 0}}}}, next_state: good}}
      - {{condition: {{field_equals: {{exit_code: 7}}}}, next_state: bad}}
  good:
    action: {{type: set_state, updates: {{how: good}}}}
  bad:
    action: {{type: set_state, updates: {{how: bad}}}}
"
        )
    };
    let report = run(&definition("exit 7"));
    assert_eq!(report.final_state.as_deref(), Some("bad"));
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert!(failed(&definition("exit 1")).contains("no transition"));
}

#[test]
fn variables_are_replaced_in_what_a_state_writes() {
    let report = run("initial_state: try
states:
  try:
    action:
      type: shell
      command: echo hello
      state_update: {path: said, value: '{stdout}'}
    transitions: [{condition: success, next_state: keep}]
  keep:
    action:
      type: set_state
      updates:
        whole: '{try_exit_code}'
        text: 'it said {try_stdout}and ${HOME} {nothing}'
        list: [{'deep': '{try_exit_code}'}]
");
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    let state = report.state.to_json();
    assert_eq!(state["said"], json!("hello\n"));
    assert_eq!(state["whole"], json!(0));
    assert_eq!(state["text"], json!("it said hello\nand ${HOME} {nothing}"));
    assert_eq!(state["list"], json!([{"deep": 0}]));
}

#[test]
fn a_step_that_takes_too_long_is_ended() {
    let message = failed("steps:\n  - {id: nap, type: shell, command: sleep 100, timeout: 0.05}\n");
    assert_eq!(
        message,
        "`nap` did not end within 0.05 s; `timeout` gives it longer"
    );
}

#[test]
fn needs_state_narrows_at_run_time_too() {
    let message = failed(
        "state: {a: 1, secret: 2, key: secret}
steps:
  - {type: shell, needs_state: [key], command: 'echo {{ state[state.key] }}'}
",
    );
    assert!(message.contains("state"), "{message}");
}

#[test]
fn failure_steps_see_the_error_and_do_not_hide_it() {
    let bench = Bench::new(json!({}));
    let report = bench.run(
        "state: {note: ''}
on_error:
  collect_to: errors
  steps:
    - {type: set_state, updates: {note: '{{ error.message }}'}}
steps:
  - {id: breaks, type: shell, command: 'echo oops >&2; exit 2'}
",
        json!({}),
    );
    assert_eq!(report.status, ReportStatus::Failed);
    assert!(report.error.unwrap().message.contains("exit code 2: oops"));
    let state = report.state.to_json();
    assert!(state["note"].as_str().unwrap().contains("oops"));
    assert_eq!(state["errors"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let output = completed(
        "outputs: {said: '{{ state.said }}'}
steps:
  - {type: shell, command: 'sleep 1000 & echo hello', output_format: text, output_to: said}
",
    );
    assert_eq!(output, json!({"said": "hello"}));
}

#[test]
fn work_that_another_host_began_has_its_whole_time_again_and_a_person_has_not() {
    let taken_over = |definition: &str| {
        let program = Program::new(
            std::borrow::Cow::Owned(graph(definition)),
            evaluator(&graph(definition)),
        );
        let mut run = Run::new(Arc::new(program));
        let what = Happening::Started(Start::default());
        run.apply(&Event { at: 1000, what }).unwrap();
        match &run.taken_over(9_000_000)[..] {
            [Effect::Act(action)] => action.deadline,
            other => panic!("{other:?}"),
        }
    };
    let command = taken_over("steps:\n  - {type: shell, command: make, timeout: 5}\n");
    assert_eq!(command, Some(9_005_000));
    let question =
        taken_over("steps:\n  - {type: prompt, kind: text, message: Who?, timeout: 5}\n");
    assert_eq!(question, Some(6000));
}

#[test]
fn an_item_handed_to_an_agent_stays_pending() {
    let bench = Bench::new(json!({}));
    let report = bench.run(
        "agents: {worker: works}
outputs: {all: '{{ state.all }}'}
steps:
  - {type: foreach, items: [1, 2], task: one, agent: '@worker', output_to: all}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps: [{type: return, value: '{{ inputs.n }}'}]
",
        json!({}),
    );
    assert_eq!(report.status, ReportStatus::Waiting);
    assert_eq!(report.pending.len(), 2);
    bench.runtime.block_on(async {
        for (index, awaited) in report.pending.iter().enumerate() {
            let left = bench.host.report(report.run).unwrap().pending;
            assert_eq!(left.len(), 2 - index);
            let result = Value::Int(index as i64);
            let happening = Happening::Completed {
                action: awaited.action.id,
                result,
            };
            bench.host.record(report.run, happening).await.unwrap();
        }
        let done = bench.host.drive(report.run).await.unwrap();
        let given = |text: &str| json!({"response": text, "agent_used": "@worker"});
        let all = json!([given("0"), given("1")]);
        assert_eq!(done.output.to_json(), json!({ "all": all }));
    });
}

#[test]
fn a_return_that_fails_fails_like_any_step() {
    for value in ["{{ state.m.nope }}", "{{ 1/0 }}"] {
        let definition =
            format!("state: {{m: {{}}}}\nsteps:\n  - {{id: r, type: return, value: '{value}'}}\n");
        let report = run(&definition);
        assert_eq!(report.status, ReportStatus::Failed, "{value}");
        assert_eq!(report.error.unwrap().step.as_deref(), Some("r"), "{value}");
    }
    let thrown = "expressions: js
steps: [{id: r, type: return, value: \"{{ (() => { throw new Error('no') })() }}\"}]
";
    assert!(failed(thrown).contains("no"));
    let child = "steps:
  - {id: each, type: foreach, items: '{{ [1] }}', task: t, output_to: all}
tasks:
  t: {state: {m: {}}, steps: [{id: r, type: return, value: '{{ state.m.nope }}'}]}
";
    assert!(failed(child).contains("1 of 1 children"));
}

#[test]
fn what_a_step_does_when_it_fails_holds_for_return() {
    let jumps = "state: {m: {}}
steps:
  - {id: r, type: return, value: '{{ state.m.nope }}', on_error: {goto: other}}
  - {type: return, value: skipped}
  - {id: other, type: return, value: jumped}
";
    assert_eq!(completed(jumps), json!("jumped"));
    let replaced = "state: {m: {}}
steps: [{id: r, type: return, value: '{{ state.m.nope }}', fallback_value: instead}]
";
    assert_eq!(completed(replaced), json!("instead"));
    let noted = "state: {m: {}, note: ''}
on_error: {steps: [{type: set_state, updates: {note: '{{ error.step }}'}}]}
steps: [{id: r, type: return, value: '{{ state.m.nope }}'}]
";
    let report = run(noted);
    assert_eq!(report.status, ReportStatus::Failed);
    assert_eq!(report.state.to_json()["note"], "r");
}

#[test]
fn a_when_that_fails_fails_the_step_it_stands_on() {
    let returns = "state: {m: {}}
steps: [{id: r, type: return, when: '{{ state.m.nope > 1 }}', value: 1}]
";
    assert!(failed(returns).contains("nope"));
    for jump in ["break", "continue"] {
        let definition = format!(
            "state: {{m: {{}}}}
steps:
  - type: foreach
    items: '{{{{ [1, 2] }}}}'
    steps: [{{id: jump, type: {jump}, when: '{{{{ state.m.nope > 1 }}}}'}}]
"
        );
        let report = run(&definition);
        assert_eq!(report.status, ReportStatus::Failed, "{jump}");
        assert_eq!(
            report.error.unwrap().step.as_deref(),
            Some("jump"),
            "{jump}"
        );
    }
    let leaves = "state: {m: {}}
steps:
  - {id: again, type: goto, target: again, max_iterations: 2, when: '{{ state.m.nope > 1 }}', on_error: {goto: end}}
  - {type: return, value: skipped}
  - {id: end, type: return, value: left}
";
    assert_eq!(completed(leaves), json!("left"));
}

/// A task that runs itself over a list that shrinks or does not.
fn nested(items: &str, on_child_error: &str) -> String {
    format!(
        "steps:
  - {{id: f, type: foreach, items: '{{{{ [40] }}}}', task: t, output_to: r}}
  - {{type: return, value: '{{{{ state.r }}}}'}}
tasks:
  t:
    inputs: {{n: {{type: integer, required: true}}}}
    steps:
      - {{id: g, type: foreach, items: '{items}', task: t, on_child_error: {on_child_error}, output_to: q}}
      - {{type: return, value: '{{{{ inputs.n }}}}'}}
"
    )
}

#[test]
fn tasks_inside_tasks_end_at_a_depth_that_needs_no_stack() {
    let shrinks = nested("{{ [inputs.n - 1] if inputs.n else [] }}", "fail");
    assert_eq!(completed(&shrinks), json!([40]));
    let grows = "{{ [inputs.n + 1] if inputs.n else [] }}";
    let message = failed(&nested(grows, "fail"));
    assert!(
        message.starts_with("1 of 1 children of `f` failed"),
        "{message}"
    );
    let said = "`g` would run tasks more than 50 deep inside each other: … → t → t → t → t → t";
    assert!(message.contains(said), "{message}");
    assert!(message.len() < 2_000, "{}", message.len());
    let stopped = failed(&nested(grows, "fail_all"));
    assert!(stopped.contains("more than 50 deep"), "{stopped}");
    // What failed at the bottom may be no failure further up, as the definition says.
    assert_eq!(completed(&nested(grows, "continue")), json!([40]));
}

#[test]
fn a_failure_names_its_step_and_a_state_the_outcome_that_nothing_is_for() {
    let undefined = "state: {m: {}}
steps: [{id: say, type: set_state, updates: {x: '{{ state.m.nope }}'}}]
";
    let message = failed(undefined);
    assert!(message.starts_with("`say`: "), "{message}");
    let state = |command: &str, condition: &str| {
        // Only what never ends may run into its limit.
        let timeout = if command.starts_with("sleep") {
            0.2
        } else {
            250.0
        };
        format!(
            "initial_state: a
states:
  a:
    action: {{type: shell, command: \"{command}\"}}
    timeout: {timeout}
    transitions: [{{condition: {condition}, next_state: b}}]
  b: {{action: {{type: shell, command: 'true'}}}}
"
        )
    };
    assert_eq!(
        failed(&state("echo so far; exit 3", "success")),
        "`a` ended in failure, and no transition of it holds: the command of `a` ended with exit \
         code 3: so far; a transition for `failure` would lead on"
    );
    assert_eq!(
        failed(&state("sleep 100", "success")),
        "`a` ended in timeout, and no transition of it holds: `a` did not end within 0.2 s; \
         `timeout` gives it longer; `on_timeout`, or a transition for `timeout` would lead on"
    );
    assert_eq!(
        failed(&state("true", "failure")),
        "`a` ended in success, and no transition of it holds; a transition for `always` would \
         lead on"
    );
    assert_eq!(
        failed(&state("echo some", "{pattern_match: none}")),
        "`a` ended in success, and no transition of it holds: what it gave has no match of `none`; \
         a transition for `always` would lead on"
    );
}

#[test]
fn a_field_of_a_state_that_has_no_value_yet_fails_the_step_that_names_it() {
    let names = |text: &str| {
        format!(
            "initial_state: a
states:
  a:
    action: {{type: shell, command: 'echo {text}'}}
    transitions: [{{condition: success, next_state: later}}]
  later:
    action: {{type: shell, command: 'true'}}
"
        )
    };
    let message = failed(&names("{later_stdout}"));
    let told = "`a` ended in failure, and no transition of it holds: the variable `later_stdout` \
                has no value yet";
    assert!(message.starts_with(told), "{message}");
    // Neither a field that a command gives nor a state.
    for text in ["{later_colour}", "{never_stdout}", "{later_}"] {
        let report = run(&names(text));
        assert_eq!(report.status, ReportStatus::Completed, "{text}");
    }
}

#[test]
fn output_that_does_not_fit_is_no_value_that_looks_whole() {
    for format in ["text", "lines", "key_value", "json"] {
        let message = failed(&format!(
            "limits: {{max_state_bytes: 10000000}}
steps: [{{id: much, type: shell, command: seq 300000, output_format: {format}, output_to: all}}]
"
        ));
        let told =
            "the command of `much` wrote 940319 bytes more than the 1048576 that a value holds";
        assert!(message.starts_with(told), "{message}");
    }
    let cut = completed(
        "limits: {max_state_bytes: 10000000}
steps:
  - {id: much, type: shell, command: 'yes ä | head -c 1100000', output_to: all}
  - type: return
    value:
      cut: '{{ state.all.truncated }}'
      dropped: '{{ state.all.dropped.stdout }}'
      end: '{{ state.all.stdout[-2:] }}'
",
    );
    // The last byte that fits is half of a character, which goes as well.
    assert_eq!(cut["cut"], json!(true));
    assert_eq!(cut["dropped"], json!(1_100_000 - 1_048_575));
    assert_eq!(cut["end"], json!("ä\n"));
    // The state has no room for all that a result holds; it has what fits, and says so.
    let fits = completed(
        "steps:
  - {id: much, type: shell, command: seq 300000, output_to: all}
  - {type: return, value: ['{{ state.all.truncated }}', '{{ state.all.dropped.stdout + (state.all.stdout | length) }}']}
",
    );
    assert_eq!(fits, json!([true, 1_988_895]));
    // What was only said beside the output is not missed.
    let aside = "steps:
  - {type: shell, command: 'seq 300000 >&2; echo whole', output_format: text, output_to: all}
  - {type: return, value: '{{ state.all }}'}
";
    assert_eq!(completed(aside), json!("whole"));
}

#[test]
fn what_an_expression_may_not_do_is_told_with_the_limit_or_the_value_that_it_is_about() {
    for (expression, told) in [
        (
            "'x' * 1100000",
            "`a`: the expression makes more than 1 MiB of its constants alone",
        ),
        (
            "inputs.x * 40000000",
            "`a`: the expression produces more than 32 MiB",
        ),
        (
            "inputs.x | int",
            "`a`: 'zz' cannot be made a number by `int`",
        ),
        ("'zz' | int", "`a`: 'zz' cannot be made a number by `int`"),
        (
            "[1] | float",
            "`a`: a value of the kind sequence cannot be made a number by `float`",
        ),
    ] {
        let message = failed(&format!(
            "inputs: {{x: {{type: string, default: zz}}}}
steps: [{{id: a, type: set_state, updates: {{x: \"{{{{ {expression} }}}}\"}}}}]
"
        ));
        assert!(message.starts_with(told), "{expression}: {message}");
    }
    let twice = "limits: {max_steps: 1}
steps: [{id: a, type: shell, command: 'true'}, {id: b, type: shell, command: 'true'}]
";
    let message = failed(twice);
    assert!(
        message.starts_with("`b`: 1 step has been executed"),
        "{message}"
    );
}

#[test]
fn an_item_may_have_more_than_its_task_wants() {
    let output = completed(
        "steps:
  - {id: each, type: foreach, items: '{{ [{\"id\": 1, \"status\": \"new\"}, {\"id\": 2}] }}', task: one, output_to: r}
tasks:
  one:
    inputs: {id: {type: integer, required: true}}
    steps: [{type: return, value: '{{ inputs.id * 10 }}'}]
outputs: {r: {type: array, value: '{{ state.r }}'}}
",
    );
    assert_eq!(output, json!({"r": [10, 20]}));
}

#[test]
fn how_a_command_failed_is_data_where_its_whole_result_is_written() {
    let output = completed(
        "steps:
  - {id: a, type: shell, command: 'echo out; exit 3', output_to: a, on_error: continue}
  - {id: b, type: shell, command: 'exit 4', output_to: b, retry: {attempts: 2}, on_error: continue}
  - {id: c, type: shell, command: 'exit 5', output_to: c, on_error: {goto: end}}
  - {id: never, type: shell, command: 'exit 1'}
  - {id: end, type: shell, command: 'exit 6', output_to: d, output_format: text, on_error: continue}
outputs:
  a: {type: string, value: '{{ state.a.exit_code }} {{ state.a.stdout }}'}
  b: {type: integer, value: '{{ state.b.exit_code }}'}
  c: {type: integer, value: '{{ state.c.exit_code }}'}
  d: {type: boolean, value: '{{ state.d is defined }}'}
",
    );
    assert_eq!(output, json!({"a": "3 out\n", "b": 4, "c": 5, "d": false}));
}

#[test]
fn a_prepared_answer_is_read_as_one_that_is_typed() {
    let bench = Bench::new(json!({"ok": "yes", "pick": 1, "number": 42, "no": {"confirmed": "n"}}));
    let report = bench.run(
        "steps:
  - {id: ok, type: prompt, kind: confirm, message: Ready?, output_to: ok}
  - {id: pick, type: prompt, kind: choice, message: Which?, options: ['1', '2'], output_to: pick}
  - {id: number, type: prompt, kind: text, message: How many?, output_to: number}
  - {id: no, type: prompt, kind: confirm, message: Sure?, output_to: no}
  - type: return
    value: ['{{ state.ok.confirmed }}', '{{ state.pick.selected }}', '{{ state.number.input }}', '{{ state.no.confirmed }}']
",
        json!({}),
    );
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.output.to_json(), json!([true, "1", "42", false]));
}

/// What failure steps have left in their log, and how many steps were executed.
fn cleaned(definition: &str) -> (String, u64) {
    let bench = Bench::new(json!({}));
    let report = bench.run(definition, json!({}));
    assert_eq!(report.status, ReportStatus::Failed, "{:?}", report.error);
    let message = report.error.unwrap().message;
    let log = std::fs::read_to_string(bench.directory.path().join("log"));
    (
        format!("{}: {message}", log.unwrap_or_default().trim()),
        report.states_executed,
    )
}

#[test]
fn failure_steps_run_when_the_run_has_used_up_its_steps() {
    let steps = cleaned(
        "limits: {max_steps: 2}
on_error:
  steps:
    - {type: shell, command: echo undo >> log}
    - {type: shell, command: echo undone >> log}
steps:
  - {id: a, type: shell, command: 'true'}
  - {id: b, type: shell, command: 'true'}
  - {id: c, type: shell, command: 'true'}
",
    );
    assert!(
        steps
            .0
            .starts_with("undo\nundone: `c`: 2 steps have been executed"),
        "{steps:?}"
    );
    assert_eq!(steps.1, 4);
    let states = cleaned(
        "initial_state: a
limits: {max_steps: 3}
on_error: {steps: [{type: shell, command: echo undo >> log}]}
states:
  a:
    action: {type: shell, command: 'true'}
    transitions: [{condition: success, next_state: a}, {condition: failure, next_state: b}]
  b: {action: {type: shell, command: 'true'}}
",
    );
    assert!(
        states
            .0
            .starts_with("undo: `a`: 3 states have been executed"),
        "{states:?}"
    );
    let of_a_task = cleaned(
        "limits: {max_steps: 3}
tasks:
  each:
    on_error: {steps: [{type: shell, command: echo undo >> log}]}
    steps:
      - {id: a, type: shell, command: 'true'}
      - {id: b, type: shell, command: 'true'}
      - {id: c, type: shell, command: 'true'}
steps:
  - {id: all, type: foreach, items: [1], task: each}
",
    );
    assert!(of_a_task.0.starts_with("undo: "), "{of_a_task:?}");
}

#[test]
fn failure_steps_do_not_go_on_for_ever() {
    let (said, executed) = cleaned(
        "on_error:
  steps:
    - {id: back, type: set_state, updates: {n: 1}}
    - {type: goto, target: back, max_iterations: 1000000}
state: {n: 0}
steps: [{id: a, type: shell, command: exit 3}]
",
    );
    assert!(said.contains("exit code 3"), "{said}");
    assert_eq!(executed, 10_001);
}

#[test]
fn a_failure_step_that_fails_ends_them_unless_it_says_otherwise() {
    for (on_error, left) in [("fail", "one"), ("continue", "one\ntwo")] {
        let (said, _) = cleaned(&format!(
            "on_error:
  steps:
    - {{type: shell, command: echo one >> log; exit 8, on_error: {on_error}}}
    - {{type: shell, command: echo two >> log}}
steps: [{{id: a, type: shell, command: exit 3}}]
"
        ));
        assert!(said.starts_with(&format!("{left}: ")), "{said}");
        assert!(said.contains("exit code 3"), "{said}");
    }
}
