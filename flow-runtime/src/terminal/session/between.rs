//! What is typed while a command has lines that are yet to be typed.
//!
//! Such a line is typed when the shell asks for it. What stands in the terminal by then would be read
//! before it, as a command. So input waits until a program of the command reads the terminal, and gets
//! there a line at a time, or a key for who reads keys. What none of them reads is not typed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::place::Rest;
use super::{Phase, QUIET, Session, State};
use crate::terminal::error::Error;
use crate::terminal::program::Shell;
use crate::terminal::{lock, process};

/// When it is first looked who reads; every look after it comes twice as late, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LAST_LOOK: Duration = Duration::from_millis(50);
/// How long it may take over keys that it waits for.
const BRIEF: Duration = Duration::from_millis(20);
/// How long a program may be at work between two keys of an input.
const LONGEST: Duration = Duration::from_secs(2);

/// How much may be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::terminal) enum Way {
    All,
    /// A line, for who reads lines now.
    Line,
    /// A key, for who reads keys now: it may be the last.
    Key,
    /// As much as there is, for who may read keys.
    Keys,
}

/// Inputs that wait, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<u64>,
    last: u64,
}

/// An input on its way, and the command that it has met.
pub(in crate::terminal) struct Passage<'s> {
    session: &'s Session,
    command: Option<u64>,
    rest: Rest,
    /// Its place among those that wait.
    place: Option<u64>,
    /// When it was first seen that keys are read, perhaps.
    met_at: Option<Instant>,
    /// When a key of it was taken last by who reads keys.
    keyed_at: Option<Instant>,
    /// A part of it was typed.
    begun: bool,
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let mut queue = lock(&self.session.queue);
            queue.waiting.retain(|it| *it != place);
        }
    }
}

impl Passage<'_> {
    /// How much may be typed now. `None` as long as nothing may: then it waits, behind those that do.
    pub(in crate::terminal) fn way(&mut self) -> Option<Result<Way, Error>> {
        let session = self.session;
        self.way_in(&lock(&session.state))
    }

    /// Waits until something may be typed.
    pub(in crate::terminal) async fn opens(&mut self) {
        let mut moments = self.session.moments.subscribe();
        let mut pause = FIRST_LOOK;
        loop {
            moments.borrow_and_update();
            if self.way().is_some() {
                return;
            }
            let _ = tokio::time::timeout(pause, moments.changed()).await;
            pause = LAST_LOOK.min(pause * 2);
        }
    }

    pub(super) fn way_in(&mut self, state: &State) -> Option<Result<Way, Error>> {
        let way = match self.is_next() {
            true => self.session.way(state, self),
            false => None,
        };
        if way.is_none() && self.place.is_none() {
            let mut queue = lock(&self.session.queue);
            queue.last += 1;
            let place = queue.last;
            queue.waiting.push_back(place);
            self.place = Some(place);
        }
        way
    }

    /// A part of it is typed. Says whether one was before.
    pub(super) fn begins(&mut self) -> bool {
        std::mem::replace(&mut self.begun, true)
    }

    fn is_next(&self) -> bool {
        let queue = lock(&self.session.queue);
        let first = queue.waiting.front();
        first.is_none_or(|first| Some(*first) == self.place)
    }
}

impl Session {
    /// Waits a moment until who may read keys has read all that was typed: then nothing is left to the
    /// shell. It may end by that at once.
    pub(in crate::terminal) async fn takes_keys(&self) {
        let until = Instant::now() + BRIEF;
        while Instant::now() < until {
            {
                let mut state = lock(&self.state);
                // In this order: it has read all, and is still in front.
                let read = self.pty.unread() == 0;
                if self.is_in_front() {
                    return;
                }
                if let (true, Some(run)) = (read, &mut state.run) {
                    run.unmix();
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }

    pub(in crate::terminal) fn passage(&self) -> Passage<'_> {
        Passage {
            session: self,
            command: None,
            rest: Rest::default(),
            place: None,
            met_at: None,
            keyed_at: None,
            begun: false,
        }
    }

    /// How much may be typed now; `None` as long as nothing may.
    pub(super) fn way(
        &self,
        state: &State,
        passage: &mut Passage<'_>,
    ) -> Option<Result<Way, Error>> {
        let met = passage.command;
        let run = state.run.as_ref();
        match run.filter(|_| state.exit.is_none()) {
            Some(run) if run.wants_lines() || met == Some(run.id()) => {
                passage.command = Some(run.id());
                match met.is_some_and(|it| it != run.id()) || run.stopped {
                    true => Some(Err(Error::NotRead)),
                    false => self.takes_input(state, passage).map(Ok),
                }
            }
            Some(_) | None if met.is_none() || state.exit.is_some() => {
                self.takes_key(state, passage).map(Ok)
            }
            Some(_) | None => Some(Err(Error::NotRead)),
        }
    }

    /// Whether what is typed goes to a program that reads keys in front of a shell that edits no line: a
    /// key at a time, since nothing tells, or clears, what it would leave of them to that shell.
    fn takes_key(&self, state: &State, passage: &mut Passage<'_>) -> Option<Way> {
        let is_before = state.shell == Some(Shell::Posix) && state.exit.is_none();
        let front = self.pty.foreground().filter(|front| *front != self.pid);
        let Some(front) = front.filter(|_| is_before && !self.pty.mode().lines) else {
            return Some(Way::All);
        };
        let reads = self.pty.unread() == 0 && process::reads_terminal(front);
        match passage.keyed_at {
            _ if reads => {
                passage.keyed_at = Some(Instant::now());
                Some(Way::Key)
            }
            // It may be about to end.
            Some(at) if at.elapsed() < LONGEST => None,
            Some(_) => Some(Way::All),
            // Or about to read. Who sleeps over something else may read as well.
            None => {
                let met_at = *passage.met_at.get_or_insert_with(Instant::now);
                let works = self.asleep().is_none() && process::work(self.pid).is_some();
                (!works || met_at.elapsed() >= LONGEST).then_some(Way::All)
            }
        }
    }

    /// What a program of the command that runs takes of what is typed next, and the shell does not.
    fn takes_input(&self, state: &State, passage: &mut Passage<'_>) -> Option<Way> {
        let runs = match state.shell {
            // It does not tell, and reads its own lines in blocks.
            Some(Shell::Posix) => state.entered && !process::reads_blocks(self.pid),
            Some(_) | None => state.phase == Phase::Running,
        };
        // A prompt may be there that the shell has not told of.
        if !runs || state.unmarked.is_some() || self.pty.unread() > 0 {
            return None;
        }
        let lines = self.pty.mode().lines;
        let asleep = self.asleep();
        let is_unseen = || asleep.is_none() && process::work(self.pid).is_none();
        let front = self.pty.foreground();
        let way = match front.is_some_and(process::reads_terminal) {
            true if lines => Some(Way::Line),
            true => Some(Way::Key),
            // Who reads keys may wait for other things as well.
            false if !lines && !self.is_in_front() && passage.rest.lasts(asleep) => Some(Way::Keys),
            false if is_unseen() && state.last_output + QUIET <= Instant::now() => {
                Some(match lines {
                    true => Way::Line,
                    false => Way::Keys,
                })
            }
            false => None,
        };
        // In this order: it reads, and has said nothing else before that.
        way.filter(|_| !self.pty.has_output())
    }
}
