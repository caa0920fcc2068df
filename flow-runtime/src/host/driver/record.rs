//! What a driver writes to the journal of its run, and reads there of what others have written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::listing::Listed;
use super::{Driver, typed};
use crate::expression::{Decided, judged};
use crate::host::local::{Error, body, kind, now};
use crate::host::recorded::Recorded;
use crate::journal::{self, Append, RunUpdate};
use crate::run::{Action, Deed, Effect, Event, Happening, Program, Run, Status};
use crate::secret;
use crate::value::Value;

/// Events between two snapshots of a run.
const SNAPSHOT_EVERY: u64 = 200;
/// Time spent on events after which a run is written down, however few they are: whoever reads the
/// run spends it again.
const SNAPSHOT_AFTER: Duration = Duration::from_secs(1);

/// Stands in a log before what has lost its beginning.
const CUT: &str = "[what came before this was dropped]\n";

impl Driver {
    /// Records an event and applies it. What it wants is acted on only after this.
    pub(in crate::host) async fn append(&mut self, what: Happening) -> Result<Vec<Effect>, Error> {
        self.append_at(now().max(self.last_at), what).await
    }

    /// Records what the clock decided at the start of the run. When others were first, it is the
    /// run as they have it.
    pub(super) async fn note_start(&mut self) -> Result<(), Error> {
        let Some(late) = late(self.last_at, std::mem::take(&mut self.unrecorded)) else {
            return Ok(());
        };
        self.run.apply(&late)?;
        let written = self.write(&late, None, &[], false).await;
        if let Err(Error::Journal(journal::Error::Fenced { .. })) = written {
            let loaded = self.host.journal().load(self.id)?;
            self.last = loaded.last();
            self.listed = Listed::Otherwise;
            self.go_back()?;
        }
        written
    }

    pub(super) async fn append_at(
        &mut self,
        at: u64,
        what: Happening,
    ) -> Result<Vec<Effect>, Error> {
        self.run.check_returned(&what)?;
        self.note_start().await?;
        let what = self.host.scrubbed_in(self.id, &self.run, what);
        let event = Event { at, what };
        let written = self.written(&event.what);
        let patience = self.host.inner.options.patience();
        let had_begun = self.run.has_begun();
        let began = Instant::now();
        let (effects, decided) = judged(patience, || self.run.apply(&event));
        let effects = effects?;
        self.spent_since_snapshot += began.elapsed();
        let late = late(at, decided);
        if let Some(late) = &late {
            self.run.apply(late)?;
        }
        // Before the end is recorded: after it nobody would look at the run again.
        if effects.iter().any(|it| matches!(it, Effect::Finish(_))) {
            self.keep_definition();
        }
        let begins = !had_begun && self.run.has_begun();
        let host = self.host.clone();
        let typed = typed(&effects);
        let coming = (!typed.is_empty()).then(|| host.inner.unbegun.coming(self.id));
        match self.write(&event, late.as_ref(), &effects, begins).await {
            Ok(()) => {
                if let Some(coming) = coming {
                    coming.recorded(typed);
                }
                if self.run.status() != Status::Running {
                    host.inner.unbegun.forget(self.id);
                }
                if let Some((action, text)) = written {
                    host.wrote(self.id, &action, &text);
                }
                Ok(effects)
            }
            Err(error) => {
                // What was not recorded has not happened.
                self.go_back()?;
                Err(error)
            }
        }
    }

    /// What a command in a terminal wrote, if that is what has come of an action.
    fn written(&self, what: &Happening) -> Option<(Action, String)> {
        let Happening::Completed { action, result } = what else {
            return None;
        };
        let action = self.run.action(*action)?;
        let wrote = match &action.what {
            Deed::Tool {
                tool,
                builtin: true,
                ..
            } => tool == "run_command",
            _ => false,
        };
        let text = result.get("output").filter(|_| wrote)?.as_str()?;
        let mut text = secret::mask(text).into_owned();
        if result.get("truncated") == Some(&Value::Bool(true)) {
            text.insert_str(0, CUT);
        }
        Some((action.clone(), text))
    }

    /// Keeps the definition of a run that is over, where that was wished for and it has succeeded.
    pub(super) fn keep_definition(&self) {
        if let Some(data) = self.run.data() {
            self.host.keep_definition(self.id, data);
        }
    }

