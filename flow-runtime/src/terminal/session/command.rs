//! How a command gets to a shell's prompt, and its answer back.

use std::sync::Arc;
use std::time::Duration;

use flow_model::tools::CommandStatus;
use tokio::sync::oneshot;

use super::place::{Looks, Rest};
use super::run::{Ran, Run, replacement};
use super::script::{CLEAR, Handed, Script, is_pasted, is_read_by_line};
use super::{Echoed, Phase, QUIET, Session, State};
use crate::terminal::program::Shell;
use crate::terminal::pty::{MAX_LINE, MAX_WAITING};
use crate::terminal::scanner::Held;
use crate::terminal::{lock, process};

/// How long a shell that is about to show its prompt is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a program that was told to end may do nothing before it does: vim gives the terminal 0.1 s
/// to answer.
const PAUSE: Duration = Duration::from_millis(250);

/// Ends a run when whoever waits for it goes away.
struct Waiting<'a, F: Fn(&Session, bool, Ran)> {
    session: &'a Session,
    id: u64,
    given_up: F,
}

impl<F: Fn(&Session, bool, Ran)> Drop for Waiting<'_, F> {
    fn drop(&mut self) {
        let mut state = lock(&self.session.state);
        // One that was told how far it has come goes on.
        let is_own = |run: &mut Run| run.id() == self.id && run.has_answer();
        let own = state.run.take_if(is_own);
        state.touched |= own.is_some();
        drop(state);
        if let Some(mut run) = own {
            run.forsake();
            let ran = run.ran(CommandStatus::TimedOut, None);
            (self.given_up)(self.session, run.has_lines(), ran);
        }
    }
}

