//! `flow run` killed at every commit of its journal: `flow resume` ends as if nothing had happened.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flow_runtime::journal::{Journal, Listing, RunId};
use flow_runtime::run::{Event, Happening};
use serde_json::{Value, json};

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

/// A workflow with a terminal and an MCP server outside of it.
const OUTSIDE: &[(&str, &str)] = &[
    (
        ".flow/workflows/outside.yaml",
        include_str!("crash/outside.yaml"),
    ),
    (
        ".flow/workflows/session.yaml",
        include_str!("crash/session.yaml"),
    ),
];

/// An MCP server that notes the keys of its calls: this file's own, in a process of its own. What
/// the test harness says goes to standard error, and descriptor 3 is what was standard output.
#[test]
#[ignore = "a server that another test starts"]
fn server() {
    let mut out = fs::File::create("/dev/fd/3").unwrap();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = match message["method"].as_str().unwrap() {
            "initialize" => json!({"result": {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "noter", "version": "1"},
            }}),
            "notifications/initialized" => continue,
            "tools/list" => json!({"result": {"tools": [
                {"name": "note", "inputSchema": {"type": "object"}},
            ]}}),
            "tools/call" => {
                let params = &message["params"];
                let mut keys = fs::OpenOptions::new();
                let mut keys = keys.create(true).append(true).open("keys").unwrap();
                let key = params["_meta"]["flow/step_key"].as_str().unwrap();
                writeln!(keys, "{key}").unwrap();
                let given = params["arguments"].to_string();
                json!({"result": {"content": [{"type": "text", "text": given}]}})
            }
            _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
        };
        let mut reply = json!({"jsonrpc": "2.0", "id": message["id"]});
        let parts = answer.as_object().unwrap().clone();
        reply.as_object_mut().unwrap().extend(parts);
        writeln!(out, "{reply}").unwrap();
    }
    std::process::exit(0);
}

fn place() -> Place {
    let place = Place::with(FILES);
    for (path, text) in OUTSIDE {
        place.file(path, text);
    }
    let server = json!({"mcpServers": {"noter": {
        "command": "/bin/sh",
        "args": [
            "-c",
            "exec \"$0\" --ignored --exact crash::server --nocapture 3>&1 1>&2",
            std::env::current_exe().unwrap(),
        ],
    }}});
    place.file(".mcp.json", server.to_string());
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

/// Actions with more than one recorded result.
fn recorded_twice(journal: &Journal) -> Vec<(RunId, u64)> {
    let mut twice = Vec::new();
    for run in journal.list(&Listing::new(), 10).unwrap().runs {
        let mut once = HashSet::new();
        for event in journal.events(run.id, 1.., usize::MAX).unwrap() {
            let event: Event = serde_json::from_slice(&event.body).unwrap();
            let (Happening::Completed { action, .. } | Happening::Failed { action, .. }) =
                event.what
            else {
                continue;
            };
            if !once.insert(action) {
                twice.push((run.id, action.0));
            }
        }
    }
    twice
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

/// Whether nothing goes on that was started for a place. What loses its host may take a moment to
/// notice: a shell its terminal, a server its client.
fn all_ended(place: &Place, fault: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let left = left_running(place);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "{fault}: {left:?} goes on");
        thread::yield_now();
    }
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
fn killed(workflow: &str, fault: &str) -> Option<Value> {
    let place = place();
    let mut run = command(&place, "run", workflow);
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
        let whole = command(&place, "run", workflow).output().unwrap();
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
    assert_eq!(recorded_twice(&journal), [], "{fault}");
    all_ended(&place, fault);
    Some(seen(&resumed))
}

/// Kills a workflow before and after every commit of its journal, and holds what comes of it
/// against what was expected. Gives how many moments there were.
fn killed_everywhere(workflow: &str, expected: &Value) -> usize {
    let tried = AtomicUsize::new(0);
    let all = |moment: &str| {
        for commit in 1.. {
            let fault = format!("{moment}:{commit}");
            let Some(seen) = killed(workflow, &fault) else {
                break;
            };
            assert_eq!(seen, *expected, "{fault}");
            tried.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| all("before-commit"));
        all("after-commit");
        other.join().unwrap();
    });
    tried.into_inner()
}

fn whole(workflow: &str) -> Value {
    let place = place();
    let whole = Ran::from(command(&place, "run", workflow).output().unwrap());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    all_ended(&place, "whole");
    seen(&whole)
}

#[test]
fn a_run_killed_at_any_commit_of_its_journal_resumes_to_the_same_end() {
    let expected = whole("machine");
    assert_eq!(expected["output"]["steps"]["note"], "landed");
    assert_eq!(expected["output"]["verdict"], "bad");
    let tried = killed_everywhere("machine", &expected);
    assert!(tried > 100, "only {tried} moments were tried");
}

#[test]
fn a_run_with_a_terminal_and_a_server_killed_at_any_commit_resumes_to_the_same_end() {
    let expected = whole("outside");
    let output = json!({"noted": 42, "answer": "42", "said": "done"});
    assert_eq!(expected["output"], output);
    let tried = killed_everywhere("outside", &expected);
    assert!(tried > 20, "only {tried} moments were tried");
}
