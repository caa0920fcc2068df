//! The `flow` command as a person or a program uses it.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

mod brief;
mod calls;
mod check;
mod completions;
mod cookbook;
mod crash;
mod directories;
mod expand;
mod explain;
mod expressions;
mod failures;
mod faults;
mod graph;
mod history;
mod hostile;
mod list;
mod output;
mod project;
mod questions;
mod resume;
mod run;
mod secrets;
mod shortcut;
mod terminal;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A definition without a fault.
const GOOD: &str = "steps:\n  - {type: shell, command: make}\n";
/// A definition with one error, in line 2.
const BAD: &str = "steps:\n  - {type: shel, command: make}\n";
/// A definition with one warning, in line 1.
const ODD: &str = "inputs: {a: string}\nsteps:\n  - {type: shell, command: make}\n";

/// A directory to run the command in.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Place {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let place = Place::new();
        for (path, text) in files {
            place.file(path, text);
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The command, with nothing of the person who runs the tests in its environment.
    fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(Path::new(""), arguments)
    }

    fn command_in(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flow"));
        command
            .args(arguments)
            .current_dir(self.directory.path().join(directory))
            .env("FLOW_CONFIG_DIR", self.path("config"))
            .env("FLOW_DATA_DIR", self.path("data"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    fn pipe(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // The command may have read enough before all of it is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        Ran::from(child.wait_with_output().unwrap())
    }
}

/// What came of it.
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl From<std::process::Output> for Ran {
    fn from(output: std::process::Output) -> Self {
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr,
        }
    }
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Codes, lines and columns of what `flow check --format json` found.
    fn found(&self) -> Vec<(String, u64, u64)> {
        let value = self.json();
        let diagnostics = value["diagnostics"].as_array().unwrap();
        diagnostics
            .iter()
            .map(|it| {
                (
                    it["code"].as_str().unwrap().to_owned(),
                    it["line"].as_u64().unwrap(),
                    it["column"].as_u64().unwrap(),
                )
            })
            .collect()
    }
}
