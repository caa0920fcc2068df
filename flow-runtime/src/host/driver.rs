//! One run while it is driven: events are recorded, then what they want is done.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::local::{Error, Host, Report, ReportStatus, body, kind, now};
use super::secrets::masked_effect;
use crate::journal::{self, Append, RunId, RunUpdate};
use crate::run::{Action, ActionId, Effect, Event, Happening, Place, Run, Status};
use crate::secret;
use crate::value::Value;

/// Events between two snapshots of a run.
const SNAPSHOT_EVERY: u64 = 200;
/// How often a host looks whether somebody else has written to its run.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// One run while it is driven.
pub(super) struct Driver {
    host: Host,
    id: RunId,
    pub(super) run: Run,
    last: u64,
    since_snapshot: u64,
    last_at: u64,
    tasks: HashMap<ActionId, JoinHandle<()>>,
    /// Actions that nobody here can answer.
    parked: HashSet<ActionId>,
    /// What the last event wanted when the run was read: whoever watches has not seen it.
    unseen: Vec<Effect>,
    /// Where its commands run.
    directory: Arc<Path>,
    happened: mpsc::UnboundedSender<Message>,
    inbox: mpsc::UnboundedReceiver<Message>,
}

/// What a driver does next.
enum Turn {
    Message(Option<Message>),
    /// Somebody else may have written to the run.
    Look,
    /// The host is told to stop.
    Stop,
}

enum Message {
    Happened(Happening),
    /// Nobody is there to answer this.
    Parked(ActionId),
}

/// Nothing of a run goes on once nobody drives it, also when its host's own work is cut short.
impl Drop for Driver {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

impl Driver {
    /// Reads a run from the journal.
    pub(super) fn open(host: Host, id: RunId) -> Result<Self, Error> {
        let loaded = host.journal().load(id)?;
        let program = host.program(loaded.run.definition)?;
        let last = loaded.last();
        let unreadable = |error: serde_json::Error| Error::Unreadable(error.to_string());
        let mut run = match &loaded.snapshot {
            Some(snapshot) => {
                let data = serde_json::from_slice(&snapshot.body).map_err(unreadable)?;
                Run::restore(program, data)
            }
            None => Run::new(program),
        };
        let mut last_at = 0;
        let mut unseen = Vec::new();
        for event in &loaded.events {
            let event: Event = serde_json::from_slice(&event.body).map_err(unreadable)?;
            last_at = event.at;
            unseen = run.apply(&event)?;
        }
        if let Some(data) = run.data() {
            host.learn(&data.start);
        }
        let begun_in = run.data().and_then(|data| data.start.directory.as_deref());
        let directory = begun_in.map_or(host.inner.options.directory.as_path(), Path::new);
        let directory = Arc::from(directory);
        let (happened, inbox) = mpsc::unbounded_channel();
        Ok(Driver {
            host,
            id,
            run,
            last,
            since_snapshot: loaded.events.len() as u64,
            last_at,
            tasks: HashMap::new(),
            parked: HashSet::new(),
            unseen,
            directory,
            happened,
            inbox,
        })
    }

    pub(super) async fn drive(&mut self) -> Result<Report, Error> {
        let mut stop = self.host.inner.stop.subscribe();
        let is_fresh = self.host.fresh().remove(&self.id);
        for effect in std::mem::take(&mut self.unseen) {
            if is_fresh && matches!(effect, Effect::Entered(_) | Effect::Left { .. }) {
                self.act(effect);
            }
        }
        for effect in self.run.taken_over(now()) {
            if let Effect::Act(action) = &effect
                && !is_fresh
            {
                // Another host began it; here it begins now.
                let (frame, node) = (action.frame, action.node.clone());
                self.act(Effect::Entered(Place { frame, node }));
            }
            self.act(effect);
        }
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.run.status() != Status::Running {
                return Ok(self.report(None));
            }
            if !self.is_busy() && self.inbox.is_empty() {
                // Everything under way waits for somebody.
                self.note_waiting().await?;
                return Ok(self.report(Some(ReportStatus::Waiting)));
            }
            let turn = tokio::select! {
                // What a host that is told to stop does to its own actions has not happened.
                biased;
                _ = stop.wait_for(|stop| *stop) => Turn::Stop,
                message = self.inbox.recv() => Turn::Message(message),
                _ = look.tick() => Turn::Look,
            };
            match turn {
                Turn::Message(Some(Message::Happened(happening))) => self.happen(happening).await?,
                Turn::Message(Some(Message::Parked(action))) => {
                    self.tasks.remove(&action);
                    self.parked.insert(action);
                }
                Turn::Message(None) => return Ok(self.report(None)),
                Turn::Look => self.catch_up()?,
                Turn::Stop => {
                    self.note_waiting().await?;
                    return Ok(self.report(Some(ReportStatus::Interrupted)));
                }
            }
        }
    }

