//! What `flow show` and `flow run --format jsonl` say of steps that are over.

use std::fs;
use std::io::Read;
use std::process::Command;

use serde_json::{Value, json};

use super::Place;

/// Each visit of the newest run: the step, how it ended, and why.
fn visits(place: &Place) -> Vec<Value> {
    let shown = place.run(&["show", "latest", "--format", "json"]).json();
    let steps = shown["steps"].as_array().unwrap().clone();
    for step in &steps {
        let is_over = step["outcome"] != "under_way";
        assert_eq!(step["ended_at"].is_string(), is_over, "{step}");
    }
    let told = |step: &Value| json!([step["step"], step["outcome"], step["error"]]);
    steps.iter().map(told).collect()
}

#[test]
fn a_failed_step_keeps_its_error_and_each_attempt_is_a_visit() {
    let place = Place::with(&[(
        "w.yaml",
        "steps:
  - {id: fine, type: shell, command: 'true'}
  - id: again
    type: foreach
    items: [1, 2]
    steps:
      - {id: boom, type: shell, command: 'test -e go || { echo no go >&2; exit 3; }'}
",
    )]);
    let run = place.run(&["run", "w.yaml", "--format", "jsonl"]);
    assert_eq!(run.code, 1);
    let error = "the command of `boom` ended with exit code 3: no go";
    let ended: Vec<Value> = run
        .stdout
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert!(
        ended.iter().any(|it| it["event"] == "step_ended"
            && it["step"] == "again.0/boom"
            && it["error"] == error),
        "{}",
        run.stdout
    );
    let failed = [
        json!(["fine", "success", null]),
        json!(["again", "failure", error]),
        json!(["again.0/boom", "failure", error]),
    ];
    assert_eq!(visits(&place), failed);

    place.file("go", "");
    assert_eq!(place.run(&["resume", "latest"]).code, 0);
    let after = [
        json!(["again", "success", null]),
        json!(["again.0/boom", "success", null]),
        json!(["again.1/boom", "success", null]),
    ];
    assert_eq!(visits(&place), [failed.as_slice(), &after].concat());
}

#[test]
fn a_state_that_nothing_leads_out_of_says_so() {
    let place = Place::with(&[(
        "w.yaml",
        "initial_state: a
states:
  a:
    action: {type: shell, command: 'true'}
    transitions: [{condition: failure, next_state: b}]
  b: {action: {type: shell, command: 'true'}}
",
    )]);
    assert_eq!(place.run(&["run", "w.yaml"]).code, 1);
    let error = "`a` ended in success, and no transition of it holds; a transition for `always` would lead on";
    assert_eq!(visits(&place), [json!(["a", "failure", error])]);
}

#[test]
fn failed_and_stopped_children_are_told_apart() {
    let place = Place::with(&[(
        "w.yaml",
        "tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: child, type: shell, command: 'exit {{ inputs.n }}'}
steps:
  - {id: each, type: foreach, items: [0, 4], task: one, sequential: true, on_child_error: continue}
  - {id: last, type: shell, command: exit 5}
on_error:
  steps:
    - {id: tell, type: shell, command: 'true'}
",
    )]);
    assert_eq!(place.run(&["run", "w.yaml"]).code, 1);
    assert_eq!(
        visits(&place),
        [
            json!(["each", "success", null]),
            json!(["each.0/child", "success", null]),
            json!([
                "each.1/child",
                "failure",
                "the command of `child` ended with exit code 4"
            ]),
            json!([
                "last",
                "failure",
                "the command of `last` ended with exit code 5"
            ]),
            json!(["tell", "success", null]),
        ]
    );
}

#[test]
fn a_loop_that_is_left_early_is_over() {
    let place = Place::with(&[(
        "w.yaml",
        "steps:
  - id: rounds
    type: foreach
    items: [1, 2]
    steps:
      - {id: out, type: break}
  - id: more
    type: foreach
    items: [1, 2]
    steps:
      - {id: end, type: return, value: 1}
",
    )]);
    assert_eq!(place.run(&["run", "w.yaml"]).code, 0);
    let over = |step| json!([step, "success", null]);
    assert_eq!(
        visits(&place),
        [
            over("rounds"),
            over("rounds.0/out"),
            over("more"),
            over("more.0/end")
        ]
    );
}

