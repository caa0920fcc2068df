//! What the tests of the journal share: small runs, and other processes that use the same journal.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part; a test fails where it panics"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use flow_runtime::journal::{Append, Journal, NewRun, RunId};

/// A directory of its own, and where the journal goes in it.
pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/journal.db");
    (dir, path)
}

/// The id of the nth run.
pub(crate) fn id(n: u64) -> RunId {
    RunId::new(1_767_225_600_000 + n, u128::from(n))
}

/// Starts the nth run with one event.
pub(crate) fn start(journal: &Journal, n: u64) -> RunId {
    start_as(journal, n, "demo", |new| new)
}

/// Starts the nth run of a workflow with one event.
pub(crate) fn start_as(
    journal: &Journal,
    n: u64,
    workflow: &str,
    edit: impl FnOnce(NewRun) -> NewRun,
) -> RunId {
    let definition = journal
        .put_definition(format!("name: {workflow}").as_bytes())
        .unwrap();
    let new = edit(NewRun::new(workflow, definition, 1000 + n));
    let append = Append::start(id(n), new).event(1000 + n, "started", "{}");
    assert_eq!(journal.append(append).unwrap(), 1);
    id(n)
}

/// An append of one small event.
pub(crate) fn one(run: RunId, after: u64) -> Append {
    Append::after(run, after).event(2000 + after, "step", format!("{{\"n\":{after}}}"))
}

/// The numbers of a run's events, after checking that none is missing.
pub(crate) fn count(journal: &Journal, run: RunId) -> u64 {
    let events = journal.events(run, .., usize::MAX).unwrap();
    for (event, seq) in events.iter().zip(1..) {
        assert_eq!(event.seq, seq);
    }
    events.len() as u64
}

/// A process that runs the ignored test `child` of this file with a task of its own.
pub(crate) struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Other {
    pub(crate) fn start(task: &str, path: &Path) -> Other {
        Other::spawn(&mut Other::command(task, path)).unwrap()
    }

    pub(crate) fn command(task: &str, path: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Other::prepare(&mut command, task, path);
        command.args(["--ignored", "--exact", "child", "--nocapture"]);
        command
    }

    pub(crate) fn prepare(command: &mut Command, task: &str, path: &Path) {
        command.env("JOURNAL_TASK", task).env("JOURNAL_PATH", path);
    }

    pub(crate) fn spawn(command: &mut Command) -> std::io::Result<Other> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Ok(Other { child, lines })
    }

    /// The next thing it says.
    pub(crate) fn hear(&mut self) -> Option<String> {
        for line in self.lines.by_ref() {
            if let Some((_, said)) = line.unwrap().split_once("say:") {
                return Some(said.to_owned());
            }
        }
        None
    }

    pub(crate) fn expect(&mut self, said: &str) {
        assert_eq!(self.hear().as_deref(), Some(said));
    }

    /// Lets it go on from where it [`pause`]s.
    pub(crate) fn go(&mut self) {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"go\n")
            .unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and gives what it had said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        let said = std::iter::from_fn(|| self.hear()).collect();
        self.child.wait().unwrap();
        said
    }

    /// Waits for its end, which has to be a good one.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        while self.hear().is_some() {}
        assert!(self.child.wait().unwrap().success());
    }
}

/// In the other process: its task and the journal.
pub(crate) fn task() -> Option<(String, PathBuf)> {
    let task = std::env::var("JOURNAL_TASK").ok()?;
    Some((task, std::env::var_os("JOURNAL_PATH")?.into()))
}

/// In the other process: says something to the first one.
pub(crate) fn say(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("say:{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// In the other process: waits for [`Other::go`].
pub(crate) fn pause() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}
