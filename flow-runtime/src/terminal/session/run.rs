//! Commands that are typed at a shell's prompt and followed to their end.

use std::path::Path;
use std::time::{Duration, Instant};

use flow_model::tools::CommandStatus;
use tokio::sync::oneshot;

use super::between::Way;
use super::script::{CLEAR, PASTE, PASTED, Script};
use super::{Interrupt, QUIET, State};
use crate::terminal::capture::{Capture, Shown};
use crate::terminal::echo::Echoer;
use crate::terminal::process;
use crate::terminal::program::{self, Shell};
use crate::terminal::pty::Mode;

/// How often a shell that says nothing is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// The key that makes a terminal that edits lines itself clear one: ctrl-u.
const KILL: &[u8] = b"\x15";

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
    /// The shell said that it wants more.
    continued: bool,
    /// What is typed, less what was.
    script: Script,
    /// The line that was typed last.
    line: String,
    /// Something was typed for what it runs while there were such lines: the shell may find a part of it.
    mixed: Option<Way>,
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
    pub(super) fn not(status: CommandStatus, note: impl Into<String>) -> Ran {
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
    /// Typed so, of whose output so many bytes are kept.
    pub(super) fn new(
        id: u64,
        script: Script,
        keep: usize,
        answer: Option<oneshot::Sender<Ran>>,
    ) -> Run {
        Run {
            id,
            capture: Capture::new(keep),
            capturing: false,
            line_at: 0,
            aside: Capture::new(keep),
            listening: false,
            unrun: false,
            continued: false,
            script,
            line: String::new(),
            mixed: None,
            held: false,
            commanded: false,
            interrupted: false,
            stopped: false,
            typed: Instant::now(),
            started: None,
            took: None,
            code: None,
            look_at: None,
            answer,
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
        !self.script.lines.is_empty()
    }

    pub(super) fn lines_left(&self) -> usize {
        self.script.lines.len()
    }

    /// Whether the shell said that a command starts, or had no way to.
    pub(super) fn has_begun(&self) -> bool {
        self.commanded
    }

    /// Whether somebody is told how it went.
    pub(super) fn has_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// How far it has come, when nobody waits for it any more and it goes on.
    pub(super) fn left(&mut self, note: String) -> Ran {
        self.answer = None;
        let all = self.capture.clone();
        let ran = self.ran(CommandStatus::TimedOut, Some(note));
        self.capture = all;
        ran
    }

    /// Nobody waits for it any more. What it has typed the shell may have yet to read.
    pub(super) fn forsake(&mut self) {
        if let Some(handed) = &mut self.script.handed {
            handed.stay();
        }
    }

    /// Whether there are lines yet to be typed that somebody still wants.
    pub(super) fn wants_lines(&self) -> bool {
        self.has_lines() && !self.stopped
    }

    /// All keys that were typed for what it runs were read.
    pub(super) fn unmix(&mut self) {
        self.mixed = None;
    }

    /// Which of all commands it is.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Whether a line is held back until the shell rests.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Something is typed for what it runs. What was before has been read by then, and a single key is by
    /// who waits for it.
    pub(super) fn mix(&mut self, way: Way) {
        self.mixed = Some(way).filter(|way| *way != Way::Key && self.has_lines());
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
            self.asked_by_bash();
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

    /// Whether the line was shown whole, so that what comes is what the shell says to it.
    fn has_word(&mut self) -> bool {
        self.aside.unready();
        self.aside.has_begun()
    }

    /// The shell has an exit code although no command started: it could not read the line, or there
    /// was nothing in it. In the latter case it says nothing, and the code is the one before.
    pub(super) fn judged(&mut self, code: i32, before: Option<i32>, hidden: bool) {
        if !std::mem::take(&mut self.listening) || !self.has_word() {
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
        if !(lost || refuses) || !self.listening || !self.has_word() {
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

    /// bash asks for more. What it has said before is the line, which `set -v` repeats, or that it has found
    /// no earlier command for a `!` and left the line out: the rest must not be run without it.
    fn asked_by_bash(&mut self) {
        if !self.listening || !self.has_word() {
            return;
        }
        self.aside.unprompt();
        let (said, _) = self.aside.output();
        let said = said.trim_ascii();
        if said == self.line.trim().as_bytes() {
            self.capture.append(&mut self.aside);
        } else if self.script.recalls && !said.is_empty() {
            self.capture.append(&mut self.aside);
            self.script.lines.clear();
            self.unrun = true;
        }
    }

    /// A command is about to start. What the shell has said before is its word on a line before it
    /// that it could not read; what it shows now is no output.
    pub(super) fn starting(&mut self) {
        if std::mem::take(&mut self.listening) && self.has_word() {
            self.capture.append(&mut self.aside);
        }
        self.capturing = false;
    }

    pub(super) fn started(&mut self, shell: Shell, now: Instant) {
        self.commanded = true;
        self.script.handed = None;
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

    pub(super) fn ran(&mut self, status: CommandStatus, note: Option<String>) -> Ran {
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
        self.expect("", super::Echoed::Typed, mode, None);
        self.run = Some(Run::new(1, Script::by_line(command), 100, None));
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
        } else if run.unrun && !run.script.recalls {
            let note = "the shell could not read the command, as `output` says, and its exit code is not \
                        known; bash may take the next line for the rest of it";
            self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
        } else if run.unrun && run.commanded {
            let note = "the exit code is not known: the rest of the command was not run, because a `!` in \
                        it stands for no earlier command";
            self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
        } else if run.unrun
            || !run.commanded && run.script.recalls && self.shell == Some(Shell::Zsh)
        {
            let note = "the shell did not run the command: a `!` stands for an earlier command \
                        unless it is in single quotes or behind a backslash, or `set +H` (in zsh \
                        `setopt no_bang_hist`) has switched that off; there is none, as `output` \
                        says then, or the option `histverify` has it shown at the prompt, where the \
                        key enter runs it";
            self.finish_run(CommandStatus::Refused, Some(note.to_owned()));
        } else if run.stopped && !run.script.lines.is_empty() {
            self.run_stopped();
        } else if run.script.lines.front().is_some_and(|line| line.belongs) {
            self.run_torn();
        } else if run.held {
            self.run_disturbed();
        } else if !run.script.lines.is_empty() {
            self.next_line();
        } else if !run.commanded && run.stopped {
            let note = "the command was given up with ctrl-c before it began";
            self.finish_run(CommandStatus::Refused, Some(note.to_owned()));
        } else if !run.commanded {
            let note = "there was no command to run";
            self.finish_run(CommandStatus::NoCommand, Some(note.to_owned()));
        } else {
            let note = run.code.is_none().then(|| {
                let mut note = "the exit code is not known: the shell's prompt hook (such as \
                                PROMPT_COMMAND) was replaced"
                    .to_owned();
                if run.script.pasted {
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

    /// Somebody has given the rest up: how far it came is not how it went.
    fn run_stopped(&mut self) {
        if let Some(run) = &mut self.run {
            run.code = run.code.filter(|code| *code != 0);
        }
        let note =
            "the command was interrupted; the lines of it that were not begun were not typed";
        self.finish_run(CommandStatus::Finished, Some(note.to_owned()));
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

    /// The shell has read what flow did not type: what a program has left of its input. What comes is not
    /// the command's.
    pub(super) fn run_disturbed(&mut self) {
        if let Some(run) = &mut self.run {
            run.code = None;
        }
        let note = "the shell has got what was typed with send_input and no program of the command has read, \
                    or may have; the lines of the command that were not begun were not typed";
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
        } else if !run.script.lines.is_empty() {
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
            // Nothing clears what is left of keys in a terminal that edits lines.
            Some(run) if run.mixed == Some(Way::Keys) && self.mode.lines => self.run_disturbed(),
            Some(run) if run.mixed.is_some() => {
                run.held = true;
                run.look_at = Some(Instant::now());
            }
            Some(_) | None => self.type_line(),
        }
    }

    /// Types the line that was held back, at a prompt where nothing else is left but half a line.
    pub(super) fn type_held(&mut self) {
        if let Some(run) = &mut self.run {
            (run.mixed, run.held) = (None, false);
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
    pub(super) fn type_line(&mut self) {
        let shell = self.shell;
        let Some(run) = &mut self.run else {
            return;
        };
        let Some(line) = run.script.lines.pop_front() else {
            return;
        };
        let line = line.text;
        let bare = line.strip_prefix(PASTE).unwrap_or(&line);
        run.line = bare.trim_end_matches(PASTED).to_owned();
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
                    _ => line.starts_with(PASTE) || run.script.pasted,
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

/// That a shell has become another program, and how to go on with that.
pub(super) fn replacement(pid: i32) -> String {
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
