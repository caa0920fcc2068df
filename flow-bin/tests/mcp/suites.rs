//! Programs of others that test MCP servers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::needed;

/// A server that ends with the test.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn new() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flow"))
            .args(["serve", "--conformance", "--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let said = child.stderr.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        let url = line.split_whitespace().last().unwrap().to_owned();
        Served { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_conformance_suite_finds_no_fault() {
    let served = Served::new();
    let results = tempfile::tempdir().unwrap();
    let output = Command::new(needed("node/node_modules/.bin/node"))
        .arg(needed(
            "node/node_modules/@modelcontextprotocol/conformance/dist/index.js",
        ))
        .args(["server", "--suite", "all", "--url", &served.url])
        .current_dir(results.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("Total: 46 passed, 0 failed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_inspector_lists_and_calls_tools_in_both_eras() {
    let place = tempfile::tempdir().unwrap();
    let workflows = place.path().join(".flow/workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let definition = "steps:\n  - {type: shell, command: echo hello}\n";
    std::fs::write(workflows.join("hello.yaml"), definition).unwrap();
    let inspect = |era: &str, arguments: &[&str]| -> Value {
        let output = Command::new(needed("node/node_modules/.bin/node"))
            .arg(needed("node/node_modules/.bin/mcp-inspector"))
            .args(["--cli", env!("CARGO_BIN_EXE_flow"), "serve"])
            .args(["--protocol-era", era, "--format", "json", "-q"])
            .args(arguments)
            .current_dir(place.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&said).unwrap_or_else(|error| {
            let told = String::from_utf8_lossy(&output.stderr);
            panic!("{error}: {said}{told}")
        })
    };
    for era in ["legacy", "modern"] {
        let listed = inspect(era, &["--method", "tools/list"]);
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert!(
            tools.iter().any(|tool| tool["name"] == "run_workflow"),
            "{listed}"
        );
        let called = inspect(
            era,
            &[
                "--method",
                "tools/call",
                "--tool-name",
                "flow",
                "--tool-args-json",
                r#"{"flow_name": "hello"}"#,
            ],
        );
        assert_eq!(
            called["result"]["structuredContent"]["status"], "completed",
            "{called}"
        );
    }
}
