//! Definitions given whole are kept for reuse when their run succeeds, also when that is long
//! after the call that began it was answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow_runtime::host::Driven;
use flow_runtime::journal::{RunId, Status};
use flow_runtime::library::{Definition, Saved};
use serde_json::Value;

use super::Server;

/// What becomes of definitions that came with a call.
#[derive(Default)]
pub(crate) struct Keeping(Mutex<HashMap<RunId, Kept>>);

/// What became of a definition.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// Nothing yet: its run has not succeeded.
    Not(Value),
    /// It is stored under this name.
    Stored(String),
    /// A workflow of this name does the same.
    Known(String),
    /// It could not be stored, for this reason.
    Refused(String),
}

impl Keeping {
    fn kept(&self) -> MutexGuard<'_, HashMap<RunId, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a definition when this run has succeeded.
    pub(crate) fn after(&self, run: RunId, definition: Value) {
        self.kept().insert(run, Kept::Not(definition));
    }

    fn waits(&self, run: RunId) -> bool {
        matches!(self.kept().get(&run), Some(Kept::Not(_)))
    }
}

impl Server {
    /// What became of the definition of a run, if it came with a call.
    pub(crate) fn kept(&self, run: RunId) -> Option<Kept> {
        self.settle(run);
        self.keeping.kept().get(&run).cloned()
    }

    /// Stores the definition of a run that has succeeded; forgets that of one that has not.
    fn settle(&self, run: RunId) {
        let status = self.host.journal().run(run).map(|run| run.status);
        let mut all = self.keeping.kept();
        let (Some(kept), Ok(status)) = (all.get_mut(&run), status) else {
            return;
        };
        let Kept::Not(definition) = kept else {
            return;
        };
        match status {
            Status::Completed => {
                let library = self.shelves.library();
                *kept = match library.save_for_reuse(Definition::Value(definition)) {
                    Ok(Saved::New(entry)) => Kept::Stored(entry.name),
                    Ok(Saved::Known(entry)) => Kept::Known(entry.name),
                    Err(error) => Kept::Refused(error.to_string()),
                };
            }
            // A failed run can be resumed.
            Status::Failed | Status::Running | Status::Waiting | Status::Sleeping => {}
            Status::Cancelled => {
                all.remove(&run);
            }
        }
    }

    /// Sees to the definition of a run whenever it is let go of, whoever waits for it then.
    pub(super) fn keep_after(self: &Arc<Self>, run: RunId, driven: &Driven) {
        if !self.keeping.waits(run) {
            return;
        }
        let server = Arc::clone(self);
        let driven = driven.clone();
        tokio::spawn(async move {
            driven.end().await;
            server.settle(run);
        });
    }
}
