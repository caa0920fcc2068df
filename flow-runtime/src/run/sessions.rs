//! The terminal session of a run. There is one rule, and everything follows it: the session that a
//! step works in when it names none, `{session_id}`, the session that a called run is given, where
//! contracts are looked up, and the session that an answer names.
//!
//! It is the last one that the run has opened and not closed; else the one that it was given and
//! has not closed; else the first that a step of it has worked in. Sessions of a called run stay
//! behind all of these. A run that had one and has closed it goes on in no other by itself, and
//! without naming it a run closes only what it has opened or was given. The pure run knows of
//! sessions what its own actions have told it.

use super::data::Data;
use super::effect::{Action, Deed};
use super::frame::{Frame, FrameId, ROOT};
use super::machine::Machine;
use super::response::has_session_opened;
use crate::value::Value;

/// A session of a run that has failed.
pub(crate) struct LeftSession<'d> {
    pub(crate) id: &'d str,
    /// The run has closed it, or it is closed because the run has failed.
    pub(crate) closed: bool,
}

impl Data {
    /// The session of a frame's steps. What a task has opened or worked in itself comes before
    /// that of the frame around it.
    pub(crate) fn session<'d>(&'d self, frame: Option<&'d Frame>) -> Option<&'d str> {
        let mut used = self.around(frame).filter_map(|it| it.worked_in.as_deref());
        let used = || used.next().filter(|_| self.closed_last(frame).is_none());
        self.own_session(frame).or_else(used)
    }

    /// The session of a frame's steps that the run has opened or was given.
    pub(super) fn own_session<'d>(&'d self, frame: Option<&'d Frame>) -> Option<&'d str> {
        let mut opened = self.around(frame).filter_map(|it| it.sessions.last());
        let given = self.given_session().filter(|_| !self.given_session_closed);
        opened.next().map(String::as_str).or(given)
    }

    fn given_session(&self) -> Option<&str> {
        let variable = || self.start.variables.get("session_id")?.as_str();
        self.start.session.as_deref().or_else(variable)
    }

    /// The session that the step of an action had, when it was closed and the step has none now.
    pub(crate) fn closed_session<'d>(&'d self, action: &Action) -> Option<&'d str> {
        let frame = self.frames.get(&action.frame);
        match self.session(frame) {
            Some(_) => None,
            None => self.closed_last(frame),
        }
    }

    fn closed_last<'d>(&'d self, frame: Option<&'d Frame>) -> Option<&'d str> {
        let near = || self.start.near_session.as_deref();
        let given = self.given_session().or_else(near);
        let mut closed = self.around(frame).filter_map(|it| it.closed.as_deref());
        closed
            .next()
            .or(given.filter(|_| self.given_session_closed))
    }

    /// The session that a step of a frame works in when it names none: the frame's, else the
    /// latest of those who share theirs with the run. That one is not the run's until it is used.
    pub(crate) fn session_at_hand<'d>(&'d self, frame: Option<&'d Frame>) -> Option<&'d str> {
        let near = || {
            let near = self.start.near_session.as_deref();
            near.filter(|_| self.closed_last(frame).is_none())
        };
        self.session(frame).or_else(near)
    }

    /// What `{session_id}` stands for: the session at hand, else the one the run had last.
    pub(crate) fn session_variable<'d>(&'d self, frame: Option<&'d Frame>) -> Option<&'d str> {
        let at_hand = self.session_at_hand(frame);
        at_hand.or(self.last_session.as_deref())
    }

    /// The workflow's own session, else the one it had last.
    pub(crate) fn latest_session(&self) -> Option<&str> {
        let own = self.session(self.frames.get(&ROOT));
        own.or(self.last_session.as_deref())
    }

    /// What the frames of a run that has failed worked in, as it is when that is tried again.
    pub(crate) fn sessions_again(&self) -> impl Iterator<Item = LeftSession<'_>> {
        let left = |id, closed| LeftSession { id, closed };
        self.frames.values().filter_map(move |frame| {
            let opened = frame.sessions.last().map(|id| left(id.as_str(), true));
            let other = || self.session(Some(frame)).map(|id| left(id, false));
            let closed = || self.closed_last(Some(frame)).map(|id| left(id, true));
            opened.or_else(other).or_else(closed)
        })
    }

    /// A frame and those around it, the innermost first.
    fn around<'d>(&'d self, frame: Option<&'d Frame>) -> impl Iterator<Item = &'d Frame> {
        let root = self.frames.get(&ROOT);
        std::iter::successors(frame.or(root), move |inner| match inner.parent {
            Some(outer) => self.frames.get(&outer.frame),
            // Failure steps belong to no fan-out; around them is the workflow.
            None => root.filter(|root| !std::ptr::eq(*root, *inner)),
        })
    }

    /// No session that the run has opened is open any more.
    pub(super) fn forget_sessions(&mut self) {
        for frame in self.frames.values_mut() {
            let last = frame.sessions.drain(..).next_back();
            frame.closed = last.or(frame.closed.take());
        }
    }

    /// Remembers the workflow's session for when it has none any more.
    fn remember_session(&mut self) {
        if let Some(session) = self.session(self.frames.get(&ROOT)) {
            self.last_session = Some(session.to_owned());
        }
    }
}