    /// Whether something here goes on. The clock of `limits.timeout` alone does not count while
    /// something waits for somebody.
    fn is_busy(&self) -> bool {
        let limit = self.run.data().and_then(|data| data.limit);
        let is_limit = |task: &ActionId| limit.is_some_and(|(timer, _)| timer == *task);
        self.tasks
            .keys()
            .any(|task| self.parked.is_empty() || !is_limit(task))
    }

    /// Records and applies an event, then does what follows from it.
    async fn happen(&mut self, happening: Happening) -> Result<(), Error> {
        if let Happening::Completed { action, .. }
        | Happening::Failed { action, .. }
        | Happening::TimedOut { action, .. }
        | Happening::Declined { action, .. } = &happening
        {
            self.tasks.remove(action);
        }
        if let Happening::Woke { timer } = &happening {
            self.tasks.remove(timer);
        }
        match self.append(happening.clone()).await {
            Ok(effects) => {
                effects.into_iter().for_each(|effect| self.act(effect));
                Ok(())
            }
            Err(Error::Journal(journal::Error::Fenced { .. })) => {
                // Somebody else wrote first: take that in, and say ours again.
                self.catch_up()?;
                let _ = self.happened.send(Message::Happened(happening));
                Ok(())
            }
            Err(Error::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Records an event and applies it. What it wants is acted on only after this.
    pub(super) async fn append(&mut self, what: Happening) -> Result<Vec<Effect>, Error> {
        let at = now().max(self.last_at);
        let what = self.host.scrubbed(self.id, what);
        let event = Event { at, what };
        let before = self.run.data().cloned();
        let effects = self.run.apply(&event)?;
        let mut append =
            Append::after(self.id, self.last).event(at, kind(&event.what), body(&event)?);
        append = append.update(self.update(at));
        let snapshot = self.since_snapshot + 1 >= SNAPSHOT_EVERY;
        if snapshot && let Some(data) = self.run.data() {
            let bytes = serde_json::to_vec(data).map_err(|e| Error::Unreadable(e.to_string()))?;
            append = append.snapshot(bytes);
        }
        match self.host.journal().submit(append).await {
            Ok(last) => {
                self.last = last;
                self.last_at = at;
                self.since_snapshot = if snapshot { 0 } else { self.since_snapshot + 1 };
                Ok(effects)
            }
            Err(error) => {
                // What was not recorded has not happened.
                let program = Arc::clone(self.run.program());
                self.run = match before {
                    Some(data) => Run::restore(program, data),
                    None => Run::new(program),
                };
                Err(error.into())
            }
        }
    }

    /// What the list of runs says of this one.
    fn update(&self, at: u64) -> RunUpdate {
        let update = RunUpdate::at(at);
        let Some(data) = self.run.data() else {
            return update;
        };
        match data.status {
            Status::Running => update
                .status(journal::Status::Running)
                .pending(None)
                .error(None),
            Status::Completed => update
                .status(journal::Status::Completed)
                .output(serde_json::to_vec(&secret::mask_value(&data.output)).unwrap_or_default()),
            Status::Failed => {
                let error = data.error.as_ref();
                let error = error.map(|error| secret::mask(&error.message).into_owned());
                update.status(journal::Status::Failed).error(error)
            }
            Status::Cancelled => update.status(journal::Status::Cancelled),
        }
    }

    /// Marks the run as waiting: nothing here can go on.
    async fn note_waiting(&mut self) -> Result<(), Error> {
        let pending = self.run.pending();
        let steps: Vec<&str> = pending
            .iter()
            .filter_map(|effect| match effect {
                Effect::Act(action) => Some(action.node.as_str()),
                _ => None,
            })
            .collect();
        let mut waits_for = steps.join(", ");
        for input in self.host.inner.vault.missing(self.id) {
            waits_for.push_str(&format!(" (needs the secret `{input}`)"));
        }
        let update = RunUpdate::at(now())
            .status(journal::Status::Waiting)
            .pending(Some(waits_for));
        let append = Append::after(self.id, self.last).update(update);
        match self.host.journal().submit(append).await {
            Ok(_) | Err(journal::Error::Fenced { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in what others have written to this run.
    fn catch_up(&mut self) -> Result<(), Error> {
        let others = self
            .host
            .journal()
            .events(self.id, self.last + 1.., usize::MAX)?;
        for event in others {
            self.last = event.seq;
            let event: Event = serde_json::from_slice(&event.body)
                .map_err(|error| Error::Unreadable(error.to_string()))?;
            self.last_at = event.at;
            for effect in self.run.apply(&event)? {
                self.act(effect);
            }
        }
        Ok(())
    }

    /// Does what a run wants.
    fn act(&mut self, effect: Effect) {
        let options = &self.host.inner.options;
        options
            .watch
            .effect(self.id, self.run.program().graph(), &masked_effect(&effect));
        match effect {
            Effect::Act(action) => self.begin(action),
            Effect::Sleep { timer, until } => {
                let happened = self.happened.clone();
                let pause = Duration::from_millis(until.saturating_sub(now()));
                self.tasks.insert(
                    timer,
                    tokio::spawn(async move {
                        tokio::time::sleep(pause).await;
                        let _ = happened.send(Message::Happened(Happening::Woke { timer }));
                    }),
                );
            }
            Effect::Stop(action) => {
                self.parked.remove(&action);
                if let Some(task) = self.tasks.remove(&action) {
                    task.abort();
                }
            }
            Effect::Yield => {
                let _ = self.happened.send(Message::Happened(Happening::Continued));
            }
            Effect::Entered(_) | Effect::Left { .. } | Effect::Finish(_) => {}
        }
    }

    fn begin(&mut self, action: Action) {
        let host = self.host.clone();
        let happened = self.happened.clone();
        let (id, run) = (action.id, self.id);
        let directory = Arc::clone(&self.directory);
        self.tasks.insert(
            id,
            tokio::spawn(async move {
                let message = match host.perform(run, &action, &directory).await {
                    Some(happening) => Message::Happened(happening),
                    None => Message::Parked(id),
                };
                let _ = happened.send(message);
            }),
        );
    }

    /// Ends everything under way.
    pub(super) async fn stop_all(&mut self) {
        for (_, task) in self.tasks.drain() {
            task.abort();
            // An aborted command kills its group while it is dropped.
            let _ = task.await;
        }
    }

    pub(super) fn report(&self, status: Option<ReportStatus>) -> Report {
        let graph = self.run.program().graph();
        let Some(data) = self.run.data() else {
            return Report {
                run: self.id,
                workflow: graph.name.to_string(),
                status: status.unwrap_or(ReportStatus::Waiting),
                final_state: None,
                states_executed: 0,
                output: Value::Null,
                state: Value::Null,
                variables: Value::Null,
                error: None,
                elapsed_ms: 0,
                pending: Vec::new(),
                missing_secrets: Vec::new(),
            };
        };
        let pending = self
            .run
            .pending()
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Act(action) => Some(action),
                _ => None,
            });
        let final_state = match (graph.form, data.status) {
            (flow_model::graph::Form::Steps, Status::Completed) => Some("completed".to_owned()),
            _ => data.last_node.clone(),
        };
        Report {
            run: self.id,
            workflow: graph.name.to_string(),
            status: match data.status {
                Status::Running => status.unwrap_or(ReportStatus::Waiting),
                Status::Completed => ReportStatus::Completed,
                Status::Failed => ReportStatus::Failed,
                Status::Cancelled => ReportStatus::Cancelled,
            },
            final_state,
            states_executed: data.steps,
            output: data.output.clone(),
            state: self.run.flattened(),
            variables: Value::map(data.variables.iter().map(|(k, v)| (k.as_ref(), v.clone()))),
            error: data.error.clone(),
            elapsed_ms: self.last_at.saturating_sub(data.started_at),
            pending: pending.collect(),
            missing_secrets: self.host.inner.vault.missing(self.id),
        }
    }
}
