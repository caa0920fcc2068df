//! What a run has done so far, step by step.

use std::collections::HashMap;
use std::sync::Arc;

use super::local::{Error, Host};
use crate::journal::RunId;
use crate::run::{Effect, Ending, Program, Status};

/// One visit of a step or state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The step.
    pub step: String,
    /// The frame: 0 for the workflow itself, others for children of fan-outs.
    pub frame: u32,
    /// When it began, in milliseconds since 1970.
    pub started_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// How it ended.
    pub ending: Visited,
}

/// How a visit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visited {
    /// Well.
    Success,
    /// With this error.
    Failed(String),
    /// Its `when` did not hold.
    Skipped,
    /// It has not.
    UnderWay,
    /// It was stopped with its run or fan-out.
    Stopped,
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
        let mut finish = None;
        for (at, effect) in self.history(run)? {
            match effect {
                Effect::Entered(place) => {
                    open.insert((place.frame, place.node.clone()), visits.len());
                    visits.push(Visit {
                        step: place.node,
                        frame: place.frame,
                        started_at: at,
                        ended_at: None,
                        ending: Visited::UnderWay,
                    });
                }
                Effect::Left { place, outcome, .. } => {
                    let visit = open.remove(&(place.frame, place.node));
                    if let Some(visit) = visit.and_then(|visit| visits.get_mut(visit)) {
                        visit.ended_at = Some(at);
                        visit.ending = match outcome {
                            Ending::Success => Visited::Success,
                            Ending::Skipped => Visited::Skipped,
                            Ending::Failure(reason) => Visited::Failed(reason),
                            Ending::Timeout => Visited::Failed("it did not end in time".to_owned()),
                        };
                    }
                }
                Effect::Finish(end) => finish = Some((at, end)),
                Effect::Act(_) | Effect::Sleep { .. } | Effect::Stop(_) | Effect::Yield => {
                    finish = None;
                }
            }
        }
        if let Some((at, end)) = finish {
            for (_, index) in open {
                let Some(visit) = visits.get_mut(index) else {
                    continue;
                };
                visit.ended_at = Some(at);
                let error = end.error.as_ref();
                let own = error.filter(|error| error.step.as_ref() == Some(&visit.step));
                visit.ending = match (own, end.status) {
                    (Some(error), Status::Failed) => Visited::Failed(error.message.clone()),
                    (_, Status::Completed) => Visited::Success,
                    _ => Visited::Stopped,
                };
            }
        }
        Ok(visits)
    }
}
