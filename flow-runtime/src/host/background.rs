//! Runs driven in the background, each by one task however many ask for it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::local::{Error, Host, Report};
use crate::journal::RunId;

/// The runs that a host drives in the background.
#[derive(Default)]
pub(super) struct Background {
    runs: Mutex<HashMap<RunId, Entry>>,
}

struct Entry {
    driven: Driven,
    /// Which of it and the runs it has called ask somebody who is not here.
    asking: watch::Sender<HashSet<RunId>>,
    /// Something was recorded that the driver may have missed on its way out.
    again: bool,
}

impl Background {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was recorded for a run; who drives it may be on the way out.
    pub(super) fn recorded(&self, run: RunId) {
        if let Some(entry) = self.runs().get_mut(&run) {
            entry.again = true;
        }
    }

    /// Whether the driver of a run is to begin once more; if not, it is forgotten.
    fn goes_on(&self, run: RunId) -> bool {
        let mut runs = self.runs();
        if let Some(entry) = runs.get_mut(&run)
            && std::mem::take(&mut entry.again)
        {
            return true;
        }
        runs.remove(&run);
        false
    }
}

/// Forgets a run whose driver is cut short, so that another runtime can drive it.
struct Interest {
    host: Host,
    run: RunId,
    over: bool,
}

impl Drop for Interest {
    fn drop(&mut self) {
        if !self.over {
            self.host.inner.background.runs().remove(&self.run);
        }
    }
}

/// A run that is driven in the background.
#[derive(Clone)]
pub struct Driven {
    end: watch::Receiver<Option<Result<Report, Arc<Error>>>>,
    asking: watch::Receiver<HashSet<RunId>>,
}

impl Driven {
    /// Waits until the host lets go of the run, and says how it stands then. `None` when the
    /// runtime that drove it was shut down.
    pub async fn end(mut self) -> Option<Result<Report, Arc<Error>>> {
        let end = self.end.wait_for(Option::is_some).await.ok()?;
        end.clone()
    }

    /// Waits until the run asks somebody who is not here, while it may go on otherwise.
    pub async fn asks(mut self) {
        let asks = self.asking.wait_for(|asking| !asking.is_empty());
        if asks.await.is_err() {
            // Nobody drives it any more: it asks nothing from here.
            std::future::pending::<()>().await;
        }
    }
}

impl Host {
    /// A run that is driven here asks somebody who is not here, or does so no longer.
    pub(super) fn asks_now(&self, run: RunId, asks: bool) {
        // Who cannot be found out about is told when the run is let go of.
        let outermost = self.outermost(run).unwrap_or(run);
        let runs = self.inner.background.runs();
        if let Some(entry) = runs.get(&outermost) {
            entry.asking.send_if_modified(|asking| match asks {
                true => asking.insert(run),
                false => asking.remove(&run),
            });
        }
    }

    /// The run, if it is driven in the background here.
    #[must_use]
    pub fn driven(&self, run: RunId) -> Option<Driven> {
        let runs = self.inner.background.runs();
        runs.get(&run).map(|entry| entry.driven.clone())
    }

    /// Returns when nothing is driven in the background any more; [`Host::interrupt`] brings that
    /// about.
    pub async fn settled(&self) {
        loop {
            let next = self
                .inner
                .background
                .runs()
                .values()
                .next()
                .map(|entry| entry.driven.clone());
            let Some(driven) = next else {
                return;
            };
            // Whoever drives it also takes it off the list.
            driven.end().await;
        }
    }

    /// Drives a run in the background, if that is not done already, as [`Host::drive`] would: to
    /// its end, or until it waits for somebody. What is recorded here meanwhile is not missed.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn drive_in_background(&self, run: RunId) -> Driven {
        let mut runs = self.inner.background.runs();
        if let Some(entry) = runs.get(&run) {
            return entry.driven.clone();
        }
        let (tell, end) = watch::channel(None);
        let (asking, asked) = watch::channel(HashSet::new());
        let driven = Driven { end, asking: asked };
        let entry = Entry {
            driven: driven.clone(),
            asking,
            again: false,
        };
        runs.insert(run, entry);
        drop(runs);
        let interest = Interest {
            host: self.clone(),
            run,
            over: false,
        };
        tokio::spawn(async move {
            // The whole of it, not the fields that are named below.
            let mut interest = interest;
            let host = interest.host.clone();
            let report = loop {
                let report = host.drive(run).await;
                if !host.inner.background.goes_on(run) {
                    interest.over = true;
                    break report;
                }
            };
            tell.send_replace(Some(report.map_err(Arc::new)));
        });
        driven
    }
}
