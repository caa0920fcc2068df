//! Who waits for output.

use std::sync::Arc;
use std::time::Duration;

use flow_model::tools::AwaitTarget;
use tokio::sync::oneshot;

use super::{QUIET, Session, State};
use crate::terminal::pattern::{Found, Pattern};
use crate::terminal::{lock, process};

/// After this long without output, it is taken as said even while something is at work.
pub(super) const LONG_QUIET: Duration = Duration::from_secs(1);

/// Somebody who waits for output.
pub(super) struct Waiter {
    id: u64,
    pattern: Arc<Pattern>,
    target: AwaitTarget,
    /// Where what it may find begins.
    start: u64,
    /// Where the next search begins.
    from: u64,
    /// How far all of it was searched, and not only what is near its end.
    searched: u64,
    /// The screen that was searched last.
    version: u64,
    pub(super) tentative: bool,
    answer: Option<oneshot::Sender<Option<String>>>,
}

/// A wait for output; dropping it ends the wait.
pub(in crate::terminal) struct Watching {
    session: Arc<Session>,
    id: u64,
    receiver: oneshot::Receiver<Option<String>>,
}

impl Session {
    /// Begins to wait for output.
    pub(in crate::terminal) fn watch(
        self: &Arc<Self>,
        pattern: Arc<Pattern>,
        target: AwaitTarget,
    ) -> Watching {
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.state);
        state.next_waiter += 1;
        let id = state.next_waiter;
        let start = state.consumed.max(state.call);
        let waiter = Waiter {
            id,
            pattern,
            target,
            start,
            from: start,
            searched: start,
            version: u64::MAX,
            tentative: false,
            answer: Some(sender),
        };
        state.waiters.push(waiter);
        self.settle(&mut state);
        let unsettled = state.is_unsettled();
        drop(state);
        if unsettled {
            self.pty.ring();
        }
        Watching {
            session: Arc::clone(self),
            id,
            receiver,
        }
    }
}

impl Session {
    /// Answers whoever can be answered.
    pub(super) fn settle(&self, state: &mut State) {
        // Whoever draws on and on is no line editor.
        let since = state.entered_at.map(|at| at.elapsed());
        if state.echo.is_drawn() && state.holds() && since.is_some_and(|since| since >= LONG_QUIET)
        {
            state.release();
        }
        state.settle(state.drained);
        if state.is_unsettled() && self.is_quiet(state) {
            state.settle(true);
        }
    }

    /// Whether nothing has come for a while, and nothing is at work that more could come from.
    fn is_quiet(&self, state: &State) -> bool {
        let silence = state.last_output.elapsed();
        silence >= LONG_QUIET || silence >= QUIET && !process::works(self.pid)
    }
}

impl State {
    /// Whether silence would settle something.
    pub(super) fn is_unsettled(&self) -> bool {
        self.holds() || self.waiters.iter().any(|waiter| waiter.tentative)
    }

    /// What somebody waits for in the stream. A match over more lines than are searched every time is
    /// found when all is searched, as nothing more is about to come or the time is up.
    fn search(&mut self, waiter: &mut Waiter, quiet: bool, all: bool) -> Option<String> {
        waiter.start = waiter.start.max(self.consumed);
        waiter.from = waiter.from.max(waiter.start);
        let end = self.stream.end();
        let is_part = |waiter: &Waiter| {
            waiter.pattern.spans_lines() && waiter.from > waiter.start && waiter.searched < end
        };
        if all && is_part(waiter) {
            waiter.from = waiter.start;
        }
        let mut found = waiter.pattern.search(&self.stream, waiter.from, quiet);
        if waiter.from == waiter.start {
            waiter.searched = end;
        } else if is_part(waiter) && !matches!(found, Found::Nothing(_)) {
            // The first match may have begun before.
            found = waiter.pattern.search(&self.stream, waiter.start, quiet);
        }
        match found {
            Found::Match(text, end) => {
                self.consumed = end;
                Some(match self.stream.since(end) {
                    "" => self.without_begun(text),
                    _ => text,
                })
            }
            Found::Tentative(..) => {
                waiter.tentative = true;
                None
            }
            Found::Nothing(resume) => {
                waiter.from = resume;
                waiter.tentative = is_part(waiter);
                None
            }
        }
    }

    /// Searches all that somebody waits for once more, whose time is up.
    fn search_again(&mut self, id: u64) {
        let Some(at) = self.waiters.iter().position(|waiter| waiter.id == id) else {
            return;
        };
        let mut waiter = self.waiters.swap_remove(at);
        if waiter.target == AwaitTarget::Stream
            && let Some(found) = self.search(&mut waiter, false, true)
            && let Some(answer) = waiter.answer.take()
        {
            let _ = answer.send(Some(found));
        }
    }

    /// Answers whoever can be answered. `quiet` says that nothing more is about to come.
    fn settle(&mut self, quiet: bool) {
        if quiet && self.holds() {
            self.release();
        }
        let ended = self.drained;
        let mut waiters = std::mem::take(&mut self.waiters);
        for waiter in &mut waiters {
            waiter.tentative = false;
            let found = match waiter.target {
                AwaitTarget::Stream => self.search(waiter, quiet, quiet),
                AwaitTarget::Screen => {
                    let version = self.screen.version();
                    let fresh = version != waiter.version;
                    waiter.version = version;
                    fresh
                        .then(|| self.screen.unwrapped(&*self.secrets))
                        .and_then(|text| waiter.pattern.find(&text).map(str::to_owned))
                }
            };
            if (found.is_some() || ended)
                && let Some(answer) = waiter.answer.take()
            {
                let _ = answer.send(found);
            }
        }
        waiters.retain(|waiter| waiter.answer.is_some());
        self.waiters = waiters;
    }
}

impl Watching {
    /// The text that matched; `None` when the program ended, or the time was up, without it.
    pub(in crate::terminal) async fn found(mut self, limit: Duration) -> Option<String> {
        match tokio::time::timeout(limit, &mut self.receiver).await {
            Ok(found) => found.ok().flatten(),
            Err(_) => {
                // A match that came meanwhile is consumed, so it must be told.
                lock(&self.session.state).search_again(self.id);
                self.receiver.try_recv().ok().flatten()
            }
        }
    }

    fn end(&self) {
        lock(&self.session.state)
            .waiters
            .retain(|waiter| waiter.id != self.id);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.end();
    }
}
