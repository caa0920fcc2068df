//! Commands that are typed at a shell's prompt and followed to their end.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow_model::command::belonging;
use flow_model::tools::CommandStatus;
use tokio::sync::oneshot;

use super::place::Rest;
use super::{Interrupt, Phase, QUIET, Session, State};
use crate::terminal::capture::{Capture, Shown};
use crate::terminal::echo::Echoer;
use crate::terminal::lock;
use crate::terminal::process;
use crate::terminal::program::{self, Shell};
use crate::terminal::pty::{MAX_LINE, Mode};
use crate::terminal::scanner::Held;

/// How long a shell that is about to show its prompt is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a program that was told to end may do nothing before it does: vim gives the terminal 0.1 s
/// to answer.
const PAUSE: Duration = Duration::from_millis(250);
/// How often a shell is looked at that may be about to act on what was typed ahead.
const DOUBT: Duration = Duration::from_millis(2);
/// How often it is looked at without a pause before that: it is about to fall asleep most times, and a
/// look takes as long as that.
const GLANCES: u32 = 10;
/// How often a shell that says nothing is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Bytes of a command that is pasted although it is a single line: an editor that shows a line anew
/// for every key takes the longer for each the longer the line is.
const LONG: usize = 1000;
/// The key that makes a shell that edits a line clear it and insert what follows.
const CLEAR: &[u8] = b"\x1b[9134~";
/// The key that makes a terminal that edits lines itself clear one: ctrl-u.
const KILL: &[u8] = b"\x15";
/// The key that makes fish fill its line from a file.
const FILL: &str = "\x1b[9137~";
/// What begins pasted text.
const PASTE: &str = "\x1b[200~";

/// A command under way.
pub(super) struct Run {
    id: u64,
    capture: Capture,
    /// What comes is output.
    capturing: bool,
    /// Where the output of the last line begins.
    line_at: u64,
    /// What the shell itself says to a line that was entered, as long as no command has started: it
    /// cannot read the line.
    aside: Capture,
    /// What comes is that, behind the line.
    listening: bool,
    /// The shell asks for the next command and has not run what was entered.
    unrun: bool,
    /// It may stand for an earlier command.
    recalls: bool,
    /// Several lines were pasted, which the shell reads without a prompt in between.
    pasted: bool,
    /// The shell said that it wants more.
    continued: bool,
    /// The file from which the shell takes it.
    handed: Option<Handed>,
    /// Lines yet to be typed.
    lines: VecDeque<Typed>,
    /// Something was typed for what it runs while there were such lines: the shell may find a part of it.
    mixed: bool,
    /// The next of them is typed when the shell rests and has found nothing of that.
    held: bool,
    /// The shell said that a command starts, or had no way to.
    commanded: bool,
    /// The shell wanted more than there is.
    interrupted: bool,
    /// Somebody has typed ctrl-c: what is left of it is not wanted.
    pub(super) stopped: bool,
    typed: Instant,
    started: Option<Instant>,
    took: Option<Duration>,
    code: Option<i32>,
    /// When to look whether the shell is still itself.
    pub(super) look_at: Option<Instant>,
    answer: Option<oneshot::Sender<Ran>>,
}

/// A line of a command as it is typed.
struct Typed {
    text: String,
    /// It belongs to the line before it, and is no command of its own.
    belongs: bool,
}

impl Typed {
    fn one(text: String) -> Typed {
        let belongs = false;
        Typed { text, belongs }
    }
}

/// A file with a command, as long as the shell has not begun with it.
struct Handed(PathBuf);

