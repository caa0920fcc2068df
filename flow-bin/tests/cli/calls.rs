//! Runs that call others: what the one does to the other.

use std::fs;
use std::time::{Duration, Instant};

use flow_runtime::journal::{Journal, Listing};
use serde_json::Value;

use super::Place;

/// Lasts until it is ended, and says under which process it runs.
const SLOW: (&str, &str) = (
    ".flow/workflows/slow.yaml",
    "steps:\n  - {id: long, type: shell, command: 'echo $$ > pid; sleep 1000', timeout: 2000}\n",
);
const ASKS: (&str, &str) = (
    ".flow/workflows/asks.yaml",
    "outputs: {go: '{{ state.go.confirmed }}'}
steps:
  - {id: ask, type: prompt, kind: confirm, message: Go?, output_to: go}
",
);

/// Workflows and statuses of all runs, newest first.
fn runs(place: &Place) -> Vec<(String, String)> {
    let listed = place.run(&["runs", "--format", "json"]).json();
    let text = |run: &Value, key: &str| run[key].as_str().unwrap().to_owned();
    let runs = listed["runs"].as_array().unwrap().iter();
    runs.map(|run| (text(run, "workflow"), text(run, "status")))
        .collect()
}

fn pair(workflow: &str, status: &str) -> (String, String) {
    (workflow.to_owned(), status.to_owned())
}

fn ended(place: &Place) {
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    assert!(!super::resume::lives(pid.trim()), "the command goes on");
}

#[test]
fn a_called_run_that_had_no_more_time_is_cancelled_and_its_command_ended() {
    let place = Place::with(&[
        SLOW,
        (
            "hurry.yaml",
            "steps:
  - {id: c, type: call, workflow: slow, timeout: 1, on_error: continue}
  - {id: after, type: shell, command: echo after}
",
        ),
    ]);
    assert_eq!(place.run(&["run", "hurry.yaml"]).code, 0);
    assert_eq!(
        runs(&place),
        [pair("slow", "cancelled"), pair("hurry", "completed")]
    );
    ended(&place);
}

