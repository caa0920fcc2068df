//! What is typed, and the echo that is expected of it.

use std::time::Instant;

use flow_model::tools::Key;

use super::interrupt::Interrupt;
use super::{Line, Phase, Session, State};
use crate::terminal::echo::Echoer;
use crate::terminal::error::Error;
use crate::terminal::program::Shell;
use crate::terminal::pty::{MAX_LINE, MAX_WAITING, Mode};
use crate::terminal::{key, lock};

impl Session {
    /// Types text and presses keys.
    pub(in crate::terminal) fn send(&self, text: &str, keys: &[Key]) -> Result<usize, Error> {
        let mut state = lock(&self.state);
        if let Some(exit) = state.exit {
            return Err(Error::Ended(exit.words()));
        }
        let mode = self.pty.mode();
        let mut bytes = Vec::new();
        let mut typed = text.to_owned();
        let inner = text.trim_end_matches('\n');
        if inner.contains('\n') && !inner.contains('\x1b') && !mode.lines && state.takes_paste() {
            let (pasted, entered) = (inner.replace('\n', "\r"), &text[inner.len()..]);
            bytes.extend_from_slice(b"\x1b[200~");
            bytes.extend_from_slice(pasted.as_bytes());
            bytes.extend_from_slice(b"\x1b[201~");
            bytes.extend_from_slice(entered.as_bytes());
            typed = pasted + entered;
        } else {
            bytes.extend_from_slice(text.as_bytes());
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
        state.expect(&typed, mode, self.pty.foreground());
        let written = self.pty.write(&bytes);
        drop(state);
        // Held text, if any, is let go in time.
        self.pty.ring();
        written.map_err(unread)
    }
}

impl State {
    /// Prepares for the echo of what is about to be typed, and puts the mark where what it brings
    /// about begins. `\r` stands for a line end in pasted text, which enters nothing.
    pub(super) fn expect(&mut self, typed: &str, mode: Mode, addressee: Option<i32>) {
        self.flush_clean();
        self.release();
        self.echo.forget(&mut String::new());
        self.edited_later = false;
        if typed.contains('\n') {
            self.entered_at = Some(Instant::now());
        }
        self.addressee = addressee;
        self.input = self.stream.end();
        self.consumed = self.consumed.max(self.input);
        let at_prompt = matches!(self.phase, Phase::Prompt) && self.shell.is_some();
        let lines = typed.trim_end_matches('\n').contains(['\n', '\r']);
        self.ahead = match typed.is_empty() {
            true => self.ahead && !at_prompt,
            false => !at_prompt || lines || self.typed && self.entered,
        };
        // Whose it is shows only when the shell reads its next key. fish may lose its prompt by it.
        let entered = self.typed && self.entered;
        let unsure = !at_prompt || entered || self.shell == Some(Shell::Fish);
        self.missed |= typed.contains('\x03') && unsure && self.shell.is_some();
        if typed.is_empty() {
            // A command is typed by other means.
            self.line = Line::Unknown;
        }
        if at_prompt && !typed.is_empty() {
            let line = if self.typed { self.line } else { Line::EMPTY };
            self.line = line.after(typed, self.shell);
            self.typed = self.line != Line::EMPTY;
            self.released = false;
            // Nothing is left of what stands before these.
            const ENDS: [char; 5] = ['\n', '\x03', '\x04', '\x1a', '\x1c'];
            // A POSIX shell does not tell that what was entered has begun: this may be for that.
            let is_ahead = self.shell == Some(Shell::Posix) && entered;
            self.entered = typed.contains(ENDS) || is_ahead;
            let rest = typed.rsplit(ENDS).next();
            self.left_over = !is_ahead && self.entered && rest.is_some_and(|rest| !rest.is_empty());
            self.uninterrupted();
            self.interrupt = typed
                .contains('\x03')
                .then(|| Interrupt::typed(Instant::now()));
        }
        if at_prompt && self.shell != Some(Shell::Posix) {
            self.typing = true;
        } else if mode.echo {
            // The shell waits for a line; what comes after it is for whoever reads next.
            let waited = match typed.find('\n') {
                Some(end) if at_prompt => end + 1,
                _ => 0,
            };
            let (line, ahead) = typed.split_at(waited);
            self.echo.expect(line, Echoer::Kernel);
            self.echo.expect(ahead, Echoer::KernelAhead);
        } else if !mode.lines {
            // A shell between two prompts shows it at the next one. One that runs a command and
            // edits lines does so for that command.
            let shell = self.shell.is_some() && addressee == Some(self.pid);
            if shell && self.phase != Phase::Running {
                self.echo.expect(typed, Echoer::Later);
            } else if self.screen.wants_bracketed_paste() && !self.screen.is_alternate() {
                self.echo.expect_drawing(typed);
            } else {
                self.echo.expect(typed, Echoer::Editor);
            }
        }
    }
}