impl Handed {
    fn over(path: PathBuf, command: &str) -> Option<Handed> {
        let handed = Handed(path);
        std::fs::write(&handed.0, command).ok()?;
        Some(handed)
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// How a command went.
#[derive(Debug)]
pub(in crate::terminal) struct Ran {
    pub(in crate::terminal) status: CommandStatus,
    pub(in crate::terminal) code: Option<i32>,
    pub(in crate::terminal) output: Vec<u8>,
    /// Whether that is all of the output.
    pub(in crate::terminal) complete: bool,
    pub(in crate::terminal) duration: Duration,
    /// What else there is to say.
    pub(in crate::terminal) note: Option<String>,
}

impl Ran {
    fn not(status: CommandStatus, note: impl Into<String>) -> Ran {
        Ran {
            status,
            code: None,
            output: Vec::new(),
            complete: true,
            duration: Duration::ZERO,
            note: Some(note.into()),
        }
    }
}

impl Run {
    /// Of these lines, of whose output so many bytes are kept.
    fn new(lines: VecDeque<Typed>, keep: usize) -> Run {
        Run {
            id: 0,
            capture: Capture::new(keep),
            capturing: false,
            line_at: 0,
            aside: Capture::new(keep),
            listening: false,
            unrun: false,
            recalls: false,
            pasted: false,
            continued: false,
            handed: None,
            lines,
            mixed: false,
            held: false,
            commanded: false,
            interrupted: false,
            stopped: false,
            typed: Instant::now(),
            started: None,
            took: None,
            code: None,
            look_at: None,
            answer: None,
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        if self.capturing {
            self.capture.take(bytes);
        } else if self.listening {
            self.aside.take(bytes);
        }
    }

    /// Whether there are lines yet to be typed.
    pub(super) fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Which of all commands it is.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Whether a line is held back until the shell rests.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Something is typed for what it runs.
    pub(super) fn mix(&mut self) {
        self.mixed |= self.has_lines();
    }

    /// How many bytes of output there are, as long as there may be more.
    pub(super) fn position(&self) -> Option<u64> {
        self.capturing.then(|| self.capture.position())
    }

    /// Takes the output behind a position back: it was a prompt.
    pub(super) fn cut(&mut self, position: u64) {
        self.capture.cut(position);
    }

    /// The shell asks for more: what it shows for that is no output.
    pub(super) fn asked(&mut self, shell: Shell) {
        self.capturing = false;
        if shell == Shell::Bash {
            self.recall_failed();
        }
        self.listening = false;
    }

    /// The shell has asked for more, with a prompt that does not say so.
    fn unask(&mut self) {
        if self.capturing {
            self.capture.unask(self.line_at);
        }
    }

    /// What the shell says from now on is its word on a line, which is shown before it.
    pub(super) fn listen(&mut self, shown: Shown<'_>) {
        if !self.interrupted {
            self.listening = true;
            self.aside.cut(0);
            self.aside.begin_typed(shown);
        }
    }

    /// The shell has an exit code although no command started: it could not read the line, or there
    /// was nothing in it. In the latter case it says nothing, and the code is the one before.
    pub(super) fn judged(&mut self, code: i32, before: Option<i32>, hidden: bool) {
        if !std::mem::take(&mut self.listening) || !self.aside.has_begun() {
            return;
        }
        self.aside.unsign();
        self.aside.unhook();
        let says = !self.aside.is_empty() || before != Some(code);
        if code != 0 && says || hidden {
            self.commanded = true;
            self.code = Some(code);
            self.capture.append(&mut self.aside);
            self.took = Some(self.typed.elapsed());
        }
    }

    /// A prompt begins although its hooks have not run since the line was entered. `lost` says that
    /// they are gone; else bash refuses the line, as it does when a `!` stands for nothing. Says
    /// whether the shell is done with the line.
    pub(super) fn reprompted(&mut self, shell: Shell, lost: bool) -> bool {
        let refuses = shell == Shell::Bash && !lost;
        if !(lost || refuses) || !self.listening || !self.aside.has_begun() {
            return false;
        }
        self.listening = false;
        self.aside.unprompt();
        self.capture.append(&mut self.aside);
        self.code = None;
        self.unrun = refuses;
        self.commanded |= lost;
        true
    }

    /// bash asks for more. If it has said something before, it has found no earlier command for a `!` and
    /// left the line out: the rest must not be run without it.
    fn recall_failed(&mut self) {
        if !self.recalls || !self.listening || !self.aside.has_begun() {
            return;
        }
        self.aside.unprompt();
        if !self.aside.is_empty() {
            self.capture.append(&mut self.aside);
            self.lines.clear();
            self.unrun = true;
        }
    }

    /// A command is about to start. What the shell has said before is its word on a line before it
    /// that it could not read; what it shows now is no output.
    pub(super) fn starting(&mut self) {
        if std::mem::take(&mut self.listening) && self.aside.has_begun() {
            self.capture.append(&mut self.aside);
        }
        self.capturing = false;
    }

    pub(super) fn started(&mut self, shell: Shell, now: Instant) {
        self.commanded = true;
        self.handed = None;
        self.listening = false;
        self.code = None;
        self.took = None;
        self.started.get_or_insert(now);
        if !self.capturing {
            self.capturing = true;
            self.capture.begin(shell);
        }
        self.look_at = Some(now + QUIET);
    }

    pub(super) fn ended(&mut self, code: Option<i32>) {
        if self.capturing {
            self.capturing = false;
            if code.is_none() {
                // What the shell writes before its prompt came without a mark in between.
                self.capture.unprompt();
            }
            self.capture.unhook();
            self.capture.end();
        }
        self.code = code;
        self.took = Some(self.started.unwrap_or(self.typed).elapsed());
    }

    fn ran(&mut self, status: CommandStatus, note: Option<String>) -> Ran {
        if self.capturing {
            self.capture.end();
        }
        let (output, complete) = self.capture.output();
        let began = self.started.unwrap_or(self.typed);
        Ran {
            status,
            code: match status {
                CommandStatus::Finished => self.code,
                _ => None,
            },
            output,
            complete,
            duration: self.took.unwrap_or_else(|| began.elapsed()),
            note,
        }
    }
}

impl State {
    /// Types a command, as [`Session::run`] does when nothing stands against it.
    #[cfg(test)]
    pub(super) fn run_lines(&mut self, command: &str, mode: Mode) {
        let lines = lines_of(command);
        self.expect("", mode, None);
        self.run = Some(Run::new(lines, 100));
        self.mode = mode;
        self.type_line();
    }

    /// The shell shows a prompt: the command is over, or goes on with its next line.
    pub(super) fn run_prompted(&mut self) {
        let Some(run) = &self.run else {
            return;
        };
        if run.interrupted && !run.unrun {
            let note = match self.shell {
                Some(Shell::Zsh) => {
                    "the command is incomplete: the shell waits for the rest, such as a closing \
                     quote, or for an answer to a question of its own (`setopt correct`); it was \
                     abandoned with ctrl-c"
                }
                _ => {
                    "the command is incomplete: the shell waits for the rest, such as a closing \
                     quote; it was abandoned with ctrl-c"
                }
            };
            self.finish_run(CommandStatus::Incomplete, Some(note.to_owned()));
        } else if run.unrun && !run.recalls {
            let note = "the shell could not read the command, as `output` says, and its exit code is not \
                        known; bash may take the next line for the rest of it";
            self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
        } else if run.unrun && run.commanded {
            let note = "the exit code is not known: the rest of the command was not run, because a `!` in \
                        it stands for no earlier command";
            self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
        } else if run.unrun || !run.commanded && run.recalls && self.shell == Some(Shell::Zsh) {
            let note = "the shell did not run the command: a `!` stands for an earlier command \
                        unless it is in single quotes or behind a backslash, or `set +H` (in zsh \
                        `setopt no_bang_hist`) has switched that off; there is none, as `output` \
                        says then, or the option `histverify` has it shown at the prompt, where the \
                        key enter runs it";
            self.finish_run(CommandStatus::Refused, Some(note.to_owned()));
        } else if run.stopped && !run.lines.is_empty() {
            let note =
                "the command was interrupted; the lines of it that were not begun were not typed";
            self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
        } else if run.lines.front().is_some_and(|line| line.belongs) {
            self.run_torn();
        } else if run.held {
            self.run_disturbed();
        } else if !run.lines.is_empty() {
            self.next_line();
        } else if !run.commanded {
            let note = "there was no command to run";
            self.finish_run(CommandStatus::NoCommand, Some(note.to_owned()));
        } else {
            let note = run.code.is_none().then(|| {
                let mut note = "the exit code is not known: the shell's prompt hook (such as \
                                PROMPT_COMMAND) was replaced"
                    .to_owned();
                if run.pasted {
                    note.push_str(
                        ", or the rest of the command was not run because a `!` in it stands for \
                         no earlier command",
                    );
                }
                note
            });
            self.finish_run(CommandStatus::Finished, note);
        }
    }

    /// The shell asks for the next command in the middle of this one: what is left of it would be read
    /// as commands, and may be a value.
    fn run_torn(&mut self) {
        if let Some(run) = &mut self.run {
            run.code = run.code.filter(|code| *code != 0);
        }
        let note = "the shell could not read the command, or ended it before its last line; the lines \
                    after that were not typed, since the shell would run them as commands";
        self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
    }

    /// The shell has read a line that flow did not type: what a program has left of its input. What comes
    /// is not the command's.
    pub(super) fn run_disturbed(&mut self) {
        if let Some(run) = &mut self.run {
            run.code = None;
        }
        let note = "the shell has run what was typed with send_input and no program of the command has \
                    read; the lines of the command that were not begun were not typed";
        self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
    }

    /// The shell says that it wants more of the command.
    pub(super) fn run_continued(&mut self) {
        if let Some(run) = &mut self.run {
            run.continued = true;
        }
        self.run_unfinished();
    }

    /// The shell wants more of the command: that is typed, or the line given up.
    fn run_unfinished(&mut self) {
        let shell = self.shell;
        let Some(run) = &mut self.run else {
            return;
        };
        run.capturing = false;
        run.listening = false;
        if run.held {
            self.run_disturbed();
        } else if !run.lines.is_empty() {
            self.next_line();
        } else if shell == Some(Shell::Fish) {
            // It has taken the line away itself.
            (self.typed, self.entered) = (false, false);
            let note = "the command is incomplete: the shell waits for the rest, such as a closing \
                        quote; it was taken away";
            self.finish_run(CommandStatus::Incomplete, Some(note.to_owned()));
        } else if !run.interrupted {
            run.interrupted = true;
            self.outgoing.push(0x03);
            self.uninterrupted();
            self.interrupt = Some(Interrupt::typed(Instant::now()));
        }
    }

    /// The shell cannot read the command.
    pub(super) fn run_erroneous(&mut self) {
        (self.typed, self.entered) = (false, false);
        let note = "the shell cannot read the command, which `fish --no-execute` explains: fish is \
                    no POSIX shell and has no here-documents, for instance; it was taken away";
        self.finish_run(CommandStatus::Refused, Some(note.to_owned()));
    }

    /// Types the next line of the command, or waits until the shell has read what else there is.
    fn next_line(&mut self) {
        match &mut self.run {
            Some(run) if run.mixed => {
                run.held = true;
                run.look_at = Some(Instant::now());
            }
            Some(_) | None => self.type_line(),
        }
    }

    /// Types the line that was held back, at a prompt where nothing else is left but half a line.
    pub(super) fn type_held(&mut self) {
        if let Some(run) = &mut self.run {
            (run.mixed, run.held) = (false, false);
            (self.left_over, self.ahead) = (false, false);
            let clears: &[u8] = match self.mode.lines {
                true => KILL,
                false => CLEAR,
            };
            self.outgoing.extend_from_slice(clears);
            self.type_line();
        }
    }

    /// Types the next line of the command.
    fn type_line(&mut self) {
        let shell = self.shell;
        let Some(run) = &mut self.run else {
            return;
        };
        let Some(Typed { text: line, .. }) = run.lines.pop_front() else {
            return;
        };
        let now = Instant::now();
        self.entered_at = Some(now);
        run.look_at = Some(now + QUIET);
        run.took = None;
        match shell {
            Some(Shell::Posix) => {
                run.commanded = true;
                run.capturing = true;
                run.capture.begin_typed(match self.mode {
                    Mode { echo: false, .. } => Shown::Nowhere,
                    Mode { lines, .. } => Shown::ByKernel { line: &line, lines },
                });
                run.line_at = run.capture.position();
                run.started.get_or_insert(now);
                if self.mode.echo {
                    self.echo.expect(&format!("{line}\n"), Echoer::Kernel);
                }
            }
            Some(shell @ (Shell::Bash | Shell::Zsh)) => {
                // zsh says that it takes pasted text behind its prompt, perhaps later than now.
                let pastes = match shell {
                    Shell::Bash => self.screen.wants_bracketed_paste(),
                    _ => line.starts_with(PASTE),
                };
                run.listen(match self.hidden {
                    true => Shown::Nowhere,
                    false => Shown::ByEditor { shell, pastes },
                });
                self.typing = true;
            }
            Some(Shell::Fish) | None => self.typing = true,
        }
        self.typed = true;
        self.entered = true;
        self.released = false;
        self.parted = false;
        self.outgoing.extend_from_slice(line.as_bytes());
        let enter: &[u8] = match shell {
            Some(Shell::Fish) => b"\x1b[9133~",
            // The key, whatever an editor makes of the byte.
            Some(Shell::Bash | Shell::Zsh) if !self.mode.lines => b"\r",
            Some(Shell::Bash | Shell::Zsh | Shell::Posix) | None => b"\n",
        };
        self.outgoing.extend_from_slice(enter);
    }

    /// The shell rests over its prompt, or over a line that it wants more of, and has said neither.
    pub(super) fn run_unanswered(&mut self) {
        let Some(run) = &mut self.run else {
            return;
        };
        if self.shell == Some(Shell::Fish) {
            return;
        }
        if !run.interrupted {
            run.unask();
            self.run_unfinished();
            return;
        }
        if run.continued {
            self.entered = false;
            self.touched = true;
            let note = "the command is incomplete: the shell waits for the rest, such as a closing \
                        quote, and ignores ctrl-c; type the rest with send_input";
            self.finish_run(CommandStatus::Incomplete, Some(note.to_owned()));
            return;
        }
        // Had it wanted more, the interrupt would have brought its prompt.
        self.lost = true;
        let note = "the exit code is not known: the shell waits at a prompt that no longer tells \
                    where it is, since what flow put into it (PS1) was replaced; `output` may end \
                    with that prompt";
        self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
    }

    fn finish_run(&mut self, status: CommandStatus, note: Option<String>) {
        if let Some(mut run) = self.run.take()
            && let Some(answer) = run.answer.take()
        {
            let _ = answer.send(run.ran(status, note));
        }
    }

    /// The shell has ended.
    pub(super) fn end_run(&mut self) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        if let Some(answer) = run.answer.take() {
            let words = self.exit.map_or_else(String::new, super::Exit::words);
            let note = format!("the shell has ended {words}");
            let mut ran = run.ran(CommandStatus::ShellExited, Some(note));
            ran.code = self.exit.and_then(super::Exit::code);
            let _ = answer.send(ran);
        }
    }

    /// Looks whether the shell has become another program, and one that waits for input: any other may
    /// end with the exit code that is waited for.
    pub(super) fn look(
        &mut self,
        now: Instant,
        image: Option<Vec<u8>>,
        asks: impl FnOnce() -> bool,
    ) {
        let replaced = image.is_some() && self.image.is_some() && image != self.image;
        if replaced && asks() {
            self.finish_run(CommandStatus::ShellExited, Some(replacement(self.pid)));
        } else if let Some(run) = &mut self.run {
            run.look_at = Some(now + LOOK);
        }
    }
}

/// Ends a run when whoever waits for it goes away.
struct Waiting<'a, F: Fn(&Session)> {
    session: &'a Session,
    id: u64,
    given_up: F,
}

impl<F: Fn(&Session)> Drop for Waiting<'_, F> {
    fn drop(&mut self) {
        let mut state = lock(&self.session.state);
        let own = state.run.take_if(|run| run.id == self.id);
        drop(state);
        if own.is_some() {
            (self.given_up)(self.session);
        }
    }
}