#[test]
fn a_run_out_of_time_takes_the_run_it_called_with_it() {
    let place = Place::with(&[
        SLOW,
        (
            "limited.yaml",
            "limits: {timeout: 1}\nsteps: [{id: c, type: call, workflow: slow}]\n",
        ),
    ]);
    let ran = place.run(&["run", "limited.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("limits.timeout"), "{}", ran.stderr);
    assert_eq!(
        runs(&place),
        [pair("slow", "cancelled"), pair("limited", "failed")]
    );
    ended(&place);
}

#[test]
fn a_run_whose_called_run_waits_for_a_person_rests_and_is_answered_and_cancelled_as_one() {
    let place = Place::with(&[
        ASKS,
        (
            ".flow/workflows/mid.yaml",
            "outputs: {go: '{{ state.r.go }}'}\nsteps: [{id: m, type: call, workflow: asks, output_to: r}]\n",
        ),
        (
            ".flow/workflows/top.yaml",
            "limits: {timeout: 60}\noutputs: {go: '{{ state.r.go }}'}\nsteps: [{id: t, type: call, workflow: mid, output_to: r}]\n",
        ),
    ]);
    let waits = || {
        let ran = place.run(&["run", "top", "--format", "json"]);
        assert_eq!(ran.code, 5, "{}", ran.stderr);
        assert_eq!(ran.json()["pending"][0]["step"], "ask");
        ran.json()["run_id"].as_str().unwrap().to_owned()
    };
    let top = waits();
    let journal = Journal::open(place.path(".flow/journal.db")).unwrap();
    let listing = Listing::new().top_level();
    let run = journal.list(&listing, 1).unwrap().runs.remove(0);
    assert_eq!(place.run(&["resume", &top]).code, 5);
    let events = journal.events(run.id, 1.., usize::MAX).unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| &*event.kind).collect();
    assert_eq!(kinds, ["started", "rested", "continued"]);
    let answered = place.run(&["answer", &top, "true"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    assert_eq!(answered.json(), serde_json::json!({"go": true}));

    let top = waits();
    assert_eq!(place.run(&["cancel", &top]).code, 0);
    let ended = ["asks", "mid", "top"].map(|it| pair(it, "cancelled"));
    assert_eq!(runs(&place)[..3], ended);

    // The run that asks may be answered by its own id; its callers go on with it.
    waits();
    let asks = journal.list(&Listing::new(), 1).unwrap().runs.remove(0);
    assert_eq!(asks.workflow, "asks");
    let answered = place.run(&["answer", &asks.id.to_string(), "false"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    let ended = ["asks", "mid", "top"].map(|it| pair(it, "completed"));
    assert_eq!(runs(&place)[..3], ended);
}

#[test]
fn an_agent_command_is_told_which_agent_is_meant_and_what_that_is() {
    let place = Place::with(&[(
        "poem.yaml",
        "agents: {poet: You are a poet.}
steps:
  - {id: write, type: delegate, agent: '@poet', instructions: \"it's \\\\ late\", output_to: r}
outputs: {r: {type: string, value: '{{ state.r.response }}'}}
",
    )]);
    let agent = "cat; echo; echo $FLOW_AGENT_NAME";
    let ran = place
        .command(&["run", "poem.yaml", "--format", "json"])
        .env("FLOW_AGENT", agent)
        .output()
        .unwrap();
    let ran = super::Ran::from(ran);
    assert_eq!(
        ran.json()["output"]["r"],
        "You are a poet.\n\nit's \\ late\npoet",
        "{}",
        ran.stderr
    );
}

/// A workflow with a task for an agent.
const POEM: &str = "steps:
  - {id: write, type: delegate, instructions: 'Write a poem.', output_to: r}
outputs: {r: {type: string, value: '{{ state.r.response }}'}}
";

#[test]
fn every_command_of_an_agents_line_reads_the_instructions() {
    let place = Place::with(&[("poem.yaml", POEM), ("sub/file", "")]);
    let told = |agent: &str| {
        let mut command = place.command(&["run", "poem.yaml", "--format", "json"]);
        let ran = command.env("FLOW_AGENT", agent).output().unwrap();
        super::Ran::from(ran).json()["output"]["r"].clone()
    };
    assert_eq!(told("cd sub && cat"), "Write a poem.");
    assert_eq!(told("echo a; cat"), "a\nWrite a poem.");
    assert_eq!(told("cat | tr a-z A-Z"), "WRITE A POEM.");
    assert_eq!(told("true | cat; echo unread"), "unread");
}

#[test]
fn an_agent_command_that_says_nothing_has_not_answered() {
    let place = Place::with(&[("poem.yaml", POEM)]);
    let mut command = place.command(&["run", "poem.yaml", "--format", "json"]);
    let ran = command.env("FLOW_AGENT", "cat >/dev/null").output();
    let ran = super::Ran::from(ran.unwrap());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let error = ran.json()["error"].to_string();
    assert!(error.contains("`cat >/dev/null` gave no answer"), "{error}");
}

#[test]
fn an_agent_command_finishes_what_is_built_in() {
    let place = Place::with(&[("spec.md", "A clock.")]);
    let answer = r#"{"pieces": ["hands"], "text": "1. hands"}"#;
    let plan = |args: &[&str]| {
        let agent = format!("cat > /dev/null; echo '{answer}'");
        let ran = place.command(args).env("FLOW_AGENT", agent).output();
        super::Ran::from(ran.unwrap())
    };
    let ran = plan(&["plan", "spec.md", "--format", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let written = std::fs::read_to_string(place.path("PLAN.md")).unwrap();
    assert_eq!(written.trim(), "1. hands");

    // A person's answer is read as an agent's is.
    let waits = place.run(&["plan", "spec.md", "-p", "output_filename=B.md"]);
    assert_eq!(waits.code, 5, "{}", waits.stderr);
    let wanted = place.run(&["show", "latest", "--format", "json"]).json();
    assert_eq!(wanted["pending"][0]["returns"]["required"][0], "pieces");
    let unfit = place.run(&["answer", "latest", "later", "--format", "json"]);
    assert_eq!(unfit.code, 5, "{}", unfit.stderr);
    let complaint = &unfit.json()["pending"][0]["complaint"];
    let complaint = complaint.as_str().unwrap();
    assert!(
        complaint.contains("object") && unfit.stderr.contains(complaint),
        "{complaint}"
    );
    let answered = place.run(&["answer", "latest", answer]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    assert_eq!(
        std::fs::read(place.path("B.md")).unwrap(),
        written.as_bytes()
    );
}

#[test]
fn a_run_that_waits_for_one_that_sleeps_is_listed_as_sleeping_too() {
    let place = Place::with(&[
        (
            ".flow/workflows/nap.yaml",
            "steps: [{id: long, type: wait, duration_seconds: 3600}]\n",
        ),
        (
            ".flow/workflows/outer.yaml",
            "steps: [{id: c, type: call, workflow: nap}]\n",
        ),
    ]);
    let mut outer = place.command(&["run", "outer"]).spawn().unwrap();
    // There is nothing to see before the child is asleep.
    let until = Instant::now() + Duration::from_secs(60);
    while !runs(&place).contains(&pair("nap", "sleeping")) {
        assert!(Instant::now() < until, "{:?}", runs(&place));
    }
    let asleep = [pair("nap", "sleeping"), pair("outer", "sleeping")];
    assert_eq!(runs(&place), asleep);
    let listed = place.run(&["runs", "--status", "sleeping", "--format", "json"]);
    let listed = listed.json();
    let (nap, outer_run) = (&listed["runs"][0], &listed["runs"][1]);
    assert_eq!(outer_run["workflow"], "outer");
    assert!(nap["wake_at"].is_string() && nap["pending"].is_null());
    assert_eq!(outer_run["wake_at"], nap["wake_at"]);
    let shown = place.run(&["show", "latest", "--format", "json"]).json();
    assert_eq!(shown["status"], "sleeping");
    outer.kill().unwrap();
    outer.wait().unwrap();
    // Nobody wakes them now, and that is said of both.
    assert_eq!(runs(&place), asleep);
    let told = place.run(&["runs"]).stdout;
    assert_eq!(told.matches("nobody wakes it").count(), 2, "{told}");
}

#[test]
fn an_agent_that_the_definition_does_not_describe_is_told_what_its_file_says() {
    let place = Place::with(&[
        (
            ".flow/agents/poet.md",
            "---\narguments: {mood: {}}\n---\nYou are a {{ mood | default('glad') }} poet.\n",
        ),
        (
            "poem.yaml",
            "steps: [{id: write, type: delegate, agent: '@poet', instructions: 'Write.'}]\n",
        ),
    ]);
    let waits = place.run(&["run", "poem.yaml", "--format", "json"]);
    assert_eq!(waits.code, 5, "{}", waits.stderr);
    let pending = &waits.json()["pending"];
    let pending = pending.get(0).unwrap_or(pending);
    assert_eq!(pending["agent_instructions"], "You are a glad poet.\n");
    let ran = place
        .command(&["resume", "latest", "-q"])
        .env("FLOW_AGENT", "tee heard")
        .output()
        .unwrap();
    let ran = super::Ran::from(ran);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let heard = std::fs::read_to_string(place.path("heard")).unwrap();
    assert_eq!(heard, "You are a glad poet.\n\nWrite.");
}

#[test]
fn a_definition_given_inline_fills_in_its_own_values() {
    let place = Place::with(&[(
        "outer.yaml",
        "inputs: {name: string}
initial_state: a
states:
  a:
    action: {type: shell, command: echo outer}
    transitions: [{condition: success, next_state: call}]
  call:
    action:
      tool: run_workflow
      params:
        save_on_success: false
        initial_variables: {name: '{name}'}
        workflow_definition:
          name: inner
          initial_state: a
          states:
            a:
              action: {type: shell, command: 'echo inner {name}'}
              transitions: [{condition: success, next_state: b}]
            b:
              action: {type: shell, command: 'printf %s {a_stdout} > told'}
",
    )]);
    let checked = place.run(&["check", "outer.yaml"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    let hostile = "x; touch pwned #";
    let ran = place.run(&["run", "outer.yaml", "-p", &format!("name={hostile}")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!place.path("pwned").exists());
    let told = std::fs::read_to_string(place.path("told")).unwrap();
    assert_eq!(told, format!("inner {hostile}\n"));
}

#[test]
fn what_bounds_a_called_workflow_may_be_a_text_and_must_fit() {
    let loops = "initial_state: a
states:
  a:
    action: {type: shell, command: 'true'}
    transitions: [{condition: always, next_state: a}]
";
    let outer = "inputs: {most: string}
initial_state: call
states:
  call:
    action: {tool: run_workflow, params: {workflow_name: loops, max_states: '{most}'}}
";
    let place = Place::with(&[(".flow/workflows/loops.yaml", loops), ("outer.yaml", outer)]);
    for (most, said) in [
        ("2", "2 states have been executed"),
        ("x", "`max_states` must be a whole number, not `x`"),
        ("5000", "`max_states` must be a whole number from 1 to 1000"),
        ("0", "`max_states` must be a whole number from 1 to 1000"),
    ] {
        let ran = place.run(&["run", "outer.yaml", "-p", &format!("most={most}")]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(said), "{most}: {}", ran.stderr);
    }
}

#[test]
fn the_logs_of_a_run_that_only_calls_others_are_theirs() {
    let place = Place::with(&[
        (
            "outer.yaml",
            "steps: [{id: sub, type: call, workflow: inner}]\n",
        ),
        (
            "inner.yaml",
            "name: inner\nsteps: [{id: say, type: shell, command: echo hi}]\n",
        ),
    ]);
    assert_eq!(place.run(&["run", "outer.yaml", "-q"]).code, 0);
    let logs = place.run(&["logs", "latest"]);
    let shown = place.run(&["show", "latest", "--format", "json"]).json();
    let inner = shown["children"][0].as_str().unwrap();
    assert!(
        logs.stderr.contains(&format!("`flow logs {inner}`")),
        "{}",
        logs.stderr
    );
    assert!(place.run(&["logs", inner]).stdout.contains("hi"));
}
