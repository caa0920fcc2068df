//! Where a session is: at its prompt, at work, at rest, gone.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Exit, Moment, Phase, QUIET, Session, State};
use crate::terminal::process::Awaits;
use crate::terminal::program::Shell;
use crate::terminal::scanner::Held;
use crate::terminal::{lock, process};

/// How long a shell must have stayed where only typing moves it on.
const STEADY: Duration = Duration::from_secs(1);

/// What is told of a session.
pub(in crate::terminal) struct Seen {
    pub(in crate::terminal) running: bool,
    pub(in crate::terminal) exit: Option<Exit>,
    pub(in crate::terminal) foreground: Option<String>,
    pub(in crate::terminal) directory: Option<String>,
}

/// Where in its shell's life a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the prompt, with nothing typed and nothing left to read.
    Prompt,
    /// At the prompt, with something typed that was not entered.
    Typed,
    /// A program is in front and waits for somebody to type.
    Asking,
    /// Not at a prompt.
    Elsewhere,
    /// Its program is no shell and has no prompt.
    NoShell,
    /// The program has ended.
    Gone,
}

/// Since when everything in a session rests. Several processes are not seen in one moment, and one
/// that is being started may not be seen at all: what rests is what has not computed for a while.
#[derive(Debug, Default)]
pub(super) struct Rest(Option<(u64, Instant)>);

impl Rest {
    /// Whether it does so for long enough, by what it has computed if it sleeps now.
    pub(super) fn lasts(&mut self, asleep: Option<u64>) -> bool {
        self.lasts_for(QUIET, asleep)
    }

    /// Whether it does so for this long.
    pub(super) fn lasts_for(&mut self, time: Duration, asleep: Option<u64>) -> bool {
        let now = Instant::now();
        let before = self.0.filter(|(work, _)| Some(*work) == asleep);
        self.0 = before.or(asleep.map(|work| (work, now)));
        before.is_some_and(|(_, since)| now >= since + time)
    }
}

/// How often something is looked at that takes less than a pause most times: at once at first, and every
/// now and then after that.
#[derive(Debug, Default)]
pub(super) struct Looks(u32);

impl Looks {
    /// How many there are without a pause.
    const GLANCES: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(2);

    /// Lets others do something, or waits until something has happened.
    pub(super) async fn pause(
        &mut self,
        moments: &mut watch::Receiver<Moment>,
        until: tokio::time::Instant,
    ) {
        if self.0 < Looks::GLANCES {
            self.0 += 1;
            tokio::task::yield_now().await;
            return;
        }
        let until = until.min(tokio::time::Instant::now() + Looks::PAUSE);
        let _ = tokio::time::timeout_at(until, moments.changed()).await;
    }
}

impl Session {
    /// Waits until the first prompt is there, or the program has fallen quiet, or ended.
    pub(in crate::terminal) async fn settled(&self, limit: Duration) {
        let mut moments = self.moments.subscribe();
        let until = tokio::time::Instant::now() + limit;
        // What the program had computed when it was last seen asleep.
        let mut asleep = None;
        let mut rest = Rest::default();
        loop {
            let moment = *moments.borrow_and_update();
            let now = tokio::time::Instant::now();
            if moment.ended || now >= until {
                return;
            }
            let look = if self.program.shell.is_some() {
                // A file that it reads first may ask for something, or lead to another program.
                let quiet = || lock(&self.state).last_output.elapsed() >= QUIET;
                let mut asks = || quiet() && rest.lasts(self.asleep()) && self.is_asking();
                if moment.phase == Phase::Prompt || asks() {
                    return;
                }
                until.min(now + QUIET)
            } else {
                // A program without marks is taken as ready when it says nothing and does nothing.
                let quiet = lock(&self.state).last_output + QUIET;
                if quiet <= Instant::now() {
                    let before = asleep;
                    asleep = self.asleep();
                    if moment.spoken && asleep.is_some() || asleep.is_some() && asleep == before {
                        return;
                    }
                    until.min(now + QUIET)
                } else {
                    until.min(quiet.into())
                }
            };
            let _ = tokio::time::timeout_at(look, moments.changed()).await;
        }
    }

    /// Waits until the shell is at its prompt with all input read; says where it is then. Where
    /// only somebody who types could bring it there, the wait is short.
    pub(in crate::terminal) async fn prompt(&self, limit: Duration) -> Place {
        let mut moments = self.moments.subscribe();
        let until = tokio::time::Instant::now() + limit;
        let mut last = (Place::Elsewhere, tokio::time::Instant::now());
        loop {
            moments.borrow_and_update();
            let mut place = self.place();
            let now = tokio::time::Instant::now();
            let is_asked = place != last.0 || now >= last.1 + STEADY;
            if place == Place::Typed && is_asked && self.held(until).await == Some(Held::Nothing) {
                place = Place::Prompt;
            }
            if place != last.0 {
                last = (place, now);
            }
            let is_final = match place {
                Place::Prompt | Place::Gone | Place::NoShell => true,
                Place::Typed | Place::Asking => now >= last.1 + STEADY,
                Place::Elsewhere => false,
            };
            if is_final || now >= until {
                return place;
            }
            // Input that is read without anything being shown makes no moment of its own.
            let look = until.min(now + QUIET);
            let _ = tokio::time::timeout_at(look, moments.changed()).await;
        }
    }

