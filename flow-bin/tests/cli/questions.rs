//! Questions inside tasks and called workflows: their names, their answers, and refusals.

use serde_json::{Value, json};

use super::Place;

const TASKS: &str = "steps:
  - {id: all, type: foreach, items: [1, 2], task: one, on_child_error: continue, on_error: continue, output_to: names}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: q, type: prompt, kind: text, message: 'Name {{ inputs.n }}?', output_to: answer}
      - {id: give, type: return, value: '{{ state.answer.input }}'}
    on_error: {return: true, steps: [{id: sweep, type: shell, command: touch swept}]}
";

const CHILD: &str = "steps:
  - {id: hear, type: shell, command: echo heard}
  - {id: q, type: prompt, kind: text, message: 'Well?', output_to: answer}
";

fn started(place: &Place, file: &str) -> (String, Value) {
    let ran = place.run(&["run", file, "--format", "json"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let json = ran.json();
    (json["run_id"].as_str().unwrap().to_owned(), json)
}

#[test]
fn a_refusal_in_a_task_refuses_the_run_whatever_handles_failures() {
    let place = Place::with(&[("w.yaml", TASKS)]);
    let (run, _) = started(&place, "w.yaml");
    let refused = place.run(&[
        "answer",
        &run,
        "--step",
        "all.0/q",
        "--decline",
        "--format",
        "json",
    ]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    let error = refused.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("item 0 of `all`"), "{error}");
    assert!(!place.path("swept").exists(), "failure steps do not run");
    // Whoever thinks better of it is asked again, and both questions are open.
    let again = place.run(&["resume", &run, "--format", "json"]);
    assert_eq!(again.code, 5, "{}", again.stderr);
    assert_eq!(again.json()["pending"].as_array().unwrap().len(), 2);
}

#[test]
fn a_refusal_in_a_called_workflow_refuses_its_caller() {
    let place = Place::with(&[
        (
            "w.yaml",
            "steps:\n  - {id: k, type: call, workflow: child, on_error: continue}\n",
        ),
        (".flow/workflows/child.yaml", CHILD),
    ]);
    let (run, _) = started(&place, "w.yaml");
    let refused = place.run(&["answer", &run, "--decline"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("`child` was refused"),
        "{}",
        refused.stderr
    );
    let again = place.run(&["resume", &run]);
    assert_eq!(again.code, 5, "{}", again.stderr);
}

#[test]
fn a_question_in_a_task_has_one_name_everywhere() {
    let place = Place::with(&[("w.yaml", TASKS)]);
    let (run, waits) = started(&place, "w.yaml");
    let names = |json: &Value| -> Vec<String> {
        let pending = json["pending"].as_array().unwrap().iter();
        pending
            .map(|it| it["step_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&waits), ["all.0/q", "all.1/q"]);
    let hints = place.run(&["resume", &run]).stderr;
    assert!(hints.contains("--step all.1/q"), "{hints}");
    let shown = place.run(&["show", &run, "--format", "json"]).json();
    assert_eq!(names(&shown), ["all.0/q", "all.1/q"]);
    let listed = place.run(&["runs", "--format", "json"]).json();
    assert_eq!(listed["runs"][0]["pending"], "all.0/q, all.1/q");
    let one = place.run(&["answer", &run, "Bo", "--step", "all.1/q"]);
    assert_eq!(one.code, 5, "{}", one.stderr);
    let again = place.run(&["answer", &run, "Cy", "--step", "all.1/q"]);
    assert_eq!(again.code, 2);
    for part in ["`all.1/q` has been answered already", "\"Bo\"", "`all.0/q`"] {
        assert!(again.stderr.contains(part), "{}", again.stderr);
    }
    let done = place
        .run(&["answer", &run, "Al", "--step", "q", "--format", "json"])
        .json();
    assert_eq!(done["state"]["names"], json!(["Al", "Bo"]));
}

#[test]
fn a_second_answer_is_told_the_first() {
    let place = Place::with(&[
        (
            "k.yaml",
            "steps:\n  - {id: k, type: call, workflow: child}\n",
        ),
        (".flow/workflows/child.yaml", CHILD),
    ]);
    let (run, _) = started(&place, "k.yaml");
    let first = place.run(&["answer", &run, "fine", "--step", "k/q"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    for step in [&[][..], &["--step", "k/q"], &["--step", "q"]] {
        let again = place.run(&[&["answer", &run, "bad"], step].concat());
        assert_eq!(again.code, 2);
        let told = "`k/q` has been answered already: {\"input\":\"fine\"}";
        assert!(again.stderr.contains(told), "{}", again.stderr);
    }
    let other = place.run(&["answer", &run, "bad", "--step", "hear"]);
    assert!(other.stderr.contains("does not wait"), "{}", other.stderr);
}

#[test]
fn answers_are_prepared_by_any_name_and_for_agents_too() {
    let place = Place::with(&[
        ("w.yaml", TASKS),
        ("named.json", r#"{"all.1/q": "Bo", "q": "anybody"}"#),
        ("k.yaml", "steps:\n  - {id: k, type: call, workflow: child}\n"),
        (".flow/workflows/child.yaml", CHILD),
        ("called.json", r#"{"k/q": "fine"}"#),
        (
            "d.yaml",
            "steps:
  - {id: d, type: delegate, instructions: Count., returns: {type: object, required: [n]}, output_to: d}
  - {id: all, type: foreach, items: [{n: 1}], task: one, agent: '@counter', output_to: each}
tasks:
  one: {inputs: {n: {type: integer, required: true}}, steps: [{type: shell, command: 'true'}]}
",
        ),
        ("agents.json", r#"{"d": {"n": 3}, "all.0/all": "one"}"#),
        ("unfit.json", r#"{"d": {"m": 3}, "all": "one"}"#),
    ]);
    let answered = |file: &str, answers: &str| {
        let ran = place.run(&["run", file, "--answers", answers, "--format", "json"]);
        assert!(!ran.stderr.contains("there is no step"), "{}", ran.stderr);
        ran
    };
    let named = answered("w.yaml", "named.json").json();
    assert_eq!(named["state"]["names"], json!(["anybody", "Bo"]));
    assert_eq!(answered("k.yaml", "called.json").code, 0);
    let agents = answered("d.yaml", "agents.json").json();
    assert_eq!(
        agents["state"]["d"]["response"],
        json!({"n": 3}),
        "{agents}"
    );
    assert_eq!(agents["state"]["each"][0]["response"], "one");
    // One that does not fit is not used, and said so.
    let unfit = answered("d.yaml", "unfit.json");
    assert_eq!(unfit.code, 5);
    assert!(
        unfit
            .stderr
            .contains("the prepared answer to `d` is not used"),
        "{}",
        unfit.stderr
    );
    // Nor does it count: whoever answers then has both tries.
    let run = unfit.json()["run_id"].as_str().unwrap().to_owned();
    let wrong = place.run(&["answer", &run, r#"{"m": 4}"#, "--step", "d"]);
    assert_eq!(wrong.code, 5, "{}", wrong.stderr);
    let right = place.run(&["answer", &run, r#"{"n": 4}"#, "--format", "json"]);
    assert_eq!(right.json()["state"]["d"]["response"], json!({"n": 4}));
}

#[test]
fn what_a_step_of_a_called_workflow_wrote_is_found_by_its_call() {
    let place = Place::with(&[
        (
            "w.yaml",
            "steps:\n  - {id: k, type: call, workflow: child}\n",
        ),
        (".flow/workflows/child.yaml", CHILD),
    ]);
    let (run, _) = started(&place, "w.yaml");
    let logs = place.run(&["logs", &run, "--step", "k/hear"]);
    assert_eq!((logs.code, logs.stdout.as_str()), (0, "heard\n"));
    assert_eq!(place.run(&["logs", &run, "--step", "k/other"]).code, 2);
}

#[test]
fn an_answer_that_is_not_taken_leaves_the_run_as_it_stands_for_programs_too() {
    let asks =
        "steps:\n  - {id: q, type: prompt, kind: choice, message: 'Which?', options: [a, b]}\n";
    let place = Place::with(&[("w.yaml", asks)]);
    let (run, _) = started(&place, "w.yaml");
    let refused = place.run(&["answer", &run[..8], "c", "--format", "json"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let told = refused.json();
    assert_eq!(told["run_id"], run);
    assert_eq!(told["status"], "waiting");
    assert_eq!(told["pending"][0]["step_id"], "q");
    let error = told["error"].as_str().unwrap();
    assert!(error.contains('c') && error.contains('b'), "{error}");
    let taken = place.run(&["answer", &run, "b", "--format", "json"]);
    assert_eq!(taken.json()["status"], "completed", "{}", taken.stderr);
    // What is over takes none.
    let late = place.run(&["answer", &run, "a", "--format", "json"]);
    assert_eq!(late.code, 2, "{}", late.stderr);
    assert_eq!(late.json()["status"], "completed");
}
