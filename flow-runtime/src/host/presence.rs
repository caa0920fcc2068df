//! Who drives which run in this process, so that they hear at once of what is recorded for it, and
//! whoever ends a run can wait until nothing of it goes on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::journal::RunId;

/// How long whoever ends a run waits for those who drive it.
const LONGEST: Duration = Duration::from_secs(10);

/// Those who drive runs here.
#[derive(Clone, Default)]
pub(super) struct Presences(Arc<Mutex<HashMap<RunId, Known>>>);

/// What is known of somebody who drives a run.
struct Known {
    news: Arc<Notify>,
    here: watch::Receiver<()>,
}

/// Somebody drives a run, as long as this is there.
pub(super) struct Presence {
    run: RunId,
    all: Presences,
    news: Arc<Notify>,
    /// Closed when this goes.
    here: watch::Sender<()>,
}

impl Presences {
    fn all(&self) -> MutexGuard<'_, HashMap<RunId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody drives a run from now on. Whoever does has the lock of the run.
    pub(super) fn enter(&self, run: RunId) -> Presence {
        let news = Arc::new(Notify::new());
        let (here, known) = watch::channel(());
        let known = Known {
            news: Arc::clone(&news),
            here: known,
        };
        self.all().insert(run, known);
        Presence {
            run,
            all: self.clone(),
            news,
            here,
        }
    }

    /// Something was recorded for a run.
    pub(super) fn tell(&self, run: RunId) {
        if let Some(known) = self.all().get(&run) {
            known.news.notify_one();
        }
    }

    /// Waits until nobody drives a run; who does not let go of it is not waited for longer than
    /// [`LONGEST`].
    pub(super) async fn left(&self, run: RunId) {
        let here = self.all().get(&run).map(|known| known.here.clone());
        if let Some(mut here) = here {
            // It is closed, and never changes.
            let _ = tokio::time::timeout(LONGEST, here.changed()).await;
        }
    }
}

impl Presence {
    /// Something may have been recorded for the run by somebody else.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut all = self.all.all();
        // Whoever has the run next may be there already.
        if all
            .get(&self.run)
            .is_some_and(|known| known.here.same_channel(&self.here.subscribe()))
        {
            all.remove(&self.run);
        }
    }
}
