//! What is to be typed because of what was recorded here, and nobody has begun: whoever records
//! something need not be who drives the run.

use std::collections::{HashMap, HashSet};

use tokio::sync::watch;

use crate::journal::RunId;
use crate::run::ActionId;

/// What nobody has begun, by run.
#[derive(Default)]
pub(super) struct Unbegun(watch::Sender<HashMap<RunId, Wanted>>);

#[derive(Default)]
struct Wanted {
    actions: HashSet<ActionId>,
    /// How many are being recorded: others may read them before they are known here.
    coming: usize,
}

/// Actions are being recorded as wanted, as long as this is there.
pub(super) struct Coming<'a> {
    run: RunId,
    all: &'a Unbegun,
}

impl Unbegun {
    /// Something is recorded from now on that actions are wanted by.
    pub(super) fn coming(&self, run: RunId) -> Coming<'_> {
        self.0
            .send_modify(|runs| runs.entry(run).or_default().coming += 1);
        Coming { run, all: self }
    }

    /// Waits until what is being recorded for a run is known here.
    pub(super) async fn known(&self, run: RunId) {
        let mut runs = self.0.subscribe();
        // It is not closed: the sender is borrowed.
        let _ = runs
            .wait_for(|runs| runs.get(&run).is_none_or(|wanted| wanted.coming == 0))
            .await;
    }

    /// Whether an action was wanted by what was recorded here, and nobody has begun it.
    pub(super) fn contains(&self, run: RunId, action: ActionId) -> bool {
        let runs = self.0.borrow();
        let wanted = runs.get(&run);
        wanted.is_some_and(|wanted| wanted.actions.contains(&action))
    }

    /// Somebody begins an action.
    pub(super) fn begin(&self, run: RunId, action: ActionId) {
        self.change(run, |wanted| {
            wanted.actions.remove(&action);
        });
    }

    /// Nothing of a run is to be begun any more.
    pub(super) fn forget(&self, run: RunId) {
        self.change(run, |wanted| wanted.actions.clear());
    }

    fn change(&self, run: RunId, change: impl FnOnce(&mut Wanted)) {
        self.0.send_if_modified(|runs| {
            let Some(wanted) = runs.get_mut(&run) else {
                return false;
            };
            change(wanted);
            if wanted.coming == 0 && wanted.actions.is_empty() {
                runs.remove(&run);
            }
            true
        });
    }
}

impl Coming<'_> {
    /// They are recorded.
    pub(super) fn recorded(self, actions: Vec<ActionId>) {
        self.all
            .change(self.run, |wanted| wanted.actions.extend(actions));
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.all.change(self.run, |wanted| wanted.coming -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const RUN: fn() -> RunId = || RunId::new(1, 1);

    #[test]
    fn what_is_recorded_is_unbegun_until_somebody_begins_it() {
        let unbegun = Unbegun::default();
        unbegun
            .coming(RUN())
            .recorded(vec![ActionId(1), ActionId(2)]);
        unbegun.begin(RUN(), ActionId(1));
        assert!(!unbegun.contains(RUN(), ActionId(1)));
        assert!(unbegun.contains(RUN(), ActionId(2)));
        unbegun.forget(RUN());
        assert!(unbegun.0.borrow().is_empty());
    }

    #[test]
    fn what_was_not_recorded_is_nothing() {
        let unbegun = Unbegun::default();
        drop(unbegun.coming(RUN()));
        assert!(unbegun.0.borrow().is_empty());
    }

    #[test]
    fn whoever_reads_what_is_being_recorded_waits_until_it_is_known() {
        let unbegun = Unbegun::default();
        let coming = unbegun.coming(RUN());
        let _other = unbegun.coming(RunId::new(1, 2));
        let mut known = pin!(unbegun.known(RUN()));
        let mut look = || {
            let waker = Waker::noop();
            known.as_mut().poll(&mut Context::from_waker(waker))
        };
        assert_eq!(look(), Poll::Pending);
        coming.recorded(vec![ActionId(1)]);
        assert_eq!(look(), Poll::Ready(()));
    }
}
