//! Definitions that came with their runs and are kept for reuse when those succeed. The wish is
//! recorded with the start of a run, so that whoever ends the run fulfils it; and fulfilled before
//! the end is recorded, so that a death in between costs nothing: whoever goes on does it again,
//! which changes nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Kept;
use super::local::Host;
use crate::journal::RunId;
use crate::library;
use crate::run::{Data, Start, Status};
use crate::value::Value;

/// Runs of which is remembered what became of their definitions.
const REMEMBERED: usize = 1_000;

/// What became of the definitions of runs that ended here.
#[derive(Default)]
pub(super) struct Keepsakes(Mutex<BTreeMap<RunId, Result<Kept, String>>>);

impl Host {
    /// What became of the definition of a run, whoever has ended it; `None` where none was to be
    /// kept, and where one could not be kept elsewhere.
    pub(super) fn kept(&self, run: RunId, data: &Data) -> Option<Result<Kept, String>> {
        let keepsakes = &self.inner.keepsakes;
        let all = keepsakes.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(became) = all.get(&run) {
            return Some(became.clone());
        }
        drop(all);
        if data.start.keep == Value::Null || data.status != Status::Completed {
            return None;
        }
        let (name, is_new) = self.journal().kept_as(run).ok()??;
        Some(Ok(Kept { name, is_new }))
    }

    /// Keeps the definition of a run that has succeeded and is about to be recorded as such, where
    /// that was wished for.
    pub(super) fn keep_definition(&self, run: RunId, data: &Data) {
        let start = &data.start;
        if start.keep == Value::Null || data.status != Status::Completed {
            return;
        }
        let became = match self.inner.options.workflows.keep(&start.keep).transpose() {
            Some(became) => became,
            None => return,
        };
        if let Ok(kept) = &became {
            // The definition is kept all the same when its run cannot be counted for it.
            let _ = match self.becomes(run, start, kept) {
                true => self.journal().rename(run, &kept.name),
                false => self.journal().count_for(run, &kept.name),
            };
            let _ = self.journal().keep_as(run, &kept.name, kept.is_new);
        }
        let keepsakes = &self.inner.keepsakes;
        let mut all = keepsakes.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What an attempt to end the run has kept is still new when the next one succeeds.
        if !matches!(all.get(&run), Some(Ok(kept)) if became.as_ref().is_ok_and(|it| it.name == kept.name))
        {
            all.insert(run, became);
        }
        if all.len() > REMEMBERED {
            // Ids of runs begin with their time.
            all.pop_first();
        }
    }

    /// Whether a run stands under the workflow that holds its definition, for which it counts. One whose definition has a
    /// name of its own, which nothing else has, stands under that.
    fn becomes(&self, run: RunId, start: &Start, kept: &Kept) -> bool {
        let own = self.journal().run(run).map(|record| record.workflow);
        let is_own = |own: &String| {
            library::says_name(&start.keep.to_json())
                && self.inner.options.workflows.find(own).is_err()
        };
        kept.is_new || !own.as_ref().is_ok_and(is_own)
    }
}
