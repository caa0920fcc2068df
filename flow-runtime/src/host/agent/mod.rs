//! Runs that agents drive, step by step.
//!
//! Such a run is an ordinary run of a host and its journal; that an agent drives it is recorded when
//! it begins. The server decides what comes next and does what it can do itself. What is the
//! agent's to do is handed out as a [`AgentStep`], and the agent submits what came of it. Everything
//! lives in the journal: agents and servers may come and go between any two calls.
//!
//! [`Agents`] keeps the runs that are being worked on in memory, as many as it is told to; a run
//! that waits for an agent and is not among them costs nothing.

mod desk;
mod result;
pub(super) mod step;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flow_model::graph::Graph;
use tokio::sync::oneshot;

use desk::{Answer, Called, Desk, Look, Request, Seat, Submitted};
pub use flow_model::tools::{AgentStep, AgentStepType};
pub use result::Unfit;
pub use step::{Task, TaskPage};

use super::driver::Driver;
use super::local::{Error, Host, Report, StartOptions, now};
use crate::journal::RunId;
use crate::run::{
    Allowance, Cell, Checkpoint, Failure, FailureKind, Happening, Named, NamedTask, Status, Update,
};
use crate::secret;
use crate::value::Value;

/// Runs kept in memory, when nobody says how many.
const MOST: usize = 1_000;

/// What became of the computed fields of a run when its state was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Recomputed {
    /// Those that have another value than before, by name.
    pub changed: Value,
    /// Those that have no value because their rule failed, with the reason.
    pub failed: BTreeMap<String, String>,
}

/// Runs that agents drive.
#[derive(Clone)]
pub struct Agents {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    most: usize,
    seats: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    by_run: HashMap<RunId, (Seat, u64)>,
    clock: u64,
}

/// Why an agent cannot be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The host says no.
    #[error(transparent)]
    Host(#[from] Error),
    /// The run can no longer be worked on here.
    #[error(transparent)]
    Broken(Arc<Error>),
    /// The host has been told to stop.
    #[error("the server is stopping; the run goes on when it is back")]
    Stopping,
    /// A result was submitted for a step that does not wait for one.
    #[error("{}", not_pending(.step, .pending, *.over))]
    NotPending {
        /// The step.
        step: String,
        /// Those that wait for a result.
        pending: Vec<String>,
        /// How the run ended, if it has.
        over: Option<&'static str>,
    },
    /// The run has no such step.
    #[error("{}", no_step(.step, .waits.as_deref()))]
    NoStep {
        /// Its name.
        step: String,
        /// The one that waits for a result.
        waits: Option<String>,
    },
    /// A result cannot be the step's.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// There is no such task.
    #[error("{}", no_task(.task, .open))]
    NoTask {
        /// Its name.
        task: String,
        /// Tasks that are not over.
        open: Vec<String>,
    },
    /// A task is over, too long ago to know more.
    #[error(
        "the task `{task}` is over, and so much has happened since that what became of it is no longer kept; get_next_step without a task_id says how the run stands"
    )]
    Forgotten {
        /// Its name.
        task: String,
    },
    /// The run is not over yet.
    #[error(
        "the run is not over: it goes on with get_next_step; to stop it, give status `cancelled` or `failed`"
    )]
    NotOver,
    /// The run has ended otherwise.
    #[error(
        "the run {ended} already and stays so; complete_workflow without a status gives its final state"
    )]
    Ended {
        /// How.
        ended: &'static str,
    },
}

fn not_pending(step: &str, pending: &[String], over: Option<&str>) -> String {
    let quoted: Vec<String> = pending.iter().map(|name| format!("`{name}`")).collect();
    match (over, quoted.as_slice()) {
        (Some(over), _) if step.is_empty() => {
            format!("no step waits for a result: the run {over}")
        }
        (Some(over), _) => {
            format!("step `{step}` does not wait for a result: the run {over}")
        }
        (None, []) if step.is_empty() => {
            "no step waits for a result; get_next_step says how the run stands".to_owned()
        }
        (None, []) => format!(
            "step `{step}` does not wait for a result, and no other does; get_next_step says how the run stands"
        ),
        (None, [_]) if !step.is_empty() => {
            format!(
                "step `{step}` does not wait for a result; {} does",
                quoted[0]
            )
        }
        (None, names) if step.is_empty() => format!(
            "no step of the run itself waits for a result, but steps of its tasks do: name one with submit_step_result: {}",
            names.join(", ")
        ),
        (None, names) => format!(
            "step `{step}` does not wait for a result; it is not one of those that do: {}",
            names.join(", ")
        ),
    }
}

