//! `flow init`, `flow doctor`, `flow completions`.

use super::{BAD, Place};

#[test]
fn a_new_project_has_a_workflow_that_runs() {
    let place = Place::new();
    let made = place.run(&["init"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(
        made.stdout,
        ".flow/workflows/hello.yaml\n.flow/.gitignore\n"
    );
    let hello = place.run(&["hello", "-p", "name=you"]);
    assert_eq!(hello.json()["said"], "Hello, you!");
    assert_eq!(place.run(&["check"]).code, 0);
    // Nothing that is there is touched.
    place.file(".flow/workflows/hello.yaml", "steps: []\n");
    let again = place.run(&["init"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert!(again.stderr.contains("already"), "{}", again.stderr);
    let elsewhere = place.run(&["init", "new/place"]);
    assert_eq!(elsewhere.code, 0, "{}", elsewhere.stderr);
    assert!(place.path("new/place/.flow/workflows/hello.yaml").exists());
}

#[test]
fn the_doctor_finds_what_is_broken_and_starts_nothing() {
    let place = Place::with(&[
        (".flow/workflows/bad.yaml", BAD),
        (".flow/prompts/odd.md", "---\nopen"),
        (
            ".mcp.json",
            r#"{"mcpServers": {
                "trap": {"command": "touch", "args": ["trapped"]},
                "gone": {"command": "no-such-program-anywhere"},
                "unset": {"url": "http://localhost", "headers": {"K": "${FLOW_NO_SUCH}"}}
            }}"#,
        ),
    ]);
    let ran = place.run(&["doctor", "--format", "json"]);
    assert_eq!(ran.code, 1);
    let findings = ran.json()["findings"].as_array().unwrap().clone();
    let faults: Vec<String> = findings
        .iter()
        .filter(|it| it["status"] == "fault")
        .map(|it| it["message"].as_str().unwrap().to_owned())
        .collect();
    for words in [
        "bad: line 2",
        "odd.md:1",
        "no-such-program-anywhere",
        "FLOW_NO_SUCH",
    ] {
        assert!(
            faults.iter().any(|it| it.contains(words)),
            "{words}: {faults:?}"
        );
    }
    assert!(!place.path("trapped").exists());
    assert!(!place.path(".flow/journal.db").exists());
    assert!(place.run(&["doctor"]).stdout.contains("fault"));
}

#[test]
fn a_healthy_project_is_told_to_be_so() {
    let place = Place::new();
    place.run(&["init"]);
    let ran = place.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
}

#[test]
fn completions_are_for_shells_that_are_known() {
    assert_eq!(Place::new().run(&["completions", "elvish"]).code, 0);
    assert_eq!(Place::new().run(&["completions", "tcsh"]).code, 2);
}

const ASKS: &str = "steps:\n  - {id: q, type: prompt, kind: text, message: Who?, output_to: who}\n";

fn newest(place: &Place, arguments: &[&str]) -> String {
    let ran = place.run(&[&["runs", "--format", "json"], arguments].concat());
    ran.json()["runs"][0]["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn runs_from_before_there_was_a_project_are_not_lost() {
    let place = Place::with(&[("ask.yaml", ASKS)]);
    let first = place.run(&["run", "ask.yaml"]);
    let second = place.run(&["run", "ask.yaml"]);
    assert_eq!((first.code, second.code), (5, 5), "{}", first.stderr);
    place.run(&["init"]);

    let run = newest(&place, &[]);
    let answered = place.run(&["answer", &run, "Bob"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);

    // A project that has a journal of its own finds them by their ids.
    place.file(".flow/journal.db", "");
    let here = place.run(&["runs"]);
    assert!(here.stderr.contains("no runs"), "{}", here.stderr);
    assert!(
        here.stderr.contains("flow runs --outside"),
        "{}",
        here.stderr
    );
    let run = newest(&place, &["--outside", "--status", "waiting"]);
    assert_eq!(place.run(&["show", &run]).code, 0);
    let answered = place.run(&["answer", &run, "Eve"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
}
