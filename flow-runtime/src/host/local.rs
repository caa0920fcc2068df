//! The host in this process: drives runs on tokio, with the journal beside it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flow_model::graph::Graph;
use tokio::sync::{Notify, watch};

use super::background::Background;
use super::called::Pending;
use super::deed;
use super::driver::{Caller, Driver};
use super::execution_log::Logs;
use super::keep::Keepsakes;
use super::presence::Presences;
use super::recorded::Recorded;
use super::secrets::{foreign, masked_effect, without};
use super::sessions::RunSessions;
use super::unbegun::Unbegun;
use super::vault::Vault;
use super::{Kept, NoTools, NoWatch, NoWorkflow, Nobody, People, Toolbox, Tools, Watch, Workflows};
use crate::briefs::Briefs;
use crate::expression::Patience;
use crate::input::{self, InputFault};
use crate::journal::{self, Append, Hash, Journal, NewRun, RunId};
use crate::run::{
    Action, Effect, Evaluator, Event, Expressions, Failure, Happening, Named, Program, Refusal,
    Run, Start, Status, time,
};
use crate::secret::{self, Reference, Secret};
use crate::terminal::{self, Terminals};
use crate::value::Value;

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
    /// The terminal session that a run is to work in does not exist.
    #[error("`session_id`: {0}")]
    NoSession(#[source] terminal::Error),
    /// An answer came after the time that the definition gives for it.
    #[error(
        "the answer to `{step}` comes too late: its time was over at {}; the run goes on without it",
        time::iso(*.at)
    )]
    TooLate {
        /// The step.
        step: String,
        /// When its time was over, in milliseconds since 1970.
        at: u64,
    },
    /// What is answered is no longer asked: somebody else was first, or the run went on without it.
    #[error("`{step}` {how}; this answer is not used")]
    NotAsked {
        /// The step.
        step: String,
        /// What became of it, as in "has been answered already: …".
        how: String,
    },
    /// A run would go on here, and its terminal session lives in another process.
    #[error(
        "the run works in the terminal session `{session}`, which the process {owner} has: it can \
         only go on there, where its session is; answer it there (a server takes \
         `submit_result`, and `resume_workflow` where nothing is asked), or end that process, and \
         the session with it, first"
    )]
    SessionElsewhere {
        /// The session.
        session: String,
        /// The process.
        owner: u32,
    },
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
    /// The last state, or `completed` for a steps workflow; `validation_failed` when arguments were
    /// missing, `return_validation_failed` when return values were.
    pub final_state: Option<String>,
    /// The step or state of the workflow's own body that it is at, or was last.
    pub last_node: Option<String>,
    /// Nodes executed.
    pub states_executed: u64,
    /// Its terminal session: the last one that it has opened and not closed, else the one it was
    /// given, else the first that it has worked in; none that it has closed.
    pub session: Option<String>,
    /// The same, or else the session it had last; `session_id` among the variables.
    pub last_session: Option<String>,
    /// A session that its steps, or those of its tasks, worked in and that is gone: a run that has failed and
    /// is tried again goes on without it.
    pub lost_session: Option<String>,
    /// How many levels of calls lay below it.
    pub recursion_depth: u32,
    /// The environment variables that it was to set and that are set, by name; `None` when they
    /// were not looked up.
    pub return_values: Option<Value>,
    /// What it gave.
    pub output: Value,
    /// The flattened state.
    pub state: Value,
    /// The derived part of it.
    pub computed: Value,
    /// The fields of that part whose rule failed, each with why.
    pub computed_errors: Value,
    /// Variables of a states workflow.
    pub variables: Value,
    /// Why it failed.
    pub error: Option<Failure>,
    /// From its start to its last event, in milliseconds.
    pub elapsed_ms: u64,
    /// What it waits for.
    pub pending: Vec<Pending>,
    /// Secret inputs that it needs and that nobody here knows.
    pub missing_secrets: Vec<String>,
    /// What became of the definition it came with, or why that could not be kept here; `None` where
    /// none was to be kept.
    pub kept: Option<Result<Kept, String>>,
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