impl Session {
    /// Runs a command at the shell's prompt. `keep` bounds the bytes of output that are kept;
    /// `given_up` is done when whoever waits goes away while the command runs.
    pub(in crate::terminal) async fn run(
        self: &Arc<Self>,
        command: &str,
        limit: Duration,
        keep: usize,
        given_up: impl Fn(&Session),
    ) -> Ran {
        let Some(shell) = self.program.shell else {
            let exit = lock(&self.state).exit;
            if let Some(exit) = exit {
                let note = format!("the program has ended {}", exit.words());
                let code = exit.code();
                return Ran {
                    code,
                    ..Ran::not(CommandStatus::ShellExited, note)
                };
            }
            let name = self
                .foreground()
                .unwrap_or_else(|| self.program.asked.clone());
            return Ran::not(
                CommandStatus::Busy,
                format!("busy: {name} is in front, not a shell; use send_input and await_output"),
            );
        };
        if let Some(refused) = refusal(shell, command) {
            return refused;
        }
        let until = tokio::time::Instant::now() + limit;
        // Another command that waits for its prompt is not waited for longer than that.
        let turn = tokio::time::timeout_at(until, self.turn.lock()).await;
        let _ = tokio::time::timeout_at(until, self.interrupted()).await;
        let _ = tokio::time::timeout_at(until, self.clear_line()).await;
        let mut is_there = self.prompt_soon(until).await;
        let patience = until.min(tokio::time::Instant::now() + PATIENCE);
        let mut missed = lock(&self.state).missed;
        while missed {
            let _ = tokio::time::timeout_at(until, self.interrupted()).await;
            is_there = self.prompt_soon(until).await;
            // It may have rested without its prompt, and been at work when it was looked at.
            missed = self.edits() && lock(&self.state).missed;
            missed &= tokio::time::Instant::now() < patience;
        }
        if is_there && let Some(occupied) = self.occupied(until).await {
            return occupied;
        }
        if is_pasted(command) {
            self.pasteable(until - tokio::time::Instant::now()).await;
        }
        let (id, receiver) = match self.begin(shell, command, keep) {
            Ok(begun) => begun,
            Err(refused) => return *refused,
        };
        drop(turn);
        let waiting = Waiting {
            session: self,
            id,
            given_up,
        };
        let mut receiver = receiver;
        let ran = match tokio::time::timeout_at(until, &mut receiver).await {
            Ok(Ok(ran)) => ran,
            Ok(Err(_)) => Ran::not(CommandStatus::ShellExited, "the session was closed"),
            Err(_) => self.timed_out(&mut receiver),
        };
        drop(waiting);
        ran
    }

