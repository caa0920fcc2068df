//! `flow run` killed at every commit of its journal: `flow resume` ends as if nothing had happened.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flow_runtime::journal::{Journal, Listing};
use flow_runtime::run::{Event, Happening};
use serde_json::Value;

use super::{Place, Ran};

const FILES: &[(&str, &str)] = &[
    (
        ".flow/workflows/machine.yaml",
        include_str!("crash/machine.yaml"),
    ),
    (
        ".flow/workflows/everything.yaml",
        include_str!("crash/everything.yaml"),
    ),
    (
        ".flow/workflows/inner.yaml",
        include_str!("crash/inner.yaml"),
    ),
    (
        "agent",
        "#!/bin/sh\necho $FLOW_STEP_KEY >> keys\ntr a-z A-Z\n",
    ),
    (
        "answers.json",
        r#"{"sure": true, "name": "Ada", "which": "y", "look": "bad"}"#,
    ),
];

fn place() -> Place {
    let place = Place::with(FILES);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path("agent"), executable).unwrap();
    place
}

fn command(place: &Place, what: &str, which: &str) -> Command {
    let arguments = [
        what,
        which,
        "--answers",
        "answers.json",
        "--format",
        "json",
        "-q",
    ];
    let mut command = place.command(&arguments);
    command.env("FLOW_AGENT", "./agent");
    command
}

fn keys(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.path("keys")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn journal(place: &Place) -> Journal {
    Journal::open(place.path(".flow/journal.db")).unwrap()
}

/// The keys of actions whose result is recorded.
fn recorded(journal: &Journal) -> HashSet<String> {
    let mut keys = HashSet::new();
    for run in journal.list(&Listing::new(), 10).unwrap().runs {
        for event in journal.events(run.id, 1.., usize::MAX).unwrap() {
            let event: Event = serde_json::from_slice(&event.body).unwrap();
            if let Happening::Completed { action, .. } | Happening::Failed { action, .. } =
                event.what
            {
                keys.insert(format!("{}-{}", run.id, action.0));
            }
        }
    }
    keys
}

/// Processes that were started for a place and still do something.
fn left_running(place: &Place) -> Vec<String> {
    let mark = place.path("data");
    let mark = mark.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let directories = processes.map(|process| process.path());
    let is_ours = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(mark)
    };
    directories
        .filter(|process| is_ours(process))
        .map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default())
        .collect()
}

/// What a person sees of a run that is over.
fn seen(ran: &Ran) -> Value {
    let mut seen = ran.json();
    for differs in ["run_id", "elapsed_ms"] {
        seen.as_object_mut().unwrap().remove(differs);
    }
    seen
}

/// Kills `flow run` at a moment of its journal, resumes, and gives what came of it; `None` when it
/// had ended before.
fn killed(fault: &str) -> Option<Value> {
    let place = place();
    let mut run = command(&place, "run", "machine");
    let output = run.env("FLOW_FAULT", fault).output().unwrap();
    if output.status.success() {
        return None;
    }
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(9), "{fault}: {told}");
    let journal = journal(&place);
    let top = Listing::new().top_level();
    let Some(run) = journal.list(&top, 1).unwrap().runs.pop() else {
        // It died before it had told anybody of a run.
        assert_eq!(keys(&place).len(), 0, "{fault}");
        let whole = command(&place, "run", "machine").output().unwrap();
        return Some(seen(&Ran::from(whole)));
    };
    let recorded = recorded(&journal);
    let before = keys(&place).len();
    let resumed = command(&place, "resume", &run.id.to_string()).output();
    let resumed = Ran::from(resumed.unwrap());
    assert_eq!(resumed.code, 0, "{fault}: {}", resumed.stderr);
    for key in &keys(&place)[before..] {
        let again = recorded.contains(key);
        assert!(!again, "{fault}: {key} was done again");
    }
    for run in journal.list(&Listing::new(), 10).unwrap().runs {
        assert!(run.status.is_final(), "{fault}: {run:?}");
        let orphans = journal.orphans(run.id).unwrap();
        assert!(orphans.is_empty(), "{fault}: {orphans:?}");
    }
    let left = left_running(&place);
    assert!(left.is_empty(), "{fault}: {left:?} goes on");
    Some(seen(&resumed))
}

#[test]
fn a_run_killed_at_any_commit_of_its_journal_resumes_to_the_same_end() {
    let place = place();
    let whole = Ran::from(command(&place, "run", "machine").output().unwrap());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let expected = seen(&whole);
    assert_eq!(expected["output"]["steps"]["note"], "landed");
    assert_eq!(expected["output"]["verdict"], "bad");
    let tried = AtomicUsize::new(0);
    let all = |moment: &str| {
        for commit in 1.. {
            let fault = format!("{moment}:{commit}");
            let Some(seen) = killed(&fault) else {
                break;
            };
            assert_eq!(seen, expected, "{fault}");
            tried.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| all("before-commit"));
        all("after-commit");
        other.join().unwrap();
    });
    let tried = tried.into_inner();
    assert!(tried > 100, "only {tried} moments were tried");
}
