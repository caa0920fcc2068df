//! One run while it is driven: events are recorded, then what they want is done.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::agent::step::validation;
use super::called::Pending;
use super::local::{Error, Host, Report, ReportStatus, body, kind, now};
use super::recorded::Recorded;
use super::secrets::masked_effect;
use super::sessions;
use crate::expression::judged;
use crate::journal::{self, Append, RunId, RunUpdate};
use crate::run::{
    Action, ActionId, Data, Deed, Effect, Event, FailureKind, Handout, Happening, Part, Place,
    Program, Run, Status, frame,
};
use crate::secret;
use crate::value::Value;

/// Events between two snapshots of a run.
const SNAPSHOT_EVERY: u64 = 200;
/// How exactly the list of runs knows when a run went on last, in milliseconds.
const LISTED_EVERY: u64 = 1000;
/// Steps that the list of runs names for one run.
const NAMES: usize = 8;
/// How often a host looks whether somebody else has written to its run.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// One run while it is driven.
pub(super) struct Driver {
    pub(super) host: Host,
    pub(super) id: RunId,
    pub(super) run: Run,
    last: u64,
    listed: Listed,
    since_snapshot: u64,
    bytes_since_snapshot: usize,
    snapshot_bytes: usize,
    pub(super) last_at: u64,
    tasks: HashMap<ActionId, JoinHandle<()>>,
    /// Actions that nobody here can answer.
    pub(super) parked: HashSet<ActionId>,
    /// What the last event wanted when the run was read: whoever watches has not seen it.
    unseen: Vec<Effect>,
    /// It has called others from here.
    pub(super) has_called: bool,
    /// What the clock decided at the start of the run, and nobody has recorded yet.
    late: Vec<u64>,
    /// Where its commands run.
    directory: Arc<Path>,
    happened: mpsc::UnboundedSender<Message>,
    inbox: mpsc::UnboundedReceiver<Message>,
}

/// What the list of runs says of a run, as far as its driver knows.
#[derive(Clone, Copy)]
enum Listed {
    /// It is running, as of this time, and nothing else.
    Running(u64),
    /// It waits.
    Waiting,
    /// It sleeps until this time.
    Sleeping(u64),
    /// It is over.
    Over,
    /// Something else, or what somebody else wrote.
    Otherwise,
}

/// What a driver does next.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every one is the large one"
)]
enum Turn {
    Message(Option<Message>),
    /// Somebody else may have written to the run.
    Look,
    /// The host is told to stop.
    Stop,
}

