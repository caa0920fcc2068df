//! Runs that call others: who called whom, and what all of them together wait for.

use super::deed;
use super::local::{Error, Host, Report};
use crate::journal::{self, Listing, RunId, RunRecord};
use crate::run::{Action, Deed, Effect, Happening, Run};

/// Something that a run waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The run that waits: the one that was asked about, or one that it has called.
    pub run: RunId,
    /// Its name in the run that was asked about: what its result is submitted under.
    pub step: String,
    /// What is wanted.
    pub action: Action,
    /// What the agent that it goes to is told before, if that is known.
    pub agent_instructions: Option<String>,
    /// What the answer of a person must satisfy.
    pub validation: Option<serde_json::Value>,
}

impl Host {
    /// The run that called this one, or its caller's caller, as long as those are not over.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn outermost(&self, run: RunId) -> Result<RunId, Error> {
        let mut outermost = run;
        while let Some(parent) = self.journal().run(outermost)?.parent {
            if self.journal().run(parent)?.status.is_final() {
                break;
            }
            outermost = parent;
        }
        Ok(outermost)
    }

    /// The runs that a run has called.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn called(&self, run: RunId) -> Result<Vec<RunRecord>, Error> {
        let called = Listing::new().children_of(run);
        Ok(self.journal().list(&called, usize::MAX >> 1)?.runs)
    }

    /// Until when a run waits for nothing but a time, itself or in the runs it has called; in
    /// milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn sleeps_until(&self, report: &Report) -> Result<Option<u64>, Error> {
        let record = self.journal().run(report.run)?;
        if record.status == journal::Status::Sleeping {
            return Ok(record.wake_at);
        }
        let mut earliest: Option<u64> = None;
        for awaited in &report.pending {
            let Deed::Call { .. } = &awaited.action.what else {
                return Ok(None);
            };
            let called = deed::called(report.run, &awaited.action);
            if self.journal().run(called).is_err() {
                return Ok(None);
            }
            let Some(until) = self.sleeps_until(&self.report(called)?)? else {
                return Ok(None);
            };
            earliest = Some(earliest.map_or(until, |it| it.min(until)));
        }
        Ok(earliest)
    }

    /// How many levels of calls lie below a run.
    pub(super) fn levels_below(&self, run: RunId) -> Result<u32, Error> {
        let mut levels = 0;
        for child in self.called(run)? {
            levels = levels.max(1 + self.levels_below(child.id)?);
        }
        Ok(levels)
    }

    /// Cancels what a run has called and no longer waits for: the call had no more time, or the
    /// run failed beside it.
    pub(super) async fn end_forgotten(&self, id: RunId, run: &Run) -> Result<(), Error> {
        let pending = run.pending();
        let is_wanted = |child: RunId| {
            pending.iter().any(|effect| match effect {
                Effect::Act(action) => {
                    matches!(action.what, Deed::Call { .. }) && deed::called(id, action) == child
                }
                _ => false,
            })
        };
        for child in self.called(id)? {
            if child.status.is_final() || is_wanted(child.id) {
                continue;
            }
            let reason = "the run that called it goes on without it".to_owned();
            match Box::pin(self.record(child.id, Happening::Cancelled { reason })).await {
                // It ended meanwhile.
                Ok(()) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What a run waits for, with what the runs it has called wait for. A step of a called run has
    /// the name of the call before its own.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn pending(&self, report: &Report) -> Result<Vec<Pending>, Error> {
        let mut pending = Vec::new();
        for awaited in &report.pending {
            match &awaited.action.what {
                Deed::Call { .. } => {
                    let called = deed::called(report.run, &awaited.action);
                    match self.journal().run(called) {
                        Ok(child) if !child.status.is_final() => {}
                        // It is over, or has not begun.
                        Ok(_) | Err(journal::Error::NoSuchRun { .. }) => continue,
                        Err(error) => return Err(error.into()),
                    }
                    let below = self.pending(&self.report(called)?)?.into_iter();
                    pending.extend(below.map(|below| Pending {
                        step: format!("{}/{}", awaited.step, below.step),
                        ..below
                    }));
                }
                Deed::Judge { .. } => pending.push(Pending {
                    action: self.shown(awaited.run, &awaited.action).into_owned(),
                    ..awaited.clone()
                }),
                Deed::Environment { .. }
                | Deed::Shell { .. }
                | Deed::Tool { .. }
                | Deed::Prompt { .. }
                | Deed::Delegate { .. }
                | Deed::DelegateItem { .. } => pending.push(awaited.clone()),
            }
        }
        Ok(pending)
    }
}
