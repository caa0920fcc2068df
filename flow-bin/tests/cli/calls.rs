//! Runs that call others: what the one does to the other.

use std::fs;

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
        .env("FLOW_AGENT", "cat >heard")
        .output()
        .unwrap();
    let ran = super::Ran::from(ran);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let heard = std::fs::read_to_string(place.path("heard")).unwrap();
    assert_eq!(heard, "You are a glad poet.\n\nWrite.");
}
