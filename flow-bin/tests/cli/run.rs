//! `flow run`: inputs, results, exit codes.

use serde_json::{Value, json};

use super::{BAD, Place};

const GREET: &str = "description: Greets somebody
inputs:
  who: {type: string, required: true}
  times: {type: integer, required: true}
  loud: {type: boolean, default: false}
  tags: {type: array}
  more: {type: object}
  rate: {type: number}
outputs:
  said: '{{ state.said }}'
  inputs: '{{ inputs }}'
steps:
  - {id: greet, type: shell, command: 'echo hello {{ inputs.who }}', output_format: text, output_to: said}
";

const FAILS: &str = "steps:\n  - {id: breaks, type: shell, command: 'echo no luck >&2; exit 3'}\n";

const ASKS: &str = "outputs: {name: '{{ state.name.input }}', sure: '{{ state.sure.confirmed }}', which: '{{ state.which.selected }}'}
steps:
  - {id: tell, type: prompt, kind: info, message: 'Three questions follow.'}
  - {id: name, type: prompt, kind: text, message: 'Your name?', validation: {min_length: 2}, output_to: name}
  - {id: sure, type: prompt, kind: confirm, message: 'Sure?', output_to: sure}
  - {id: which, type: prompt, kind: choice, message: 'Which?', options: [red, green], output_to: which}
";

