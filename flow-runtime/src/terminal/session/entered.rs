//! Keys that come right behind a line, and are for what the line starts.
//!
//! A key for which the kernel sends a signal throws away what nobody has read, and the signal goes to
//! whoever is in front: the shell, as long as it has not begun with the line, and a copy of the shell
//! that is about to become a program and takes the signal for the shell's. The key that ends the
//! input of a program is one only in the mode in which that reads. So such a key waits until it finds
//! whom it is for. And text is shown by the terminal or by nobody while a shell that edits lines hands
//! the terminal over, and nothing says which; a shell that does not shows its prompt behind it, and
//! what it does on that line. It waits until that is done.

use std::time::{Duration, Instant};

use super::place::Rest;
use super::{Phase, QUIET, Session};
use crate::terminal::program::Shell;
use crate::terminal::{lock, process};

/// How long a line that was entered may take.
const LONGEST: Duration = Duration::from_secs(2);
/// The same where the system tells nothing of processes.
const UNSEEN: Duration = Duration::from_millis(300);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// What a session computes, in the system's ticks of 10 ms, until it is taken to do so by itself and
/// not to be about to start something.
const COMPUTES: u64 = 10;

impl Session {
    /// How long ago a line was entered that may not have begun.
    fn entered_lately(&self) -> Option<Duration> {
        let state = lock(&self.state);
        let since = state.entered_at?.elapsed();
        (state.exit.is_none() && since < LONGEST).then_some(since)
    }

    /// Waits until a shell has let go of the terminal for what was entered right before, or asks for
    /// more.
    pub(in crate::terminal) async fn handed_over(&self) {
        let mut rest = Rest::default();
        let mut computed = None;
        let mut moments = self.moments.subscribe();
        while self.program.shell.is_some() && self.entered_lately().is_some() {
            moments.borrow_and_update();
            let waits = {
                let state = lock(&self.state);
                let waits = match (state.phase, state.shell) {
                    (Phase::Prompt, Some(Shell::Posix)) => {
                        state.typed && state.entered && self.is_in_front()
                    }
                    (Phase::Prompt, _) => state.typed && state.entered,
                    (Phase::Running, _) => self.edits(),
                    (Phase::Starting | Phase::Ended, _) => false,
                };
                // It wants more of the line, or a command of its own edits one.
                let asks = || self.pty.unread() == 0 && process::reads_terminal(self.pid);
                let says = || self.pty.has_output();
                let at_prompt = state.phase == Phase::Prompt && self.is_in_front();
                let is_next = at_prompt && self.is_in_doubt(&state);
                is_next || waits && (!asks() || says())
            };
            if !waits || rest.lasts(self.asleep()) {
                return;
            }
            if self.has_computed(&mut computed) {
                return;
            }
            let _ = tokio::time::timeout(LOOK, moments.changed()).await;
        }
    }

    /// Whether the session has computed for so long since it was first asked that what was started is
    /// what does.
    fn has_computed(&self, first: &mut Option<u64>) -> bool {
        let work = process::work(self.pid);
        work.is_some_and(|work| work >= *first.get_or_insert(work) + COMPUTES)
    }

    /// Waits until what was entered right before has begun, and the programs that it starts are in
    /// front.
    pub(in crate::terminal) async fn begun(&self) {
        let mut rest = Rest::default();
        let (mut began, mut computed) = (None, None);
        let mut first = None;
        while let Some(since) = self.entered_lately() {
            let waits = {
                let state = lock(&self.state);
                match state.phase {
                    Phase::Prompt => state.typed && state.entered || self.is_in_doubt(&state),
                    Phase::Running => true,
                    // What was typed ahead comes next.
                    Phase::Ended => state.ahead,
                    Phase::Starting => false,
                }
            };
            let Some(front) = self.pty.foreground().filter(|_| waits) else {
                return;
            };
            let asleep = self.asleep();
            if front != self.pid {
                first.get_or_insert((front, Instant::now()));
            }
            // One short program after another is started.
            let several = |(it, at): (i32, Instant)| it != front && at.elapsed() >= QUIET;
            if first.is_some_and(several) {
                return;
            }
            let is_there = match front == self.pid {
                // A command of the shell itself asks for something.
                true => self.pty.unread() == 0 && process::reads_terminal(front),
                // Some lose a signal as long as they are starting.
                false if process::has_become(self.pid, front) => {
                    let began = *began.get_or_insert_with(Instant::now);
                    asleep.is_some() || began.elapsed() >= QUIET
                }
                false => false,
            };
            if is_there || rest.lasts(asleep) {
                return;
            }
            let is_unseen = asleep.is_none() && process::work(self.pid).is_none();
            if self.has_computed(&mut computed) || is_unseen && since >= UNSEEN {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the shell is back when a key has ended or stopped what ran, or that has outlived it:
    /// a shell may throw away what is typed in between.
    pub(in crate::terminal) async fn signalled(&self) {
        let mut rest = Rest::default();
        let mut moments = self.moments.subscribe();
        while self.program.shell.is_some() {
            moments.borrow_and_update();
            {
                let state = lock(&self.state);
                let lately = state.signalled_at.is_some_and(|at| at.elapsed() < LONGEST);
                // A POSIX shell has no way to tell that a command runs.
                let ahead = || state.ahead && self.awaits_command(&state) == Some(false);
                let entered = state.typed && state.entered;
                let runs = state.shell == Some(Shell::Posix) && (entered || ahead());
                let waits = match state.phase {
                    Phase::Prompt if !runs => false,
                    Phase::Prompt | Phase::Running => !rest.lasts(self.asleep()),
                    Phase::Ended => true,
                    Phase::Starting => false,
                };
                if !lately || !waits || state.exit.is_some() {
                    break;
                }
            }
            let _ = tokio::time::timeout(LOOK, moments.changed()).await;
        }
        lock(&self.state).signalled_at = None;
    }

    /// Waits until what was entered right before has been taken, and whoever reads next waits for
    /// more.
    pub(in crate::terminal) async fn reading(&self) {
        let mut rest = Rest::default();
        while self.entered_lately().is_some() {
            // In this order: what was typed has reached it, then it waits for more.
            let read = self.pty.unread() == 0;
            let front = self.pty.foreground();
            let reads = read && front.is_some_and(process::reads_terminal);
            // Not of every program it is known what it sleeps over.
            if reads || rest.lasts(self.asleep()) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