    fn timed_out(&self, receiver: &mut oneshot::Receiver<Ran>) -> Ran {
        let run = {
            let mut state = lock(&self.state);
            state.touched = true;
            state.run.take()
        };
        // It may have finished in the meantime.
        if let Ok(ran) = receiver.try_recv() {
            return ran;
        }
        let front = self.foreground().unwrap_or_else(|| "?".to_owned());
        let note = match &run {
            Some(run) if !run.commanded => match self.pty.unread() {
                0 => format!("the command has not begun; in front: {front}, which has read it"),
                unread => format!(
                    "the command has not begun: {front} is still reading it, {unread} bytes are \
                     left; the key ctrl-c gives it up"
                ),
            },
            Some(run) if run.has_lines() => format!(
                "the command is still running; in front: {front}; {} of its lines have not been typed, \
                 and will not be",
                run.lines.len()
            ),
            Some(_) | None => format!("the command is still running; in front: {front}"),
        };
        match run {
            Some(mut run) => run.ran(CommandStatus::TimedOut, Some(note)),
            None => Ran::not(CommandStatus::TimedOut, note),
        }
    }

    /// Why no command can be typed at the prompt, by the word of a shell that edits its line.
    async fn occupied(&self, until: tokio::time::Instant) -> Option<Ran> {
        let is_known = || {
            let state = lock(&self.state);
            let is_there = state.phase == Phase::Prompt && self.answers(&state);
            !is_there || !state.touched
        };
        if is_known() {
            return None;
        }
        let note = match self.held(until).await {
            Some(Held::Nothing) => return None,
            Some(Held::Text) => {
                "the prompt holds text that was typed and not entered; finish it, or clear it with \
                 the key ctrl-c"
            }
            Some(Held::More) => {
                "the shell waits for the rest of what was entered before, such as a closing quote; \
                 finish it, or give it up with the key ctrl-c"
            }
            None if is_known() => return None,
            None => {
                "the shell does not say what its line holds: a key that was typed before waits for \
                 another one, or what was pasted has no end; clear it with the key ctrl-c"
            }
        };
        Some(Ran::not(CommandStatus::Refused, note))
    }

