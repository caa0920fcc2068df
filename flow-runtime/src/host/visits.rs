//! What a run has done so far, step by step.

use std::collections::HashMap;
use std::sync::Arc;

use flow_model::graph::PromptKind;

use super::local::{Error, Host};
use crate::journal::RunId;
use crate::run::{Deed, Effect, Ending, Program};

/// One visit of a step or state.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// The step, with the item of a `foreach` that it belongs to: `all.1/ping`.
    pub step: String,
    /// The frame: 0 for the workflow itself, others for children of fan-outs.
    pub frame: u32,
    /// When it began, in milliseconds since 1970.
    pub started_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// How it ended; `None` while it is under way.
    pub ending: Option<Ending>,
    /// What it told people.
    pub message: Option<String>,
}

impl Host {
    /// The program of a run.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn program_of(&self, run: RunId) -> Result<Arc<Program>, Error> {
        self.program(self.journal().run(run)?.definition)
    }

    /// Every visit of a step so far, in the order they began. The run's events are applied once
    /// more for it; nothing is recorded.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn visits(&self, run: RunId) -> Result<Vec<Visit>, Error> {
        let mut visits: Vec<Visit> = Vec::new();
        let mut open: HashMap<(u32, String), usize> = HashMap::new();
        for (at, effect) in self.history(run)? {
            match effect {
                Effect::Entered(place) => {
                    open.insert((place.frame, place.node.clone()), visits.len());
                    visits.push(Visit {
                        step: place.name(),
                        frame: place.frame,
                        started_at: at,
                        ended_at: None,
                        ending: None,
                        message: None,
                    });
                }
                Effect::Left { place, outcome, .. } => {
                    let visit = open.remove(&(place.frame, place.node));
                    if let Some(visit) = visit.and_then(|visit| visits.get_mut(visit)) {
                        visit.ended_at = Some(at);
                        visit.ending = Some(outcome);
                    }
                }
                Effect::Told { place, message } => {
                    let visit = open.get(&(place.frame, place.node));
                    if let Some(visit) = visit.and_then(|visit| visits.get_mut(*visit)) {
                        visit.message = Some(message);
                    }
                }
                Effect::Act(action) => {
                    let visit = open.get(&(action.frame, action.node));
                    if let Deed::Prompt {
                        message,
                        kind: PromptKind::Info,
                        ..
                    } = action.what
                        && let Some(visit) = visit.and_then(|visit| visits.get_mut(*visit))
                    {
                        visit.message = Some(message);
                    }
                }
                Effect::Sleep { .. } | Effect::Stop(_) | Effect::Yield | Effect::Finish(_) => {}
            }
        }
        Ok(visits)
    }
}