/// The fields that the result of a run has, in order.
const FIELDS: [&str; 10] = [
    "run_id",
    "workflow",
    "status",
    "final_state",
    "states_executed",
    "output",
    "state",
    "error",
    "elapsed_ms",
    "pending",
];

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn the_output_goes_to_standard_output_and_progress_beside_it() {
    let place = Place::with(&[("greet.yaml", GREET)]);
    let ran = place.run(&["run", "greet.yaml", "Ada", "2"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["said"], "hello Ada");
    assert!(ran.stderr.contains("✓ greet"), "{}", ran.stderr);
    let quiet = place.run(&["run", "greet.yaml", "Ada", "2", "-q"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
}

#[test]
fn the_result_as_json_has_the_fields_that_programs_rely_on() {
    let place = Place::with(&[("greet.yaml", GREET)]);
    let ran = place.run(&["run", "greet.yaml", "Ada", "2", "--format", "json"]);
    let result = ran.json();
    assert_eq!(keys(&result), FIELDS);
    assert_eq!(result["workflow"], "greet");
    assert_eq!(result["status"], "completed");
    assert_eq!(result["final_state"], "completed");
    assert_eq!(result["states_executed"], 1);
    assert_eq!(result["state"], json!({"said": "hello Ada"}));
    assert_eq!(result["error"], Value::Null);
    assert_eq!(result["pending"], json!([]));
    assert!(result["elapsed_ms"].is_u64());
}

#[test]
fn json_lines_tell_what_happens_and_end_with_the_result() {
    let place = Place::with(&[("greet.yaml", GREET)]);
    let ran = place.run(&["run", "greet.yaml", "Ada", "2", "--format", "jsonl"]);
    let lines: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (result, events) = lines.split_last().unwrap();
    assert_eq!(keys(result), FIELDS);
    let words: Vec<&str> = events
        .iter()
        .map(|it| it["event"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["step_started", "action", "output", "step_ended"]);
    assert!(
        events
            .iter()
            .all(|it| it["step"] == "greet" && it["run_id"] == result["run_id"])
    );
    assert_eq!(events[2]["text"], "hello Ada\n");
    assert_eq!(events[3]["outcome"], "success");
    assert_eq!(ran.stderr, "");
}

#[test]
fn values_are_read_by_the_type_of_their_input() {
    let place = Place::with(&[("greet.yaml", GREET)]);
    let ran = place.run(&[
        "run",
        "greet.yaml",
        "5",
        "-3",
        "-p",
        "loud=yes",
        "-p",
        "tags=[1, \"a\"]",
        "-p",
        "more={\"k\": null}",
        "-p",
        "rate=2.5",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.json()["inputs"],
        json!({"who": "5", "times": -3, "loud": true, "tags": [1, "a"], "more": {"k": null}, "rate": 2.5})
    );
}

#[test]
fn inputs_come_from_a_file_too_and_flags_go_before_it() {
    let place = Place::with(&[
        ("greet.yaml", GREET),
        ("in.yaml", "who: Ada\ntimes: 2\ntags: [x]\n"),
        ("in.json", r#"{"who": "Ada", "times": 2}"#),
    ]);
    let ran = place.run(&[
        "run",
        "greet.yaml",
        "--input-file",
        "in.yaml",
        "-p",
        "who=Bob",
    ]);
    let inputs = &ran.json()["inputs"];
    assert_eq!(
        (&inputs["who"], &inputs["tags"]),
        (&json!("Bob"), &json!(["x"]))
    );
    let ran = place.run(&["run", "greet.yaml", "--input-file", "in.json"]);
    assert_eq!(ran.json()["inputs"]["times"], 2);
    // A value in order has its place whatever the file gives.
    let ran = place.run(&["run", "greet.yaml", "Bob", "--input-file", "in.json"]);
    let inputs = &ran.json()["inputs"];
    assert_eq!(
        (&inputs["who"], &inputs["times"]),
        (&json!("Bob"), &json!(2))
    );
    let twice = ["run", "greet.yaml", "Bob", "3", "-p", "who=Al"];
    let ran = place.run(&twice);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("too many"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`who` has one by name"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["run", "greet.yaml", "--input-file", "in.jso"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("did you mean `in.json`?"),
        "{}",
        ran.stderr
    );
}

#[test]
fn every_fault_of_the_inputs_is_told_at_once_with_the_usage() {
    let place = Place::with(&[("greet.yaml", GREET)]);
    let ran = place.run(&["run", "greet.yaml", "-p", "lud=yes", "-p", "rate=fast"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    for part in [
        "`who` must be given (a string)",
        "`times` must be given (an integer)",
        "`lud` is not declared; did you mean `loud`?",
        "`rate` must be a number, not `fast`",
        "usage: flow run greet.yaml <who> <times> [-p key=value]…",
    ] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
    let ran = place.run(&["run", "greet.yaml", "a", "1", "b"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("`b` is one value too many"),
        "{}",
        ran.stderr
    );
    let usage = "help: `flow run greet.yaml <who> <times> [-p key=value]…`";
    assert!(ran.stderr.contains(usage), "{}", ran.stderr);
    assert!(!place.path("data").exists(), "nothing was recorded");
}

#[test]
fn the_old_name_of_a_parameter_works_and_warns() {
    let place = Place::with(&[("greet.yaml", GREET)]);
    let ran = place.run(&["run", "greet.yaml", "Ada", "2", "--var", "loud=true"]);
    assert_eq!(ran.json()["inputs"]["loud"], true);
    assert!(ran.stderr.contains("warning: `--var`"), "{}", ran.stderr);
}

#[test]
fn a_failed_run_says_why_and_how_to_try_again() {
    let place = Place::with(&[("fails.yaml", FAILS)]);
    let ran = place.run(&["run", "fails.yaml", "--format", "json"]);
    assert_eq!(ran.code, 1);
    let result = ran.json();
    assert_eq!(
        (&result["status"], &result["final_state"]),
        (&json!("failed"), &json!("breaks"))
    );
    assert!(result["error"].as_str().unwrap().contains("no luck"));
    assert!(ran.stderr.contains("flow resume r-"), "{}", ran.stderr);
}

#[test]
fn a_definition_with_errors_is_not_run() {
    let place = Place::with(&[("bad.yaml", BAD)]);
    let ran = place.run(&["run", "bad.yaml"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("bad.yaml:2:12"), "{}", ran.stderr);
    assert!(!place.path("data").exists());
}

#[test]
fn limits_can_be_given_with_the_run() {
    let place = Place::with(&[(
        "long.yaml",
        "state: {n: 0}\nsteps:\n  - type: while\n    if: 'true'\n    max_iterations: 1000\n    steps:\n      - {type: set_state, updates: [{path: n, operation: increment}]}\n",
    )]);
    let ran = place.run(&["run", "long.yaml", "--max-steps", "10"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("10"), "{}", ran.stderr);
    let place = Place::with(&[(
        "slow.yaml",
        "steps:\n  - {type: shell, command: sleep 100, timeout: 200}\n",
    )]);
    let ran = place.run(&["run", "slow.yaml", "--timeout", "100ms"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("0.1 s"), "{}", ran.stderr);
    for (time, told) in [
        ("soon", "such as 90s"),
        ("0", "from 0.1 s to 365 d"),
        ("0.05", "from 0.1 s to 365 d"),
        ("400d", "from 0.1 s to 365 d"),
    ] {
        let ran = place.run(&["run", "slow.yaml", "--timeout", time]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[test]
fn a_plan_shows_what_is_known_and_does_nothing() {
    let place = Place::with(&[(
        "plan.yaml",
        "inputs: {env: {type: string, required: true}, token: {type: string, secret: true}}
state: {x: b}
steps:
  - {id: go, type: shell, command: 'touch {{ inputs.env }} {{ inputs.token }}', output_to: out}
  - {id: later, type: shell, command: 'echo {{ state.out.stdout }}'}
  - {id: maybe, type: condition, if: \"{{ state.x | default('a') == 'a' }}\", then: [{type: break_glass}]}
"
        .replace("[{type: break_glass}]", "[{type: set_state, updates: {at: '{{ now() }}', env: '{{ inputs.env }}'}}]")
        .as_str(),
    )]);
    let ran = place.run(&[
        "run",
        "plan.yaml",
        "prod system",
        "-p",
        "token=hidden",
        "--dry-run",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in [
        "$ touch 'prod system' '***'",
        "$ echo {{ state.out.stdout }}",
        "at = {{ now() }}, env = \"prod system\"",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("hidden"), "{}", ran.stdout);
    assert!(!place.path("data").exists() && !place.path("prod system").exists());
    let asked = [
        "run",
        "plan.yaml",
        "prod",
        "-p",
        "token=hidden",
        "--dry-run",
        "--format",
        "json",
    ];
    let ran = place.run(&asked);
    let steps = &ran.json()["steps"];
    assert_eq!(steps[0]["known"], true);
    assert_eq!(steps[1]["known"], false);
    assert_eq!(
        steps[2]["known"], false,
        "what a default stands in for is not known"
    );
    assert_eq!(place.run(&["run", "plan.yaml", "--dry-run"]).code, 2);
}

#[test]
fn prompts_are_answered_on_standard_input_until_they_can_be_understood() {
    let place = Place::with(&[("asks.yaml", ASKS)]);
    let ran = place.pipe(&["run", "asks.yaml", "-i"], "A\nAda\nperhaps\ny\n3\n2\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.json(),
        json!({"name": "Ada", "sure": true, "which": "green"})
    );
    for part in [
        "Three questions follow.",
        "at least 2 characters",
        "answer y or n",
        "1) red",
        "answer a number from 1 to 2",
    ] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
}

#[test]
fn at_the_end_of_the_input_a_question_stays_open() {
    let place = Place::with(&[("asks.yaml", ASKS)]);
    let ran = place.pipe(&["run", "asks.yaml", "-i"], "");
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("flow answer r-"), "{}", ran.stderr);
    let ran = place.pipe(&["resume", "latest", "-i", "--format", "json"], "Ada\n");
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert_eq!(ran.json()["status"], "waiting");
    assert_eq!(ran.json()["state"]["name"]["input"], "Ada");
}

#[test]
fn answers_to_steps_that_do_not_exist_are_told() {
    let place = Place::with(&[
        ("asks.yaml", ASKS),
        ("answers.yaml", "nam: Ada\nsure: true\nwhich: red\n"),
        (
            "calls.yaml",
            "steps:\n  - {type: call, workflow: asks}\n  - {type: call, workflow: '{{ inputs.x }}', when: false}\n",
        ),
    ]);
    let told = "no step `nam` to answer; did you mean `name`?";
    let ran = place.run(&["run", "asks.yaml", "--answers", "answers.yaml"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(!ran.stderr.contains("`sure` to answer"), "{}", ran.stderr);
    let ran = place.run(&["resume", "latest", "--answers", "answers.yaml"]);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    // Which steps a workflow has that is named while it runs, nobody knows before.
    let ran = place.run(&["run", "calls.yaml", "--answers", "answers.yaml"]);
    assert!(!ran.stderr.contains("to answer;"), "{}", ran.stderr);
}

#[test]
fn answers_are_prepared_in_a_file() {
    let place = Place::with(&[
        ("asks.yaml", ASKS),
        (
            "answers.yaml",
            "name: Ada\nsure: {confirmed: false}\nwhich: red\n",
        ),
        ("some.json", r#"{"name": "A"}"#),
    ]);
    let ran = place.run(&["run", "asks.yaml", "--answers", "answers.yaml"]);
    assert_eq!(
        ran.json(),
        json!({"name": "Ada", "sure": false, "which": "red"})
    );
    let ran = place.run(&["run", "asks.yaml", "--answers", "some.json"]);
    assert_eq!(ran.code, 5);
    assert!(
        ran.stderr
            .contains("the prepared answer to `name` is not used"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("flow answer r-"), "{}", ran.stderr);
}

#[test]
fn a_workflow_calls_others_by_name_from_the_library_and_beside_it() {
    let place = Place::with(&[
        (".flow/workflows/inner.yaml", "inputs: {n: integer}\noutputs: {twice: '{{ inputs.n * 2 }}'}\nsteps: []\n"),
        ("flows/outer.yaml", "outputs: {a: '{{ state.a.twice }}', b: '{{ state.b.one }}', c: '{{ state.c }}'}
steps:
  - {type: call, workflow: inner, inputs: {n: 21}, output_to: a}
  - {type: call, workflow: beside, output_to: b}
  - {id: gone, type: call, workflow: \"{{ 'inne' }}\", on_error: continue, output_to: c, fallback_value: none}
"),
        ("flows/beside.yaml", "outputs: {one: '{{ 1 }}'}\nsteps: []\n"),
    ]);
    let ran = place.run(&["run", "flows/outer.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json(), json!({"a": 42, "b": 1, "c": "none"}));
    assert!(place.path(".flow/journal.db").is_file());
}

#[test]
fn what_is_done_is_told_when_it_is_asked_for() {
    let place = Place::with(&[("greet.yaml", GREET)]);
    let quiet = place.run(&["run", "greet.yaml", "Ada", "2"]);
    assert!(!quiet.stderr.contains("$ "), "{}", quiet.stderr);
    let told = place.run(&["run", "greet.yaml", "Ada", "2", "-v"]);
    assert!(told.stderr.contains("greet: $ "), "{}", told.stderr);
    assert_eq!(told.stdout, quiet.stdout);
    let mut command = place.command(&["run", "greet.yaml", "Ada", "2"]);
    let told = super::Ran::from(command.env("FLOW_LOG", "debug").output().unwrap());
    assert!(told.stderr.contains("Entered"), "{}", told.stderr);
}

#[test]
fn a_value_reaches_a_command_as_it_is_in_both_dialects_and_in_every_place() {
    let hostile = "$(touch pwned) `touch pwned` \"; touch pwned; ' \\ $HOME *\n\tEOF é";
    let places = r#"printf '%s|' {{ inputs.v }} "{{ inputs.v }}" '{{ inputs.v }}' "$(printf '%s' "{{ inputs.v }}")"
cat <<END
{{ inputs.v }}
END
"#;
    for dialect in ["jinja", "js"] {
        let command = Value::from(places);
        let definition = format!(
            "expressions: {dialect}
inputs: {{v: {{type: string, required: true}}}}
outputs: {{said: '{{{{ state.said }}}}'}}
steps: [{{type: shell, command: {command}, output_format: text, output_to: said}}]
"
        );
        let place = Place::with(&[("quote.yaml", definition.as_str())]);
        let ran = place.run(&["run", "quote.yaml", hostile]);
        assert_eq!(ran.code, 0, "{dialect}: {}", ran.stderr);
        let expected = format!("{hostile}|{hostile}|{hostile}|{hostile}|{hostile}");
        assert_eq!(ran.json()["said"], expected.as_str(), "{dialect}");
        assert!(!place.path("pwned").exists(), "{dialect}");
    }
}

#[test]
fn what_cannot_be_an_input_is_told_as_it_was_typed() {
    let place = Place::with(&[(
        "two.yaml",
        "inputs: {a: {type: string, required: true}, b: {type: string, required: true}}\noutputs: {ab: '{{ inputs.a ~ inputs.b }}'}\nsteps: [{type: set_state, updates: {n: 1}}]\n",
    )]);
    let told = |arguments: &[&str]| {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        ran.stderr
    };
    let nameless = told(&["run", "two.yaml", "x", "y", "-p", "=z"]);
    assert!(nameless.contains("`=z` has no name"), "{nameless}");
    let many = told(&["run", "two.yaml", "x", "y", "-p", "a=z"]);
    assert!(many.contains("one required input left"), "{many}");
    let steps = told(&["run", "two.yaml", "x", "y", "--max-steps", "0"]);
    assert!(steps.contains("--max-steps"), "{steps}");
    place.file("bad.json", b"{\"a\": \"caf\xe9\", \"b\": \"\"}");
    let bytes = told(&["run", "two.yaml", "--input-file", "bad.json"]);
    assert!(bytes.contains("not UTF-8"), "{bytes}");
    place.file("twice.yaml", "a: x\nb:\n  - {c: 1, c: 2}\n");
    place.file("twice.json", r#"{"a": "x", "a": "y"}"#);
    place.file("empty.yaml", "# nothing\n");
    for (file, reasons) in [
        ("twice.yaml", ["line 3, column 12", "`c` is given twice"]),
        ("twice.json", ["line 1, column 12", "`a` is given twice"]),
        ("empty.yaml", ["`empty.yaml` is empty", "it holds no "]),
        (".", ["`.` is a directory", "not a file of "]),
    ] {
        for (flag, what) in [("--input-file", "inputs"), ("--answers", "answers")] {
            let wrong = told(&["run", "two.yaml", "x", "y", flag, file]);
            assert!(reasons.iter().all(|it| wrong.contains(it)), "{wrong}");
            assert!(!wrong.contains("definition"), "{wrong}");
            let is_named = wrong.contains("twice") || wrong.contains(what);
            assert!(is_named, "{wrong}");
        }
    }
}

#[test]
fn a_run_that_is_over_at_once_is_listed_as_over() {
    let place = Place::with(&[
        (
            "done.yaml",
            "outputs: {n: '{{ state.n }}'}\nsteps: [{type: set_state, updates: {n: 3}}]\n",
        ),
        (
            "fails.yaml",
            "state: {a: x}\nsteps: [{type: set_state, updates: {n: '{{ state.a + 1 }}'}}]\n",
        ),
    ]);
    assert_eq!(place.run(&["run", "done.yaml"]).json(), json!({"n": 3}));
    assert_eq!(place.run(&["run", "fails.yaml"]).code, 1);
    let runs = place.run(&["runs", "--format", "json"]).json();
    let statuses: Vec<&Value> = (0..2).map(|at| &runs["runs"][at]["status"]).collect();
    assert_eq!(statuses, ["failed", "completed"]);
    assert!(runs["runs"][0]["error"].is_string(), "{runs}");
    let again = place.run(&["resume", "latest"]);
    assert_eq!(again.code, 1, "{}", again.stderr);
}

#[test]
fn what_a_workflow_tells_people_is_shown_also_without_progress_and_is_remembered() {
    let place = Place::with(&[(
        "tells.yaml",
        "inputs: {who: {type: string, default: Ada}}
steps:
  - {id: hello, type: prompt, message: 'Hello {{ inputs.who }}.'}
  - {id: rest, type: wait, duration_seconds: 0, message: 'Resting for {{ inputs.who }}.'}
",
    )]);
    let quiet = place.run(&["run", "tells.yaml", "-q"]);
    assert_eq!(quiet.stderr, "Hello Ada.\nResting for Ada.\n");
    let shown = place.run(&["show", "latest", "--format", "json"]).json();
    let messages: Vec<&str> = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["message"].as_str())
        .collect();
    assert_eq!(messages, ["Hello Ada.", "Resting for Ada."]);
    let table = place.run(&["show", "latest"]).stdout;
    assert!(table.contains("Resting for Ada."), "{table}");
    let log = place.run(&["logs", "latest", "--step", "hello"]).stdout;
    assert_eq!(log, "Hello Ada.\n");
    let objects = place.run(&["run", "tells.yaml", "--format", "jsonl"]);
    let told: Vec<String> = objects
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter_map(|object| object["message"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(told, ["Hello Ada.", "Resting for Ada."]);
}

#[test]
fn commands_run_where_the_caller_is_and_know_their_project() {
    let place = Place::with(&[
        (
            ".flow/workflows/where.yaml",
            "steps:
  - {id: where, type: shell, command: 'pwd; echo \"$FLOW_PROJECT_DIR\"', output_format: lines, output_to: places}
outputs: {places: '{{ state.places }}'}
",
        ),
        ("sub/deep/file", ""),
    ]);
    let deep = std::path::Path::new("sub/deep");
    let ran = place.command_in(deep, &["where"]).output().unwrap();
    let ran = super::Ran::from(ran);
    let root = place.path("").canonicalize().unwrap();
    let places = ran.json()["places"].clone();
    assert_eq!(places[0], root.join(deep).to_str().unwrap());
    let project = std::path::Path::new(places[1].as_str().unwrap());
    assert_eq!(project.canonicalize().unwrap(), root);
}

#[test]
fn the_lines_of_a_command_stay_lines_in_the_plan() {
    let place = Place::with(&[(
        "w.yaml",
        "steps:\n  - id: two\n    type: shell\n    command: |\n      cd here\n      make it\n",
    )]);
    let plan = place.run(&["run", "w.yaml", "--dry-run"]).stdout;
    let mut lines = plan.lines().skip_while(|line| !line.contains("$ cd here"));
    assert!(
        lines.next().is_some_and(|line| line.ends_with("$ cd here")),
        "{plan}"
    );
    assert_eq!(lines.next().map(str::trim), Some("make it"), "{plan}");
}