impl Machine<'_> {
    /// The session of a frame's steps.
    pub(super) fn session(&self, id: FrameId) -> Option<&str> {
        self.data.session(self.data.frames.get(&id))
    }

    /// An action has ended that may have worked in a session, opened one, or closed one.
    pub(super) fn note_sessions(&mut self, id: FrameId, deed: &Deed, result: &Value) {
        let Some(session) = result.get("session_id").and_then(Value::as_str) else {
            return;
        };
        let has_none = self.session(id).is_none();
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return;
        };
        match deed {
            Deed::Tool {
                tool,
                builtin: true,
                ..
            } => {
                let succeeded = result.get("success") == Some(&Value::Bool(true));
                match tool.as_str() {
                    "open_terminal" if succeeded => frame.sessions.push(session.to_owned()),
                    "open_terminal" => {}
                    // Nothing is worked in that is closed at once.
                    "exit_terminal" if has_none => {
                        self.data.last_session = Some(session.to_owned())
                    }
                    _ if has_none => frame.worked_in = Some(session.to_owned()),
                    _ => {}
                }
                self.data.remember_session();
                if tool == "exit_terminal" && succeeded {
                    self.session_closed(session);
                }
            }
            // What a called run leaves open is its caller's to close, and closed when that fails.
            Deed::Call { .. } if has_none && has_session_opened(result) => {
                frame.sessions.push(session.to_owned())
            }
            Deed::Call { .. } if has_none => frame.worked_in = Some(session.to_owned()),
            _ => {}
        }
        self.data.remember_session();
    }

    fn session_closed(&mut self, session: &str) {
        for frame in self.data.frames.values_mut() {
            let open = frame.sessions.len();
            frame.sessions.retain(|open| open != session);
            let used = frame.worked_in.take_if(|used| used == session);
            if used.is_some() || frame.sessions.len() < open {
                frame.closed = Some(session.to_owned());
            }
        }
        let near = self.data.start.near_session.as_deref();
        if self.data.given_session().or(near) == Some(session) {
            self.data.given_session_closed = true;
        }
    }

    /// Takes a frame away. What it has opened stays open, behind what the frame around it has.
    pub(super) fn remove_frame(&mut self, id: FrameId) -> Option<Frame> {
        let mut frame = self.data.frames.remove(&id)?;
        let around = frame
            .parent
            .and_then(|it| self.data.frames.get_mut(&it.frame));
        if let Some(around) = around {
            let sessions = std::mem::take(&mut frame.sessions);
            around.sessions.splice(..0, sessions);
            around.worked_in = around.worked_in.take().or(frame.worked_in.take());
            around.closed = around.closed.take().or(frame.closed.take());
            self.data.remember_session();
        }
        Some(frame)
    }
}