/// What came of something under way.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every one is the large one"
)]
pub(super) enum Message {
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
        let mut run = restored(program, loaded.snapshot.as_ref())?;
        let mut last_at = 0;
        let mut unseen = Vec::new();
        let mut late = Vec::new();
        let recorded = Recorded::all(&loaded.events)?;
        for event in &recorded {
            last_at = event.event.at;
            unseen = if recorded.len() == 1 && event.is_new() {
                let longest = host.inner.options.expression_time;
                let (applied, found) = judged(longest, || run.apply(&event.event));
                late = found;
                applied?
            } else {
                event.apply(&mut run, None)?
            };
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
            listed: match loaded.run.status {
                journal::Status::Waiting => Listed::Waiting,
                journal::Status::Running
                    if loaded.run.pending.is_none() && loaded.run.error.is_none() =>
                {
                    Listed::Running(loaded.run.updated_at)
                }
                status if status.is_final() => Listed::Over,
                _ => Listed::Otherwise,
            },
            since_snapshot: loaded.events.len() as u64,
            bytes_since_snapshot: loaded.events.iter().map(|event| event.body.len()).sum(),
            snapshot_bytes: loaded.snapshot.map_or(0, |snapshot| snapshot.body.len()),
            last_at,
            tasks: HashMap::new(),
            parked: HashSet::new(),
            unseen,
            has_called: false,
            late,
            directory,
            happened,
            inbox,
        })
    }

    /// Shows whoever watches what the last event did, if it was recorded here; gives whether.
    pub(super) fn show_unseen(&mut self) -> bool {
        let is_fresh = self.host.fresh().remove(&self.id);
        for effect in std::mem::take(&mut self.unseen) {
            // What is to be done is begun otherwise.
            let is_news = matches!(
                effect,
                Effect::Entered(_) | Effect::Left { .. } | Effect::Finish(_)
            );
            if is_fresh && is_news {
                self.act(effect);
            }
        }
        is_fresh
    }

    /// Begins what the run wants here.
    fn take_over(&mut self) {
        let is_fresh = self.show_unseen();
        for effect in self.run.taken_over(now()) {
            if let Effect::Act(action) = &effect
                && !is_fresh
            {
                // Another host began it; here it begins now.
                self.act(Effect::Entered(Place {
                    frame: action.frame,
                    node: action.node.clone(),
                    within: action.within.clone(),
                }));
                if sessions::types(&action.what) {
                    let happening = sessions::interrupted(action);
                    let _ = self.happened.send(Message::Happened(happening));
                    continue;
                }
            }
            self.act(effect);
        }
    }

    /// Begins what the run wants and nobody here does; `fresh` when nobody else has begun it either.
    pub(super) fn begin_missing(&mut self, fresh: bool) {
        for effect in self.run.taken_over(now()) {
            let begun = match &effect {
                Effect::Act(action) => {
                    self.tasks.contains_key(&action.id) || self.parked.contains(&action.id)
                }
                Effect::Sleep { timer, .. } => self.tasks.contains_key(timer),
                Effect::Yield
                | Effect::Stop(_)
                | Effect::Entered(_)
                | Effect::Left { .. }
                | Effect::Finish(_) => false,
            };
            match &effect {
                // Whoever began it is gone.
                Effect::Act(action) if !begun && !fresh && sessions::types(&action.what) => {
                    let happening = sessions::interrupted(action);
                    let _ = self.happened.send(Message::Happened(happening));
                }
                _ if !begun => self.act(effect),
                _ => {}
            }
        }
    }

    pub(super) async fn drive(&mut self) -> Result<Report, Error> {
        let mut stop = self.host.inner.stop.subscribe();
        self.wake().await?;
        self.take_over();
        let mut look = look();
        loop {
            if self.run.status() != Status::Running {
                self.note_standing().await?;
                return Ok(self.report(None));
            }
            self.note_sleep().await?;
            if !self.is_going() {
                // Everything under way waits for somebody.
                self.note_standing().await?;
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
                Turn::Message(Some(message)) => self.take(message).await?,
                Turn::Message(None) => return Ok(self.report(None)),
                Turn::Look => self.catch_up()?,
                Turn::Stop => {
                    self.note_stopped().await?;
                    return Ok(self.report(Some(ReportStatus::Interrupted)));
                }
            }
        }
    }

    /// Takes the run's clock up: the time in which nobody drove the run is not the run's.
    pub(super) async fn wake(&mut self) -> Result<(), Error> {
        if !self.late.is_empty() {
            let evaluations = std::mem::take(&mut self.late);
            self.append(Happening::Late { evaluations }).await?;
        }
        let is_fresh = self.host.fresh().contains(&self.id);
        loop {
            let clock = self.run.data().map(|data| (data.resting, data.limit));
            let appended = match clock {
                Some((false, Some(_))) if !is_fresh => {
                    self.append_at(self.last_at, Happening::Rested).await
                }
                Some((true, _)) => match self.append(Happening::Continued).await {
                    // What it wants is wanted of whoever takes the run over, which follows.
                    Ok(_) => return Ok(()),
                    Err(error) => Err(error),
                },
                _ => return Ok(()),
            };
            match appended {
                Ok(_) => {}
                Err(Error::Journal(journal::Error::Fenced { .. })) => self.read_on(|_, _| {})?,
                Err(error) => return Err(error),
            }
        }
    }

    /// What has come of something under way. Nothing is lost when this is not waited for.
    pub(super) async fn next(&mut self) -> Option<Message> {
        self.inbox.recv().await
    }

    /// Takes in what came of something under way.
    pub(super) async fn take(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Happened(happening) => self.happen(happening).await,
            Message::Parked(action) => {
                self.tasks.remove(&action);
                // Somebody else may have answered it meanwhile.
                if self.run.action(action).is_some() {
                    self.parked.insert(action);
                }
                Ok(())
            }
        }
    }

    /// Stops doing something whose result came from elsewhere.
    pub(super) fn give_up(&mut self, action: ActionId) {
        self.parked.remove(&action);
        if let Some(task) = self.tasks.remove(&action) {
            task.abort();
        }
    }

    /// Whether something here goes on, or has come to an end that was not taken in.
    pub(super) fn is_going(&self) -> bool {
        self.is_busy() || !self.inbox.is_empty()
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
        if let Some(ended) = happening.ends() {
            self.tasks.remove(&ended);
        }
        let has_called = self.has_called;
        match self.append(happening.clone()).await {
            Ok(effects) => {
                let stops = |effect: &Effect| matches!(effect, Effect::Stop(_));
                let is_late = matches!(happening, Happening::TimedOut { .. });
                let forgets = has_called && (is_late || effects.iter().any(stops));
                effects.into_iter().for_each(|effect| self.act(effect));
                if forgets {
                    let host = self.host.clone();
                    host.end_forgotten(self.id, &self.run).await?;
                }
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
        self.append_at(now().max(self.last_at), what).await
    }

    async fn append_at(&mut self, at: u64, what: Happening) -> Result<Vec<Effect>, Error> {
        let what = self.host.scrubbed(self.id, what);
        let event = Event { at, what };
        let longest = self.host.inner.options.expression_time;
        let (effects, evaluations) = judged(longest, || self.run.apply(&event));
        let effects = effects?;
        let late = match evaluations.is_empty() {
            true => None,
            false => Some(Event {
                at,
                what: Happening::Late { evaluations },
            }),
        };
        if let Some(late) = &late {
            self.run.apply(late)?;
        }
        // Before the end is recorded: after it nobody would look at the run again.
        if let Some(data) = self.run.data() {
            self.host.keep_definition(self.id, &data.start, &effects);
        }
        match self.write(&event, late.as_ref(), &effects).await {
            Ok(()) => Ok(effects),
            Err(error) => {
                // What was not recorded has not happened.
                self.go_back()?;
                Err(error)
            }
        }
    }

    /// Records an event that has been applied.
    async fn write(
        &mut self,
        event: &Event,
        late: Option<&Event>,
        effects: &[Effect],
    ) -> Result<(), Error> {
        let body = body(event)?;
        self.bytes_since_snapshot += body.len();
        let waits = self.waits_after(&event.what, effects);
        let mut append = Append::after(self.id, self.last).event(event.at, kind(&event.what), body);
        let listed = self.listed_after(event.at, waits);
        if let Some(listed) = &listed {
            append = append.update(self.update(event.at, matches!(listed, Listed::Waiting)));
        }
        if let Some(late) = late {
            append = append.event(late.at, kind(&late.what), self::body(late)?);
        }
        // A large run is written down less often, so that a long one costs what its events do.
        let snapshot = self.since_snapshot + 1 >= SNAPSHOT_EVERY
            && self.bytes_since_snapshot >= self.snapshot_bytes;
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

    /// What the list of runs is to say after an event; `None` when it says that already. While a
    /// run goes on, the list need not know of every event.
    fn listed_after(&self, at: u64, waits: bool) -> Option<Listed> {
        if self.run.status() != Status::Running {
            return Some(Listed::Over);
        }
        match self.listed {
            _ if waits => Some(Listed::Waiting),
            Listed::Running(since) if at < since.saturating_add(LISTED_EVERY) => None,
            Listed::Running(_)
            | Listed::Waiting
            | Listed::Sleeping(_)
            | Listed::Over
            | Listed::Otherwise => Some(Listed::Running(at)),
        }
    }

    /// What the list of runs says of this one.
    fn update(&self, at: u64, waits: bool) -> RunUpdate {
        let update = RunUpdate::at(at);
        let Some(data) = self.run.data() else {
            return update;
        };
        match data.status {
            Status::Running if waits => update
                .status(journal::Status::Waiting)
                .wake_at(None)
                .pending(Some(self.pending_names()))
                .error(None),
            Status::Running => update
                .status(journal::Status::Running)
                .wake_at(None)
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

    /// Whether a run that an agent drives waits for the agent alone after an event.
    fn waits_after(&self, what: &Happening, effects: &[Effect]) -> bool {
        let ended = what.ends();
        let idle = self.tasks.keys().all(|task| Some(*task) == ended);
        self.run.is_agent_driven() && idle && effects.iter().all(|effect| self.is_quiet(effect))
    }

    /// Whether nothing goes on here because of an effect.
    pub(super) fn is_quiet(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Act(action) => self.run.is_agent_driven() && action.what.is_for_agent(),
            Effect::Sleep { .. } | Effect::Yield => false,
            Effect::Stop(_) | Effect::Entered(_) | Effect::Left { .. } | Effect::Finish(_) => true,
        }
    }

    /// The steps that wait for somebody, as the list of runs shows them.
    fn pending_names(&self) -> String {
        let found = self.run.handouts(Part::Main);
        let steps = found.steps.iter().map(|step| match step {
            Handout::Action(action) => self.run.step_name(action),
            Handout::Tasks(tasks) => self.run.tasks_name(tasks),
        });
        let tasks = found.under_way.iter();
        let tasks = tasks.map(|tasks| self.run.tasks_name(tasks));
        let mut names: Vec<String> = steps.chain(tasks).take(NAMES + 1).collect();
        if names.len() > NAMES {
            names[NAMES] = "…".to_owned();
        }
        names.join(", ")
    }

    /// Whether the list of runs does not say yet that the run waits, or is over.
    pub(super) fn is_unnoticed(&self) -> bool {
        match self.run.status() {
            Status::Running => !matches!(self.listed, Listed::Waiting | Listed::Sleeping(_)),
            Status::Completed | Status::Failed | Status::Cancelled => {
                !matches!(self.listed, Listed::Over)
            }
        }
    }

    /// Tells the list of runs how the run stands when nothing here can go on: it waits, or it was
    /// over with its first event.
    pub(super) async fn note_standing(&mut self) -> Result<(), Error> {
        let (update, listed) = match self.run.status() {
            Status::Running => match self.run.sleeps() {
                Some(until) => (self.sleeping(until), Listed::Sleeping(until)),
                None => (self.waiting(), Listed::Waiting),
            },
            Status::Completed | Status::Failed | Status::Cancelled if self.is_unnoticed() => {
                (self.update(self.last_at, false), Listed::Over)
            }
            Status::Completed | Status::Failed | Status::Cancelled => return Ok(()),
        };
        self.list(update, listed).await
    }

    /// Tells the list of runs how a run stands that its host lets go of: one that waits for nobody
    /// was only interrupted, and is listed like one whose host is gone.
    async fn note_stopped(&mut self) -> Result<(), Error> {
        let is_running = self.run.status() == Status::Running;
        if !is_running || self.run.is_agent_driven() || self.run.sleeps().is_some() {
            return self.note_standing().await;
        }
        let report = self.report(Some(ReportStatus::Interrupted));
        let pending = self.host.pending(&report)?;
        if pending.iter().any(|awaited| awaited.action.what.is_asked()) {
            return self.note_standing().await;
        }
        let at = now();
        self.list(self.update(at, false), Listed::Running(at)).await
    }

    /// Tells the list of runs that the run sleeps, if it does.
    pub(super) async fn note_sleep(&mut self) -> Result<(), Error> {
        match (self.run.sleeps(), self.listed) {
            (None, _) => Ok(()),
            (Some(until), Listed::Sleeping(told)) if told == until => Ok(()),
            (Some(until), _) => {
                self.list(self.sleeping(until), Listed::Sleeping(until))
                    .await
            }
        }
    }

    async fn list(&mut self, update: RunUpdate, listed: Listed) -> Result<(), Error> {
        let append = Append::after(self.id, self.last).update(update);
        match self.host.journal().submit(append).await {
            Ok(_) => {
                self.listed = listed;
                Ok(())
            }
            Err(journal::Error::Fenced { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sleeping(&self, until: u64) -> RunUpdate {
        RunUpdate::at(now())
            .status(journal::Status::Sleeping)
            .wake_at(Some(until))
            .pending(None)
    }

    fn waiting(&self) -> RunUpdate {
        let mut waits_for = self.pending_names();
        for input in self.host.inner.vault.missing(self.id) {
            waits_for.push_str(&format!(" (needs the secret `{input}`)"));
        }
        RunUpdate::at(now())
            .status(journal::Status::Waiting)
            .wake_at(None)
            .pending(Some(waits_for))
    }

    /// Takes in what others have written to this run.
    pub(super) fn catch_up(&mut self) -> Result<(), Error> {
        self.read_on(Self::act)
    }

    /// Takes in what others have written to this run, and what they want because of it. Gives
    /// whether there was any.
    pub(super) fn read_on(&mut self, mut act: impl FnMut(&mut Self, Effect)) -> Result<(), Error> {
        let others = self
            .host
            .journal()
            .events(self.id, self.last + 1.., usize::MAX)?;
        for event in Recorded::all(&others)? {
            if let Listed::Running(_) = self.listed {
                self.listed = Listed::Otherwise;
            }
            self.last = event.seq;
            self.last_at = event.event.at;
            if let Some(action) = event.event.what.ends() {
                self.give_up(action);
            }
            for effect in event.apply(&mut self.run, None)? {
                act(self, effect);
            }
        }
        Ok(())
    }

    /// Does what a run wants.
    pub(super) fn act(&mut self, effect: Effect) {
        let options = &self.host.inner.options;
        options
            .watch
            .effect(self.id, self.run.program().graph(), &masked_effect(&effect));
        match effect {
            Effect::Act(action) if self.run.is_agent_driven() && action.what.is_for_agent() => {
                self.parked.insert(action.id);
            }
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

    pub(super) fn begin(&mut self, action: Action) {
        let host = self.host.clone();
        let happened = self.happened.clone();
        let (id, run) = (action.id, self.id);
        self.parked.remove(&id);
        self.has_called |= matches!(action.what, Deed::Call { .. });
        let directory = Arc::clone(&self.directory);
        let agent_driven = self.run.is_agent_driven();
        self.tasks.insert(
            id,
            tokio::spawn(async move {
                let message = match host.perform(run, &action, &directory, agent_driven).await {
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

    /// How many levels of calls lie below the run. It knows of its own; the journal of all.
    fn levels_below(&self, data: &Data) -> u32 {
        match data.deepest.saturating_sub(data.start.depth) {
            0 => 0,
            own => self
                .host
                .levels_below(self.id)
                .map_or(own, |it| it.max(own)),
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
                last_node: None,
                states_executed: 0,
                session: None,
                last_session: None,
                recursion_depth: 0,
                return_values: None,
                output: Value::Null,
                state: Value::Null,
                computed: Value::Null,
                variables: Value::Null,
                error: None,
                elapsed_ms: 0,
                pending: Vec::new(),
                missing_secrets: Vec::new(),
                kept: None,
            };
        };
        let pending = self.run.pending().into_iter();
        let pending = pending.filter_map(|effect| match effect {
            Effect::Act(action) => Some(Pending {
                run: self.id,
                step: self.run.step_name(&action),
                agent_instructions: self.host.instructions_for(graph, &action.what),
                validation: validation(&self.run, &action),
                action,
            }),
            _ => None,
        });
        let failed = data.error.as_ref().map(|error| error.kind);
        let final_state = match (graph.form, data.status, failed) {
            (_, Status::Failed, Some(FailureKind::Arguments)) => {
                Some("validation_failed".to_owned())
            }
            (_, Status::Failed, Some(FailureKind::ReturnValues)) => {
                Some("return_validation_failed".to_owned())
            }
            (flow_model::graph::Form::Steps, Status::Completed, _) => Some("completed".to_owned()),
            _ => data.last_node.clone(),
        };
        let session = data.session(frame::ROOT);
        let latest = data.variables.get("session_id").and_then(Value::as_str);
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
            last_node: data.last_node.clone(),
            states_executed: data.steps,
            session: session.map(str::to_owned),
            last_session: session.or(latest).map(str::to_owned),
            recursion_depth: self.levels_below(data),
            return_values: data.return_values.clone(),
            output: data.output.clone(),
            state: self.run.flattened(),
            computed: self.run.derived(),
            variables: Value::map(data.variables.iter().map(|(k, v)| (k.as_ref(), v.clone()))),
            error: data.error.clone(),
            elapsed_ms: self.last_at.saturating_sub(data.started_at),
            pending: pending.collect(),
            missing_secrets: self.host.inner.vault.missing(self.id),
            kept: self.host.inner.keepsakes.of(self.id),
        }
    }
}

/// Ticks when a host is to look whether somebody else has written to its run.
pub(super) fn look() -> tokio::time::Interval {
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    look
}

fn restored(program: Arc<Program>, snapshot: Option<&journal::Snapshot>) -> Result<Run, Error> {
    let Some(snapshot) = snapshot else {
        return Ok(Run::new(program));
    };
    let data = serde_json::from_slice(&snapshot.body);
    let data = data.map_err(|error| Error::Unreadable(error.to_string()))?;
    Ok(Run::restore(program, data))
}
