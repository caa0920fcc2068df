//! The thread that takes what a terminal gives, and answers what it is asked.

use std::io::{ErrorKind, PipeReader};
use std::sync::MutexGuard;
use std::thread::Scope;
use std::time::{Duration, Instant};

use super::interrupt::Interrupt;
use super::run::Run;
use super::unmarked::Unmarked;
use super::{Moment, Phase, QUIET, Session, State};
use crate::terminal::ahead::MUCH;
use crate::terminal::lag::{Late, lag};
use crate::terminal::program::Shell;
use crate::terminal::{lock, process};

/// Bytes taken at a time.
const BATCH: usize = 64 * 1024;
/// How often a silent session is looked at while something in it is at work.
const GLANCE: Duration = Duration::from_millis(10);
/// How often a shell is looked at that is about to rest.
const SOON: Duration = Duration::from_millis(2);

impl Session {
    /// Takes everything the terminal gives, until it is closed.
    pub(super) fn read(&self, alarm: &PipeReader) {
        std::thread::scope(|scope| {
            let _reads = self.pty.reads_ahead();
            self.read_in(scope, alarm);
        });
    }

    fn read_in<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, alarm: &PipeReader) {
        let mut buffer = vec![0; BATCH];
        let mut open = true;
        loop {
            let until = self.deadline();
            self.pty.wait(alarm, open, until);
            lag(Late::Reader);
            // Read and taken under one lock: for whoever looks, there is nothing in between.
            let state = lock(&self.state);
            if state.closed {
                return;
            }
            // Whether the program had ended before the last byte was read.
            let exit = state.exit;
            let mut filled = 0;
            let mut more = false;
            while open {
                match self.pty.read(&mut buffer[filled..]) {
                    Ok(0) => open = false,
                    Ok(count) => {
                        filled += count;
                        if filled + 4096 > buffer.len() {
                            more = true;
                            break;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => open = false,
                }
            }
            let ended = exit.is_some() && !more;
            if filled >= MUCH {
                self.pty.read_ahead(scope);
            }
            self.take(state, &buffer[..filled], ended);
            if more {
                // The rest is there already.
                self.pty.ring();
            }
        }
    }

    /// When the reader has to look again although nothing comes.
    fn deadline(&self) -> Option<Instant> {
        let state = lock(&self.state);
        // Later than now where that is over and something is still at work.
        let soon = Instant::now() + GLANCE;
        let quiet = state.is_unsettled();
        let quiet = quiet.then(|| soon.max(state.last_output + QUIET));
        let looked = state.run.as_ref().and_then(|run| run.look_at);
        let nudge = state.interrupt.as_ref().map(Interrupt::look_at);
        let prompt = state.unmarked.as_ref().map(Unmarked::look_at);
        [quiet, looked, nudge, prompt, state.screen.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes bytes, then looks who has waited for them.
    fn take(&self, mut state: MutexGuard<'_, State>, bytes: &[u8], ended: bool) {
        let now = Instant::now();
        if !bytes.is_empty() {
            state.last_output = now;
            if state.echo.awaits_editor() && !self.pty.mode().lines {
                // Once seen it counts: an editor may be done before its echo is looked at. The
                // shell itself tells by its marks.
                let front = self.pty.foreground();
                state.edited_later |= front != state.addressee && front != Some(self.pid);
            }
            if state.left_over && state.shell == Some(Shell::Posix) {
                // Who reads keys has taken what was typed ahead.
                state.left_over = self.pty.mode().lines;
            }
            if state.run.as_ref().is_some_and(Run::has_lines) {
                state.mode = self.pty.mode();
            }
            state.take(bytes);
            self.reply(&mut state);
        }
        state.screen.expire(now);
        self.look_for_prompt(&mut state, now);
        self.type_outgoing(&mut state);
        if ended {
            state.drained = true;
        }
        self.settle(&mut state);
        if ended {
            state.end_run();
        } else if let Some(run) = &mut state.run
            && run.look_at.is_some_and(|at| at <= now)
            && run.is_held()
        {
            run.look_at = Some(now + SOON);
            if self.is_at_rest(&state) {
                state.mode = self.pty.mode();
                state.type_held();
                self.type_outgoing(&mut state);
            }
        } else if let Some(run) = &mut state.run
            && run.look_at.is_some_and(|at| at <= now)
        {
            let image = process::image(self.pid);
            state.look(now, image, || {
                self.asleep().is_some() && process::awaits_input(self.pid)
            });
            // Entered and not begun, while the shell waits for more.
            let entered = state.phase == Phase::Prompt && state.interrupt.is_none();
            if entered && state.run.is_some() && self.awaits_command(&state) == Some(true) {
                state.run_unanswered();
                self.type_outgoing(&mut state);
            }
            self.bring_out_lost(&mut state);
        }
        self.look_after_interrupt(&mut state, now);
        let moment = Moment {
            ended: state.drained,
            spoken: state.screen.version() > 0,
            prompts: state.prompts,
            phase: state.phase,
            interrupts: state.interrupts,
            answers: state.answers,
        };
        drop(state);
        self.moments.send_if_modified(|last| {
            let changed = *last != moment;
            *last = moment;
            changed
        });
    }

    /// Types what is to be typed.
    fn type_outgoing(&self, state: &mut State) {
        let outgoing = std::mem::take(&mut state.outgoing);
        if !outgoing.is_empty() {
            let _ = self.pty.write(&outgoing);
        }
    }

    /// Answers what was asked of the terminal. Who asks reads keys, not lines, and waits. Else a
    /// file with such a query in it was shown, and the answer would be taken for input.
    fn reply(&self, state: &mut State) {
        if !state.screen.has_replies() {
            return;
        }
        // fish reads keys again before it says that a command has ended.
        let fish = state.shell == Some(Shell::Fish) && state.phase == Phase::Running;
        if self.pty.mode().lines || fish && self.is_in_front() {
            state.screen.take_replies();
        } else if !self.pty.has_output() {
            // bash and zsh say it before, so that if they are who reads keys by now, that was
            // output yet to be read.
            let replies = state.screen.take_replies();
            let _ = self.pty.write(&replies);
        }
    }
}
