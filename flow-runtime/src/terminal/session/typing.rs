//! What is typed, and the echo that is expected of it.

use std::borrow::Cow;
use std::sync::MutexGuard;
use std::time::Instant;

use flow_model::tools::Key;

use super::between::{Passage, Way};
use super::interrupt::Interrupt;
use super::watching::LONG_QUIET;
use super::{Line, Phase, Session, State};
use crate::terminal::echo::Echoer;
use crate::terminal::error::Error;
use crate::terminal::program::Shell;
use crate::terminal::pty::{MAX_LINE, MAX_WAITING, Mode};
use crate::terminal::{key, lock};

/// Keys for which a terminal that reads lines signals whoever is in front: ctrl-c, ctrl-z, `ctrl-\\`.
const SIGNALS: [char; 3] = ['\x03', '\x1a', '\x1c'];

/// An input that was written to the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::terminal) struct Sent {
    /// How many bytes wait for a program that does not read.
    pub(in crate::terminal) waiting: usize,
    /// Who got several lines at once.
    pub(in crate::terminal) pasted: Option<Pasted>,
}

/// Who takes a paste.
#[derive(Clone, Copy, Debug)]
pub(in crate::terminal) enum Pasted {
    /// A shell at its prompt, which reads all of it before it runs a line.
    ToShell,
    ToProgram,
}

/// What of an input a line editor is expected to show.
#[derive(Debug)]
pub(in crate::terminal) enum Echoed {
    /// What is typed.
    Typed,
    /// This line, of which the first key is typed; the others follow one by one.
    Line(String),
    /// Nothing more: it is expected since the first key of the line.
    Before,
}

impl Session {
    /// Whether who reads what is typed takes pasted text.
    pub(in crate::terminal) fn pastes(&self) -> bool {
        lock(&self.state).takes_paste()
    }

    /// Types text and presses keys, whoever reads them.
    pub(in crate::terminal) fn send(&self, text: &str, keys: &[Key]) -> Result<Sent, Error> {
        self.type_in(lock(&self.state), text, keys, Echoed::Typed)
    }

    /// Somebody is about to press ctrl-c: no line of a command is typed before that any more.
    pub(in crate::terminal) fn stop_lines(&self) {
        if let Some(run) = &mut lock(&self.state).run {
            run.stopped |= run.has_lines();
        }
    }

