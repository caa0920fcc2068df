//! What terminals cost, beside pexpect, tmux and a bare pseudo-terminal in the same run.
//!
//! The peers are `pexpect`, which `scripts/needs` brings, and `tmux`; a missing one is said to be
//! missing. Arguments choose measurements by name: `latency`, `commands`, `throughput`,
//! `memory`, `volume`.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot work should stop"
)]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use flow_runtime::terminal::{Options, Terminals};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::{Value, json};

const ROUNDS: usize = 500;

fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    if wanted("latency") {
        runtime.block_on(latency());
        peers();
    }
    if wanted("commands") {
        for shell in ["bash", "zsh", "dash", "fish"] {
            runtime.block_on(commands(shell));
        }
    }
    if wanted("throughput") {
        for _ in 0..3 {
            runtime.block_on(throughput());
        }
    }
    if wanted("memory") {
        runtime.block_on(memory());
    }
    if wanted("volume") {
        runtime.block_on(volume());
    }
}

async fn open(shell: &str) -> Terminals {
    let terminals = Terminals::new(Options::default()).unwrap();
    let opened = call(
        &terminals,
        "open_terminal",
        json!({"shell": shell, "environment": {"HOME": "/nonexistent", "ZDOTDIR": "/nonexistent"}}),
    )
    .await;
    assert_eq!(opened["success"], true, "{opened:#}");
    terminals
}

async fn call(terminals: &Terminals, tool: &str, parameters: Value) -> Value {
    terminals.call(tool, parameters).await.unwrap()
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{what:<44} p50 {:>8.3} ms   p90 {:>8.3} ms   p99 {:>8.3} ms   best {:>8.3} ms",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.0)
    );
}

/// From typing a command to the match of what it printed.
async fn latency() {
    let terminals = open("bash").await;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let began = Instant::now();
        call(
            &terminals,
            "send_input",
            json!({"input_text": format!("echo hi{round}x\n")}),
        )
        .await;
        let found = call(
            &terminals,
            "await_output",
            json!({"pattern": format!("^hi{round}x")}),
        )
        .await;
        times.push(began.elapsed());
        assert!(found["match_text"].is_string(), "{found:#}");
        call(&terminals, "await_output", json!({"pattern": "[$#] "})).await;
    }
    report("echo hi, matched", times);
    terminals.close_all().await;
}

const PEXPECT: &str = r"
import sys, time, pexpect
delay = None if sys.argv[1] == 'tuned' else 0.05
child = pexpect.spawn('bash', ['--norc', '--noprofile'], encoding='utf-8', env={'PS1': 'PROMPT> ', 'PATH': '/usr/bin:/bin', 'TERM': 'xterm'})
child.delaybeforesend = delay
child.expect('PROMPT> ')
times = []
for n in range(int(sys.argv[2])):
    began = time.perf_counter()
    child.sendline('echo hi%dx' % n)
    child.expect('[\r\n]hi%dx' % n)
    times.append(time.perf_counter() - began)
    child.expect('PROMPT> ')
print('\n'.join('%.9f' % t for t in times))
";

/// The Python that has pexpect: that of `scripts/needs`, else the system's.
fn python() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let own = target.join("needs/venv/bin/python3");
    if own.exists() {
        own
    } else {
        PathBuf::from("python3")
    }
}

/// The same by others, in the same run.
fn peers() {
    for (what, how, rounds) in [
        ("pexpect, tuned", "tuned", ROUNDS),
        ("pexpect, as it comes", "default", 50),
    ] {
        let output = Command::new(python())
            .args(["-c", PEXPECT, how, &rounds.to_string()])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let times: Vec<_> = text
            .lines()
            .filter_map(|line| line.parse().ok())
            .map(Duration::from_secs_f64)
            .collect();
        if times.is_empty() {
            let reason = String::from_utf8_lossy(&output.stderr);
            println!(
                "{what:<44} missing: {}",
                reason.lines().last().unwrap_or("")
            );
        } else {
            report(what, times);
        }
    }
    let tmux = |arguments: &[&str]| {
        Command::new("tmux")
            .args(["-L", "flow-bench", "-f", "/dev/null"])
            .args(arguments)
            .output()
    };
    if tmux(&["new-session", "-d", "-x", "120", "-y", "40", "bash --norc"]).is_err() {
        println!("tmux                                         missing");
        return;
    }
    let mut times = Vec::new();
    for round in 0..100 {
        let wanted = format!("\nhi{round}x");
        let began = Instant::now();
        tmux(&["send-keys", &format!("echo hi{round}x"), "Enter"]).unwrap();
        loop {
            let shown = tmux(&["capture-pane", "-p"]).unwrap().stdout;
            if String::from_utf8_lossy(&shown).contains(&wanted) {
                break;
            }
        }
        times.push(began.elapsed());
    }
    let _ = tmux(&["kill-server"]);
    report("tmux send-keys and capture-pane", times);
}

