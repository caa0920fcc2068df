//! The host in this process: drives runs on tokio, with the journal beside it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flow_model::graph::Graph;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::shell::{Ended, Shell, end_group};
use super::{
    Answer, Asked, NoTools, NoWatch, Nobody, People, Question, ToolCall, Tools, Watch, Workflows,
};
use crate::input::InputFault;
use crate::journal::{self, Append, Hash, Journal, NewRun, RunId, RunUpdate};
use crate::run::{
    Action, ActionId, Deed, Effect, Evaluator, Event, Failure, FailureKind, Happening, Place,
    Program, Refusal, Run, Start, Status,
};
use crate::value::Value;

/// Events between two snapshots of a run.
const SNAPSHOT_EVERY: u64 = 200;
/// How often a host looks whether somebody else has written to its run.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Why a host cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal says no.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The event does not fit the run.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Inputs do not fit their declarations.
    #[error("{}", list(.0))]
    Inputs(Vec<InputFault>),
    /// The journal holds something that this version cannot read.
    #[error("the run cannot be read: {0}; it was perhaps written by another version")]
    Unreadable(String),
    /// There is no such workflow.
    #[error("{0}")]
    NoWorkflow(String),
}

fn list(faults: &[InputFault]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    faults.join("\n")
}

/// How a run stands when a host lets go of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// How it stands.
    pub status: ReportStatus,
    /// The last state, or `completed` for a steps workflow.
    pub final_state: Option<String>,
    /// Nodes executed.
    pub states_executed: u64,
    /// What it gave.
    pub output: Value,
    /// The flattened state.
    pub state: Value,
    /// Variables of a states workflow.
    pub variables: Value,
    /// Why it failed.
    pub error: Option<Failure>,
    /// From its start to its last event, in milliseconds.
    pub elapsed_ms: u64,
    /// What it waits for.
    pub pending: Vec<Action>,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStatus {
    /// It did what was asked.
    Completed,
    /// It failed.
    Failed,
    /// It waits for somebody.
    Waiting,
    /// It was cancelled.
    Cancelled,
    /// The host was told to stop; the run can be resumed.
    Interrupted,
}

/// What a host is made of.
pub struct HostOptions {
    /// Where runs are recorded.
    pub journal: Journal,
    /// Who answers prompts.
    pub people: Arc<dyn People>,
    /// What tools there are.
    pub tools: Arc<dyn Tools>,
    /// Where called workflows are found.
    pub workflows: Arc<dyn Workflows>,
    /// Who is told what happens.
    pub watch: Arc<dyn Watch>,
    /// Where commands run.
    pub directory: PathBuf,
    /// A command that answers `delegate` steps: the instructions come on its standard input.
    pub agent: Option<String>,
    /// Makes the evaluator of a graph's expressions.
    pub evaluator: fn(&Graph) -> Box<dyn Evaluator>,
}

impl HostOptions {
    /// A host with nobody to ask, no tools and no other workflows.
    pub fn new(
        journal: Journal,
        directory: PathBuf,
        evaluator: fn(&Graph) -> Box<dyn Evaluator>,
    ) -> Self {
        HostOptions {
            journal,
            people: Arc::new(Nobody),
            tools: Arc::new(NoTools),
            workflows: Arc::new(NoWorkflows),
            watch: Arc::new(NoWatch),
            directory,
            agent: None,
            evaluator,
        }
    }
}

struct NoWorkflows;

impl Workflows for NoWorkflows {
    fn find(&self, name: &str) -> Result<Graph, String> {
        Err(format!("no workflow `{name}` is known here"))
    }

    fn compile(&self, _definition: &Value) -> Result<Graph, String> {
        Err("definitions cannot be compiled here".to_owned())
    }
}

/// How a run is started.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Variables of a states workflow.
    pub variables: Value,
    /// The terminal session it runs in.
    pub session: Option<String>,
    /// Executions of nodes allowed.
    pub max_steps: Option<u64>,
    /// The run that calls it, and how deep that is.
    pub parent: Option<(RunId, u32)>,
    /// Its id, when the caller has made one.
    pub id: Option<RunId>,
}