    /// The same, if the way is still open; `None` when it is not.
    pub(in crate::terminal) fn pass(
        &self,
        (way, passage): (Way, &mut Passage<'_>),
        text: &str,
        keys: &[Key],
        echoed: Echoed,
    ) -> Option<Result<Sent, Error>> {
        let mut state = lock(&self.state);
        match passage.way_in(&state)? {
            Ok(open) if open != way => return None,
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        if let Some(run) = &mut state.run {
            run.mix(way);
        }
        state.goes_on = passage.begins();
        Some(self.type_in(state, text, keys, echoed))
    }

    fn type_in(
        &self,
        mut state: MutexGuard<'_, State>,
        text: &str,
        keys: &[Key],
        echoed: Echoed,
    ) -> Result<Sent, Error> {
        // What is not typed is not gone on with.
        let goes_on = std::mem::take(&mut state.goes_on);
        if let Some(exit) = state.exit {
            return Err(Error::Ended(exit.words()));
        }
        let mode = self.pty.mode();
        let mut bytes = Vec::new();
        let mut typed = text.to_owned();
        let inner = text.trim_end_matches('\n');
        let is_several = inner.contains('\n') && !inner.contains('\x1b');
        let at_prompt = state.shell.is_some() && state.phase == Phase::Prompt;
        if at_prompt && !(state.typed && state.entered) {
            state.left_raw = state.shell == Some(Shell::Posix) && !mode.lines;
        }
        let reads_lines = mode.lines || state.left_raw && self.is_in_front();
        let entering = |text| state.entering(text, reads_lines);
        let pasted =
            (is_several && !mode.lines && state.takes_paste()).then_some(match at_prompt {
                true => Pasted::ToShell,
                false => Pasted::ToProgram,
            });
        if pasted.is_some() {
            let entered = &text[inner.len()..];
            bytes.extend_from_slice(b"\x1b[200~");
            bytes.extend_from_slice(state.pasting(inner).as_bytes());
            bytes.extend_from_slice(b"\x1b[201~");
            bytes.extend_from_slice(entering(entered).as_bytes());
            typed = inner.replace('\n', "\r") + entered;
        } else {
            bytes.extend_from_slice(entering(text).as_bytes());
        }
        for key in keys {
            let pressed = key::bytes(*key, state.screen.has_application_cursor());
            typed.push_str(match &*pressed {
                b"\r" => "\n",
                other => std::str::from_utf8(other).unwrap_or_default(),
            });
            bytes.extend_from_slice(&pressed);
        }
        if mode.lines {
            let longest = bytes
                .split(|byte| matches!(byte, b'\n' | b'\r'))
                .map(<[u8]>::len)
                .max();
            if let Some(length) = longest.filter(|length| *length >= MAX_LINE) {
                return Err(Error::LongLine {
                    length,
                    limit: MAX_LINE - 1,
                });
            }
        }
        if bytes.len() > MAX_WAITING {
            return Err(Error::LongInput {
                length: bytes.len(),
                limit: MAX_WAITING,
            });
        }
        let unread = |waiting| Error::Unread {
            program: self.foreground().unwrap_or_else(|| "?".to_owned()),
            waiting,
        };
        let waiting = self.pty.waiting();
        if waiting + bytes.len() > MAX_WAITING {
            return Err(unread(waiting));
        }
        state.unsettled = self.is_in_doubt(&state);
        // A shell that rests at its prompt has read all that was typed ahead.
        state.ahead &= state.unsettled || state.phase != Phase::Prompt;
        state.goes_on = goes_on;
        state.expect(&typed, echoed, mode, self.pty.foreground());
        let written = self.pty.write(&bytes);
        drop(state);
        // Held text, if any, is let go in time.
        self.pty.ring();
        let waiting = written.map_err(unread)?;
        Ok(Sent { waiting, pasted })
    }
}

impl State {
    /// Text as it is typed. Who reads keys takes the key Enter for the end of a line, and the byte for
    /// another key, which may mean anything. What follows a line may be for somebody who reads lines
    /// by then, and to whom a key that was pressed before is no line end; a shell and who fills the screen
    /// read on.
    fn entering<'a>(&self, text: &'a str, reads_lines: bool) -> Cow<'a, str> {
        let edits = matches!(self.shell, Some(Shell::Bash | Shell::Zsh | Shell::Fish));
        let reads_on = edits && self.phase == Phase::Prompt || self.screen.is_alternate();
        match (reads_lines, reads_on) {
            (true, _) => text.into(),
            (false, true) => text.replace('\n', "\r").into(),
            (false, false) => text.replacen('\n', "\r", 1).into(),
        }
    }