    /// Where the session's shell is.
    pub(in crate::terminal) fn place(&self) -> Place {
        let state = lock(&self.state);
        if state.exit.is_some() {
            return Place::Gone;
        }
        if self.program.shell.is_none() {
            return Place::NoShell;
        }
        let (phase, entered) = (state.phase, state.entered);
        let (typed, in_doubt) = match phase == Phase::Prompt && self.answers(&state) {
            true => (state.touched, state.touched && !self.is_at_rest(&state)),
            false => (state.typed, self.is_in_doubt(&state)),
        };
        drop(state);
        if self.pty.unread() > 0 {
            return Place::Elsewhere;
        }
        match phase {
            Phase::Prompt if !in_doubt && !typed => Place::Prompt,
            Phase::Prompt if !in_doubt && !entered => Place::Typed,
            // Not every shell tells that what was entered starts.
            Phase::Running | Phase::Prompt if self.is_asking() => Place::Asking,
            Phase::Prompt | Phase::Running | Phase::Starting | Phase::Ended => Place::Elsewhere,
        }
    }

    /// Whether what is in front waits for somebody to type.
    fn is_asking(&self) -> bool {
        let front = self.pty.foreground();
        front.is_some_and(process::reads_terminal)
    }

    /// The name of the program in front.
    pub(in crate::terminal) fn foreground(&self) -> Option<String> {
        process::group_name(self.pty.foreground()?)
    }

    /// Whether the program that was started is in front itself.
    pub(super) fn is_in_front(&self) -> bool {
        self.pty.foreground() == Some(self.pid)
    }

    /// Whether the program that was started has done all there was to do: it sleeps, has read what
    /// was typed, and all it wrote is known. `None` where the system does not tell.
    pub(super) fn rests(&self) -> Option<bool> {
        // In this order: what was typed has reached it, then it sleeps over that, and what it
        // wrote before it fell asleep is here.
        let read = self.pty.unread() == 0;
        let waits = process::waits(self.pid)?;
        Some(read && waits && !self.pty.has_output())
    }

    /// What everything in the session has computed when all of it rests. A reader that lags behind
    /// must not make a program look silent.
    pub(super) fn asleep(&self) -> Option<u64> {
        let read = self.pty.unread() == 0;
        let asleep = process::asleep(self.pid);
        asleep.filter(|_| read && !self.pty.has_output())
    }

    /// Whether the shell may be about to act on what was typed ahead of its prompt: it may have
    /// read that without a trace.
    pub(super) fn is_in_doubt(&self, state: &State) -> bool {
        state.typed_ahead() && !self.is_at_rest(state)
    }

    /// Whether the shell has read all that was typed and waits for more where commands are typed.
    pub(super) fn is_at_rest(&self, state: &State) -> bool {
        let quiet = || state.last_output.elapsed() >= QUIET;
        self.awaits_command(state).unwrap_or_else(quiet)
    }

    /// Whether the shell has read all that was typed and waits for more, however the terminal reads it.
    pub(super) fn is_waiting(&self, state: &State) -> bool {
        if !self.pty.mode().lines || state.shell == Some(Shell::Fish) {
            return self.is_at_rest(state);
        }
        // It edits no line, or is between two that it edits.
        let quiet = || state.last_output.elapsed() >= QUIET;
        let reads = || match process::awaits(self.pid) {
            Awaits::Terminal => true,
            Awaits::File | Awaits::Other => false,
            Awaits::Unknown => quiet(),
        };
        self.is_in_front() && reads() && self.rests().unwrap_or_else(quiet)
    }

    /// Whether the program has not ended.
    pub(in crate::terminal) fn is_running(&self) -> bool {
        lock(&self.state).exit.is_none()
    }

    pub(in crate::terminal) fn seen(&self) -> Seen {
        let exit = lock(&self.state).exit;
        Seen {
            running: exit.is_none(),
            exit,
            foreground: exit.is_none().then(|| self.foreground()).flatten(),
            directory: exit
                .is_none()
                .then(|| process::directory(self.pid))
                .flatten(),
        }
    }
}

impl State {
    /// Whether the shell may have yet to act on what was typed ahead of its prompt.
    pub(super) fn typed_ahead(&self) -> bool {
        self.ahead || self.echo.awaits_editor() || !self.doubt.is_empty()
    }
}
