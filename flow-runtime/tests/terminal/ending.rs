//! What is left when a terminal is closed: nothing.

use std::time::Duration;

use flow_runtime::terminal::Options;
use serde_json::json;

use crate::support::Terms;

/// A value that no other run of these tests uses.
fn own(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// The processes that carry this variable, wherever they have gone.
fn marked(value: &str) -> Vec<i32> {
    let entry = format!("MARKED={value}");
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ
                    .split(|byte| *byte == 0)
                    .any(|item| item == entry.as_bytes())
            })
        })
        .collect()
}

/// Everything below this process, the dead included.
fn children() -> Vec<String> {
    let own = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|pids| {
            pids.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test]
async fn nothing_that_a_session_started_outlives_it() {
    let terms = Terms::new();
    let mark = own("outlive");
    let session = terms.open_with("bash", json!({"MARKED": mark})).await;
    terms.run("sleep 1000 &").await;
    terms.run("nohup sleep 1001 > /dev/null 2>&1 &").await;
    terms.run("setsid sleep 1002 &").await;
    terms.run("(trap '' HUP TERM; sleep 1003) & disown").await;
    terms
        .send("sh -c 'trap \"\" HUP INT TERM; echo stubborn; sleep 1004'\n")
        .await;
    terms.expect("stubborn").await;
    assert!(marked(&mark).len() >= 6, "{:?}", marked(&mark));
    let closed = terms
        .call("exit_terminal", json!({"session_id": session}))
        .await;
    assert_eq!(closed["success"], true, "{closed:#}");
    assert_eq!(marked(&mark), Vec::<i32>::new());
    assert!(!terms.terminals.exists(&session));
}

#[tokio::test]
async fn a_session_is_closed_also_when_nobody_waits_for_that() {
    let terms = Terms::new();
    let mark = own("unattended");
    terms.open_with("bash", json!({"MARKED": mark})).await;
    terms
        .send("sh -c 'trap \"\" HUP INT TERM; echo stub\"\"born; sleep 1005'\n")
        .await;
    terms.expect("stubborn").await;
    {
        let closing = terms.terminals.call("exit_terminal", json!({}));
        tokio::select! {
            biased;
            _ = closing => panic!("it took no time"),
            () = std::future::ready(()) => {}
        }
    }
    assert_eq!(terms.terminals.sessions().len(), 0);
    terms.terminals.shut_down().await;
    assert_eq!(marked(&mark), Vec::<i32>::new());
    let late = terms.call("open_terminal", json!({"shell": "bash"})).await;
    assert_eq!(late["success"], false, "{late:#}");
    assert_eq!(terms.terminals.sessions().len(), 0);
}

#[tokio::test]
async fn a_shell_is_asked_before_it_is_killed() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("trap 'echo bye > goodbye' EXIT").await;
    terms.terminals.close_all().await;
    assert_eq!(
        std::fs::read_to_string(terms.home().join("goodbye")).unwrap(),
        "bye\n"
    );
}

#[tokio::test]
async fn dropping_the_registry_kills_everything() {
    let terms = Terms::new();
    let mark = own("dropped");
    terms.open_with("bash", json!({"MARKED": mark})).await;
    terms.run("setsid sleep 1000 & sleep 1001 &").await;
    terms.open_with("cat", json!({"MARKED": mark})).await;
    assert!(marked(&mark).len() >= 4);
    let clone = terms.terminals.clone();
    drop(terms);
    assert!(marked(&mark).len() >= 4);
    drop(clone);
    assert_eq!(marked(&mark), Vec::<i32>::new());
}

#[tokio::test]
async fn a_wait_ends_when_its_session_is_closed() {
    let terms = Terms::new();
    let session = terms.open("bash").await;
    let terminals = terms.terminals.clone();
    let waiting = tokio::spawn(async move {
        terminals
            .call(
                "run_command",
                json!({"command": "echo begun; sleep 1000", "timeout": 3600}),
            )
            .await
            .unwrap()
    });
    terms.expect("begun").await;
    terms.terminals.close(&session).await.unwrap();
    let ran = tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ran["status"], "shell_exited", "{ran:#}");
}

#[tokio::test]
async fn a_thousand_sessions_leave_no_process_and_no_descriptor() {
    // In a process of its own, so that other tests' descriptors do not count.
    if std::env::var_os("ALONE").is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "ending::a_thousand_sessions_leave_no_process_and_no_descriptor",
            ])
            .env("ALONE", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let terms = Terms::with(Options::default());
    let round = async |count: usize| {
        for _ in 0..count {
            let opening: Vec<_> = (0..8).map(|_| terms.open("dash")).collect();
            for session in opening {
                session.await;
            }
            terms.terminals.close_all().await;
        }
    };
    round(2).await;
    let before = descriptors();
    round(125).await;
    assert_eq!(descriptors(), before);
    assert_eq!(children(), Vec::<String>::new());
}

#[tokio::test]
async fn a_program_in_front_has_time_to_end() {
    for shell in ["bash", "zsh", "fish", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let program = "trap 'sleep 0.3; echo kept >saved; exit' HUP; echo re''ady; while :; do sleep 0.05; done";
        std::fs::write(terms.home().join("program"), program).unwrap();
        terms.send("sh program\n").await;
        terms.expect("^ready$").await;
        terms.call("exit_terminal", serde_json::json!({})).await;
        let saved = std::fs::read_to_string(terms.home().join("saved"));
        assert_eq!(saved.unwrap_or_default(), "kept\n", "{shell}");
    }
}