    /// Types the command, if the shell is at its prompt.
    fn begin(
        &self,
        shell: Shell,
        command: &str,
        keep: usize,
    ) -> Result<(u64, oneshot::Receiver<Ran>), Box<Ran>> {
        let refuse = |status, note: String| Err(Box::new(Ran::not(status, note)));
        let in_front = self.is_in_front();
        let mut state = lock(&self.state);
        if let Some(exit) = state.exit {
            let mut ran = Ran::not(
                CommandStatus::ShellExited,
                format!("the shell has ended {}", exit.words()),
            );
            ran.code = exit.code();
            return Err(Box::new(ran));
        }
        if state.run.is_some() {
            let note = "busy: another command is being run in this session";
            return refuse(CommandStatus::Busy, note.to_owned());
        }
        let unread = self.pty.unread();
        // A POSIX shell has no way to tell that what was entered starts.
        let entered = shell == Shell::Posix && state.typed && state.entered && unread == 0;
        if !in_front || state.phase != Phase::Prompt || entered {
            let (lost, is_starting) = (state.lost, state.phase == Phase::Starting);
            let image = process::image(self.pid);
            let replaced = image.is_some() && state.image.is_some() && image != state.image;
            drop(state);
            let name = self.foreground().unwrap_or_else(|| "?".to_owned());
            let note = if in_front && replaced {
                format!("busy: {}", replacement(self.pid))
            } else if in_front && lost {
                format!(
                    "busy: {name} has lost the prompt by which it is followed (PS1 was replaced); \
                     use send_input and await_output, or open another session"
                )
            } else if in_front && is_starting {
                format!(
                    "busy: {name} has shown no prompt by which it could be followed: its startup \
                     files are still at work, or have made what flow puts into it read-only (such \
                     as PS1 or PROMPT_COMMAND); use send_input and await_output"
                )
            } else if in_front {
                format!("busy: {name} is not at a prompt; use send_input and await_output")
            } else {
                format!("busy: {name} is in front; use send_input and await_output")
            };
            return refuse(CommandStatus::Busy, note);
        }
        if unread > 0 {
            let note = format!(
                "busy: the shell is still reading what was typed before, {unread} bytes are left; \
                 nothing was typed"
            );
            return refuse(CommandStatus::Busy, note);
        }
        let mode = self.pty.mode();
        let answers = state.can_be_asked() && !mode.lines;
        let at_work = match answers {
            true => state.touched,
            false if state.can_be_asked() => state.touched && !self.is_waiting(&state),
            false => self.is_in_doubt(&state) && !self.pty.has_output(),
        };
        if at_work {
            let note = "busy: the shell is still at what was typed before; nothing was typed";
            return refuse(CommandStatus::Busy, note.to_owned());
        }
        if !answers && state.typed {
            let note = "the prompt holds text that was typed and not entered, unless other keys \
                        than backspace and ctrl-u have cleared it, which flow cannot tell; finish \
                        it, or clear it with the key ctrl-c";
            return refuse(CommandStatus::Refused, note.to_owned());
        }
        let mut lines = VecDeque::new();
        let command = command.trim_end_matches('\n');
        let pastes = is_pasted(command) && !mode.lines && state.takes_paste();
        // bash reads on behind a line that it cannot read, whatever was pasted with it.
        let is_one = || belonging(command).contains(&true) || command.contains('!');
        let pasted = pastes && !(shell == Shell::Bash && is_one());
        let paste = |text: &str| format!("{PASTE}{text}\x1b[201~");
        let fills = shell == Shell::Fish && is_pasted(command) && !mode.lines;
        let handed = fills.then(|| Handed::over(self.private.command(), command));
        let handed = handed.flatten();
        if handed.is_some() {
            lines.push_back(Typed::one(FILL.to_owned()));
        } else if pasted {
            lines.push_back(Typed::one(paste(&state.pasting(command))));
        } else if pastes {
            lines = lines_of(command);
            for line in lines.iter_mut().filter(|line| is_pasted(&line.text)) {
                line.text = paste(&line.text);
            }
        } else {
            lines = lines_of(command);
            if !mode.lines && command.contains('\t') {
                let note = "a tab cannot be typed: the shell would complete, and it takes no \
                            pasted text; use spaces";
                return refuse(CommandStatus::Refused, note.to_owned());
            }
        }
        // Whoever edits lines itself takes longer ones; a POSIX shell never does.
        if shell == Shell::Posix
            && let Some(length) = lines
                .iter()
                .map(|line| line.text.len())
                .find(|length| *length >= MAX_LINE)
        {
            let note = format!(
                "a line of {length} bytes cannot be typed: the terminal cuts lines after {}; put \
                 it into a file",
                MAX_LINE - 1
            );
            return refuse(CommandStatus::Refused, note);
        }
        let (sender, receiver) = oneshot::channel();
        state.next_waiter += 1;
        let id = state.next_waiter;
        state.unsettled = false;
        state.expect("", mode, None);
        let mut run = Run::new(lines, keep);
        run.id = id;
        run.handed = handed;
        run.recalls = command.contains('!') && !command.trim_start().starts_with('#');
        run.pasted = pasted && command.contains('\n');
        run.answer = Some(sender);
        state.run = Some(run);
        state.mode = mode;
        if answers {
            // The shell may have put text into its line itself (`print -z`, `commandline`,
            // `histverify`), or not insert what is typed.
            state.outgoing.extend_from_slice(CLEAR);
        }
        state.type_line();
        let outgoing = std::mem::take(&mut state.outgoing);
        let written = self.pty.write(&outgoing);
        if shell == Shell::Posix || state.hidden {
            // No echo makes the reader look when it is time to.
            self.pty.ring();
        }
        if written.is_err() {
            state.run = None;
            let note = "the shell does not read its input";
            return refuse(CommandStatus::Refused, note.to_owned());
        }
        Ok((id, receiver))
    }

