//! Recorded events, applied again as they were decided.

use super::local::Error;
use crate::expression::{Decided, Patience, as_judged, judged};
use crate::journal;
use crate::run::{Effect, Event, Happening, Observer, Run};

/// A recorded event, with what the clock decided while it was first applied.
pub(super) struct Recorded {
    /// Its number in the run.
    pub(super) seq: u64,
    pub(super) event: Event,
    /// None when nobody has recorded it: the start of a run is recorded before it is applied.
    decided: Option<Decided>,
}

impl Recorded {
    /// Events as they were recorded. What the clock decided follows the event it belongs to.
    pub(super) fn all(events: &[journal::Event]) -> Result<Vec<Recorded>, Error> {
        let mut all: Vec<Recorded> = Vec::with_capacity(events.len());
        for event in events {
            let seq = event.seq;
            let event: Event = serde_json::from_slice(&event.body)
                .map_err(|error| Error::Unreadable(error.to_string()))?;
            if let (
                Happening::Late {
                    evaluations,
                    gave_way,
                },
                Some(before),
            ) = (&event.what, all.last_mut())
            {
                before.decided = Some(Decided {
                    late: evaluations.clone(),
                    gave_way: *gave_way,
                });
            }
            let decided = Some(Decided::default());
            all.push(Recorded {
                seq,
                event,
                decided,
            });
        }
        if let [only] = &mut all[..]
            && let Happening::Started(_) = only.event.what
        {
            only.decided = None;
        }
        Ok(all)
    }

    /// Applies the event as it was applied before.
    pub(super) fn apply(
        &self,
        run: &mut Run,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Vec<Effect>, Error> {
        let apply = || match observer {
            Some(observer) => run.apply_watched(&self.event, observer),
            None => run.apply(&self.event),
        };
        let applied = match &self.decided {
            Some(decided) => as_judged(decided, apply),
            None => judged(Patience::default(), apply).0,
        };
        Ok(applied?)
    }

    /// Whether it says what the clock decided in the event before it.
    pub(super) fn is_late(&self) -> bool {
        matches!(self.event.what, Happening::Late { .. })
    }

    /// Whether nobody has recorded what the clock decided.
    pub(super) fn is_new(&self) -> bool {
        self.decided.is_none()
    }
}
