//! Recorded events, applied again as they were decided.

use super::local::Error;
use crate::expression::as_judged;
use crate::journal;
use crate::run::{Effect, Event, Happening, Observer, Run};

/// A recorded event, with what the clock decided while it was first applied.
pub(super) struct Recorded {
    /// Its number in the run.
    pub(super) seq: u64,
    pub(super) event: Event,
    late: Vec<u64>,
}

impl Recorded {
    /// Events as they were recorded. What the clock decided follows the event it belongs to.
    pub(super) fn all(events: &[journal::Event]) -> Result<Vec<Recorded>, Error> {
        let mut all: Vec<Recorded> = Vec::with_capacity(events.len());
        for event in events {
            let seq = event.seq;
            let event: Event = serde_json::from_slice(&event.body)
                .map_err(|error| Error::Unreadable(error.to_string()))?;
            if let (Happening::Late { evaluations }, Some(before)) = (&event.what, all.last_mut()) {
                before.late.clone_from(evaluations);
            }
            let late = Vec::new();
            all.push(Recorded { seq, event, late });
        }
        Ok(all)
    }

    /// Applies the event as it was applied before.
    pub(super) fn apply(
        &self,
        run: &mut Run,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Vec<Effect>, Error> {
        let applied = as_judged(&self.late, || match observer {
            Some(observer) => run.apply_watched(&self.event, observer),
            None => run.apply(&self.event),
        });
        Ok(applied?)
    }

    /// Whether nobody has applied it yet: the start of a run is recorded and not applied.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.event.what, Happening::Started(_)) && self.late.is_empty()
    }
}
