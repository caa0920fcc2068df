//! Runs that wait, are interrupted, killed, cancelled, and go on.

use std::fs;
use std::process::{Child, Command};
use std::thread;

use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::journal::{Append, Journal, Listing, NewRun, RunId};
use flow_runtime::run::{Event, Happening, Start};
use flow_runtime::value::Value as Given;
use serde_json::{Value, json};

use super::{Place, Ran};

const ASKS: &str = "outputs: {name: '{{ state.name.input }}'}
steps:
  - {id: first, type: shell, command: 'echo once >> log; echo said'}
  - {id: name, type: prompt, kind: text, message: 'Your name?', validation: {min_length: 2}, output_to: name}
";

/// Its second step lasts until the file `go` is there.
const SLEEPS: &str = "outputs: {done: '{{ state.done }}'}
steps:
  - {id: first, type: shell, command: 'echo once >> log'}
  - id: second
    type: shell
    timeout: 100
    command: 'echo $FLOW_STEP_KEY >> keys; echo $$ >> pids; if test -e go; then echo yes; else touch began; sleep 1000; fi'
    output_format: text
    output_to: done
";

fn lines(place: &Place, path: &str) -> Vec<String> {
    let text = fs::read_to_string(place.path(path)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Starts a run and returns when its second step is under way.
pub(super) fn begun(place: &Place, arguments: &[&str]) -> Child {
    let mut child = place.command(arguments).spawn().unwrap();
    while !place.path("began").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "the run ended");
        thread::yield_now();
    }
    child
}

fn signal(name: &str, child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([name, &pid]).status().unwrap();
    assert!(sent.success());
}

/// Whether a process is there and does something.
pub(super) fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

fn newest(place: &Place) -> Value {
    place.run(&["runs", "--format", "json"]).json()["runs"][0].clone()
}

fn id(run: &Value) -> String {
    run["run_id"].as_str().unwrap().to_owned()
}

fn result(ran: &Ran) -> (i32, String) {
    (ran.code, ran.json()["status"].as_str().unwrap().to_owned())
}