    /// Whether more may come behind the prompt: a shell that does not say that a command starts may
    /// show another one for a signal from elsewhere.
    fn is_busy(&self, state: &State) -> bool {
        // Else it has been told to read in another way, and nothing is known.
        let is_usual = state.shell == Some(Shell::Posix) && self.pty.mode().lines;
        is_usual && self.awaits_command(state) == Some(false)
    }

    /// Whether a line that was entered will never be read: ctrl-z and `ctrl-\\` make the terminal throw
    /// away what nobody has read, and stop nobody at a prompt.
    fn has_thrown_away(&self, state: &State) -> bool {
        let entered = state.phase == Phase::Prompt && state.typed && state.entered;
        let is_followed = state.shell == Some(Shell::Posix) && !state.lost;
        let is_last = entered && is_followed && state.interrupt.is_none();
        let is_itself = || process::image(self.pid) == state.image;
        is_last && is_itself() && self.pty.mode().lines && self.awaits_command(state) == Some(true)
    }

    /// Waits until a shell that has shown its prompt takes pasted text, or rests without that.
    pub(in crate::terminal) async fn pasteable(&self, limit: Duration) {
        let until = tokio::time::Instant::now() + limit.min(PATIENCE);
        let takes = || {
            let state = lock(&self.state);
            state.phase != Phase::Prompt || state.takes_paste()
        };
        while !takes() && self.rests() == Some(false) && tokio::time::Instant::now() < until {
            tokio::time::sleep(DOUBT).await;
        }
    }

