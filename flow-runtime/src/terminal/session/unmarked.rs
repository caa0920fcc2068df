//! Prompts that are there although the shell has not said so.
//!
//! A shell whose hooks were replaced shows its prompt without a word on how the command before it
//! ended, and one whose messages go to a file says that a prompt comes and shows none. Both edit a
//! line then, which no command does that the shell itself runs, and sleep over it.

use std::time::{Duration, Instant};

use super::interrupt::Interrupt;
use super::{Phase, QUIET, Session, State};
use crate::terminal::process;
use crate::terminal::program::Shell;

/// When the shell is first looked at; every look after it comes twice as late, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LAST_LOOK: Duration = Duration::from_millis(160);

/// A prompt that may be there.
#[derive(Debug)]
pub(super) struct Unmarked {
    look_at: Instant,
    pause: Duration,
    /// Where in the output of a command it would begin.
    pub(super) position: Option<u64>,
}

impl Unmarked {
    pub(super) fn now() -> Unmarked {
        Unmarked {
            look_at: Instant::now() + FIRST_LOOK,
            pause: FIRST_LOOK,
            position: None,
        }
    }

    pub(super) fn look_at(&self) -> Instant {
        self.look_at
    }
}

impl Session {
    /// Looks whether the shell is at its prompt, when it is time to.
    pub(super) fn look_for_prompt(&self, state: &mut State, now: Instant) {
        let Some(unmarked) = &mut state.unmarked else {
            return;
        };
        if unmarked.look_at > now {
            return;
        }
        let position = unmarked.position;
        unmarked.pause = LAST_LOOK.min(unmarked.pause * 2);
        unmarked.look_at = now + unmarked.pause;
        // What an interrupt does to the prompt of an editor is looked after elsewhere, unless that shows
        // none anyway.
        let shows = state.shell != Some(Shell::Posix) && !state.hidden;
        let is_open = |it: &Interrupt| it.is_open() && (shows || it.ends_with_prompt());
        // Who shows a prompt while a command runs has lost its hooks, or is that command.
        let missed = state.missed && shows && state.phase != Phase::Running;
        let interrupted = missed || state.interrupt.as_ref().is_some_and(is_open);
        let quiet = || state.last_output.elapsed() >= QUIET;
        if interrupted || !self.awaits_command(state).unwrap_or_else(quiet) {
            return;
        }
        match state.phase {
            Phase::Running => {
                state.hidden = false;
                if let (Some(run), Some(position)) = (&mut state.run, position) {
                    run.cut(position);
                }
                state.ended_unseen();
                state.prompted();
            }
            // fish sleeps like this over what a slow prompt starts.
            Phase::Ended if state.shell != Some(Shell::Fish) => {
                state.hidden = true;
                state.prompted();
            }
            Phase::Ended | Phase::Starting | Phase::Prompt => state.unmarked = None,
        }
    }

    /// Whether the shell sleeps over the place where a command, or the rest of one, is typed. `None`
    /// where the system does not tell.
    pub(super) fn awaits_command(&self, state: &State) -> Option<bool> {
        let reads_lines = state.shell == Some(Shell::Posix);
        // In this order: what was typed has reached it, then it waits for more, and what it wrote
        // before that is here.
        let read = self.pty.unread() == 0;
        // A program may have left the terminal in a mode of its own to a shell that edits no line.
        let there = self.is_in_front() && (reads_lines || !self.pty.mode().lines);
        let waits = || match reads_lines {
            // `read` takes a byte at a time, to leave the next line to others.
            true => process::reads_blocks(self.pid),
            false => self.reads(),
        };
        match read && there && waits() {
            true => self.rests(),
            false => Some(false),
        }
    }
}