    /// Records an event that has been applied.
    async fn write(
        &mut self,
        event: &Event,
        late: Option<&Event>,
        effects: &[Effect],
        begins: bool,
    ) -> Result<(), Error> {
        let body = body(event)?;
        self.bytes_since_snapshot += body.len();
        let waits = self.waits_after(&event.what, effects);
        let mut append = Append::after(self.id, self.last).event(event.at, kind(&event.what), body);
        let listed = self.listed_after(event.at, waits);
        if let Some(listed) = &listed {
            let update = self.update(event.at, matches!(listed, Listed::Waiting));
            append = append.update(if begins { update.begun() } else { update });
        } else if begins {
            append = append.update(RunUpdate::at(event.at).begun());
        }
        if let Some(late) = late {
            append = append.event(late.at, kind(&late.what), self::body(late)?);
        }
        // A large run is written down less often, so that a long one costs what its events do.
        let snapshot = self.since_snapshot + 1 >= SNAPSHOT_EVERY
            && self.bytes_since_snapshot >= self.snapshot_bytes
            || self.spent_since_snapshot >= SNAPSHOT_AFTER;
        if snapshot && let Some(data) = self.run.data() {
            let bytes = serde_json::to_vec(data).map_err(|e| Error::Unreadable(e.to_string()))?;
            self.snapshot_bytes = bytes.len();
            append = append.snapshot(bytes);
        }
        self.last = self.host.journal().record(append).await?;
        self.last_at = event.at;
        self.listed = listed.unwrap_or(self.listed);
        self.since_snapshot = if snapshot { 0 } else { self.since_snapshot + 1 };
        if snapshot {
            self.bytes_since_snapshot = 0;
            self.spent_since_snapshot = Duration::ZERO;
        }
        Ok(())
    }

    /// The run as it was after the last event that was recorded from here.
    fn go_back(&mut self) -> Result<(), Error> {
        let loaded = self.host.journal().load(self.id)?;
        let snapshot = loaded.snapshot.filter(|snapshot| snapshot.seq <= self.last);
        let from = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq) + 1;
        let mut run = restored(Arc::clone(self.run.program()), snapshot.as_ref())?;
        let events = self.host.journal();
        let events = events.events(self.id, from..=self.last, usize::MAX)?;
        for event in Recorded::all(&events)? {
            event.apply(&mut run, None)?;
        }
        self.run = run;
        Ok(())
    }

    /// Takes in what others have written to this run. Gives what happened meanwhile, and of what
    /// was wanted meanwhile only what still is: whoever wrote the rest has done it.
    pub(in crate::host) fn read_on(&mut self) -> Result<Vec<Effect>, Error> {
        let others = self
            .host
            .journal()
            .events(self.id, self.last + 1.., usize::MAX)?;
        let mut effects = Vec::new();
        let mut recorded = Recorded::all(&others)?;
        // What the clock decided when the run was begun elsewhere, which may be something else.
        if let Some(late) = recorded.first().filter(|first| first.is_late()) {
            self.last = late.seq;
            self.unrecorded = Decided::default();
            self.go_back()?;
            recorded.remove(0);
        }
        for event in recorded {
            if let Listed::Running(_) = self.listed {
                self.listed = Listed::Otherwise;
            }
            self.last = event.seq;
            self.last_at = event.event.at;
            if let Some(action) = event.event.what.ends() {
                self.give_up(action);
            }
            effects.extend(event.apply(&mut self.run, None)?);
        }
        Ok(self.run.still_wanted(effects, now()))
    }
}

/// What the clock decided while an event was applied, to be recorded after it.
fn late(at: u64, decided: Decided) -> Option<Event> {
    let is_nothing = decided.is_nothing();
    let what = Happening::Late {
        evaluations: decided.late,
        gave_way: decided.gave_way,
    };
    (!is_nothing).then_some(Event { at, what })
}

pub(super) fn restored(
    program: Arc<Program>,
    snapshot: Option<&journal::Snapshot>,
) -> Result<Run, Error> {
    let Some(snapshot) = snapshot else {
        return Ok(Run::new(program));
    };
    let data = serde_json::from_slice(&snapshot.body);
    let data = data.map_err(|error| Error::Unreadable(error.to_string()))?;
    Ok(Run::restore(program, data))
}