impl Session {
    /// Runs a command at the shell's prompt. `keep` bounds the bytes of output that are kept;
    /// `given_up` is done when whoever waits goes away while the command runs; it is told whether lines
    /// of it are left, which nobody will type, and how far the command has come.
    pub(in crate::terminal) async fn run(
        self: &Arc<Self>,
        command: &str,
        limit: Duration,
        keep: usize,
        given_up: impl Fn(&Session, bool, Ran),
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
        let front = self.foreground().unwrap_or_else(|| "?".to_owned());
        let run = {
            let mut state = lock(&self.state);
            // It may have finished in the meantime.
            if let Ok(ran) = receiver.try_recv() {
                return ran;
            }
            if let Some(run) = state.run.as_mut().filter(|run| run.has_begun())
                && run.wants_lines()
            {
                return run.left(format!(
                    "the command is still running; in front: {front}; {} of its lines are yet to be \
                     typed, each when the shell asks for it",
                    run.lines_left()
                ));
            }
            state.touched = true;
            state.run.take()
        };
        let note = match &run {
            Some(run) if !run.has_begun() => match self.pty.unread() {
                0 => format!("the command has not begun; in front: {front}, which has read it"),
                unread => format!(
                    "the command has not begun: {front} is still reading it, {unread} bytes are \
                     left; the key ctrl-c gives it up"
                ),
            },
            Some(_) | None => format!("the command is still running; in front: {front}"),
        };
        match run {
            Some(mut run) => {
                run.forsake();
                run.ran(CommandStatus::TimedOut, Some(note))
            }
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
        if let Some(run) = &state.run {
            let note = match run.has_answer() {
                true => "busy: another command is being run in this session".to_owned(),
                false => format!(
                    "busy: a command that was not waited for any longer goes on, and {} of its lines \
                     are yet to be typed; the key ctrl-c ends it",
                    run.lines_left()
                ),
            };
            return refuse(CommandStatus::Busy, note);
        }
        let unread = self.pty.unread();
        // A POSIX shell has no way to tell that what was entered starts.
        let entered = shell == Shell::Posix && state.typed && state.entered && unread == 0;
        if !in_front || state.phase != Phase::Prompt || entered {
            let (lost, is_starting) = (state.lost, state.phase == Phase::Starting);
            let image = process::image(self.pid);
            let replaced = match (&image, &state.image) {
                (Some(image), Some(own)) => image != own,
                // Its startup files may have done that.
                (Some(image), None) => !self.program.is_run_as(image),
                (None, _) => false,
            };
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
        let command = command.trim_end_matches('\n');
        let edits = !mode.lines;
        let is_long = edits && is_pasted(command);
        let is_handed = match shell {
            Shell::Fish => edits,
            // Of several lines, the end of what it shows is known by its word on pastes.
            Shell::Zsh => answers && (state.takes_paste() || !command.contains('\n')),
            Shell::Bash | Shell::Posix => false,
        };
        let handed = is_handed
            .then(|| Handed::over(self.private.command(), command))
            .flatten();
        let is_filled = handed.is_some();
        let script = match (handed, is_long && state.takes_paste()) {
            (Some(file), _) => Script::handed(command, file),
            (None, true) if is_read_by_line(shell, command) => Script::pasted_by_line(command),
            (None, true) => Script::whole(command, &state.pasting(command)),
            (None, false) if edits && command.contains('\t') => {
                let note = "a tab cannot be typed: the shell would complete, and it takes no \
                            pasted text; use spaces";
                return refuse(CommandStatus::Refused, note.to_owned());
            }
            (None, false) => Script::by_line(command),
        };
        // Whoever edits lines itself takes longer ones; a POSIX shell never does.
        if shell == Shell::Posix
            && let Some(length) = script
                .lines
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
        state.expect("", Echoed::Typed, mode, None);
        state.run = Some(Run::new(id, script, keep, Some(sender)));
        state.mode = mode;
        // What zsh fills its line from takes the place of all that; fish may be searching its history.
        let fills = shell == Shell::Zsh && is_filled;
        if answers && !fills {
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
            let note = match outgoing.len() > MAX_WAITING {
                true => format!(
                    "a command of {} bytes cannot be typed: {MAX_WAITING} are the most; put it into a file",
                    command.len()
                ),
                false => "the shell does not read its input".to_owned(),
            };
            return refuse(CommandStatus::Refused, note);
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
        let mut moments = self.moments.subscribe();
        let mut looks = Looks::default();
        while !takes() && self.rests() == Some(false) && tokio::time::Instant::now() < until {
            looks.pause(&mut moments, until).await;
        }
    }

    /// Waits a moment for a prompt that is about to be shown, and as long as the shell reads what was
    /// typed before. Says whether there is nothing to wait for any more.
    async fn prompt_soon(&self, deadline: tokio::time::Instant) -> bool {
        let mut moments = self.moments.subscribe();
        let mut until = deadline.min(tokio::time::Instant::now() + PATIENCE);
        let mut unread = u64::MAX;
        let mut rest = Rest::default();
        let mut looks = Looks::default();
        let began = tokio::time::Instant::now();
        loop {
            moments.borrow_and_update();
            let now = tokio::time::Instant::now();
            let left = self.pty.unread();
            if left > 0 && left < unread {
                until = deadline.min(now + PATIENCE);
            }
            unread = left;
            let pause = {
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
                    Phase::Prompt if left > 0 => None,
                    // Between two lines that it edits, the terminal reads lines for a moment.
                    Phase::Prompt if state.can_be_asked() && (!is_entered || self.edits()) => {
                        if !state.touched || self.is_waiting(&state) {
                            return true;
                        }
                        None
                    }
                    // That the shell falls asleep makes no moment of its own.
                    Phase::Prompt if !is_entered && self.is_in_doubt(&state) => None,
                    Phase::Prompt if !is_entered => {
                        // Others may write without an end.
                        if now >= began + QUIET || !self.is_busy(&state) {
                            return true;
                        }
                        None
                    }
                    Phase::Running | Phase::Ended if self.has_lost_prompt(&state) => return true,
                    Phase::Ended if state.missed => None,
                    Phase::Starting | Phase::Ended => Some(PATIENCE),
                    // What was sent right before may have told a program to end. Who does nothing
                    // any more does not end either; who only pauses, between two programs, may.
                    Phase::Prompt | Phase::Running => {
                        let asks = self.pty.foreground().is_some_and(process::reads_terminal);
                        let time = if asks { QUIET } else { PAUSE };
                        if rest.lasts_for(time, self.asleep()) && self.foreground().is_some() {
                            return true;
                        }
                        Some(QUIET)
                    }
                }
            };
            if now >= until {
                return false;
            }
            if let Some(pause) = pause {
                let _ = tokio::time::timeout_at(until.min(now + pause), moments.changed()).await;
                continue;
            }
            // Whoever takes what the shell has written needs the state for it.
            let mut turns = 0..100;
            while self.pty.has_output() && turns.next().is_some() {
                std::thread::yield_now();
            }
            looks.pause(&mut moments, until).await;
        }
    }
}

/// Why a command cannot be typed at all.
fn refusal(shell: Shell, command: &str) -> Option<Ran> {
    let control = |character: &char| character.is_control() && !matches!(character, '\n' | '\t');
    if command.contains("\r\n") {
        let note = "the lines of the command end with `\\r\\n`; end them with `\\n` alone";
        return Some(Ran::not(CommandStatus::Refused, note));
    }
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