/// What the journal's file is called.
const JOURNAL: &str = "journal.db";

/// What a host is made of.
#[derive(Clone)]
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
    /// Where terminal sessions are kept; without it, tools of terminals are asked of `tools`.
    pub terminals: Option<Terminals>,
    /// A command that answers `delegate` steps: the instructions come on its standard input.
    pub agent: Option<String>,
    /// Where the instructions of agents are that a definition names and does not describe.
    pub agents: Option<Briefs>,
    /// Whether an agent that is not here may call what `tools` has not: such a step waits for it
    /// instead of failing.
    pub agent_has_tools: bool,
    /// How long one expression may take. Counted work bounds it before, except on a machine that
    /// is very slow.
    pub expression_time: Duration,
    /// How long all expressions may take that are evaluated because of one event: those of the step
    /// that follows from it, with the computed fields that follow from that.
    pub step_time: Duration,
    /// How long a run that waits for nothing goes on before it gives way to others: to its limits,
    /// to signals, and to whoever has written to it.
    pub stretch_time: Duration,
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
        let patience = Patience::default();
        HostOptions {
            journal,
            people: Arc::new(Nobody),
            tools: Arc::new(NoTools),
            workflows: Arc::new(NoWorkflows),
            watch: Arc::new(NoWatch),
            directory,
            terminals: None,
            agent: None,
            agents: None,
            agent_has_tools: false,
            expression_time: patience.one,
            step_time: patience.all,
            stretch_time: patience.stretch,
            evaluator,
        }
    }

    /// How long the clock lets one event take.
    pub(super) fn patience(&self) -> Patience {
        Patience {
            one: self.expression_time,
            all: self.step_time,
            stretch: self.stretch_time,
        }
    }

    /// What suits most: the journal is `journal.db` of a directory, which is made if need be;
    /// commands run in the current directory; expressions are evaluated by flow's own engine.
    ///
    /// # Errors
    ///
    /// Those of opening the journal.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, Error> {
        let journal = Journal::open(directory.as_ref().join(JOURNAL))?;
        // Commands of a program whose directory is gone start in a place that says so.
        let current = std::env::current_dir().unwrap_or_default();
        Ok(HostOptions::new(journal, current, |_| {
            Box::new(Expressions::new())
        }))
    }
}

struct NoWorkflows;

impl Workflows for NoWorkflows {
    fn find(&self, name: &str) -> Result<Graph, NoWorkflow> {
        let reason = format!("no workflow `{name}` is known here");
        Err(NoWorkflow::Unknown(reason))
    }

    fn compile(&self, _definition: &Value) -> Result<Graph, NoWorkflow> {
        let reason = "definitions cannot be compiled here".to_owned();
        Err(NoWorkflow::Invalid(reason))
    }
}

/// How a run is started.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Variables of a states workflow.
    pub variables: Value,
    /// The terminal session it runs in.
    pub session: Option<String>,
    /// Whether that session is the caller's, handed on: it may have ended meanwhile.
    pub inherits_session: bool,
    /// Whether that session was opened for this run alone, with the environment of whoever starts
    /// it: variables that are missing there are set here.
    pub own_session: bool,
    /// Executions of nodes allowed.
    pub max_steps: Option<u64>,
    /// Seconds it may take.
    pub timeout: Option<f64>,
    /// The run that calls it, and how deep that is.
    pub parent: Option<(RunId, u32)>,
    /// How deep the calls above it allow calls to be.
    pub max_depth: Option<u8>,
    /// Its id, when the caller has made one.
    pub id: Option<RunId>,
    /// Whether an agent drives it: see [`super::Agents`].
    pub agent_driven: bool,
    /// The directory of its definition, where workflows that it calls are looked for as well.
    pub beside: Option<PathBuf>,
    /// With whom it shares terminal sessions where it names none: see [`Terminals::of`]. It is
    /// remembered as long as the process lives, as sessions are.
    pub circle: Option<String>,
    /// The definition it comes with, when that is to be kept for reuse if it succeeds: see
    /// [`Workflows::keep`]. Whoever ends the run sees to it.
    pub keep: Value,
}