fn no_step(step: &str, waits: Option<&str>) -> String {
    match waits {
        Some(waits) => {
            format!("there is no step `{step}` in this run; `{waits}` waits for a result")
        }
        None => format!(
            "there is no step `{step}` in this run; leave it out for the place where the run is"
        ),
    }
}

fn no_task(task: &str, open: &[String]) -> String {
    if open.is_empty() {
        return format!("there is no task `{task}`, and no task is open in this run");
    }
    let open: Vec<String> = open.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "there is no task `{task}`; open tasks are {}",
        open.join(", ")
    )
}

/// What an agent is told: a step to do, or how its part of the run stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The run that was asked about.
    pub run: RunId,
    /// The task that was asked about.
    pub task: Option<String>,
    /// How it stands.
    pub status: TurnStatus,
    /// What to do.
    pub step: Option<AgentStep>,
    /// Tasks of sub-agents that are not over: the first of them.
    pub open_tasks: Vec<Task>,
    /// How many there are.
    pub open_count: usize,
    /// The step that those tasks belong to, for whoever has to start their sub-agents once more.
    pub open_step: Option<AgentStep>,
    /// The time that is waited for, in milliseconds since 1970.
    pub wakes: Option<u64>,
    /// What it gave.
    pub output: Value,
    /// Why it failed.
    pub error: Option<Failure>,
    /// What whoever asked should know beside: that a result was not taken because there was one.
    pub note: Option<String>,
}

/// How a run, or a task of it, stands for whoever goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStatus {
    /// It goes on by itself.
    Running,
    /// It waits for the agent; a task may also wait for its turn.
    Waiting,
    /// It waits for sub-agents.
    WaitingForTasks,
    /// It waits for a time.
    Sleeping,
    /// It did what was asked.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl TurnStatus {
    /// Whether nothing follows.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            TurnStatus::Completed | TurnStatus::Failed | TurnStatus::Cancelled => true,
            TurnStatus::Running
            | TurnStatus::Waiting
            | TurnStatus::WaitingForTasks
            | TurnStatus::Sleeping => false,
        }
    }
}

impl Turn {
    fn new(run: RunId, status: TurnStatus) -> Self {
        Turn {
            run,
            task: None,
            status,
            step: None,
            open_tasks: Vec::new(),
            open_count: 0,
            open_step: None,
            wakes: None,
            output: Value::Null,
            error: None,
            note: None,
        }
    }

    fn of(mut self, task: &str) -> Self {
        self.task = Some(task.to_owned());
        self
    }

    /// The same, as agents may see it: without what stands for secrets.
    fn masked(mut self) -> Self {
        for step in self.step.iter_mut().chain(&mut self.open_step) {
            mask(&mut step.instructions);
            step.definition.values_mut().for_each(mask_json);
            step.variable_replacements.values_mut().for_each(mask_json);
        }
        for task in &mut self.open_tasks {
            task.context = secret::mask_value(&task.context);
        }
        self.output = secret::mask_value(&self.output);
        if let Some(error) = &mut self.error {
            mask(&mut error.message);
        }
        self
    }

    /// The same, for somebody who asked the run that called this one.
    fn seen_from(mut self, run: RunId, called: &Called) -> Self {
        let call = &called.name;
        let before = |name: &mut String| *name = format!("{call}/{name}");
        self.run = run;
        self.task = called.seen_from(self.task);
        for task in &mut self.open_tasks {
            before(&mut task.id);
            task.run = run;
        }
        for step in self.step.iter_mut().chain(&mut self.open_step) {
            before(&mut step.id);
            let tasks = step.definition.get_mut("tasks");
            for task in tasks
                .and_then(|tasks| tasks.as_array_mut())
                .into_iter()
                .flatten()
            {
                if let Some(id) = task["task_id"].as_str() {
                    task["task_id"] = format!("{call}/{id}").into();
                }
                task["workflow_id"] = run.to_string().into();
            }
        }
        self
    }
}

fn mask(text: &mut String) {
    if secret::concerns(text) {
        *text = secret::mask(text).into_owned();
    }
}