    /// Waits a moment for a prompt that is about to be shown, and as long as the shell reads what was
    /// typed before. Says whether there is nothing to wait for any more.
    async fn prompt_soon(&self, deadline: tokio::time::Instant) -> bool {
        let mut moments = self.moments.subscribe();
        let mut until = deadline.min(tokio::time::Instant::now() + PATIENCE);
        let mut unread = u64::MAX;
        let mut rest = Rest::default();
        let mut glances = 0;
        let began = tokio::time::Instant::now();
        loop {
            moments.borrow_and_update();
            let now = tokio::time::Instant::now();
            let left = self.pty.unread();
            if left > 0 && left < unread {
                until = deadline.min(now + PATIENCE);
            }
            unread = left;
            let look = {
                let mut state = lock(&self.state);
                if state.exit.is_some() {
                    return true;
                }
                if self.has_thrown_away(&state) {
                    (state.typed, state.entered) = (state.left_over, false);
                }
                let is_entered = state.typed && state.entered;
                match state.phase {
                    // What is read makes no moment where nothing is echoed.
                    Phase::Prompt if left > 0 => DOUBT,
                    // Between two lines that it edits, the terminal reads lines for a moment.
                    Phase::Prompt if state.can_be_asked() && (!is_entered || self.edits()) => {
                        if !state.touched || self.is_waiting(&state) {
                            return true;
                        }
                        DOUBT
                    }
                    // That the shell falls asleep makes no moment of its own.
                    Phase::Prompt if !is_entered && self.is_in_doubt(&state) => DOUBT,
                    Phase::Prompt if !is_entered => {
                        // Others may write without an end.
                        if now >= began + QUIET || !self.is_busy(&state) {
                            return true;
                        }
                        DOUBT
                    }
                    Phase::Running | Phase::Ended if self.has_lost_prompt(&state) => return true,
                    Phase::Ended if state.missed => DOUBT,
                    Phase::Starting | Phase::Ended => PATIENCE,
                    // What was sent right before may have told a program to end. Who does nothing
                    // any more does not end either; who only pauses, between two programs, may.
                    Phase::Prompt | Phase::Running => {
                        let asks = self.pty.foreground().is_some_and(process::reads_terminal);
                        let time = if asks { QUIET } else { PAUSE };
                        if rest.lasts_for(time, self.asleep()) && self.foreground().is_some() {
                            return true;
                        }
                        QUIET
                    }
                }
            };
            if now >= until {
                return false;
            }
            if look == DOUBT && glances < GLANCES {
                glances += 1;
                // Whoever takes what the shell has written needs the state for it.
                let mut turns = 0..100;
                while self.pty.has_output() && turns.next().is_some() {
                    std::thread::yield_now();
                }
                tokio::task::yield_now().await;
                continue;
            }
            let _ = tokio::time::timeout_at(until.min(now + look), moments.changed()).await;
        }
    }
}

