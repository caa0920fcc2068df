//! Commands: each in a process group of its own, recorded before it may run, bounded in what it
//! may say, ended as a whole.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Watch;
use crate::journal::{Journal, ProcessGroup, RunId, Stream};
use crate::library::project_root;
use crate::run::{Failure, FailureKind};
use crate::secret::{self, Scrubbed, Scrubber};
use crate::value::Value;

/// Bytes of a stream that a result holds; the log has more.
const MAX_RESULT: usize = crate::run::SHELL_RESULT_BYTES;
/// Bytes of a command that an environment variable holds with certainty.
const LONGEST_VARIABLE: usize = 96 * 1024;
/// How long a group may take to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// A command to run.
pub(super) struct Shell<'a> {
    pub(super) journal: &'a Journal,
    pub(super) watch: &'a Arc<dyn Watch>,
    pub(super) run: RunId,
    pub(super) step: &'a str,
    pub(super) key: &'a str,
    pub(super) command: &'a str,
    pub(super) env: &'a [(String, String)],
    pub(super) directory: PathBuf,
    /// Where the run was started.
    pub(super) base: &'a Path,
    /// What the command reads; without it, nothing.
    pub(super) input: Option<&'a str>,
    pub(super) started_at: u64,
    /// What must not be seen in what the command says.
    pub(super) scrubber: Arc<Scrubber>,
}

/// How a command ended.
pub(super) enum Ended {
    /// By itself, with this result.
    Exited(Value),
    /// It could not be started.
    NotStarted(Failure),
}

/// Ends a process group when the future that runs it is dropped.
struct Group {
    pid: Option<u32>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.pid.take() {
            signal(pid, Signal::KILL);
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // A group that has ended already is what was wanted.
        let _ = kill_process_group(pid, signal);
    }
}

/// Groups that a dead host left behind. Whatever becomes of asking them, they end with this.
struct Left<'a>(&'a [ProcessGroup]);

impl Left<'_> {
    /// Those of which something still goes on.
    fn going(&self) -> impl Iterator<Item = u32> {
        let going = self.0.iter().filter(|group| !group.members().is_empty());
        going.map(|group| group.pgid)
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.going().for_each(|group| signal(group, Signal::KILL));
    }
}