#[test]
fn a_step_of_an_item_has_the_item_in_its_name_wherever_it_is_shown() {
    let place = Place::with(&[(
        "w.yaml",
        "tasks: {t: {inputs: {x: string}, steps: [{id: ping, type: shell, command: 'echo {{ inputs.x }}'}]}}
steps:
  - {id: all, type: foreach, items: [a, b], task: t, sequential: true}
",
    )]);
    let run = place.run(&["run", "w.yaml"]);
    assert!(run.stderr.contains("all.1/ping"), "{}", run.stderr);
    let names: Vec<Value> = visits(&place).iter().map(|it| it[0].clone()).collect();
    assert_eq!(names, ["all", "all.0/ping", "all.1/ping"]);
    let one = place.run(&["logs", "latest", "--step", "all.1/ping"]);
    assert_eq!(one.stdout, "b\n");
    let both = place.run(&["logs", "latest", "--step", "ping"]);
    assert_eq!(both.stdout, "a\nb\n");
    let logs = place.run(&["logs", "latest", "--format", "json"]).json();
    assert_eq!(logs["logs"][1]["step"], "all.1/ping");
}

#[test]
fn a_log_that_lost_its_beginning_says_so_and_begins_with_a_line() {
    let place = Place::with(&[(
        "w.yaml",
        "steps: [{id: big, type: shell, command: seq 1 300000, output_to: r}]\n",
    )]);
    assert_eq!(place.run(&["run", "w.yaml", "-q"]).code, 0);
    let logs = place.run(&["logs", "latest", "--format", "json"]).json();
    let piece = &logs["logs"][0];
    let dropped = piece["dropped"].as_u64().unwrap();
    let text = piece["text"].as_str().unwrap();
    let first: u64 = text.lines().next().unwrap().parse().unwrap();
    // As many bytes as all the numbers before it take.
    let before: u64 = (1..first).map(|it| it.to_string().len() as u64 + 1).sum();
    assert_eq!(dropped, before);
    let text = place.run(&["logs", "latest"]).stdout;
    assert!(text.contains(&format!(
        "[{dropped} bytes before this were dropped]\n{first}\n"
    )));
}

#[test]
fn a_log_is_followed_as_long_as_the_run_goes_on() {
    let place = Place::with(&[(
        "slow.yaml",
        "steps:\n  - {id: s, type: shell, command: 'printf a; echo >begun; read x <go; echo b'}\n  \
         - {id: t, type: shell, command: 'printf c'}\n",
    )]);
    for pipe in ["begun", "go"] {
        let made = Command::new("mkfifo").arg(place.path(pipe)).status();
        assert!(made.unwrap().success());
    }
    let mut running = place.command(&["run", "slow.yaml", "-q"]).spawn().unwrap();
    fs::read(place.path("begun")).unwrap();
    let mut following = place.command(&["logs", "latest", "-f"]).spawn().unwrap();
    let mut said = following.stdout.take().unwrap();
    let mut first = [0; 7];
    said.read_exact(&mut first).unwrap();
    assert_eq!(first, *b"--- s\na");
    fs::write(place.path("go"), "\n").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "b\n--- t\nc\n");
    assert!(following.wait().unwrap().success());
    assert!(running.wait().unwrap().success());
    let again = place.run(&["logs", "latest", "--step", "s"]);
    assert_eq!(again.stdout, "ab\n");
}

#[test]
fn runs_are_listed_by_several_statuses() {
    let place = Place::with(&[
        ("good.yaml", "steps: [{type: return}]\n"),
        ("bad.yaml", "steps: [{type: shell, command: exit 1}]\n"),
    ]);
    place.run(&["run", "good.yaml"]);
    place.run(&["run", "bad.yaml"]);
    let count = |statuses: &str| {
        let listed = place.run(&["runs", "--format", "json", "--status", statuses]);
        listed.json()["runs"].as_array().unwrap().len()
    };
    assert_eq!(count("completed,failed"), 2);
    assert_eq!(count("failed,waiting"), 1);
    assert_eq!(place.run(&["runs", "--status", "failed,bad"]).code, 2);
}

