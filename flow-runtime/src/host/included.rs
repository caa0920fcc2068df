//! Computed fields that a run has from workflows it included, and the runs that make them.

use super::deed::called_by;
use super::driver::Driver;
use super::local::{Error, Host};
use crate::journal::RunId;

impl Host {
    /// The computed fields that a run has from workflows it included, each with the run that it was
    /// included from.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn included(&self, run: RunId) -> Result<Vec<(String, RunId)>, Error> {
        let driver = Driver::open(self.clone(), run)?;
        let fields = driver.run.included().into_iter();
        let fields = fields.map(|(field, call)| (field.to_owned(), called_by(run, call)));
        // Runs are kept only so long.
        Ok(fields
            .filter(|(_, called)| self.journal().run(*called).is_ok())
            .collect())
    }

    /// The run that makes a computed field of a run: itself, or that of a workflow it included,
    /// which may have included it in turn.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn maker(&self, run: RunId, field: &str) -> Result<RunId, Error> {
        let mut maker = run;
        loop {
            let mut included = self.included(maker)?.into_iter();
            match included.find(|(name, _)| name == field) {
                Some((_, called)) => maker = called,
                None => return Ok(maker),
            }
        }
    }
}