/// A command that does nothing, with its exit code and its environment.
async fn commands(shell: &str) {
    let terminals = open(shell).await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let ran = call(&terminals, "run_command", json!({"command": "true"})).await;
        times.push(began.elapsed());
        assert_eq!(ran["exit_code"], 0, "{ran:#}");
    }
    report(&format!("run_command true, {shell}"), times);
    // Something was typed: the shell is asked what its line holds.
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        call(&terminals, "send_input", json!({"keys": ["left"]})).await;
        let began = Instant::now();
        let ran = call(&terminals, "run_command", json!({"command": "true"})).await;
        times.push(began.elapsed());
        if ran["exit_code"] != 0 {
            // A terminal that edits lines itself cannot be asked.
            assert_eq!(ran["status"], "refused", "{ran:#}");
            break;
        }
    }
    if times.len() == ROUNDS {
        report(&format!("the same behind a key, {shell}"), times);
    }
    terminals.close_all().await;
}

/// Numbers through a session, and through a terminal that is only read.
async fn throughput() {
    let bytes: u64 = 168_888_897 + 20_000_000;
    let rate = |took: Duration| bytes as f64 / took.as_secs_f64() / 1e6;
    let began = Instant::now();
    let pair = native_pty_system()
        .openpty(PtySize {
            rows: 40,
            cols: 120,
            pixel_width: 0,
            pixel_height: 0,
        })
        .unwrap();
    let mut command = CommandBuilder::new("seq");
    command.arg("20000000");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    while let Ok(count) = reader.read(&mut buffer) {
        if count == 0 {
            break;
        }
        total += count as u64;
    }
    child.wait().unwrap();
    let bare = began.elapsed();
    assert_eq!(total, bytes);
    let terminals = open("bash").await;
    let began = Instant::now();
    let ran = call(
        &terminals,
        "run_command",
        json!({"command": "seq 20000000", "timeout": 600}),
    )
    .await;
    let ours = began.elapsed();
    assert!(
        ran["output"].as_str().unwrap().ends_with("\n20000000\n"),
        "{}",
        ran["error"]
    );
    println!(
        "seq 20000000: bare {:.1} MB/s, session {:.1} MB/s, {:.0} %",
        rate(bare),
        rate(ours),
        100.0 * bare.as_secs_f64() / ours.as_secs_f64()
    );
    terminals.close_all().await;
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What a session takes of this process, idle and with a full scrollback.
async fn memory() {
    let terminals = Terminals::new(Options::default()).unwrap();
    let open = json!({"shell": "bash", "environment": {"HOME": "/nonexistent"}});
    call(&terminals, "open_terminal", open.clone()).await;
    let before = resident();
    for _ in 0..20 {
        call(&terminals, "open_terminal", open.clone()).await;
    }
    let idle = resident();
    for session in terminals.sessions().iter().skip(1) {
        let run = json!({"session_id": session, "command": "seq 1 300000"});
        call(&terminals, "run_command", run).await;
    }
    let full = resident();
    println!(
        "memory of a session: idle {} kB, with full scrollback and window {} kB",
        (idle - before) / 20,
        (full - before) / 20
    );
    terminals.close_all().await;
}

/// A gigabyte of output.
async fn volume() {
    let terminals = open("bash").await;
    call(
        &terminals,
        "run_command",
        json!({"command": "seq 1 300000"}),
    )
    .await;
    let before = resident();
    let began = Instant::now();
    let command = "head -c 1000000000 /dev/zero | tr '\\0' x | fold -w 1000";
    let ran = call(
        &terminals,
        "run_command",
        json!({"command": command, "timeout": 3600}),
    )
    .await;
    assert_eq!(ran["exit_code"], 0, "{}", ran["error"]);
    println!(
        "1 GB of output: {:.1} s, {} kB more memory",
        began.elapsed().as_secs_f64(),
        resident().saturating_sub(before)
    );
    terminals.close_all().await;
}