#[test]
fn a_run_that_lost_its_host_is_found_as_interrupted() {
    let place = Place::with(&[
        (
            "w.yaml",
            "steps:\n  - {id: long, type: shell, command: 'touch began; sleep 60', timeout: 100}\n",
        ),
        (
            "asks.yaml",
            "steps:\n  - {id: q, type: prompt, kind: text, message: 'Well?'}\n",
        ),
    ]);
    let mut child = super::resume::begun(&place, &["run", "w.yaml"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.run(&["run", "asks.yaml"]).code, 5);
    let found = |status: &str| {
        let listed = place.run(&["runs", "--status", status, "--format", "json"]);
        let runs = listed.json()["runs"].as_array().unwrap().clone();
        let names = runs
            .iter()
            .map(|run| run["workflow"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(found("interrupted"), ["w"]);
    assert_eq!(found("waiting"), ["asks", "w"]);
    assert_eq!(found("interrupted,failed"), ["w"]);
    // A page of runs that are not wanted hides none that are.
    let listed = place.run(&[
        "runs",
        "--status",
        "interrupted",
        "--limit",
        "1",
        "--format",
        "json",
    ]);
    let lost = listed.json()["runs"][0]["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(place.run(&["cancel", &lost]).code, 0);
    assert_eq!(found("interrupted"), [""; 0]);
    assert_eq!(place.run(&["runs", "--limit", "0"]).code, 2);
    assert_eq!(place.run(&["runs", "--status", "lost"]).code, 2);
}

#[test]
fn a_child_that_does_not_begin_is_told_as_any_child_that_fails() {
    let place = Place::with(&[(
        "w.yaml",
        "state: {list: [0, {n: x}]}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: child, type: shell, command: 'exit {{ inputs.n }}'}
steps:
  - {id: each, type: foreach, items: '{{ state.list }}', task: one, sequential: true, on_child_error: continue}
",
    )]);
    let run = place.run(&["run", "w.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let error = "item 1 of `each` does not fit the inputs of the task";
    let line = format!("✗ each.1/each: {error}");
    assert!(run.stderr.contains(&line), "{}", run.stderr);
    let told = visits(&place);
    assert_eq!(told[2][0], "each.1/each");
    assert_eq!(told[2][1], "failure");
    assert!(told[2][2].as_str().unwrap().starts_with(error), "{told:?}");
}

#[test]
fn what_a_task_does_when_it_fails_is_told_with_its_type_and_its_end() {
    let place = Place::with(&[(
        "w.yaml",
        "tasks:
  one:
    on_error:
      return: true
      steps:
        - {id: clean, type: shell, command: 'true'}
    steps:
      - {id: child, type: shell, command: 'false'}
steps:
  - {id: each, type: foreach, items: [0], task: one}
",
    )]);
    let run = place.run(&["run", "w.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("✓ each.0/clean"), "{}", run.stderr);
    let told = place.run(&["run", "w.yaml", "--format", "jsonl"]);
    let started = |line: &Value| line["event"] == "step_started" && line["step"] == "each.0/clean";
    let lines = told.stdout.lines().map(serde_json::from_str);
    let clean = lines.map(Result::unwrap).find(started).unwrap();
    assert_eq!(clean["type"], "shell");
}

#[test]
fn a_container_that_fails_by_itself_is_told_and_one_that_fails_inside_is_told_of_the_step() {
    let place = Place::with(&[(
        "w.yaml",
        "state: {a: {}}
steps:
  - {id: bad, type: condition, if: '{{ state.a.b.c }}', then: [{type: shell, command: 'true'}], on_error: continue}
  - {id: loop, type: while, if: '{{ state.a.b.c }}', max_iterations: 3, steps: [{type: shell, command: 'true'}], on_error: continue}
  - {id: list, type: foreach, items: '{{ state.a.b }}', steps: [{type: shell, command: 'true'}], on_error: continue}
  - {id: outer, type: condition, if: true, then: [{id: inner, type: shell, command: 'exit 3'}], on_error: continue}
",
    )]);
    let run = place.run(&["run", "w.yaml"]);
    let failed = |step: &str| run.stderr.matches(&format!("✗ {step}: ")).count();
    let told = ["bad", "loop", "list", "outer", "inner"].map(failed);
    assert_eq!(told, [1, 1, 1, 0, 1], "{}", run.stderr);
}

#[test]
fn a_step_of_a_called_run_is_told_with_the_step_that_called_it() {
    let place = Place::with(&[
        (
            "w.yaml",
            "tasks:
  one:
    steps:
      - {id: sub, type: call, workflow: s}
steps:
  - {id: all, type: foreach, items: [1, 2], task: one}
",
        ),
        (
            ".flow/workflows/s.yaml",
            "steps:\n  - {id: lock, type: shell, command: 'true'}\n",
        ),
    ]);
    let run = place.run(&["run", "w.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in ["✓ all.0/sub/lock", "✓ all.1/sub/lock"] {
        assert!(run.stderr.contains(line), "{}", run.stderr);
    }
}