/// The host.
#[derive(Clone)]
pub struct Host {
    pub(super) inner: Arc<Inner>,
}

/// What became of a step that does not wait any more.
pub(super) enum PastResult {
    /// It has this result.
    Recorded(Box<(Action, Happening)>),
    /// Its time was over, or that of what it is part of.
    OutOfTime,
    /// It waited once, and was not ended by a result of its own.
    Unknown,
    /// No step of this name has ever waited.
    NobodyAsked,
}

pub(super) struct Inner {
    pub(super) options: HostOptions,
    programs: Mutex<HashMap<Hash, Arc<Program>>>,
    /// The secrets that are known here.
    pub(super) vault: Vault,
    /// Runs whose last events were recorded here, before they were driven; the numbers of those.
    fresh: Mutex<HashMap<RunId, RangeInclusive<u64>>>,
    /// What is to be typed and nobody has begun.
    pub(super) unbegun: Unbegun,
    /// Runs driven in the background.
    pub(super) background: Background,
    /// Tells whoever keeps the times that a run waits.
    pub(super) waits: Notify,
    pub(super) stop: watch::Sender<bool>,
    /// What is known of the terminal sessions of runs.
    pub(super) sessions: RunSessions,
    /// Who drives runs.
    pub(super) presences: Presences,
    /// Logs that are being read.
    pub(super) logs: Logs,
    /// Definitions that were to be kept.
    pub(super) keepsakes: Keepsakes,
}