fn mask_json(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => mask(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(mask_json),
        serde_json::Value::Object(map) => map.values_mut().for_each(mask_json),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long a run that goes on by itself is waited for.
    pub longest: Duration,
    /// Whether to wait for other agents too: for tasks to end, for a turn to begin one.
    pub for_others: bool,
    /// Whether the run is to go on; otherwise it is only looked at.
    pub drives: bool,
}

impl Patience {
    /// None at all: the run is looked at as it stands.
    pub const NONE: Patience = Patience {
        longest: Duration::ZERO,
        for_others: false,
        drives: false,
    };

    /// So long for what goes on by itself.
    #[must_use]
    pub const fn of(longest: Duration) -> Self {
        Patience {
            longest,
            for_others: false,
            drives: true,
        }
    }

    /// The same, for others too.
    #[must_use]
    pub const fn for_others(self) -> Self {
        Patience {
            for_others: true,
            ..self
        }
    }
}

/// What an agent says came of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Submission {
    /// How it ended.
    pub outcome: Outcome,
    /// What it gave; nothing says that it was done.
    pub result: Option<Value>,
    /// Why it failed.
    pub error: Option<String>,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    #[default]
    Success,
    /// It failed.
    Failed,
    /// It did not end in time.
    TimedOut,
    /// The person did not want to answer.
    Declined,
}

impl Submission {
    fn failure(&self) -> Failure {
        let kind = match self.outcome {
            Outcome::Success | Outcome::Failed => FailureKind::Action,
            Outcome::TimedOut => FailureKind::Timeout,
            Outcome::Declined => FailureKind::Refused,
        };
        let otherwise = match self.outcome {
            Outcome::Declined => "the person declined to answer",
            Outcome::Success | Outcome::Failed | Outcome::TimedOut => {
                "the agent could not do the step, and did not say why"
            }
        };
        Failure::new(kind, self.error.as_deref().unwrap_or(otherwise))
    }
}

/// How an agent ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The run has ended well by itself.
    Success,
    /// The run is given up as failed.
    Failed,
    /// The run is stopped.
    Cancelled,
}