/// That a shell has become another program, and how to go on with that.
fn replacement(pid: i32) -> String {
    let name = process::group_name(pid).unwrap_or_else(|| "a program".to_owned());
    let way = match program::shell(Path::new(&name)) {
        Some(_) => format!(
            ", which was not opened by flow and tells nothing of its commands: use send_input and \
             await_output here, or open_terminal with `shell: {name}` for run_command"
        ),
        None => "; use send_input and await_output".to_owned(),
    };
    format!("the shell has been replaced by `{name}`{way}")
}

/// The lines of a command, each to be typed when the shell asks for it.
fn lines_of(command: &str) -> VecDeque<Typed> {
    let belonging = std::iter::once(false).chain(belonging(command));
    let lines = command.split('\n').map(str::to_owned).zip(belonging);
    lines
        .map(|(text, belongs)| Typed { text, belongs })
        .collect()
}

/// Whether a command is pasted where the shell takes that.
fn is_pasted(command: &str) -> bool {
    command.contains(['\n', '\t']) || command.len() > LONG
}

/// Why a command cannot be typed at all.
fn refusal(shell: Shell, command: &str) -> Option<Ran> {
    let control = |character: &char| character.is_control() && !matches!(character, '\n' | '\t');
    if let Some(found) = command.chars().find(control) {
        let note = format!(
            "the command contains the control character {:?}, which the shell would take for a \
             key; write it as an escape of the shell",
            found
        );
        return Some(Ran::not(CommandStatus::Refused, note));
    }
    let nothing = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#')
    };
    // These run a comment like a command, or say nothing at all. zsh reads comments as commands
    // unless it is told otherwise, and bash tells.
    if matches!(shell, Shell::Posix | Shell::Fish) && command.lines().all(nothing)
        || command.trim().is_empty()
    {
        let note = "there was no command to run";
        return Some(Ran::not(CommandStatus::NoCommand, note));
    }
    None
}
