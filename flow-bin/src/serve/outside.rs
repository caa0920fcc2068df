//! Runs that the journal here does not hold but the user's does: what began before there was a
//! project, or outside of it. They are found by the same rule as on the command line.

use std::sync::{Arc, PoisonError};

use anyhow::Result;
use flow_model::tools::{ListRunsRequest, Request};
use flow_runtime::journal::{self, Journal, RunId};

use super::Server;
use super::tool::Refused;
use crate::engine;

impl Server {
    /// The run that is meant, with the server of the journal that holds it.
    pub(crate) fn holding(self: &Arc<Self>, asked: &str) -> Result<(Arc<Server>, RunId), Refused> {
        let unknown = match self.host.journal().resolve(asked) {
            Ok(run) => return Ok((Arc::clone(self), run)),
            Err(unknown) => unknown,
        };
        let outside = self.sought_outside(asked);
        let outside = outside.map_err(|error| Refused(format!("{error:#}")))?;
        let found = outside.and_then(|outside| {
            let run = outside.host.journal().resolve(asked).ok()?;
            Some((outside, run))
        });
        found.ok_or_else(|| match unknown {
            journal::Error::NoSuchRun { run } if self.offers.has(ListRunsRequest::tool().name) => {
                Refused(format!("there is no run {run}; `list_runs` lists them"))
            }
            unknown => unknown.into(),
        })
    }

    /// The server of the user's journal, if a run is to be looked for there.
    fn sought_outside(&self, asked: &str) -> Result<Option<Arc<Server>>> {
        let sought = engine::sought_outside(self.shelves.library(), asked);
        let Some(path) = sought.filter(|path| path != self.host.journal().path()) else {
            return Ok(None);
        };
        let mut known = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outside) = &*known {
            return Ok(Some(Arc::clone(outside)));
        }
        let outside = Server::over(
            Journal::open(path)?,
            self.directory.clone(),
            self.terminals.clone(),
            Arc::clone(&self.servers),
            Arc::clone(&self.shelves),
            Arc::clone(&self.offers),
        )?;
        *known = Some(Arc::clone(&outside));
        Ok(Some(outside))
    }

    /// The server of the user's journal, if a run of it was asked for.
    pub(super) fn known_outside(&self) -> Option<Arc<Server>> {
        let known = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }
}
