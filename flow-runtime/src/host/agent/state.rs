//! The state of a run, read and changed from outside.

use std::collections::BTreeMap;

use super::super::driver::Driver;
use super::{AgentError, Agents};
use crate::journal::RunId;
use crate::run::{Cell, Happening, Update};
use crate::secret;
use crate::value::Value;

/// What became of the computed fields of a run when its state was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Recomputed {
    /// Those that have another value than before, by name.
    pub changed: Value,
    /// Those that have no value because their rule failed, with the reason.
    pub failed: BTreeMap<String, String>,
}

impl Agents {
    /// Changes the state of a run, all of it or nothing. Says what became of its computed fields.
    ///
    /// # Errors
    ///
    /// When a change does not fit the state, and those of the journal.
    pub async fn update(&self, run: RunId, updates: Vec<Update>) -> Result<Recomputed, AgentError> {
        let before = self.read(run, computed).await?;
        self.record(run, Happening::Updated { updates }).await?;
        let after = self.read(run, computed).await?;
        let mut changed = Vec::new();
        for (place, (name, cell)) in after.iter().enumerate() {
            let was = before.get(place).map(|(_, cell)| cell);
            match cell {
                Cell::Value(value) if was != Some(cell) => {
                    changed.push((name.clone(), secret::mask_value(value)));
                }
                Cell::Value(_) | Cell::Failed(_) | Cell::Unset => {}
            }
        }
        Ok(Recomputed {
            changed: Value::map(changed),
            failed: failed(after),
        })
    }

    /// The computed fields of a run that have no value because their rule failed, with the reason.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn computed_errors(
        &self,
        run: RunId,
    ) -> Result<BTreeMap<String, String>, AgentError> {
        Ok(failed(self.read(run, computed).await?))
    }

    /// The flattened state of a run.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn state(&self, run: RunId) -> Result<Value, AgentError> {
        let state = self.read(run, |driver| driver.run.flattened()).await?;
        Ok(secret::mask_value(&state))
    }

    /// The values at some paths of a run's state or inputs, in their order; none where nothing is
    /// set. [`Run::value_at`](crate::run::Run::value_at) says what a path may be.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn values(
        &self,
        run: RunId,
        paths: Vec<String>,
    ) -> Result<Vec<Option<Value>>, AgentError> {
        let read = move |driver: &Driver| -> Vec<Option<Value>> {
            let paths = paths.iter();
            paths.map(|path| driver.run.value_at(path)).collect()
        };
        let values = self.read(run, read).await?.into_iter();
        Ok(values
            .map(|value| value.map(|value| secret::mask_value(&value)))
            .collect())
    }
}

/// Why some computed fields have no value, by name.
fn failed(cells: Vec<(String, Cell)>) -> BTreeMap<String, String> {
    let failed = cells.into_iter().filter_map(|(name, cell)| match cell {
        Cell::Failed(reason) => Some((name, secret::mask(&reason).into_owned())),
        Cell::Value(_) | Cell::Unset => None,
    });
    failed.collect()
}

/// The computed fields of a run.
fn computed(driver: &Driver) -> Vec<(String, Cell)> {
    let fields = driver.run.program().graph().computed.iter();
    let names = fields.map(|field| field.name.to_string());
    let cells = driver.run.data().map(|data| data.computed.clone());
    names.zip(cells.unwrap_or_default()).collect()
}
