//! What keeps a run driven together with the runs it has called.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::Message;
use crate::run::ActionId;

/// What keeps a run driven, with those that it has called: one of them goes on. Whoever has rested asks
/// before it does anything, so that the run is not let go of while it does.
#[derive(Clone, Default)]
pub(in crate::host) struct Hold(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// How many of the called runs go on.
    going: usize,
    /// Nothing is begun any more.
    is_let_go: bool,
}

/// A called run goes on, as long as this is there.
pub(super) struct Going(Hold);

impl Hold {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A called run is about to do something; `None` when it must not any more.
    pub(super) fn goes_on(&self) -> Option<Going> {
        let mut held = self.lock();
        (!held.is_let_go).then(|| {
            held.going += 1;
            Going(self.clone())
        })
    }

    /// Whether nothing goes on; then nothing will.
    pub(super) fn let_go(&self) -> bool {
        let mut held = self.lock();
        held.is_let_go |= held.going == 0;
        held.is_let_go
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.0.lock().going -= 1;
    }
}

/// A call of a run that is driven here. As long as that goes on, the host of the called run stays
/// and looks for answers, and tells the caller whether anything is left to do meanwhile.
#[derive(Clone)]
pub(in crate::host) struct Caller {
    pub(super) call: ActionId,
    pub(super) tell: mpsc::UnboundedSender<Message>,
    pub(super) hold: Hold,
}

impl Caller {
    /// The called run waits for somebody, or is driven elsewhere.
    pub(in crate::host) fn rests(&self) {
        let _ = self.tell.send(Message::Rests(self.call));
    }

    /// The called run goes on here.
    pub(in crate::host) fn goes_on(&self) {
        let _ = self.tell.send(Message::GoesOn(self.call));
    }
}
