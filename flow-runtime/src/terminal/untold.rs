//! A session that whoever has asked for it knows nothing of so far.

use std::sync::Arc;

use super::registry::Terminals;
use super::session::Session;

/// A session that was started and that nobody has been told of. It is closed with this, since nobody
/// else could close it, unless [`Untold::told`] is said first.
pub struct Untold {
    terminals: Terminals,
    session: Option<Arc<Session>>,
}

impl Untold {
    pub(super) fn new(terminals: &Terminals, session: Arc<Session>) -> Untold {
        Untold {
            terminals: terminals.clone(),
            session: Some(session),
        }
    }

    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    /// Somebody knows of the session now, and sees to it.
    pub fn told(mut self) {
        self.session = None;
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.terminals.discard(&session);
        }
    }
}