    /// Text as it is pasted, by the key at the end of a line. fish runs a script for every one of these,
    /// and takes the byte as it is.
    pub(super) fn pasting<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.shell == Some(Shell::Fish) && self.phase == Phase::Prompt {
            true => text.into(),
            false => text.replace('\n', "\r").into(),
        }
    }

    /// Prepares for the echo of what is about to be typed, and puts the mark where what it brings
    /// about begins. `\r` stands for a line end in pasted text, which enters nothing.
    pub(super) fn expect(
        &mut self,
        typed: &str,
        echoed: Echoed,
        mode: Mode,
        addressee: Option<i32>,
    ) {
        let shown = typed;
        let typed = &*self.meant(typed, mode);
        self.flush_clean();
        let now = Instant::now();
        let at_prompt = matches!(self.phase, Phase::Prompt) && self.shell.is_some();
        // What was entered before has not begun: this is for what that starts.
        let entered = at_prompt && (self.typed && self.entered || self.unsettled);
        let is_fresh = at_prompt && !entered;
        let before = self.typed_at.replace(now);
        // Else it has yet to be shown, and this behind it.
        let is_shown = before.is_none_or(|before| now - before >= LONG_QUIET);
        let is_within = matches!(echoed, Echoed::Before);
        if is_fresh || is_shown && !is_within {
            self.release();
            self.echo.forget(&mut String::new());
            self.edited_later = false;
        }
        if typed.contains('\n') {
            self.entered_at = Some(now);
        }
        if mode.lines && typed.contains(SIGNALS) {
            self.signalled_at = Some(now);
        }
        self.addressee = addressee;
        self.input = self.stream.end();
        if !std::mem::take(&mut self.goes_on) {
            self.call = self.input;
            self.consumed = self.consumed.max(self.input);
        }
        let several = typed.contains('\r') || typed.matches('\n').nth(1).is_some();
        self.ahead = match typed.is_empty() {
            true => self.ahead && !at_prompt,
            // What was typed ahead before may have yet to be read.
            false => self.ahead || !is_fresh || several,
        };
        // Whose it is shows only when the shell reads its next key. fish may lose its prompt by it.
        let unsure = !is_fresh || self.shell == Some(Shell::Fish);
        self.missed |= typed.contains('\x03') && unsure && self.shell.is_some();
        self.touched |= !typed.is_empty();
        if let Some(run) = &mut self.run {
            run.stopped |= typed.contains('\x03');
        }
        if typed.is_empty() {
            // A command is typed by other means.
            self.line = Line::Unknown;
        } else {
            self.lengthen(typed, mode, is_fresh);
        }
        if at_prompt && !typed.is_empty() {
            self.uninterrupted();
            let interrupts = typed.contains('\x03');
            self.interrupt = interrupts.then(|| Interrupt::typed(now));
        }
        if is_fresh && self.shell != Some(Shell::Posix) {
            // Where nothing is shown, nothing says either that the command starts.
            self.typing = !self.hidden;
        } else if mode.echo {
            // The shell waits for a line; what comes after it is for whoever reads next.
            let waited = match shown.find('\n') {
                Some(end) if is_fresh => end + 1,
                _ => 0,
            };
            let (line, ahead) = shown.split_at(waited);
            self.echo.expect(line, Echoer::Kernel);
            self.echo.expect(ahead, Echoer::KernelAhead);
        } else if !mode.lines {
            // A shell between two prompts shows it at the next one. One that runs a command and
            // edits lines does so for that command.
            let shell = self.shell.is_some() && addressee == Some(self.pid);
            let draws = self.screen.wants_bracketed_paste() && !self.screen.is_alternate();
            let typed = match &echoed {
                Echoed::Typed => typed,
                Echoed::Line(line) => line.as_str(),
                Echoed::Before => return,
            };
            if shell && self.phase != Phase::Running {
                self.echo.expect(typed, Echoer::Later);
            } else if draws && !self.echo.is_drawn() {
                self.echo.expect_drawing(typed);
            } else {
                self.echo.expect(typed, Echoer::Editor);
            }
        }
    }

    /// What was typed, with every key that a terminal which reads lines takes for a character behind
    /// ctrl-v as one.
    fn meant<'a>(&mut self, typed: &'a str, mode: Mode) -> Cow<'a, str> {
        if !mode.lines {
            self.literal = false;
            return typed.into();
        }
        if !self.literal && !typed.contains('\x16') {
            return typed.into();
        }
        let literal = &mut self.literal;
        let mean = |key| match std::mem::replace(literal, !*literal && key == '\x16') {
            true => '^',
            false => key,
        };
        typed.chars().map(mean).collect::<String>().into()
    }

    /// Follows what the line at the prompt holds, or the next one will.
    fn lengthen(&mut self, typed: &str, mode: Mode, is_fresh: bool) {
        // Nothing is left of what stands before these.
        const ENDS: [char; 5] = ['\n', '\x03', '\x04', '\x1a', '\x1c'];
        let ends = typed.contains(ENDS);
        let rest = typed.rsplit(ENDS).next();
        // Who reads keys, and not lines, has taken them from a shell that does not.
        let is_taken = self.shell == Some(Shell::Posix) && !mode.lines;
        self.left_over = match ends {
            true => rest.is_some_and(|rest| !rest.is_empty()),
            false => !is_fresh,
        } && !is_taken;
        if is_fresh {
            let line = match self.typed {
                true => self.line,
                false => Line::EMPTY,
            };
            self.line = line.after(typed, self.shell);
            self.typed = self.line != Line::EMPTY;
            // The others stop nothing at a prompt, and bring none.
            self.entered = typed.contains(['\n', '\x03', '\x04']);
            self.released = false;
            self.parted = false;
        }
    }
}