/// The host.
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    options: HostOptions,
    programs: Mutex<HashMap<Hash, Arc<Program>>>,
    /// Runs whose last event was recorded here, before they were driven.
    fresh: Mutex<HashSet<RunId>>,
    stop: watch::Sender<bool>,
}

impl Host {
    /// A host.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        Host {
            inner: Arc::new(Inner {
                options,
                programs: Mutex::default(),
                fresh: Mutex::default(),
                stop: watch::Sender::new(false),
            }),
        }
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.inner.options.journal
    }

    /// Tells every run driven here to stop: commands are ended, runs stay resumable.
    pub fn interrupt(&self) {
        self.inner.stop.send_replace(true);
    }

    /// Records the start of a run. Nothing has happened before this has returned.
    ///
    /// # Errors
    ///
    /// Inputs that do not fit, and those of the journal.
    pub async fn start(
        &self,
        graph: &Graph,
        inputs: &Value,
        options: StartOptions,
    ) -> Result<RunId, Error> {
        let inputs = complete_inputs(graph, inputs)?;
        let definition = serde_json::to_vec(graph).map_err(|e| Error::Unreadable(e.to_string()))?;
        let hash = self.journal().put_definition(&definition)?;
        let at = now();
        let id = options.id.unwrap_or_else(|| RunId::new(at, random()));
        let happening = Happening::Started(Start {
            run: id.to_string(),
            inputs,
            variables: options.variables,
            env: Value::Null,
            session: options.session,
            depth: options.parent.map_or(0, |(_, depth)| depth),
            max_steps: options.max_steps,
            directory: self.inner.options.directory.to_str().map(str::to_owned),
        });
        let mut new = NewRun::new(graph.name.to_string(), hash, at);
        if let Some((parent, _)) = options.parent {
            new = new.parent(parent);
        }
        let event = Event {
            at,
            what: happening,
        };
        let append = Append::start(id, new).event(at, "started", body(&event)?);
        self.journal().submit(append).await?;
        self.fresh().insert(id);
        Ok(id)
    }

    fn fresh(&self) -> std::sync::MutexGuard<'_, HashSet<RunId>> {
        let fresh = &self.inner.fresh;
        fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives a run until it is over, waits for somebody, or the host is told to stop.
    ///
    /// # Errors
    ///
    /// When another process drives it, and those of the journal.
    pub async fn drive(&self, run: RunId) -> Result<Report, Error> {
        let lock = self.journal().lock(run)?;
        for orphan in self.journal().orphans(run)? {
            end_group(&orphan.group).await;
            self.journal().forget_process(run, &orphan.action).await?;
        }
        let mut driver = Driver::open(self.clone(), run)?;
        let report = driver.drive().await;
        driver.stop_all().await;
        drop(lock);
        report
    }

    /// Records something that happened to a run, from outside: an answer, a cancellation, a change
    /// of state. Whoever drives the run notices; if nobody does, [`Host::drive`] goes on from it.
    ///
    /// # Errors
    ///
    /// When it does not fit the run, and those of the journal.
    pub async fn record(&self, run: RunId, happening: Happening) -> Result<(), Error> {
        // Another host may write between reading and writing; the fence tells, and we look again.
        loop {
            let mut driver = Driver::open(self.clone(), run)?;
            match driver.append(happening.clone()).await {
                Ok(_) => break,
                Err(Error::Journal(journal::Error::Fenced { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        self.fresh().insert(run);
        if let Happening::Cancelled { .. } = &happening {
            self.cancel_called(run, &happening).await?;
        }
        Ok(())
    }

    /// Runs that a cancelled run has called are cancelled with it.
    async fn cancel_called(&self, run: RunId, cancelled: &Happening) -> Result<(), Error> {
        let called = journal::Listing::new().children_of(run);
        for child in self.journal().list(&called, usize::MAX >> 1)?.runs {
            if child.status.is_final() {
                continue;
            }
            match Box::pin(self.record(child.id, cancelled.clone())).await {
                // It ended meanwhile.
                Ok(()) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What a run has wanted so far, in order, each with its time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn history(&self, run: RunId) -> Result<Vec<(u64, Effect)>, Error> {
        let program = self.program(self.journal().run(run)?.definition)?;
        let mut replayed = Run::new(program);
        let mut history = Vec::new();
        for event in self.journal().events(run, 1.., usize::MAX)? {
            let event: Event = serde_json::from_slice(&event.body)
                .map_err(|error| Error::Unreadable(error.to_string()))?;
            let effects = replayed.apply(&event)?.into_iter();
            history.extend(effects.map(|effect| (event.at, effect)));
        }
        Ok(history)
    }

    /// How a run stands, without driving it.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn report(&self, run: RunId) -> Result<Report, Error> {
        let driver = Driver::open(self.clone(), run)?;
        Ok(driver.report(None))
    }

    fn program(&self, hash: Hash) -> Result<Arc<Program>, Error> {
        let programs = || {
            self.inner
                .programs
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(program) = programs().get(&hash) {
            return Ok(Arc::clone(program));
        }
        let bytes = self.journal().definition(hash)?;
        let graph: Graph =
            serde_json::from_slice(&bytes).map_err(|error| Error::Unreadable(error.to_string()))?;
        let evaluator = (self.inner.options.evaluator)(&graph);
        let program = Arc::new(Program::new(std::borrow::Cow::Owned(graph), evaluator));
        programs().insert(hash, Arc::clone(&program));
        Ok(program)
    }
}

fn complete_inputs(graph: &Graph, inputs: &Value) -> Result<Value, Error> {
    let given: Vec<(&str, Value)> = match inputs {
        Value::Map(map) => map
            .0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.clone()))
            .collect(),
        _ => Vec::new(),
    };
    match &graph.inputs {
        None => Ok(Value::map(given)),
        Some(fields) => crate::input::complete(fields, &given).map_err(Error::Inputs),
    }
}

fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    // Without a source of randomness ids still differ by their time.
    let _ = getrandom::fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

fn body(event: &Event) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(event).map_err(|error| Error::Unreadable(error.to_string()))
}

fn kind(what: &Happening) -> &'static str {
    match what {
        Happening::Started(_) => "started",
        Happening::Completed { .. } => "completed",
        Happening::Failed { .. } => "failed",
        Happening::TimedOut { .. } => "timed_out",
        Happening::Declined { .. } => "declined",
        Happening::Woke { .. } => "woke",
        Happening::Updated { .. } => "updated",
        Happening::Continued => "continued",
        Happening::Checkpointed { .. } => "checkpointed",
        Happening::Cancelled { .. } => "cancelled",
        Happening::Resumed => "resumed",
    }
}

/// One run while it is driven.
struct Driver {
    host: Host,
    id: RunId,
    run: Run,
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
    fn open(host: Host, id: RunId) -> Result<Self, Error> {
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

    async fn drive(&mut self) -> Result<Report, Error> {
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
    async fn append(&mut self, what: Happening) -> Result<Vec<Effect>, Error> {
        let at = now().max(self.last_at);
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
                .output(serde_json::to_vec(&data.output).unwrap_or_default()),
            Status::Failed => update
                .status(journal::Status::Failed)
                .error(data.error.as_ref().map(|error| error.message.clone())),
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
        let update = RunUpdate::at(now())
            .status(journal::Status::Waiting)
            .pending(Some(steps.join(", ")));
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
            .effect(self.id, self.run.program().graph(), &effect);
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
    async fn stop_all(&mut self) {
        for (_, task) in self.tasks.drain() {
            task.abort();
            // An aborted command kills its group while it is dropped.
            let _ = task.await;
        }
    }

    fn report(&self, status: Option<ReportStatus>) -> Report {
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
        }
    }
}

impl Host {
    /// Does an action. `None` when nobody here can answer it.
    async fn perform(&self, run: RunId, action: &Action, directory: &Path) -> Option<Happening> {
        let timed_out = || Happening::TimedOut {
            action: action.id,
            result: Value::Null,
        };
        let work = self.deed(run, action, directory);
        let Some(deadline) = action.deadline else {
            return work.await;
        };
        let left = Duration::from_millis(deadline.saturating_sub(now()));
        if left.is_zero() {
            return Some(timed_out());
        }
        match tokio::time::timeout(left, work).await {
            Ok(happening) => happening,
            Err(_) => Some(timed_out()),
        }
    }

    async fn deed(&self, run: RunId, action: &Action, base: &Path) -> Option<Happening> {
        let id = action.id;
        let options = &self.inner.options;
        let failed = |error: Failure| Happening::Failed {
            action: id,
            error,
            result: Value::Null,
        };
        match &action.what {
            Deed::Shell {
                command,
                env,
                working_directory,
                ..
            } => {
                let directory = match working_directory {
                    Some(directory) => base.join(directory),
                    None => base.to_owned(),
                };
                let shell = Shell {
                    journal: self.journal(),
                    watch: &options.watch,
                    run,
                    step: &action.node,
                    key: &action.key,
                    command,
                    env,
                    directory,
                    started_at: now(),
                };
                Some(match shell.run().await {
                    Ended::Exited(result) => Happening::Completed { action: id, result },
                    Ended::NotStarted(failure) => failed(failure),
                })
            }
            Deed::Tool {
                tool, parameters, ..
            } => {
                let call = ToolCall {
                    run,
                    tool,
                    parameters,
                    key: &action.key,
                };
                Some(match options.tools.call(call).await {
                    Ok(result) => Happening::Completed { action: id, result },
                    Err(error) => failed(error),
                })
            }
            Deed::Prompt {
                message,
                kind,
                options,
            } => {
                self.ask(run, action, message, Asked::Prompt(*kind, options))
                    .await
            }
            Deed::Judge { choices, .. } => {
                self.ask(
                    run,
                    action,
                    "Which of these holds?",
                    Asked::Judgement(choices),
                )
                .await
            }
            Deed::Delegate { instructions, .. } => {
                self.delegate(run, action, instructions, base).await
            }
            Deed::DelegateItem {
                task,
                inputs,
                prompt,
                ..
            } => {
                let standard = || {
                    format!(
                        "Do the task `{task}` for this input and answer with its result:\n{inputs}"
                    )
                };
                let instructions = prompt.clone().unwrap_or_else(standard);
                self.delegate(run, action, &instructions, base).await
            }
            Deed::Call { .. } => self.call(run, action).await,
        }
    }

    /// Asks until an answer is valid, declined, or put off.
    async fn ask(
        &self,
        run: RunId,
        action: &Action,
        message: &str,
        kind: Asked<'_>,
    ) -> Option<Happening> {
        let mut complaint: Option<String> = None;
        loop {
            let question = Question {
                run,
                step: &action.node,
                message,
                kind,
                complaint: complaint.as_deref(),
            };
            let answer = self.inner.options.people.ask(question).await;
            let happening = match answer {
                Answer::Later => return None,
                Answer::Declined(reason) => {
                    return Some(Happening::Declined {
                        action: action.id,
                        reason,
                    });
                }
                Answer::Given(result) => Happening::Completed {
                    action: action.id,
                    result,
                },
            };
            let checked =
                Driver::open(self.clone(), run).map(|driver| driver.run.check(&happening));
            match checked {
                Ok(Err(Refusal::Invalid(reason))) => complaint = Some(reason),
                _ => return Some(happening),
            }
        }
    }

    async fn delegate(
        &self,
        run: RunId,
        action: &Action,
        instructions: &str,
        base: &Path,
    ) -> Option<Happening> {
        let command = self.inner.options.agent.as_ref()?;
        let quoted = instructions.replace('\'', r"'\''");
        let command = format!("printf '%s' '{quoted}' | {command}");
        let shell = Shell {
            journal: self.journal(),
            watch: &self.inner.options.watch,
            run,
            step: &action.node,
            key: &action.key,
            command: &command,
            env: &[],
            directory: base.to_owned(),
            started_at: now(),
        };
        let failed = |error: Failure| Happening::Failed {
            action: action.id,
            error,
            result: Value::Null,
        };
        Some(match shell.run().await {
            Ended::NotStarted(failure) => failed(failure),
            Ended::Exited(result) => match result.get("exit_code") {
                Some(Value::Int(0)) => {
                    let response = result
                        .get("stdout")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    Happening::Completed {
                        action: action.id,
                        result: Value::map([
                            ("response", Value::text(response.trim_end())),
                            (
                                "agent_used",
                                Value::text(
                                    self.inner.options.agent.as_deref().unwrap_or_default(),
                                ),
                            ),
                        ]),
                    }
                }
                _ => {
                    let stderr = result
                        .get("stderr")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    let message = format!("the agent command failed: {}", stderr.trim());
                    failed(Failure::new(FailureKind::Action, message))
                }
            },
        })
    }

    /// Runs another workflow. Its id follows from the call's key, so that a repeated call finds the
    /// run it began. `None` when that run waits for somebody, or was told to stop.
    async fn call(&self, run: RunId, action: &Action) -> Option<Happening> {
        let failed = |message: String, result: Value| {
            Some(Happening::Failed {
                action: action.id,
                error: Failure::new(FailureKind::Action, message),
                result,
            })
        };
        let Deed::Call {
            workflow,
            definition,
            inputs,
            variables,
            session,
            max_states,
            depth,
            response,
            ..
        } = &action.what
        else {
            return failed("this is no call".to_owned(), Value::Null);
        };
        let digest = Hash::of(action.key.as_bytes());
        let mut seed = [0; 16];
        seed.copy_from_slice(&digest.0[..16]);
        let child = RunId::new(run.at_millis(), u128::from_le_bytes(seed));
        if self.journal().run(child).is_err() {
            let found = match (workflow, definition) {
                (Some(name), _) => self.inner.options.workflows.find(name),
                (None, Some(definition)) => self.inner.options.workflows.compile(definition),
                (None, None) => Err("the call names no workflow".to_owned()),
            };
            let graph = match found {
                Ok(graph) => graph,
                Err(reason) => return failed(reason, Value::Null),
            };
            let options = StartOptions {
                variables: variables.clone(),
                session: session.clone(),
                max_steps: *max_states,
                parent: Some((run, *depth)),
                id: Some(child),
            };
            if let Err(error) = self.start(&graph, inputs, options).await {
                return failed(error.to_string(), Value::Null);
            }
        }
        let driven = Box::pin(self.drive(child)).await;
        let report = match driven {
            Ok(report) => report,
            Err(Error::Journal(journal::Error::Held { .. })) => return None,
            Err(error) => return failed(error.to_string(), Value::Null),
        };
        match report.status {
            ReportStatus::Completed | ReportStatus::Failed | ReportStatus::Cancelled => {}
            ReportStatus::Waiting | ReportStatus::Interrupted => return None,
        }
        let success = report.status == ReportStatus::Completed;
        let error = report.error.as_ref().map(|error| error.message.clone());
        let result = if *response {
            Value::map([
                ("success", Value::Bool(success)),
                ("workflow_name", Value::text(&report.workflow)),
                ("workflow_id", Value::text(report.run.to_string())),
                (
                    "final_state",
                    report
                        .final_state
                        .as_deref()
                        .map_or(Value::Null, Value::text),
                ),
                (
                    "states_executed",
                    Value::Int(i64::try_from(report.states_executed).unwrap_or(i64::MAX)),
                ),
                ("final_variables", report.variables),
                ("output", report.output),
                ("error", error.as_deref().map_or(Value::Null, Value::text)),
            ])
        } else {
            Value::map([("outputs", report.output), ("computed", report.state)])
        };
        if success {
            Some(Happening::Completed {
                action: action.id,
                result,
            })
        } else {
            let reason = error.unwrap_or_else(|| "it did not complete".to_owned());
            failed(
                format!("the workflow `{}` failed: {reason}", report.workflow),
                result,
            )
        }
    }
}
