//! Much output, and output that is no text.

use std::process::Command;

use proptest::prelude::*;
use serde_json::json;

use crate::support::{SHELLS, Terms};

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

#[tokio::test]
async fn binary_output_is_exact_and_harms_nothing() {
    for shell in SHELLS {
        let terms = Terms::new();
        let bytes: Vec<u8> = (0..=255).cycle().take(4096).collect();
        std::fs::write(terms.home().join("bytes"), &bytes).unwrap();
        terms.open(shell).await;
        let ran = terms.run("cat bytes").await;
        assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        let expected = Command::new("base64")
            .arg("-w0")
            .arg(terms.home().join("bytes"))
            .output()
            .unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap();
        assert_eq!(ran["output_base64"], expected, "{shell}");
        let ran = terms.run("echo ok").await;
        assert_eq!(ran["output"], "ok\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn the_end_of_much_output_is_given() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms
        .call(
            "run_command",
            json!({"command": "seq 1 100000", "max_chars": 13, "timeout": 60}),
        )
        .await;
    assert_eq!(ran["output"], "99999\n100000\n", "{ran:#}");
    assert_eq!(ran["truncated"], true);
    assert_eq!(ran["exit_code"], 0);
}

#[tokio::test]
async fn output_that_comes_faster_than_it_is_taken_keeps_its_order() {
    let numbers: String = (1..=150_000).map(|number| format!("{number}\n")).collect();
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for times in 1..=3 {
            let ran = terms
                .call(
                    "run_command",
                    json!({"command": "seq 1 150000", "max_chars": 1_000_000, "timeout": 60}),
                )
                .await;
            let output = ran["output"].as_str().unwrap();
            assert!(output == numbers, "{shell}, {times}: {}", output.len());
            let ran = terms.run("echo ok").await;
            assert_eq!(ran["output"], "ok\n", "{shell}, {times}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn any_amount_of_output_passes_in_bounded_memory() {
    // In a process of its own, so that its memory is its own.
    if std::env::var_os("ALONE").is_none() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "volume::any_amount_of_output_passes_in_bounded_memory",
            ])
            .env("ALONE", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("seq 1 100000").await;
    let before = resident();
    // A debug build takes minutes for a gigabyte; the benchmark `volume` passes that much.
    let size = if cfg!(debug_assertions) {
        64_000_000
    } else {
        1_000_000_000
    };
    let command = format!("head -c {size} /dev/zero | tr '\\0' x | fold -w 1000; echo; echo en''d");
    let ran = terms
        .call("run_command", json!({"command": command, "timeout": 600}))
        .await;
    assert_eq!(ran["exit_code"], 0, "{}", ran["error"]);
    assert!(ran["output"].as_str().unwrap().ends_with("x\nend\n"));
    let grown = resident().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more");
}

/// What a program may print, in pieces that terminals treat specially.
fn printed() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..20),
        4 => "[ -~]{0,200}".prop_map(String::into_bytes),
        2 => prop::sample::select(vec![
            &b"\n"[..], b"\r\n", b"\r", b"\r\r\n", b"\n\n", b"\t", b"\x08", b"\x07", b"\x1b",
            b"\x1b[31m", b"\x1b[2J\x1b[H", b"\x1b]0;t\x07", b"\x1b]133;D;0\x07", b"\x1b]133;",
            b"\x1bP", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[c", b"\x1b[?2026h", b"\xe6\xbc", b"\x0e", b"\x1bc",
        ]).prop_map(<[u8]>::to_vec),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_terminal_gives_what_a_pipe_gives() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for shell in SHELLS {
        let terms = Terms::new();
        runtime.block_on(terms.open(shell));
        let file = terms.home().join("printed");
        let config = ProptestConfig {
            cases: 64,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        proptest!(config, |(bytes in printed())| {
            std::fs::write(&file, &bytes).unwrap();
            let ran = runtime.block_on(terms.run("cat printed"));
            prop_assert_eq!(&ran["exit_code"], &json!(0), "{}: {:#}", shell, ran);
            match std::str::from_utf8(&bytes) {
                Ok(text) => {
                    prop_assert_eq!(&ran["output"], &json!(text), "{}", shell);
                    prop_assert_eq!(&ran["output_base64"], &json!(null));
                }
                Err(_) => {
                    let expected = Command::new("base64").arg("-w0").arg(&file).output().unwrap();
                    let expected = String::from_utf8(expected.stdout).unwrap();
                    prop_assert_eq!(&ran["output_base64"], &json!(expected), "{}", shell);
                }
            }
        });
    }
}

#[tokio::test]
async fn a_command_of_many_lines_is_typed_in_every_shell() {
    let lines: Vec<_> = (0..600)
        .map(|line| format!("'line' {line} \"$x\""))
        .collect();
    let value = lines.join("\n");
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let quoted = match shell {
            "fish" => value.replace('\'', "\\'"),
            _ => value.replace('\'', "'\\''"),
        };
        let ran = terms.run(&format!("printf %s '{quoted}' >written")).await;
        assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        let written = std::fs::read_to_string(terms.home().join("written")).unwrap();
        assert_eq!(written, value, "{shell}");
    }
}