#[test]
fn a_run_waits_until_it_is_answered() {
    let place = Place::with(&[("asks.yaml", ASKS)]);
    let ran = place.run(&["run", "asks.yaml", "--format", "json"]);
    assert_eq!(result(&ran), (5, "waiting".to_owned()));
    let pending = &ran.json()["pending"][0];
    assert_eq!(pending["step"], "name");
    assert_eq!(pending["message"], "Your name?");
    let run = id(&ran.json());
    assert!(
        ran.stderr.contains(&format!("flow answer {run}")),
        "{}",
        ran.stderr
    );
    let again = place.run(&["resume", &run]);
    assert_eq!(again.code, 5);
    let refused = place.run(&["answer", &run, "A"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("at least 2 characters"),
        "{}",
        refused.stderr
    );
    let wrong = place.run(&["answer", &run, "Ada", "--step", "first"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("`name`"), "{}", wrong.stderr);
    let done = place.run(&["answer", &run, "Ada", "--format", "json"]);
    assert_eq!(result(&done), (0, "completed".to_owned()));
    assert_eq!(done.json()["output"], json!({"name": "Ada"}));
    assert_eq!(lines(&place, "log"), ["once"]);
    assert_eq!(place.run(&["answer", &run, "Ada"]).code, 2);
    assert_eq!(place.run(&["resume", &run]).json(), json!({"name": "Ada"}));
}

#[test]
fn an_answer_may_be_the_whole_result_or_a_refusal() {
    let place = Place::with(&[("asks.yaml", ASKS)]);
    let wait = || id(&place.run(&["run", "asks.yaml", "--format", "json"]).json());
    let done = place.run(&["answer", &wait(), r#"{"input": "Ada"}"#]);
    assert_eq!(done.json(), json!({"name": "Ada"}));
    let done = place.run(&["answer", &wait(), "\"42\""]);
    assert_eq!(done.json(), json!({"name": "42"}));
    assert_eq!(place.run(&["answer", &wait(), "--decline"]).code, 4);
}

#[test]
fn what_a_called_run_asks_is_answered_through_its_caller() {
    let place = Place::with(&[
        (
            ".flow/workflows/outer.yaml",
            "outputs: {it: '{{ state.it.name }}'}\nsteps:\n  - {id: ask, type: call, workflow: asks, output_to: it}\n",
        ),
        (".flow/workflows/asks.yaml", ASKS),
    ]);
    let ran = place.run(&["outer", "--format", "json", "--timeout", "1h"]);
    assert_eq!(result(&ran), (5, "waiting".to_owned()));
    assert_eq!(ran.json()["pending"][0]["step"], "name");
    let done = place.run(&["answer", &id(&ran.json()), "Ada"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.json(), json!({"it": "Ada"}));
    assert_eq!(lines(&place, "log"), ["once"]);
}

#[test]
fn a_killed_run_goes_on_and_repeats_only_what_was_under_way() {
    let place = Place::with(&[("sleeps.yaml", SLEEPS)]);
    let mut child = begun(&place, &["run", "sleeps.yaml"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = lines(&place, "pids").remove(0);
    assert!(lives(&left), "the command outlives its host");
    place.file("go", "");
    let run = id(&newest(&place));
    let done = place.run(&["resume", &run[..run.len() - 1], "--format", "json"]);
    assert_eq!(
        result(&done),
        (0, "completed".to_owned()),
        "{}",
        done.stderr
    );
    assert_eq!(done.json()["output"], json!({"done": "yes"}));
    assert!(!lives(&left), "what the dead host left is ended");
    assert_eq!(lines(&place, "log"), ["once"]);
    let keys = lines(&place, "keys");
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[test]
fn an_interrupted_run_ends_its_commands_and_can_be_resumed() {
    let place = Place::with(&[("sleeps.yaml", SLEEPS)]);
    let child = begun(&place, &["run", "sleeps.yaml", "--format", "json"]);
    signal("-INT", &child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(result(&ran), (130, "waiting".to_owned()));
    let run = id(&ran.json());
    assert!(
        ran.stderr.contains(&format!("flow resume {run}")),
        "{}",
        ran.stderr
    );
    assert!(!lives(&lines(&place, "pids")[0]));
    // Nothing waits for an answer, and nothing says so.
    assert_eq!(ran.json()["pending"], json!([]));
    let table = place.run(&["runs"]).stdout;
    assert!(table.contains("interrupted"), "{table}");
    assert!(!table.contains("second"), "{table}");
    let shown = place.run(&["show", &run, "--format", "json"]).json();
    assert_eq!(shown["interrupted"], true);
    assert_eq!(shown["pending"], json!([]));
    let answer = place.run(&["answer", &run, "yes"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("flow resume"), "{}", answer.stderr);
    place.file("go", "");
    assert_eq!(place.run(&["resume", &run]).json(), json!({"done": "yes"}));
    assert_eq!(lines(&place, "log"), ["once"]);
}

#[test]
fn a_resumed_run_that_is_interrupted_ends_what_a_dead_host_left_of_the_runs_it_called() {
    let place = Place::with(&[
        (
            "all.yaml",
            "steps: [{type: foreach, items: [1, 2], task: one}]
tasks: {one: {steps: [{type: call, workflow: stays}]}}
",
        ),
        (
            ".flow/workflows/stays.yaml",
            // Its command takes note of being asked to end, and stays; the host that read what it says is gone.
            "steps:
  - type: shell
    timeout: 1h
    command: exec 2> /dev/null; trap 'touch asked' TERM; echo $$ >> pids; touch began; while test -e pids; do sleep 0.1; done
",
        ),
    ]);
    let mut child = begun(&place, &["run", "all.yaml"]);
    while lines(&place, "pids").len() < 2 {
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = place.run(&["runs", "--format", "json"]).json();
    let mut runs = runs["runs"].as_array().unwrap().iter();
    let all = id(runs.find(|run| run["workflow"] == "all").unwrap());
    let mut child = place.command(&["resume", &all]).spawn().unwrap();
    while !place.path("asked").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "the run ended");
        thread::yield_now();
    }
    signal("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let journal = Journal::open(place.path(".flow/journal.db")).unwrap();
    for run in journal.list(&Listing::new(), 10).unwrap().runs {
        assert_eq!(journal.orphans(run.id).unwrap(), [], "{}", run.workflow);
    }
    while lines(&place, "pids").iter().any(|pid| lives(pid)) {
        thread::yield_now();
    }
    assert_eq!(lines(&place, "pids").len(), 2, "nothing was begun again");
}

#[test]
fn a_run_whose_terminal_is_closed_ends_its_commands_and_can_be_resumed() {
    let place = Place::with(&[("sleeps.yaml", SLEEPS)]);
    // Whoever runs the tests may ignore the signal, and what is ignored is inherited.
    let hung_up = |option: &str| {
        let flow = place.command(&["run", "sleeps.yaml"]);
        let mut command = Command::new("env");
        command.arg(option).arg(flow.get_program());
        command.args(flow.get_args()).current_dir(place.path(""));
        let given = flow.get_envs();
        command.envs(given.filter_map(|(name, value)| Some((name, value?))));
        let mut child = command.spawn().unwrap();
        while !place.path("began").exists() {
            assert_eq!(child.try_wait().unwrap(), None, "the run ended");
            thread::yield_now();
        }
        fs::remove_file(place.path("began")).unwrap();
        signal("-HUP", &child);
        child
    };
    let mut child = hung_up("--default-signal=HUP");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!lives(&lines(&place, "pids")[0]));
    assert_eq!(newest(&place)["interrupted"], true);
    place.file("go", "");
    let run = id(&newest(&place));
    assert_eq!(place.run(&["resume", &run]).json(), json!({"done": "yes"}));

    // One that was told to stay still does not hear it.
    fs::remove_file(place.path("go")).unwrap();
    let mut child = hung_up("--ignore-signal=HUP");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "{status}");
    signal("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!lives(lines(&place, "pids").last().unwrap()));
}

#[test]
fn a_run_is_resumed_where_it_began() {
    let place = Place::with(&[
        (".flow/workflows/sleeps.yaml", SLEEPS),
        ("elsewhere/file", ""),
    ]);
    let child = begun(&place, &["sleeps"]);
    signal("-TERM", &child);
    assert_eq!(Ran::from(child.wait_with_output().unwrap()).code, 130);
    place.file("go", "");
    let run = id(&newest(&place));
    let elsewhere = std::path::Path::new("elsewhere");
    let done = place
        .command_in(elsewhere, &["resume", &run])
        .output()
        .unwrap();
    assert_eq!(Ran::from(done).json(), json!({"done": "yes"}));
}

#[test]
fn a_failed_run_tries_its_failed_step_again() {
    let place = Place::with(&[(
        "fails.yaml",
        "steps:\n  - {id: first, type: shell, command: 'echo once >> log'}\n  - {id: second, type: shell, command: 'test -e go'}\n  - {type: return, value: fine}\n",
    )]);
    let ran = place.run(&["run", "fails.yaml", "--format", "json"]);
    let run = id(&ran.json());
    assert_eq!(place.run(&["resume", &run]).code, 1);
    place.file("go", "");
    let done = place.run(&["resume", &run]);
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (0, "fine\n"),
        "{}",
        done.stderr
    );
    assert_eq!(lines(&place, "log"), ["once"]);
    assert_eq!(newest(&place)["error"], Value::Null);
}

#[test]
fn a_cancelled_run_stops_where_it_is_driven() {
    let place = Place::with(&[("sleeps.yaml", SLEEPS)]);
    let child = begun(&place, &["run", "sleeps.yaml", "--format", "json"]);
    let run = id(&newest(&place));
    let cancelled = place.run(&["cancel", &run, "--reason", "changed my mind"]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(result(&ran), (1, "cancelled".to_owned()));
    assert!(ran.stderr.contains("changed my mind"), "{}", ran.stderr);
    assert!(!lives(&lines(&place, "pids")[0]));
    assert_eq!(place.run(&["cancel", &run]).code, 2);
}

#[test]
fn cancelling_ends_what_a_dead_host_left_and_the_runs_it_called() {
    let place = Place::with(&[
        (
            ".flow/workflows/outer.yaml",
            "steps:\n  - {type: call, workflow: sleeps}\n",
        ),
        (".flow/workflows/sleeps.yaml", SLEEPS),
    ]);
    let mut child = begun(&place, &["outer"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = place.run(&["runs", "--format", "json"]).json();
    let outer = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|run| run["workflow"] == "outer");
    let cancelled = place.run(&["cancel", &id(outer.unwrap())]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    assert!(!lives(&lines(&place, "pids")[0]));
    let runs = place
        .run(&["runs", "--status", "cancelled", "--format", "json"])
        .json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn runs_are_listed_newest_first() {
    let place = Place::with(&[
        ("asks.yaml", ASKS),
        ("fails.yaml", "steps:\n  - {type: shell, command: exit 1}\n"),
    ]);
    assert_eq!(
        place.run(&["runs", "--format", "json"]).json(),
        json!({"runs": []})
    );
    assert_eq!(place.run(&["show", "r-0"]).code, 2);
    place.run(&["run", "asks.yaml"]);
    place.run(&["run", "fails.yaml"]);
    let runs = place.run(&["runs", "--format", "json"]).json();
    let names: Vec<&str> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["workflow"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fails", "asks"]);
    let first = &runs["runs"][0];
    assert_eq!(first["status"], "failed");
    let started = first["started_at"].as_str().unwrap();
    assert!(
        started.len() == 24 && started.ends_with('Z') && started.contains('T'),
        "{started}"
    );
    let waiting = place
        .run(&["runs", "--status", "waiting", "--format", "json"])
        .json();
    assert_eq!(waiting["runs"].as_array().unwrap().len(), 1);
    assert_eq!(waiting["runs"][0]["pending"], "name");
    let table = place.run(&["runs", "--limit", "1"]).stdout;
    assert!(
        table.contains("fails") && !table.contains("asks"),
        "{table}"
    );
    assert_eq!(place.run(&["runs", "--status", "lost"]).code, 2);
}

#[test]
fn a_run_is_shown_with_its_steps_and_what_they_wrote() {
    let place = Place::with(&[("asks.yaml", ASKS)]);
    let run = id(&place.run(&["run", "asks.yaml", "--format", "json"]).json());
    let shown = place.run(&["show", &run, "--format", "json"]).json();
    assert_eq!(shown["status"], "waiting");
    assert_eq!(shown["steps"][0]["step"], "first");
    assert_eq!(shown["steps"][0]["outcome"], "success");
    assert_eq!(shown["steps"][1]["outcome"], "under_way");
    assert_eq!(shown["pending"][0]["step"], "name");
    assert!(shown["state"].is_object());
    let text = place.run(&["show", &run]).stdout;
    assert!(
        text.contains("first") && text.contains("Your name?"),
        "{text}"
    );
    let logs = place.run(&["logs", &run]).stdout;
    assert_eq!(logs, "--- first\nsaid\n");
    let only = place.run(&["logs", &run, "--step", "first"]).stdout;
    assert_eq!(only, "said\n");
    assert_eq!(place.run(&["logs", &run, "--step", "none"]).code, 2);
    let logs = place.run(&["logs", &run, "--format", "json"]).json();
    assert_eq!(
        logs["logs"],
        json!([{"step": "first", "stream": "stdout", "text": "said\n"}])
    );
}

#[test]
fn a_run_that_goes_on_finds_the_workflows_beside_its_file() {
    let place = Place::with(&[
        (
            "flows/outer.yaml",
            "outputs: {said: '{{ state.said.said }}'}
steps:
  - {id: go, type: prompt, kind: confirm, message: 'Go?'}
  - {id: inner, type: call, workflow: beside, output_to: said}
",
        ),
        (
            "flows/beside.yaml",
            "name: beside
outputs: {said: '{{ state.said }}'}
steps:
  - {id: say, type: shell, command: echo hello, output_format: text, output_to: said}
",
        ),
    ]);
    let ran = place.run(&["run", "flows/outer.yaml", "--format", "json"]);
    let run = id(&ran.json());
    let ran = place.run(&["answer", &run, "yes", "--format", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["output"], json!({"said": "hello"}));
    // A called run's id begins like its caller's, and an abbreviation means the caller.
    let runs = place.run(&["runs", "--format", "json"]).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
    let ran = place.run(&["show", &run[..12], "--format", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(id(&ran.json()), run);
}

#[test]
fn a_run_whose_host_died_is_not_listed_as_running() {
    let place = Place::with(&[("sleeps.yaml", SLEEPS)]);
    let mut child = begun(&place, &["run", "sleeps.yaml"]);
    assert_eq!(newest(&place)["status"], "running");
    signal("-KILL", &child);
    child.wait().unwrap();
    assert_eq!(newest(&place)["status"], "waiting");
    let listed = |status| {
        let ran = place.run(&["runs", "--status", status, "--format", "json"]);
        ran.json()["runs"].as_array().unwrap().len()
    };
    assert_eq!((listed("running"), listed("waiting")), (0, 1));
    let run = id(&newest(&place));
    for allowed in [["--timeout", "1m"], ["--max-steps", "9"]] {
        let more = place.run(&["resume", &run, allowed[0], allowed[1]]);
        assert_eq!(more.code, 2);
        for part in [
            "it was interrupted",
            &format!("`flow resume {run}` goes on"),
        ] {
            assert!(more.stderr.contains(part), "{}", more.stderr);
        }
    }
    place.file("go", "");
    let ran = place.run(&["resume", &id(&newest(&place)), "--format", "json"]);
    assert_eq!(result(&ran), (0, "completed".to_owned()));
}

#[test]
fn a_run_that_has_used_up_its_steps_goes_on_with_more() {
    let text = "outputs: {n: '{{ state.n }}'}
state: {n: 0}
steps:
  - {id: one, type: shell, command: 'echo one >> log'}
  - {id: two, type: shell, command: 'echo two >> log'}
  - {id: three, type: set_state, updates: {n: 3}}
";
    let place = Place::with(&[("counts.yaml", text)]);
    let ran = place.run(&["run", "counts.yaml", "--max-steps", "1", "--format", "json"]);
    assert_eq!(result(&ran), (1, "failed".to_owned()));
    assert_eq!(ran.json()["states_executed"], 1);
    assert!(ran.stderr.contains("--max-steps"), "{}", ran.stderr);
    let run = id(&ran.json());
    let few = place.run(&["resume", &run, "--max-steps", "1"]);
    assert_eq!(few.code, 2);
    assert!(few.stderr.contains("more than that"), "{}", few.stderr);
    assert_eq!(place.run(&["resume", &run]).code, 1);
    let more = ["resume", &run, "--max-steps", "2", "--format", "json"];
    assert_eq!(place.run(&more).json()["states_executed"], 2);
    let all = ["resume", &run, "--max-steps", "9", "--timeout", "1h"];
    assert_eq!(place.run(&all).json(), json!({"n": 3}));
    assert_eq!(lines(&place, "log"), ["one", "two"]);
    let over = place.run(&["resume", &run, "--max-steps", "10"]);
    assert_eq!(over.code, 2);
    assert!(over.stderr.contains("completed"), "{}", over.stderr);
}

#[test]
fn a_run_that_another_process_drives_is_said_to_be_running() {
    let place = Place::with(&[("sleeps.yaml", SLEEPS)]);
    let child = begun(&place, &["run", "sleeps.yaml"]);
    let run = id(&newest(&place));
    let ran = place.run(&["resume", &run, "--format", "json"]);
    assert_eq!(result(&ran), (5, "running".to_owned()));
    assert_eq!(ran.json()["pending"], json!([]));
    assert!(ran.stderr.contains("goes on with"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("waits"), "{}", ran.stderr);
    signal("-TERM", &child);
    child.wait_with_output().unwrap();
}

#[test]
fn whoever_called_a_run_that_is_cancelled_goes_on_without_it() {
    let place = Place::with(&[
        (
            "outer.yaml",
            "steps:
  - {id: sub, type: call, workflow: inner, on_error: {goto: after}}
  - {id: never, type: shell, command: 'echo never >> log'}
  - {id: after, type: shell, command: 'echo after >> log'}
",
        ),
        (
            "inner.yaml",
            "name: inner\nsteps: [{id: ask, type: prompt, kind: text, message: 'Who?'}]\n",
        ),
    ]);
    let waits = place.run(&["run", "outer.yaml", "--format", "json"]);
    assert_eq!(result(&waits), (5, "waiting".to_owned()));
    let outer = id(&waits.json());
    let shown = place.run(&["show", &outer, "--format", "json"]).json();
    let inner = shown["children"][0].as_str().unwrap();
    let cancelled = place.run(&["cancel", inner, "--reason", "no longer needed"]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    let told = format!("{outer}, which called it, is completed");
    assert!(cancelled.stderr.contains(&told), "{}", cancelled.stderr);
    assert_eq!(lines(&place, "log"), ["after"]);
    let shown = place.run(&["show", &outer, "--format", "json"]).json();
    let why = "the workflow `inner` was cancelled: no longer needed";
    assert_eq!(shown["steps"][0]["error"], why);
}

/// A run that began long ago and has waited since.
fn began_long_ago(place: &Place, definition: &str) -> String {
    let compiled = flow_model::compile(Source::new("old.yaml", definition), &NoLoader);
    let graph = compiled.into_graph().unwrap();
    fs::create_dir_all(place.path("data")).unwrap();
    let journal = Journal::open(place.path("data/journal.db")).unwrap();
    let hash = journal.put_definition(&serde_json::to_vec(&graph).unwrap());
    let run = RunId::new(1_000, 7);
    let start = Start {
        run: run.to_string(),
        inputs: Given::map::<&str>([]),
        ..Start::default()
    };
    let event = Event {
        at: 1_000,
        what: Happening::Started(start),
    };
    let new = NewRun::new("old".to_owned(), hash.unwrap(), 1_000);
    let body = serde_json::to_vec(&event).unwrap();
    let append = Append::start(run, new).event(1_000, "started", body);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let submitted = runtime.unwrap().block_on(journal.submit(append));
    submitted.unwrap();
    run.to_string()
}

#[test]
fn an_answer_that_comes_too_late_is_not_taken_however_the_run_goes_on() {
    let place = Place::new();
    let run = began_long_ago(
        &place,
        "outputs: {is: '{{ state.is }}'}
steps:
  - {id: ask, type: prompt, kind: confirm, message: 'Go?', timeout: 60, on_error: continue}
  - {id: after, type: set_state, updates: {is: late}}
",
    );
    let late = place.run(&["answer", &run, "true", "--format", "json"]);
    assert_eq!(
        result(&late),
        (2, "completed".to_owned()),
        "{}",
        late.stderr
    );
    assert_eq!(late.json()["output"], json!({"is": "late"}));
    assert!(
        late.stderr.contains("`ask` comes too late"),
        "{}",
        late.stderr
    );
}

#[test]
fn a_question_that_is_asked_again_has_its_plain_name_where_people_read() {
    let place = Place::with(&[(
        "w.yaml",
        "state: {n: 0}
steps:
  - id: twice
    type: while
    if: '{{ state.n < 2 }}'
    max_iterations: 3
    steps:
      - {id: ask, type: prompt, kind: text, message: 'Name?', timeout: 1h}
      - {id: count, type: set_state, updates: {n: '{{ state.n + 1 }}'}}
",
    )]);
    let first = place.run(&["run", "w.yaml", "--format", "json"]);
    let run = id(&first.json());
    let again = place.run(&["answer", &run, "Ada", "--format", "json"]);
    assert_eq!(again.code, 5, "{}", again.stderr);
    let named = &again.json()["pending"][0]["step_id"];
    assert!(named.as_str().unwrap().starts_with("ask~"), "{named}");
    assert!(again.stderr.contains("ask: Name?"), "{}", again.stderr);
    assert!(!again.stderr.contains('~'), "{}", again.stderr);
    let listed = place.run(&["runs"]).stdout;
    assert!(listed.contains("ask") && !listed.contains('~'), "{listed}");
    let done = place.run(&["answer", &run, "Bo", "--step", "ask"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn a_limit_that_the_children_of_a_step_reach_can_be_raised() {
    let place = Place::with(&[(
        "w.yaml",
        "limits: {max_steps: 3}
steps:
  - {id: all, type: foreach, items: [{n: 1}, {n: 2}], task: one}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: a, type: shell, command: 'true'}
      - {id: b, type: shell, command: 'true'}
",
    )]);
    let ran = place.run(&["run", "w.yaml"]);
    assert_eq!(ran.code, 1);
    let help = "with --max-steps N it may do more than before";
    assert!(ran.stderr.contains(help), "{}", ran.stderr);
}