impl Agents {
    /// Agents that work on the runs of a host.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Agents::keeping(host, MOST)
    }

    /// The same, with as many runs in memory at most, beside those that something goes on in.
    #[must_use]
    pub fn keeping(host: Host, most: usize) -> Self {
        Agents {
            inner: Arc::new(Inner {
                host,
                most,
                seats: Mutex::default(),
            }),
        }
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// How many runs are in memory.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.seats().by_run.len()
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        let seats = &self.inner.seats;
        seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a run that an agent drives.
    ///
    /// # Errors
    ///
    /// Those of [`Host::start`].
    pub async fn start(
        &self,
        graph: &Graph,
        inputs: &Value,
        options: StartOptions,
    ) -> Result<RunId, Error> {
        let options = StartOptions {
            agent_driven: true,
            ..options
        };
        self.host().start(graph, inputs, options).await
    }

    /// The place where a run is worked on.
    fn seat(&self, run: RunId) -> Result<Seat, Error> {
        {
            let mut seats = self.seats();
            seats.clock += 1;
            let clock = seats.clock;
            if let Some((seat, used)) = seats.by_run.get_mut(&run)
                && !seat.requests.is_closed()
            {
                *used = clock;
                return Ok(seat.clone());
            }
        }
        let seat = Desk::open(self.host().clone(), run)?;
        let mut seats = self.seats();
        let clock = seats.clock;
        // Somebody else may have been faster; then theirs it is, and ours ends by itself.
        if let Some((seat, _)) = seats.by_run.get(&run)
            && !seat.requests.is_closed()
        {
            return Ok(seat.clone());
        }
        seats.by_run.insert(run, (seat.clone(), clock));
        if seats.by_run.len() > self.inner.most {
            let idle = seats
                .by_run
                .iter()
                .filter(|(kept, (seat, _))| **kept != run && !seat.going.load(Ordering::Relaxed));
            let oldest = idle.min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(run, _)| *run);
            oldest.and_then(|oldest| seats.by_run.remove(&oldest));
        }
        Ok(seat)
    }

    /// Asks where a run is worked on.
    async fn ask<T>(
        &self,
        run: RunId,
        request: impl Fn(oneshot::Sender<T>) -> Request,
    ) -> Result<T, AgentError> {
        for _ in 0..TRIES {
            if *self.host().inner.stop.borrow() {
                break;
            }
            let seat = self.seat(run)?;
            let (reply, answer) = oneshot::channel();
            // A desk may be put away, or broken, at any time; another is opened then.
            if seat.requests.send(request(reply)).is_ok()
                && let Ok(answer) = answer.await
            {
                return Ok(answer);
            }
        }
        Err(AgentError::Stopping)
    }

    /// The next step of a run, or of a task of it; or how it stands. A task that nobody has begun
    /// is begun. Asking again gives the same step until its result is submitted.
    ///
    /// # Errors
    ///
    /// When there is no such run or task, and those of the journal.
    pub async fn next(
        &self,
        run: RunId,
        task: Option<&str>,
        page: TaskPage,
        patience: Patience,
    ) -> Result<Turn, AgentError> {
        let turn = self.attend(run, task, page, patience).await?;
        if patience.drives && turn.status.is_over() {
            self.lead_on(run, Vec::new())?;
        }
        Ok(turn)
    }

    /// Lets the run that called this one, and those above it, go on from what came of it, without
    /// anybody waiting for that. Where a run that this one has called was answered, the parts of
    /// this one that have called it go on too, the innermost first.
    fn lead_on(&self, run: RunId, callers: Vec<Option<String>>) -> Result<(), AgentError> {
        let outermost = self.host().outermost(run)?;
        if outermost == run && callers.is_empty() {
            return Ok(());
        }
        let agents = self.clone();
        tokio::spawn(async move {
            let page = TaskPage {
                from: 0,
                most: Some(0),
            };
            let within = callers.into_iter().map(|task| (run, task));
            for (run, task) in within.chain([(outermost, None)]) {
                // What keeps it from going on is told to whoever asks for the run next.
                let _ = agents
                    .attend(run, task.as_deref(), page, Patience::of(LONGEST))
                    .await;
            }
        });
        Ok(())
    }

    async fn attend(
        &self,
        run: RunId,
        task: Option<&str>,
        page: TaskPage,
        patience: Patience,
    ) -> Result<Turn, AgentError> {
        let began = Instant::now();
        loop {
            let left = patience.longest.saturating_sub(began.elapsed());
            let patience = Patience {
                longest: left,
                ..patience
            };
            let asked = self.look(run, task, page, patience);
            let answer = match tokio::time::timeout(left + GRACE, asked).await {
                Ok(answer) => answer?,
                Err(_) => {
                    let none = Patience {
                        drives: patience.drives,
                        ..Patience::NONE
                    };
                    self.look(run, task, page, none).await?
                }
            };
            let called = match answer {
                Answer::Turn(turn) => return Ok(turn.masked()),
                Answer::Called(called) => called,
            };
            let rest = called.rest.as_deref();
            let left = patience.longest.saturating_sub(began.elapsed());
            let patience = Patience {
                longest: left,
                ..patience
            };
            let turn = Box::pin(self.attend(called.run, rest, page, patience)).await?;
            if !turn.status.is_over() || rest.is_some() {
                return Ok(turn.seen_from(run, &called));
            }
            self.redo(run, &called).await?;
        }
    }

    async fn redo(&self, run: RunId, called: &Called) -> Result<(), AgentError> {
        let seat = self.seat(run)?;
        // A desk that has just ended begins the call again when it is opened.
        let _ = seat.requests.send(Request::Redo(called.call));
        Ok(())
    }

    async fn look(
        &self,
        run: RunId,
        task: Option<&str>,
        page: TaskPage,
        patience: Patience,
    ) -> Result<Answer, AgentError> {
        let left = patience.longest;
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX >> 1);
        let what = Look {
            task: task.map(str::to_owned),
            page,
            until: now() + left,
            for_others: patience.for_others,
            drives: patience.drives,
        };
        let request = |reply| Request::Look {
            what: what.clone(),
            reply,
        };
        self.ask(run, request).await?
    }

    /// Takes what came of a step, and gives what is next for whoever did it. Without a name it is
    /// the first step of the run that waits. The same step again changes nothing; where it
    /// waits for another result a note says so.
    ///
    /// # Errors
    ///
    /// When the step does not wait for a result, when the result is not a valid answer, and those
    /// of the journal.
    pub async fn submit(
        &self,
        run: RunId,
        step: Option<&str>,
        submission: Submission,
        page: TaskPage,
        patience: Patience,
    ) -> Result<Turn, AgentError> {
        let taken = self.take(run, step, submission).await?;
        if !taken.callers.is_empty() {
            self.lead_on(run, taken.callers)?;
        }
        let task = taken.task.as_deref();
        let mut turn = self.next(run, task, page, patience).await?;
        // Whoever submits again what is over is answered as before; who submits a step of before
        // for the one that waits is told.
        if let (true, Some(step), Some(waits)) = (taken.repeated, step, &turn.step)
            && unnumbered(step) == unnumbered(&waits.id)
        {
            turn.note = Some(format!(
                "`{step}` had its result before and this one was not used; `{}` waits for a result",
                waits.id
            ));
        }
        Ok(turn)
    }

    /// Takes what came of a step.
    async fn take(
        &self,
        run: RunId,
        step: Option<&str>,
        submission: Submission,
    ) -> Result<Taken, AgentError> {
        let request = |reply| Request::Submit {
            step: step.map(str::to_owned),
            submission: submission.clone(),
            reply,
        };
        match self.ask(run, request).await?? {
            Submitted::Taken(task) => Ok(Taken {
                task,
                repeated: false,
                callers: Vec::new(),
            }),
            Submitted::Repeated(task) => Ok(Taken {
                task,
                repeated: true,
                callers: Vec::new(),
            }),
            Submitted::Called(called) => {
                let rest = called.rest.as_deref();
                let taken = Box::pin(self.take(called.run, rest, submission)).await?;
                let tasks = taken.callers.into_iter().flatten();
                let mut callers: Vec<Option<String>> =
                    tasks.map(|task| called.seen_from(Some(task))).collect();
                callers.push(called.task.clone());
                Ok(Taken {
                    task: called.seen_from(taken.task),
                    repeated: taken.repeated,
                    callers,
                })
            }
        }
    }

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
        let mut failed = BTreeMap::new();
        for (place, (name, cell)) in after.into_iter().enumerate() {
            match cell {
                Cell::Failed(reason) => {
                    failed.insert(name, secret::mask(&reason).into_owned());
                }
                Cell::Value(value) => {
                    let was = before.get(place).map(|(_, cell)| cell);
                    if was != Some(&Cell::Value(value.clone())) {
                        changed.push((name, secret::mask_value(&value)));
                    }
                }
                Cell::Unset => {}
            }
        }
        Ok(Recomputed {
            changed: Value::map(changed),
            failed,
        })
    }

    /// Marks the place where a run is, so that somebody else can go on from it.
    ///
    /// # Errors
    ///
    /// When the run is over or has no such step, and those of the journal.
    pub async fn checkpoint(
        &self,
        run: RunId,
        step: Option<String>,
        reason: String,
    ) -> Result<Checkpoint, AgentError> {
        if let Some(step) = &step {
            self.known_step(run, step).await?;
        }
        let happening = Happening::Checkpointed { reason, step };
        self.record(run, happening).await?;
        let found = self.last_checkpoint(run).await?;
        found.ok_or_else(|| Error::Unreadable("the checkpoint is not there".to_owned()).into())
    }

    /// Whether a name is one of a step or task of the run: handed out, past, or of its definition.
    async fn known_step(&self, run: RunId, step: &str) -> Result<(), AgentError> {
        let asked = step.to_owned();
        let known = self
            .read(run, move |driver| {
                let run = &driver.run;
                !matches!(run.named(&asked), Named::Nobody)
                    || !matches!(run.named_task(&asked), NamedTask::Nobody)
                    || has_node(run.program().graph(), &asked)
            })
            .await?;
        if known {
            return Ok(());
        }
        let page = TaskPage {
            from: 0,
            most: Some(0),
        };
        let turn = self.attend(run, None, page, Patience::NONE).await?;
        Err(AgentError::NoStep {
            step: step.to_owned(),
            waits: turn.step.map(|step| step.id),
        })
    }

    /// The last place that was marked.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn last_checkpoint(&self, run: RunId) -> Result<Option<Checkpoint>, AgentError> {
        let found = |driver: &Driver| driver.run.data().and_then(|data| data.checkpoint.clone());
        let mut found = self.read(run, found).await?;
        if let Some(checkpoint) = &mut found {
            checkpoint.reason = secret::mask(&checkpoint.reason).into_owned();
        }
        Ok(found)
    }

    /// Lets a run that has failed try again; one that goes on is left as it is.
    ///
    /// # Errors
    ///
    /// When the run has completed or was cancelled, and those of the journal.
    pub async fn resume(&self, run: RunId) -> Result<(), AgentError> {
        let status = self.read(run, |driver| driver.run.status()).await?;
        match status {
            Status::Running => Ok(()),
            Status::Failed | Status::Completed | Status::Cancelled => {
                self.record(run, Happening::Resumed(Allowance::default()))
                    .await
            }
        }
    }

    /// Ends a run, or takes notice that it has ended.
    ///
    /// # Errors
    ///
    /// When the run is to have succeeded and is not over, and those of the journal.
    pub async fn conclude(
        &self,
        run: RunId,
        how: Conclusion,
        reason: &str,
    ) -> Result<(), AgentError> {
        let status = self.read(run, |driver| driver.run.status()).await?;
        let ended = match status {
            Status::Running => None,
            Status::Completed => Some((Conclusion::Success, "has completed")),
            Status::Failed => Some((Conclusion::Failed, "has failed")),
            Status::Cancelled => Some((Conclusion::Cancelled, "was cancelled")),
        };
        match ended {
            None => {}
            Some((ended, _)) if ended == how || how == Conclusion::Success => return Ok(()),
            Some((_, ended)) => return Err(AgentError::Ended { ended }),
        }
        let reason = reason.to_owned();
        match how {
            Conclusion::Success => Err(AgentError::NotOver),
            Conclusion::Failed => self.record(run, Happening::GivenUp { reason }).await,
            Conclusion::Cancelled => {
                // Runs that it has called are cancelled with it.
                let cancelled = Happening::Cancelled { reason };
                self.host().record(run, cancelled).await?;
                Ok(())
            }
        }?;
        self.lead_on(run, Vec::new())
    }

    /// Whether an agent drives a run.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn is_agent_driven(&self, run: RunId) -> Result<bool, AgentError> {
        self.read(run, |driver| driver.run.is_agent_driven()).await
    }

    /// Returns when nothing goes on any more in the runs that are kept; [`Host::interrupt`] brings
    /// that about.
    pub async fn settled(&self) {
        let seats: Vec<Seat> = {
            let mut seats = self.seats();
            seats.by_run.drain().map(|(_, (seat, _))| seat).collect()
        };
        for seat in seats {
            seat.ended().await;
        }
    }

    /// How a run stands.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn report(&self, run: RunId) -> Result<Report, AgentError> {
        self.read(run, |driver| driver.report(None).masked()).await
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

    async fn record(&self, run: RunId, happening: Happening) -> Result<(), AgentError> {
        let request = |reply| Request::Record {
            happening: happening.clone(),
            reply,
        };
        self.ask(run, request).await?
    }

    async fn read<T: Send + 'static>(
        &self,
        run: RunId,
        read: impl Fn(&Driver) -> T + Clone + Send + 'static,
    ) -> Result<T, AgentError> {
        let request = |reply: oneshot::Sender<T>| {
            let read = read.clone();
            Request::Read(Box::new(move |driver: &Driver| {
                // Nobody may be waiting any more.
                let _ = reply.send(read(driver));
            }))
        };
        self.ask(run, request).await
    }
}

