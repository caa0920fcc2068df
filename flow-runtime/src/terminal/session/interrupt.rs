//! Interrupts that a shell has not noticed.
//!
//! For ctrl-c the kernel throws away what nobody has read and sends SIGINT. bash and zsh note the
//! signal and look for the note before they wait for the next key. When it comes between the look
//! and the wait, or the key they were told of is thrown away, they wait with the note in hand, and
//! the prompt that would follow does not come before another key. fish shows no prompt at all when
//! there was nothing to throw away. Whoever waits for that prompt types no key, so the shell is
//! nudged.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Session, State};
use crate::terminal::lock;
use crate::terminal::process;
use crate::terminal::program::Shell;

/// When a shell is first looked at; every look after it comes twice as late, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_millis(160);
/// A shell that has been seen waiting so often has its own mind about interrupts (`trap '' INT`).
const LOOKS: u32 = 8;
/// So has one that is at work for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// A ctrl-c that was typed at a shell's prompt and has not brought about the next one.
#[derive(Debug)]
pub(super) struct Interrupt {
    until: Instant,
    look_at: Instant,
    pause: Duration,
    /// How often the shell was seen waiting.
    waits: u32,
}

impl Interrupt {
    pub(super) fn typed(now: Instant) -> Interrupt {
        Interrupt {
            until: now + PATIENCE,
            look_at: now + FIRST_LOOK,
            pause: FIRST_LOOK,
            waits: 0,
        }
    }

    pub(super) fn look_at(&self) -> Instant {
        self.look_at
    }
}

impl Session {
    /// Nudges a shell that has not noticed its interrupt, when it is time to look.
    pub(super) fn look_after_interrupt(&self, state: &mut State, now: Instant) {
        let Some(interrupt) = &mut state.interrupt else {
            return;
        };
        if interrupt.look_at > now {
            return;
        }
        if self.rests() == Some(true) {
            // Who reads lines is not the shell's editor: a hook, a trap.
            if self.is_in_front() && !self.pty.mode().lines {
                self.nudge(interrupt.waits > 0);
            }
            interrupt.waits += 1;
        }
        interrupt.pause = LAST_LOOK.min(interrupt.pause * 2);
        interrupt.look_at = now + interrupt.pause;
        if interrupt.waits >= LOOKS || now >= interrupt.until {
            state.interrupt = None;
        }
    }

    /// Makes a shell that waits for a key act on its interrupt.
    fn nudge(&self, again: bool) {
        if self.program.shell == Some(Shell::Fish) {
            // It clears its line and says that it is at its prompt.
            let _ = self.pty.write(b"\x1b[9134~");
            return;
        }
        // Any signal ends the wait for a key, and this one means nothing without a child that has
        // ended. A read that has begun is ended only by the signal that was noted already, and
        // noting it twice is noting it once.
        let signal = if again { Signal::INT } else { Signal::CHILD };
        process::signal(self.pid, signal);
    }

    /// Waits until the shell has acted on a ctrl-c: it would take the next key for the old line.
    pub(in crate::terminal) async fn interrupted(&self) {
        let mut moments = self.moments.subscribe();
        loop {
            moments.borrow_and_update();
            {
                let state = lock(&self.state);
                if state.interrupt.is_none() || state.exit.is_some() {
                    return;
                }
            }
            if moments.changed().await.is_err() {
                return;
            }
        }
    }
}