impl Host {
    /// A host.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        Host {
            inner: Arc::new(Inner {
                options,
                programs: Mutex::default(),
                vault: Vault::default(),
                fresh: Mutex::default(),
                unbegun: Unbegun::default(),
                background: Background::default(),
                waits: Notify::new(),
                stop: watch::Sender::new(false),
                sessions: RunSessions::default(),
                presences: Presences::default(),
                logs: Logs::default(),
                keepsakes: Keepsakes::default(),
            }),
        }
    }

    /// A host that records its runs in a directory: see [`HostOptions::open`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let host = flow_runtime::host::Host::open(directory.path())?;
    /// assert!(directory.path().join("journal.db").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of opening the journal.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, Error> {
        HostOptions::open(directory).map(Host::new)
    }

    /// A host with more tools, asked before those that it has; otherwise as this one, which is
    /// left as it is.
    #[must_use]
    pub fn with_tools(&self, tools: impl Tools + 'static) -> Self {
        let mut options = self.inner.options.clone();
        options.tools = Arc::new(Toolbox::new([Arc::new(tools), options.tools]));
        Host::new(options)
    }

    /// A host with somebody else to ask; otherwise as this one, which is left as it is.
    #[must_use]
    pub fn with_people(&self, people: impl People + 'static) -> Self {
        let mut options = self.inner.options.clone();
        options.people = Arc::new(people);
        Host::new(options)
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
    /// Inputs that do not fit, a terminal session that does not exist, and those of the journal.
    pub async fn start(
        &self,
        graph: &Graph,
        inputs: &Value,
        options: StartOptions,
    ) -> Result<RunId, Error> {
        let hash = self.put(graph)?;
        self.begin(graph, hash, inputs, options).await
    }

    /// As [`Host::start`], for a graph that is part of the program: nothing is read or parsed.
    ///
    /// # Errors
    ///
    /// Those of [`Host::start`].
    pub async fn start_compiled(
        &self,
        graph: &'static Graph,
        inputs: &Value,
        options: StartOptions,
    ) -> Result<RunId, Error> {
        let hash = self.adopt(graph)?;
        self.begin(graph, hash, inputs, options).await
    }

    /// Makes the graph of the program stand for the same graph in the journal, so that its runs,
    /// also those of an earlier process, are driven without reading it there.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn adopt(&self, graph: &'static Graph) -> Result<Hash, Error> {
        let hash = self.put(graph)?;
        self.programs().entry(hash).or_insert_with(|| {
            let evaluator = (self.inner.options.evaluator)(graph);
            Arc::new(Program::new(Cow::Borrowed(graph), evaluator))
        });
        Ok(hash)
    }

    fn put(&self, graph: &Graph) -> Result<Hash, Error> {
        let definition = serde_json::to_vec(graph).map_err(|e| Error::Unreadable(e.to_string()))?;
        Ok(self.journal().put_definition(&definition)?)
    }

    async fn begin(
        &self,
        graph: &Graph,
        hash: Hash,
        inputs: &Value,
        options: StartOptions,
    ) -> Result<RunId, Error> {
        let at = now();
        let id = options.id.unwrap_or_else(|| RunId::new(at, random()));
        if let (false, Some(session), Some(terminals)) = (
            options.inherits_session,
            &options.session,
            &self.inner.options.terminals,
        ) {
            terminals.expect(session).map_err(Error::NoSession)?;
        }
        let near = match options.session {
            Some(_) => None,
            None => self.near_session(graph, id, &options),
        };
        // What is looked up before the first step needs a session at once.
        let (session, near_session) = match graph.arguments.is_empty() {
            true => (options.session.clone(), near),
            false => (options.session.clone().or(near), None),
        };
        let (given, variables) =
            input::fill(graph, inputs, &options.variables).map_err(Error::Inputs)?;
        let named = variables.get("session_id").and_then(Value::as_str);
        if let (None, Some(session), Some(terminals)) =
            (&options.session, named, &self.inner.options.terminals)
        {
            terminals.expect(session).map_err(Error::NoSession)?;
        }
        // What a caller hands on is known to both.
        let family = options.parent.map_or(id, |(parent, _)| self.family(parent));
        let (inputs, secrets) = self.accepted(graph, &given, id, family)?;
        let happening = Happening::Started(Start {
            run: id.to_string(),
            inputs,
            variables,
            env: Value::Null,
            session,
            near_session,
            own_session: options.own_session,
            depth: options.parent.map_or(0, |(_, depth)| depth),
            max_depth: options.max_depth,
            max_steps: options.max_steps,
            timeout: options.timeout,
            secrets,
            beside: options
                .beside
                .map(|directory| directory.to_string_lossy().into_owned()),
            directory: self.inner.options.directory.to_str().map(str::to_owned),
            agent_driven: options.agent_driven,
            keep: options.keep,
        });
        let mut new = NewRun::new(graph.name.to_string(), hash, at);
        // A run whose arguments are missing never begins.
        if !graph.arguments.is_empty() {
            new = new.uncounted();
        }
        if let Some((parent, _)) = options.parent {
            new = new.parent(parent);
        }
        let scrubber = self.inner.vault.scrubber(family, &id.to_string());
        let event = Event {
            at,
            what: without(&scrubber, happening),
        };
        let append = Append::start(id, new).event(at, "started", body(&event)?);
        self.journal().submit(append).await?;
        self.fresh().insert(id, 1..=1);
        if let Some(circle) = options.circle {
            self.inner.sessions.share(id, circle);
        }
        Ok(id)
    }

    /// Whoever drives the run next shows what these events did, and those recorded here right before
    /// them.
    fn note_fresh(&self, run: RunId, seqs: RangeInclusive<u64>) {
        let mut fresh = self.fresh();
        let first = match fresh.get(&run) {
            Some(before) if before.end() + 1 == *seqs.start() => *before.start(),
            Some(_) | None => *seqs.start(),
        };
        fresh.insert(run, first..=*seqs.end());
    }

    pub(super) fn fresh(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, RangeInclusive<u64>>> {
        let fresh = &self.inner.fresh;
        fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives a run until it is over, waits for somebody, or the host is told to stop.
    ///
    /// # Errors
    ///
    /// When another process drives it, and those of the journal.
    pub async fn drive(&self, run: RunId) -> Result<Report, Error> {
        self.drive_unmasked(run, None).await.map(Report::masked)
    }

    /// The same, with the placeholders of secrets, for a run that may have called this one.
    pub(super) async fn drive_unmasked(
        &self,
        run: RunId,
        caller: Option<Caller>,
    ) -> Result<Report, Error> {
        let (mut report, mut moved) = self.drive_once(run, caller.clone()).await?;
        while moved {
            match self.drive_once(run, caller.clone()).await {
                Ok(again) => (report, moved) = again,
                // Whoever wrote to it drives it, unless that can only be done here.
                Err(Error::Journal(journal::Error::Held { .. })) => {
                    Driver::open(self.clone(), run)?.leave_here()?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(report)
    }

    /// Drives a run and lets go of it; also gives whether somebody has written to it, or to one
    /// that it waits for, who found it driven from here.
    async fn drive_once(
        &self,
        run: RunId,
        caller: Option<Caller>,
    ) -> Result<(Report, bool), Error> {
        let lock = self.journal().lock(run)?;
        let presence = self.inner.presences.enter(run);
        self.take_up(run);
        self.end_orphans(run).await?;
        let mut driver = Driver::open(self.clone(), run)?.called_by(caller);
        if driver.run.status() == Status::Running {
            driver.expect_session_here()?;
        }
        self.end_forgotten(run, &driver.run).await?;
        let report = driver.drive(&presence).await;
        driver.stop_all().await;
        if driver.has_called {
            self.end_forgotten(run, &driver.run).await?;
        }
        // A failed run may be tried again.
        let is_over = matches!(driver.run.status(), Status::Completed | Status::Cancelled);
        self.forget_secrets(run, is_over);
        self.release_sessions(run).await;
        drop(lock);
        drop(presence);
        let report = report?;
        if report.status != ReportStatus::Waiting || !report.missing_secrets.is_empty() {
            return Ok((report, false));
        }
        // Agents ask again by themselves.
        let moved = !driver.run.is_agent_driven() && self.has_moved(run, &driver.run)?;
        if !moved {
            driver.leave_here()?;
        }
        Ok((report, moved))
    }

    /// Records something that happened to a run, from outside: an answer, a cancellation, a change
    /// of state. Whoever drives the run notices; if nobody does, [`Host::drive`] goes on from it.
    ///
    /// # Errors
    ///
    /// When it does not fit the run, when it answers something that is no longer asked or whose time
    /// is over (which then is what has happened), and those of the journal.
    pub async fn record(&self, run: RunId, happening: Happening) -> Result<(), Error> {
        let happening = foreign(happening);
        let outermost = self.outermost(run)?;
        self.learn_above(run)?;
        // Another host may write between reading and writing; the fence tells, and we look again.
        let (late, status, seqs) = loop {
            if self.cancelled_at_once(run, &happening).await? {
                // Nobody needs the number of an event that is the last one.
                break (None, Status::Cancelled, 0..=0);
            }
            let mut driver = Driver::open(self.clone(), run)?;
            if happening.ends().is_some() || matches!(happening, Happening::Resumed(_)) {
                driver.expect_session_here()?;
            }
            if let Some(asked) = happening.answers()
                && driver.run.data().is_some()
                && driver.run.action(asked).is_none()
            {
                return Err(self.no_longer_asked(run, &driver.run, asked, None)?);
            }
            let late = driver.late_answer(&happening);
            if late.is_none()
                && let Some(step) = driver.answered_step(&happening)
                && let Some(at) = self.callers_are_over(run).await?
            {
                self.inner.background.recorded(outermost);
                return Err(Error::TooLate { step, at });
            }
            let happened = late.as_ref().map_or(&happening, |(over, _)| over).clone();
            let before = driver.last();
            match driver.append(happened).await {
                Ok(_) => {
                    let seqs = before + 1..=driver.last();
                    break (late.map(|(_, error)| error), driver.run.status(), seqs);
                }
                Err(Error::Journal(journal::Error::Fenced { .. })) => {}
                Err(error) => return Err(error),
            }
        };
        self.note_fresh(run, seqs);
        self.inner.background.recorded(run);
        // Whoever waits for it is driven in its place.
        self.inner.background.recorded(outermost);
        self.inner.presences.tell(run);
        if let Happening::Cancelled { .. } = &happening {
            self.cancel_called(run, &happening).await?;
        }
        if status != Status::Running {
            // Whoever is told that it is over finds nothing of it going on.
            self.inner.presences.left(run).await;
            self.release_sessions(run).await;
        }
        late.map_or(Ok(()), Err)
    }

    /// Records that a run is cancelled, whatever it does meanwhile: who goes on without waiting
    /// would always be first otherwise. `false` when that takes a look at the run.
    async fn cancelled_at_once(&self, run: RunId, happening: &Happening) -> Result<bool, Error> {
        let Happening::Cancelled { .. } = happening else {
            return Ok(false);
        };
        let at = now().max(self.journal().run(run)?.updated_at);
        let event = Event {
            at,
            what: self.scrubbed(run, happening.clone()),
        };
        let update = journal::RunUpdate::at(at).status(journal::Status::Cancelled);
        let append = Append::at_end(run)
            .event(at, kind(&event.what), body(&event)?)
            .update(update);
        match self.journal().submit(append).await {
            Ok(_) => Ok(true),
            Err(journal::Error::Fenced { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
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
        let events = self.journal().events(run, 1.., usize::MAX)?;
        for recorded in Recorded::all(&events)? {
            let effects = recorded.apply(&mut replayed, None)?.into_iter();
            let at = recorded.event.at;
            history.extend(effects.map(|effect| (at, masked_effect(&effect))));
        }
        Ok(history)
    }

    /// What was recorded as the result of a step of a run, with what was to be done.
    pub(super) fn recorded_result(&self, run: RunId, name: &str) -> Result<PastResult, Error> {
        let program = self.program(self.journal().run(run)?.definition)?;
        let mut replayed = Run::new(program);
        let mut found = PastResult::NobodyAsked;
        let events = self.journal().events(run, 1.., usize::MAX)?;
        for recorded in Recorded::all(&events)? {
            let what = &recorded.event.what;
            let keeps_time = !replayed.is_agent_driven();
            let is_over = matches!(what, Happening::Woke { .. } | Happening::TimedOut { .. });
            let mut asked = None;
            match replayed.named(name) {
                Named::Action(action) if keeps_time && is_over => asked = Some((action.id, None)),
                Named::Called(action, rest) if keeps_time && is_over => {
                    let below = (deed::called(run, action), rest.to_owned());
                    asked = Some((action.id, Some(below)));
                }
                Named::Action(action) if Some(action.id) == what.ends() => {
                    let result = (action.clone(), what.clone());
                    found = PastResult::Recorded(Box::new(result));
                }
                Named::Action(_) | Named::Tasks(_) | Named::Called(..) => {
                    if let PastResult::NobodyAsked = found {
                        found = PastResult::Unknown;
                    }
                }
                Named::Past | Named::Later | Named::Nobody => {}
            }
            recorded.apply(&mut replayed, None)?;
            if let Some((asked, below)) = asked
                && replayed.action(asked).is_none()
            {
                // A step of a called run may have had its result before that had no more time.
                found = match below.map(|(called, rest)| self.recorded_result(called, &rest)) {
                    Some(Ok(result @ PastResult::Recorded(_))) => result,
                    _ => PastResult::OutOfTime,
                };
            }
        }
        Ok(found)
    }

    /// How a run stands, without driving it.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn report(&self, run: RunId) -> Result<Report, Error> {
        let driver = Driver::open(self.clone(), run)?;
        Ok(driver.report(None).masked())
    }

    /// Inputs that fit, with placeholders for the secrets among them, and where those come from.
    /// A run that another one calls may be handed placeholders.
    fn accepted(
        &self,
        graph: &Graph,
        inputs: &Value,
        run: RunId,
        family: RunId,
    ) -> Result<(Value, BTreeMap<String, Reference>), Error> {
        let called = run != family;
        let given = match called {
            true => self.known_value(family, inputs),
            false => secret::foreign_value(inputs),
        };
        let accepted = input::accept(graph.inputs.as_deref(), &given).map_err(Error::Inputs)?;
        let mut secrets = BTreeMap::new();
        let mut hidden: Vec<(&str, Value)> = Vec::new();
        for (name, value, reference) in &accepted.secrets {
            // What a caller handed on stays the caller's, known here or not.
            let handed = inputs.get(name).filter(|it| secret::concerns_value(it));
            let stands = handed.filter(|_| called).cloned().unwrap_or_else(|| {
                let by_hand = *reference == Reference::Hand;
                let run = run.to_string();
                let stands = secret::placeholder(&run, name);
                let (input, value) = (name.clone(), value.clone());
                let secret = Secret { run, input, value };
                self.inner.vault.keep(family, secret, by_hand);
                secrets.insert(name.clone(), reference.clone());
                Value::text(stands)
            });
            hidden.push((name, stands));
        }
        let inputs = match &accepted.inputs {
            Value::Map(map) => Value::map(map.0.iter().map(|(name, value)| {
                let mut hidden = hidden.iter();
                let stands = hidden.find(|(hidden, _)| **name == **hidden);
                let stands = stands.map(|(_, stands)| stands);
                // As it was handed on, where nothing was made of it.
                let is_same = called && given.get(name) == Some(value);
                let handed = || inputs.get(name).filter(|_| is_same);
                (name, stands.or_else(handed).unwrap_or(value).clone())
            })),
            other => other.clone(),
        };
        Ok((inputs, secrets))
    }

    pub(super) fn program(&self, hash: Hash) -> Result<Arc<Program>, Error> {
        if let Some(program) = self.programs().get(&hash) {
            return Ok(Arc::clone(program));
        }
        let bytes = self.journal().definition(hash)?;
        let graph: Graph =
            serde_json::from_slice(&bytes).map_err(|error| Error::Unreadable(error.to_string()))?;
        let evaluator = (self.inner.options.evaluator)(&graph);
        let program = Arc::new(Program::new(Cow::Owned(graph), evaluator));
        self.programs().insert(hash, Arc::clone(&program));
        Ok(program)
    }

    fn programs(&self) -> std::sync::MutexGuard<'_, HashMap<Hash, Arc<Program>>> {
        let programs = &self.inner.programs;
        programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The inputs of a run with their defaults; secrets among them are masked.
///
/// # Errors
///
/// [`Error::Inputs`] with every input that does not fit.
pub fn complete(graph: &Graph, inputs: &Value) -> Result<Value, Error> {
    let accepted = input::accept(graph.inputs.as_deref(), inputs).map_err(Error::Inputs)?;
    Ok(accepted.shown())
}

pub(super) fn now() -> u64 {
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

pub(super) fn body(event: &Event) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(event).map_err(|error| Error::Unreadable(error.to_string()))
}

pub(super) fn kind(what: &Happening) -> &'static str {
    match what {
        Happening::Started(_) => "started",
        Happening::Completed { .. } => "completed",
        Happening::Done { .. } => "done",
        Happening::Failed { .. } => "failed",
        Happening::TimedOut { .. } => "timed_out",
        Happening::Declined { .. } => "declined",
        Happening::Woke { .. } => "woke",
        Happening::Updated { .. } => "updated",
        Happening::Continued => "continued",
        Happening::Rested => "rested",
        Happening::Late { .. } => "late",
        Happening::Checkpointed { .. } => "checkpointed",
        Happening::Taken { .. } => "taken",
        Happening::GivenUp { .. } => "given_up",
        Happening::Cancelled { .. } => "cancelled",
        Happening::Resumed(_) => "resumed",
    }
}