/// Whether a definition has a step of this name.
fn has_node(graph: &Graph, name: &str) -> bool {
    let tasks = graph.tasks.iter();
    let bodies = tasks.flat_map(|task| {
        let cleanup = task.on_error.iter().map(|on_error| &on_error.body);
        std::iter::once(&task.body).chain(cleanup)
    });
    let mut bodies = bodies.chain([&graph.body, &graph.on_error.body]);
    bodies.any(|body| body.nodes.iter().any(|node| node.id == name))
}

/// The name of a step without the number that tells it from the same step before.
fn unnumbered(name: &str) -> &str {
    match name.rsplit_once('~') {
        Some((before, number)) if number.parse::<u64>().is_ok() => before,
        _ => name,
    }
}

/// A result that a desk has heard.
struct Taken {
    /// The task that its step belongs to.
    task: Option<String>,
    /// Whether the step had its result before.
    repeated: bool,
    /// Where the step is of a run that was called: the parts that wait for that run, and for the
    /// ones between, the innermost first.
    callers: Vec<Option<String>>,
}

/// How long a run is followed that nobody waits for: as long as it goes on by itself.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);
/// How often a run is opened for one request.
const TRIES: usize = 8;
/// What a desk may take beyond the time that was asked for before it is asked without patience.
const GRACE: Duration = Duration::from_millis(5);

/// The computed fields of a run.
fn computed(driver: &Driver) -> Vec<(String, Cell)> {
    let fields = driver.run.program().graph().computed.iter();
    let names = fields.map(|field| field.name.to_string());
    let cells = driver.run.data().map(|data| data.computed.clone());
    names.zip(cells.unwrap_or_default()).collect()
}
