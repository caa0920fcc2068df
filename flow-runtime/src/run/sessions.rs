//! The terminal session that a step means when it names none.
//!
//! What a step opened is its frame's, and before it comes only what was opened later. The pure run
//! knows of sessions what its own actions have told it.

use super::data::Data;
use super::effect::Deed;
use super::frame::{Frame, FrameId, ROOT};
use super::machine::Machine;
use crate::value::Value;

impl Data {
    /// The session that a step of a frame works in: the one that its frame, or a frame around it,
    /// has opened last; then the one that the run was given; then one that a run it called has
    /// left. One that was closed is none of them.
    pub(crate) fn session(&self, frame: FrameId) -> Option<&str> {
        let mut around = Some(frame);
        while let Some(id) = around {
            let frame = self.frames.get(&id);
            if let Some(session) = frame.and_then(|frame| frame.sessions.last()) {
                return Some(session);
            }
            let outer = frame.and_then(|frame| frame.parent).map(|it| it.frame);
            // Failure steps belong to no fan-out; around them is the workflow.
            around = outer.or((id != ROOT).then_some(ROOT));
        }
        let given = self.given_session().filter(|_| !self.given_session_closed);
        given.or(self.left_session.as_deref())
    }

    /// The session that the run was given.
    fn given_session(&self) -> Option<&str> {
        let variable = || self.start.variables.get("session_id")?.as_str();
        self.start.session.as_deref().or_else(variable)
    }

    /// No session that the run has opened is open any more.
    pub(super) fn forget_sessions(&mut self) {
        for frame in self.frames.values_mut() {
            frame.sessions.clear();
        }
        self.left_session = None;
    }
}

impl Machine<'_> {
    /// An action has ended that may have opened sessions, or closed them.
    pub(super) fn note_sessions(&mut self, id: FrameId, deed: &Deed, result: &Value) {
        let session = result.get("session_id").and_then(Value::as_str);
        match (deed, session) {
            (
                Deed::Tool {
                    tool,
                    builtin: true,
                    ..
                },
                Some(session),
            ) if result.get("success") == Some(&Value::Bool(true)) => match tool.as_str() {
                "open_terminal" => {
                    if let Some(frame) = self.data.frames.get_mut(&id) {
                        frame.sessions.push(session.to_owned());
                    }
                }
                "exit_terminal" => self.session_closed(session),
                _ => {}
            },
            (Deed::Call { .. }, left) => self.data.left_session = left.map(str::to_owned),
            _ => {}
        }
    }

    fn session_closed(&mut self, session: &str) {
        for frame in self.data.frames.values_mut() {
            frame.sessions.retain(|open| open != session);
        }
        if self.data.left_session.as_deref() == Some(session) {
            self.data.left_session = None;
        }
        if self.data.given_session() == Some(session) {
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
        }
        Some(frame)
    }
}