/// Ends what a dead host left behind: asks, then insists. It insists at once when this host is told
/// to stop meanwhile, or does not wait for the end.
pub(super) async fn end_groups(groups: &[ProcessGroup], mut stop: watch::Receiver<bool>) {
    let left = Left(groups);
    left.going().for_each(|group| signal(group, Signal::TERM));
    let until = Instant::now() + GRACE;
    while Instant::now() < until && left.going().next().is_some() {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
}

impl Shell<'_> {
    /// Runs the command to its end. Dropping the future kills the whole group.
    pub(super) async fn run(self) -> Ended {
        // The first line of its input lets the command go on. If the host dies before the group
        // is recorded, that line never comes and nothing runs.
        let is_long = self.command.len() > LONGEST_VARIABLE && self.input.is_none();
        let gate = match self.input {
            // What follows the first line is the command's.
            Some(_) => r#"read -r _ && exec "$FLOW_SHELL" -c "$FLOW_COMMAND""#,
            // No variable holds it; it follows the first line.
            None if is_long => {
                r#"read -r _ && script=$(/bin/cat; printf .) && eval "${script%.}" </dev/null"#
            }
            None => r#"read -r _ && exec "$FLOW_SHELL" -c "$FLOW_COMMAND" </dev/null"#,
        };
        let shell = "/bin/sh";
        let began = Instant::now();
        let mut command = Command::new(shell);
        command.arg("-c").arg(gate);
        // A step has the secrets that it names, and no others.
        for name in secret::withheld() {
            command.env_remove(name);
        }
        if !is_long {
            command.env("FLOW_SHELL", shell);
            command.env("FLOW_COMMAND", self.command);
        }
        if let Some(project) = project_root(self.base) {
            command.env("FLOW_PROJECT_DIR", project);
        }
        let spawned = command
            .env("FLOW_STEP_KEY", self.key)
            .env("FLOW_RUN_ID", self.run.to_string())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                let place = self.directory.display();
                let message = format!("the command cannot be started in {place}: {error}");
                return Ended::NotStarted(Failure::new(FailureKind::Action, message));
            }
        };
        let Some(pid) = child.id() else {
            let message = "the command ended before it began";
            return Ended::NotStarted(Failure::new(FailureKind::Action, message));
        };
        let mut group = Group { pid: Some(pid) };
        let recorded = self
            .journal
            .record_process(
                self.run,
                self.key,
                self.started_at,
                ProcessGroup::led_by(pid),
            )
            .await;
        if let Err(error) = recorded {
            let message = format!("the command cannot be recorded: {error}");
            return Ended::NotStarted(Failure::new(FailureKind::Action, message));
        }
        let gate = child.stdin.take();
        let let_go = async {
            if let Some(mut gate) = gate {
                // A command that is gone, or does not read, says so by its exit code.
                let _ = gate.write_all(b"\n").await;
                let rest = if is_long {
                    Some(self.command)
                } else {
                    self.input
                };
                if let Some(rest) = rest {
                    let _ = gate.write_all(rest.as_bytes()).await;
                }
            }
        };
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let ended = async {
            let status = child.wait().await;
            // What the command left in its group ends with it; else it would keep the streams open.
            signal(pid, Signal::KILL);
            status
        };
        let ((), stdout, stderr, status) = tokio::join!(
            biased;
            let_go,
            self.capture(stdout, Stream::Stdout),
            self.capture(stderr, Stream::Stderr),
            ended,
        );
        group.pid = None;
        let _ = self.journal.forget_process(self.run, self.key).await;
        let (code, ended_by) = match status {
            Ok(status) => exit(status),
            Err(_) => (-1, None),
        };
        let mut fields = vec![
            ("stdout", Value::text(&stdout.text)),
            ("stderr", Value::text(&stderr.text)),
            ("exit_code", Value::Int(code)),
            ("duration", Value::number(began.elapsed().as_secs_f64())),
        ];
        if let Some(signal) = ended_by {
            fields.push(("signal", Value::Int(signal)));
        }
        if stdout.dropped + stderr.dropped > 0 {
            let bytes = |dropped: usize| Value::Int(i64::try_from(dropped).unwrap_or(i64::MAX));
            let dropped = [
                ("stdout", bytes(stdout.dropped)),
                ("stderr", bytes(stderr.dropped)),
            ];
            fields.push(("truncated", Value::Bool(true)));
            fields.push(("dropped", Value::map(dropped)));
        }
        Ended::Exited(Value::map(fields))
    }

    async fn capture(&self, from: Option<impl AsyncRead + Unpin>, stream: Stream) -> Captured {
        let mut captured = Captured::default();
        let Some(mut from) = from else {
            return captured;
        };
        let mut kept = Kept::default();
        let mut shown = Vec::new();
        let mut stream_scrubber = self.scrubber.stream();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = from.read(&mut buffer).await.unwrap_or(0);
            let give = |piece: Scrubbed<'_>| match piece {
                Scrubbed::Bytes(bytes) => {
                    shown.extend_from_slice(bytes);
                    kept.add(bytes);
                }
                Scrubbed::Secret(bytes, mask) => {
                    shown.extend_from_slice(mask.as_bytes());
                    // Scrubbed with the rest of the result, unless it does not fit.
                    kept.add_whole(bytes);
                }
            };
            if count > 0 {
                stream_scrubber.push(&buffer[..count], give);
            } else {
                stream_scrubber.end(give);
            }
            if !shown.is_empty() {
                self.watch.output(self.run, self.step, &shown);
                // A log that cannot be written does not stop the command; the run's events would.
                let _ = self.journal.log(self.run, self.key, stream, &shown).await;
                shown.clear();
            }
            if count == 0 {
                break;
            }
        }
        kept.whole_characters();
        captured.text = String::from_utf8_lossy(&kept.bytes).into_owned();
        captured.dropped = kept.dropped;
        captured
    }
}

/// What of a stream the result holds.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    dropped: usize,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let room = MAX_RESULT.saturating_sub(self.bytes.len());
        let (fits, rest) = bytes.split_at(bytes.len().min(room));
        self.bytes.extend_from_slice(fits);
        self.dropped += rest.len();
    }

    /// Drops a last character that has lost its end.
    fn whole_characters(&mut self) {
        let last = self.bytes.utf8_chunks().last().map(|chunk| chunk.invalid());
        if self.dropped > 0
            && let Some(half) = last
        {
            let half = half.len();
            self.bytes.truncate(self.bytes.len() - half);
            self.dropped += half;
        }
    }

    /// Adds all of it or nothing.
    fn add_whole(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() <= MAX_RESULT {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.dropped += bytes.len();
        }
    }
}

#[derive(Default)]
struct Captured {
    text: String,
    dropped: usize,
}

/// The exit code, as a shell tells it, and the signal that ended the command.
fn exit(status: std::process::ExitStatus) -> (i64, Option<i64>) {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => (i64::from(code), None),
        (None, Some(signal)) => (128 + i64::from(signal), Some(i64::from(signal))),
        (None, None) => (-1, None),
    }
}
