//! One run while agents work on it: a task that owns the run, takes requests in their order, and
//! does what is the server's to do meanwhile.
//!
//! A run that waits for its agents holds no lock and nothing goes on for it; it can be put away at
//! any time. What others write to the run is noticed before every request.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::super::secrets::masked_failure;
use super::result::{Meant, Unfit, meant};
use super::step::{self, TaskPage};
use super::{AgentError, AgentStep, Outcome, Submission, Turn, TurnStatus};
use crate::host::deed::{called, called_by};
use crate::host::driver::{Driver, Message, look};
use crate::host::local::{Error, Host, now};
use crate::host::presence::Presence;
use crate::host::secrets::foreign;
use crate::host::shell::end_group;
use crate::journal::{self, RunId, RunLock};
use crate::run::{
    Action, ActionId, Deed, Effect, Failure, FailureKind, Handout, Handouts, Happening, Named,
    NamedTask, Part, Refusal, Run, Status, TaskState, Tasks,
};
use crate::secret;
use crate::value::Value;

/// Open tasks that an answer lists, when nobody says how many.
const LISTED: usize = 100;
/// About how many bytes those have.
const LISTED_FIT: usize = 20_000;

/// What is asked of a desk.
pub(super) enum Request {
    /// The next step.
    Look {
        what: Look,
        reply: oneshot::Sender<Result<Answer, AgentError>>,
    },
    /// A result; answered with where to look next.
    Submit {
        step: Option<String>,
        submission: Submission,
        reply: oneshot::Sender<Result<Submitted, AgentError>>,
    },
    /// Something that happened to the run.
    Record {
        happening: Box<Happening>,
        reply: oneshot::Sender<Result<(), AgentError>>,
    },
    /// The workflow that an action calls may be over; answered with who has the run to see to it.
    Redo {
        call: ActionId,
        reply: oneshot::Sender<Holder>,
    },
    /// Somebody goes on with a run that others have left; answered with the runs it has called and
    /// that are under way.
    TakeUp(oneshot::Sender<Vec<RunId>>),
    /// Reads the run.
    Read(Box<dyn FnOnce(&Driver) + Send>),
}

/// Who does what a run wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The desk that is asked.
    Here,
    /// Somebody else in this process, or nobody.
    Beside,
    /// Another process.
    Elsewhere,
}

/// Whose next step is asked for, and how patiently.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) task: Option<String>,
    pub(super) page: TaskPage,
    /// Milliseconds since 1970 until which a run that goes on by itself is waited for.
    pub(super) until: u64,
    /// Whether to wait for others too: for tasks to end, for a turn to begin one.
    pub(super) for_others: bool,
    /// Whether the run is to go on.
    pub(super) drives: bool,
    /// Whether nobody waits for the answer.
    pub(super) unattended: bool,
}

/// What a desk answers.
pub(super) enum Answer {
    /// This.
    Turn(Box<Turn>),
    /// The run waits for another one, which it has called: look there.
    Called(Called),
}

/// A step of a run that another one has called.
pub(super) struct Called {
    pub(super) run: RunId,
    pub(super) call: ActionId,
    /// What the names of its steps have before them here.
    pub(super) name: String,
    /// The task here that the call is a step of.
    pub(super) task: Option<String>,
    /// The name there, where one was given.
    pub(super) rest: Option<String>,
}

impl Called {
    /// The task, here, of whoever works on a task there; or on all but the tasks there.
    pub(super) fn seen_from(&self, task: Option<String>) -> Option<String> {
        match task {
            Some(task) => Some(format!("{}/{task}", self.name)),
            None => self.task.clone(),
        }
    }
}

/// What became of a result.
pub(super) enum Submitted {
    /// This.
    Here {
        heard: Heard,
        /// The name of the step that it was for.
        step: String,
        /// Where to look for what is next: at this task, or at the whole run.
        task: Option<String>,
    },
    /// It is for a run that this one has called.
    Called(Called),
}

/// What became of a result for a step of a run.
#[derive(Clone, Copy)]
pub(super) enum Heard {
    /// It counts.
    Taken,
    /// The step had its result before, and this one changes nothing.
    Repeated,
    /// The step had another result before, perhaps from somebody else, and this one changes nothing.
    Outdone,
    /// The step is over when its tasks are, and takes no result.
    OfTasks,
}

struct Waiter {
    what: Look,
    reply: oneshot::Sender<Result<Answer, AgentError>>,
}

/// Whether a look has an answer.
enum Seen {
    Answer(Answer),
    /// Something goes on by itself; the answer to give when the time is up.
    Going(Turn),
    /// As many tasks of a fan-out are under way as may be.
    Queued(ActionId, Turn),
}

/// One run while agents work on it.
pub(super) struct Desk {
    driver: Driver,
    requests: mpsc::UnboundedReceiver<Request>,
    lock: Option<(RunLock, Presence)>,
    /// Something that the run wants is not being done here: another process does it, or nobody has
    /// asked for the run to go on.
    behind: bool,
    /// Another process had the run when it was wanted here last.
    elsewhere: bool,
    /// Somebody asks for the run to go on, or it does; otherwise it is only looked at.
    awake: bool,
    /// Nobody has begun what the run wants.
    fresh: bool,
    /// Fan-outs whose tasks nobody has asked for since the run was taken up: they are handed out
    /// again.
    left: BTreeSet<ActionId>,
    /// Those that wait for something to happen.
    waiters: Vec<Waiter>,
    /// Those that wait for their turn to begin a task, by fan-out.
    queued: BTreeMap<ActionId, VecDeque<Waiter>>,
    going: Arc<AtomicBool>,
}

/// Takes requests for a run.
#[derive(Clone)]
pub(super) struct Seat {
    pub(super) requests: mpsc::UnboundedSender<Request>,
    /// Whether something goes on there.
    pub(super) going: Arc<AtomicBool>,
}

impl Seat {
    /// Lets the desk go, and returns when it has.
    pub(super) async fn ended(self) {
        let Seat { requests, .. } = self;
        requests.closed().await;
    }
}

enum Event {
    Asked(Option<Request>),
    Came(Option<Message>),
    Look,
    Stop,
}

impl Desk {
    /// Opens a run. Must be called within a tokio runtime.
    pub(super) fn open(host: Host, run: RunId) -> Result<Seat, Error> {
        let driver = Driver::open(host, run)?;
        let (asking, requests) = mpsc::unbounded_channel();
        let going = Arc::new(AtomicBool::new(true));
        let desk = Desk {
            driver,
            requests,
            lock: None,
            behind: false,
            elsewhere: false,
            awake: false,
            fresh: false,
            left: BTreeSet::new(),
            waiters: Vec::new(),
            queued: BTreeMap::new(),
            going: Arc::clone(&going),
        };
        tokio::spawn(desk.sit());
        Ok(Seat {
            requests: asking,
            going,
        })
    }

    async fn sit(mut self) {
        if let Err(reason) = self.work().await {
            let waiters = self.waiters.drain(..);
            let queued = self.queued.values_mut().flat_map(|queue| queue.drain(..));
            for waiter in waiters.chain(queued) {
                let _ = waiter.reply.send(Err(AgentError::Broken(reason.clone())));
            }
        }
        self.driver.stop_all().await;
        // A failed run may be tried again.
        let over = matches!(
            self.driver.run.status(),
            Status::Completed | Status::Cancelled
        );
        let (host, run) = (&self.driver.host, self.driver.id.to_string());
        host.inner.vault.forget(&run, over);
    }

    async fn work(&mut self) -> Result<(), Arc<Error>> {
        let mut stop = self.driver.host.inner.stop.subscribe();
        self.fresh = self.driver.show_unseen();
        let pending = self.driver.run.taken_over(now());
        self.act(pending).await?;
        let mut look = look();
        let mut open = true;
        loop {
            let going = self.driver.is_going();
            if going && self.lock.is_some() {
                self.driver.note_sleep().await?;
            }
            if !going {
                self.note_standing().await?;
                self.lock = None;
            }
            self.going.store(going, Ordering::Relaxed);
            let waits = !self.waiters.is_empty() || !self.queued.is_empty();
            if !open && !going && !waits {
                return Ok(());
            }
            let event = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => Event::Stop,
                request = self.requests.recv(), if open => Event::Asked(request),
                message = self.driver.next(), if going => Event::Came(message),
                () = news(self.lock.as_ref()) => Event::Look,
                _ = look.tick(), if going || waits => Event::Look,
            };
            match event {
                Event::Stop if self.awake && !self.behind => {
                    return Ok(self.driver.note_stopped().await?);
                }
                Event::Stop => return Ok(()),
                Event::Asked(None) => open = false,
                Event::Asked(Some(request)) => self.serve(request).await?,
                Event::Came(Some(message)) => {
                    self.take(message).await?;
                    self.conclude().await?;
                    self.answer().await?;
                }
                Event::Came(None) => return Ok(()),
                Event::Look => {
                    self.awake &= self.is_driven_on();
                    self.refresh().await?;
                    self.conclude().await?;
                    self.answer().await?;
                }
            }
        }
    }

    /// Lets go of everything once the run is over: nothing of it goes on, nor of what it has called,
    /// and its terminal sessions are seen to.
    async fn conclude(&mut self) -> Result<(), Error> {
        if self.driver.run.status() == Status::Running {
            return Ok(());
        }
        self.driver.stop_all().await;
        let (host, run) = (self.driver.host.clone(), self.driver.id);
        host.end_forgotten(run, &self.driver.run).await?;
        host.release_sessions(run).await;
        Ok(())
    }

    /// Tells the list of runs that the run waits, or is over, when nothing goes on here. Whoever
    /// only looks at a run leaves its record as it is.
    async fn note_standing(&mut self) -> Result<(), Error> {
        let is_ours = self.awake && !self.behind && !self.driver.is_going();
        if is_ours && self.driver.is_unnoticed() {
            self.driver.note_standing().await?;
        }
        Ok(())
    }

    /// Does what a run wants. What is the server's takes the right to act on the run.
    async fn act(&mut self, effects: Vec<Effect>) -> Result<(), Error> {
        let quiet = effects.iter().all(|effect| self.driver.is_quiet(effect));
        if quiet || self.lock.is_some() {
            effects.into_iter().for_each(|it| self.driver.act(it));
            return Ok(());
        }
        let is_ours = self.acquire().await?;
        self.behind |= !is_ours;
        for effect in effects {
            let is_due = match is_ours {
                // Whoever had the run before may have done it.
                true => self.driver.still_wants(&effect),
                false => self.driver.is_quiet(&effect),
            };
            if is_due {
                self.driver.act(effect);
            }
        }
        Ok(())
    }

    /// Takes the right to act on the run, if that is wanted; whether nobody else has it.
    async fn acquire(&mut self) -> Result<bool, Error> {
        Ok(self.awake && self.take_over().await?)
    }

    /// Takes the right to act on the run; whether nobody else has it. It is the one way in which a
    /// run gets into the hands of a desk: what the one before has recorded is known before anything
    /// is done.
    async fn take_over(&mut self) -> Result<bool, Error> {
        let (journal, run) = (self.driver.host.journal().clone(), self.driver.id);
        let lock = match journal.lock(run) {
            Ok(lock) => lock,
            Err(journal::Error::Held { pid, .. }) => {
                self.elsewhere = pid != Some(std::process::id());
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        // Whoever has the run hears of it from the first moment.
        let presence = self.driver.host.inner.presences.enter(run);
        self.elsewhere = false;
        for orphan in journal.orphans(run)? {
            end_group(&orphan.group).await;
            journal.forget_process(run, &orphan.action).await?;
        }
        self.lock = Some((lock, presence));
        let missed = self.driver.read_on()?;
        self.driver.begin_left(missed, false);
        Ok(true)
    }

    /// Takes in what came of something under way. What is left over from when the run was here, such
    /// as a clock, is nothing to whoever has it now.
    async fn take(&mut self, message: Message) -> Result<(), Error> {
        if self.lock.is_none() && !self.take_over().await? {
            self.driver.leave(&message);
            self.behind = true;
            return Ok(());
        }
        self.driver.take(message).await
    }

    /// Whether the run still is to go on here: it does already, or somebody who has asked for that
    /// waits. Whoever was answered may not come back, and then nothing is begun for them.
    fn is_driven_on(&self) -> bool {
        let mut waiting = self.waiters.iter().chain(self.queued.values().flatten());
        self.lock.is_some() || waiting.any(|waiter| waiter.what.drives && !waiter.reply.is_closed())
    }

    fn holder(&self) -> Holder {
        match (self.behind, self.elsewhere) {
            (false, _) => Holder::Here,
            (true, false) => Holder::Beside,
            (true, true) => Holder::Elsewhere,
        }
    }

    /// Takes in what others have written, and what they have left undone.
    async fn refresh(&mut self) -> Result<(), Error> {
        let (news, wanted): (Vec<Effect>, Vec<Effect>) = {
            let effects = self.driver.read_on()?.into_iter();
            effects.partition(|effect| self.driver.is_quiet(effect))
        };
        news.into_iter().for_each(|effect| self.driver.act(effect));
        match self.lock {
            Some(_) => wanted.into_iter().for_each(|it| self.driver.act(it)),
            // Whoever has recorded it does it, or has left it undone.
            None => self.behind |= !wanted.is_empty(),
        }
        if self.behind && self.acquire().await? {
            self.behind = false;
            let fresh = std::mem::take(&mut self.fresh);
            self.driver.wake().await?;
            if !fresh {
                self.driver.note_due().await?;
            }
            self.driver.begin_missing(fresh);
        }
        Ok(())
    }

    async fn serve(&mut self, request: Request) -> Result<(), Arc<Error>> {
        self.awake &= self.is_driven_on();
        self.awake |= match &request {
            Request::Look { what, .. } => what.drives,
            Request::Submit { .. }
            | Request::Record { .. }
            | Request::Redo { .. }
            | Request::TakeUp(_) => true,
            Request::Read(_) => false,
        };
        self.refresh().await?;
        // Whoever looks at the list after an answer sees what the answer says.
        self.note_standing().await?;
        match request {
            Request::Look { what, reply } => self.look(what, reply).await?,
            Request::Submit {
                step,
                submission,
                reply,
            } => {
                let submitted = self.submit(step.as_deref(), submission).await;
                self.reply(reply, submitted)?;
            }
            Request::Record { happening, reply } => {
                let recorded = self.record(foreign(*happening)).await;
                self.reply(reply, recorded.map_err(AgentError::from))?;
            }
            Request::Redo { call, reply } => {
                let action = self.driver.run.action(call).cloned();
                if let Some(action) = action.filter(|_| self.driver.parked.contains(&call)) {
                    self.act(vec![Effect::Act(action)]).await?;
                }
                let _ = reply.send(self.holder());
            }
            Request::TakeUp(reply) => {
                self.try_again().await?;
                let _ = reply.send(self.take_up());
            }
            Request::Read(read) => {
                read(&self.driver);
                return Ok(());
            }
        }
        self.answer().await
    }

    /// Tries what was not done for want of a secret, which may be known by now.
    async fn try_again(&mut self) -> Result<(), Error> {
        let pending = self.driver.run.taken_over(now()).into_iter();
        let tried = pending.filter(|effect| match effect {
            Effect::Act(action) => {
                self.driver.parked.contains(&action.id) && action.what.has_secrets()
            }
            _ => false,
        });
        let tried = tried.collect();
        self.act(tried).await
    }

    /// Nobody works on the tasks under way any more: whoever asks next starts their sub-agents.
    fn take_up(&mut self) -> Vec<RunId> {
        let run = &self.driver.run;
        let Some(data) = run.data() else {
            return Vec::new();
        };
        let under_way = data.waiting.keys().copied();
        let is_delegated = |id: &ActionId| run.tasks(*id).is_some_and(|it| it.fan.is_delegated());
        self.left = under_way.filter(is_delegated).collect();
        let journal = self.driver.host.journal();
        let pending = run.pending().into_iter();
        let called = pending.filter_map(|effect| match effect {
            Effect::Act(action) if matches!(action.what, Deed::Call { .. }) => {
                Some(called(self.driver.id, &action))
            }
            _ => None,
        });
        called
            .filter(|called| {
                let record = journal.run(*called);
                record.is_ok_and(|record| !record.status.is_final())
            })
            .collect()
    }

    /// Gives an answer. A failure of the journal ends the desk as well.
    fn reply<T>(
        &self,
        reply: oneshot::Sender<Result<T, AgentError>>,
        answer: Result<T, AgentError>,
    ) -> Result<(), Arc<Error>> {
        let answer = match answer {
            Err(AgentError::Host(error @ (Error::Journal(_) | Error::Unreadable(_)))) => {
                let error = Arc::new(error);
                let _ = reply.send(Err(AgentError::Broken(Arc::clone(&error))));
                return Err(error);
            }
            answer => answer,
        };
        // Nobody may be waiting any more.
        let _ = reply.send(answer);
        Ok(())
    }

    /// Records something and does what follows from it.
    async fn record(&mut self, happening: Happening) -> Result<(), Error> {
        self.record_while(happening, |_| true).await.map(drop)
    }

    /// The same as long as something holds; gives whether it was recorded.
    async fn record_while(
        &mut self,
        happening: Happening,
        holds: impl Fn(&Run) -> bool,
    ) -> Result<bool, Error> {
        while holds(&self.driver.run) {
            match self.driver.append(happening.clone()).await {
                Ok(effects) => {
                    self.act(effects).await?;
                    return self.conclude().await.map(|()| true);
                }
                // Somebody else wrote first: take that in, and look again.
                Err(Error::Journal(journal::Error::Fenced { .. })) => self.refresh().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    async fn look(
        &mut self,
        what: Look,
        reply: oneshot::Sender<Result<Answer, AgentError>>,
    ) -> Result<(), Arc<Error>> {
        let seen = match self.see(&what).await {
            Ok(seen) => seen,
            Err(error) => return self.reply(reply, Err(error)),
        };
        let patient = now() < what.until;
        match seen {
            Seen::Answer(answer) => {
                let _ = reply.send(Ok(answer));
            }
            Seen::Going(turn) => {
                // There is no use in waiting for a time that comes later than the answer.
                let in_time = turn.wakes.is_none_or(|wakes| wakes <= what.until);
                let by_itself = match turn.status {
                    TurnStatus::WaitingForTasks | TurnStatus::Waiting => false,
                    TurnStatus::Running
                    | TurnStatus::Sleeping
                    | TurnStatus::Completed
                    | TurnStatus::Failed
                    | TurnStatus::Cancelled => true,
                };
                let is_left = what.unattended && self.holder() == Holder::Elsewhere;
                if patient && in_time && (by_itself || what.for_others) && !is_left {
                    self.waiters.push(Waiter { what, reply });
                } else {
                    let _ = reply.send(Ok(Answer::Turn(Box::new(turn))));
                }
            }
            Seen::Queued(tasks, turn) => {
                if patient && what.for_others {
                    let queue = self.queued.entry(tasks).or_default();
                    queue.push_back(Waiter { what, reply });
                } else {
                    let _ = reply.send(Ok(Answer::Turn(Box::new(turn))));
                }
            }
        }
        Ok(())
    }

    /// Answers those that have waited for what has happened.
    async fn answer(&mut self) -> Result<(), Arc<Error>> {
        for waiter in std::mem::take(&mut self.waiters) {
            if !waiter.reply.is_closed() {
                self.look(waiter.what, waiter.reply).await?;
            }
        }
        let fan_outs: Vec<ActionId> = self.queued.keys().copied().collect();
        for tasks in fan_outs {
            // As long as there is room, in the order they came.
            let mut left = self.queued.get(&tasks).map_or(0, VecDeque::len);
            while left > 0 && self.has_room(tasks) {
                left -= 1;
                let waiter = self.queued.get_mut(&tasks).and_then(VecDeque::pop_front);
                if let Some(waiter) = waiter.filter(|waiter| !waiter.reply.is_closed()) {
                    self.look(waiter.what, waiter.reply).await?;
                }
            }
            if self.queued.get(&tasks).is_some_and(VecDeque::is_empty) {
                self.queued.remove(&tasks);
            }
        }
        Ok(())
    }

    /// Whether those that wait for a fan-out can be answered.
    fn has_room(&self, tasks: ActionId) -> bool {
        let run = &self.driver.run;
        run.tasks(tasks).is_none_or(|tasks| {
            let at_once = tasks.fan.at_once(&run.program().graph().limits);
            tasks.children.running.len() < at_once
        })
    }

    /// What there is to say to somebody.
    async fn see(&mut self, what: &Look) -> Result<Seen, AgentError> {
        let Some(name) = &what.task else {
            if let Some(over) = self.over() {
                return Ok(Seen::Answer(Answer::Turn(Box::new(over))));
            }
            return Ok(self.part(Part::Main, None, what));
        };
        let (tasks, item) = match self.driver.run.named_task(name) {
            NamedTask::Task(part, state) => {
                let Part::Task { tasks, item } = part else {
                    return Ok(self.part(Part::Main, None, what));
                };
                if what.drives {
                    self.left.remove(&tasks);
                }
                match state {
                    TaskState::Begun => return Ok(self.part(part, Some(name), what)),
                    TaskState::Open { free: false } => {
                        return Ok(Seen::Queued(tasks, self.in_line(name)));
                    }
                    TaskState::Open { .. } if !what.drives => {
                        let turn = self.turn(TurnStatus::Waiting).of(name);
                        return Ok(Seen::Queued(tasks, turn));
                    }
                    TaskState::Open { .. } => (tasks, item),
                    TaskState::Completed(_) | TaskState::Failed(_) | TaskState::Stopped => {
                        return Ok(self.ended(name, state));
                    }
                }
            }
            NamedTask::Called(action, rest) => {
                let called = self.called(action, Some(rest.to_owned()));
                return Ok(Seen::Answer(Answer::Called(called)));
            }
            NamedTask::CalledBefore(number, call, rest) => {
                return Ok(Seen::Answer(Answer::Called(Called {
                    run: called_by(self.driver.id, &call.key),
                    call: number,
                    name: call.name.clone(),
                    task: call.task.clone(),
                    rest: Some(rest.to_owned()),
                })));
            }
            NamedTask::Past(ended) => return Ok(self.ended(name, ended)),
            NamedTask::Forgotten => return Err(AgentError::Forgotten { task: name.clone() }),
            NamedTask::Nobody => return Err(self.no_such_task(name)),
        };
        match self.record(Happening::Taken { tasks, item }).await {
            Ok(()) => {}
            // Somebody else has begun it, or filled the last place.
            Err(Error::Refused(Refusal::Task(_))) => {
                return Ok(Seen::Queued(tasks, self.in_line(name)));
            }
            Err(error) => return Err(error.into()),
        }
        Box::pin(self.see(what)).await
    }

    /// A task that cannot begin yet.
    fn in_line(&self, task: &str) -> Turn {
        let mut turn = self.turn(TurnStatus::Waiting).of(task);
        let note = "as many tasks are under way as may be at once (`max_parallel`, `sequential`): \
            this one waits for its turn, and begins with the first `get_next_step` that finds room";
        turn.note = Some(note.to_owned());
        turn
    }

    /// What there is to say of a task that is over.
    fn ended(&self, name: &str, ended: TaskState<'_>) -> Seen {
        let mut turn = self.turn(TurnStatus::Completed).of(name);
        match ended {
            TaskState::Completed(Some(output)) => turn.output = output.clone(),
            TaskState::Completed(None) => {
                let note =
                    "the task is over, and what it gave is no longer kept here: the run has it";
                turn.note = Some(note.to_owned());
            }
            TaskState::Failed(failure) => {
                turn.status = TurnStatus::Failed;
                turn.error = Some(failure.clone());
            }
            TaskState::Stopped | TaskState::Open { .. } | TaskState::Begun => {
                turn.status = TurnStatus::Cancelled;
                let stopped = "the task was stopped: the step it belongs to is over";
                turn.error = Some(Failure::new(FailureKind::Cancelled, stopped));
            }
        }
        Seen::Answer(Answer::Turn(Box::new(turn)))
    }

    /// What there is to say of a part of the run that somebody works on.
    fn part(&self, part: Part, task: Option<&str>, what: &Look) -> Seen {
        let run = &self.driver.run;
        let found = run.handouts(part);
        let named = |turn: Turn| match task {
            Some(task) => turn.of(task),
            None => turn,
        };
        let waits = |action: &Action| self.is_handed_out(action) || action.what.asks_person();
        let is_call = |action: &Action| matches!(action.what, Deed::Call { .. });
        for handout in &found.steps {
            let step = match handout {
                Handout::Action(action) if waits(action) && !is_call(action) => {
                    let action = self.driver.host.shown(self.driver.id, action);
                    step::of_action(&self.driver.host, run, &action)
                }
                Handout::Tasks(tasks) => self.tasks_step(tasks, step::Listed::New(what.page)),
                Handout::Action(_) => continue,
            };
            let mut turn = named(self.turn(TurnStatus::Waiting));
            turn.step = Some(step::masked(step));
            return Seen::Answer(Answer::Turn(Box::new(turn)));
        }
        let mut under_way = found.under_way.iter();
        if let Some(tasks) = under_way.find(|tasks| self.left.contains(&tasks.id)) {
            let mut turn = named(self.turn(TurnStatus::Waiting));
            let step = self.tasks_step(tasks, step::Listed::Open(what.page));
            turn.step = Some(step::masked(step));
            return Seen::Answer(Answer::Turn(Box::new(turn)));
        }
        for handout in &found.steps {
            if let Handout::Action(action) = handout
                && (waits(action) || self.is_called_elsewhere(action))
            {
                return Seen::Answer(Answer::Called(self.called(action, None)));
            }
        }
        let actions = found.steps.iter().filter_map(|handout| match handout {
            Handout::Action(action) => Some(*action),
            Handout::Tasks(_) => None,
        });
        if let Some(turn) = self.without_secrets(actions) {
            return Seen::Answer(Answer::Turn(Box::new(named(turn))));
        }
        let mut turn = named(self.turn(TurnStatus::Running));
        if !found.under_way.is_empty() && !self.goes_on(&found) {
            turn.status = TurnStatus::WaitingForTasks;
            let open = found.under_way.first();
            let open = open.map(|tasks| self.tasks_step(tasks, step::Listed::Beside));
            turn.open_step = open.map(step::masked);
        } else if task.is_some() && found.queued && found.steps.is_empty() {
            turn.status = TurnStatus::Waiting;
            let note = "as much is under way in the run as may be at once: this waits for its turn";
            turn.note = Some(note.to_owned());
        } else if found.steps.is_empty() && !found.goes_on && found.wakes.is_some() {
            turn.status = TurnStatus::Sleeping;
            turn.wakes = found.wakes;
        }
        self.list_open(&found.under_way, what.page, &mut turn);
        Seen::Going(turn)
    }

    /// Whether an action is for whoever drives the run to do. One with secrets is the host's, also
    /// while it does not know them.
    fn is_handed_out(&self, action: &Action) -> bool {
        self.driver.parked.contains(&action.id) && !action.what.has_secrets()
    }

    /// What there is to say where something cannot be done for want of a secret.
    fn without_secrets<'a>(&self, actions: impl Iterator<Item = &'a Action>) -> Option<Turn> {
        let mut steps = Vec::new();
        let mut missing = BTreeSet::new();
        for action in actions.filter(|action| self.driver.parked.contains(&action.id)) {
            let lacking = self.driver.host.lacking(&action.what);
            if !lacking.is_empty() {
                steps.push(format!("`{}`", self.driver.run.step_name(action)));
                missing.extend(lacking);
            }
        }
        let first = missing.first()?;
        let inputs: Vec<String> = missing.iter().map(|input| format!("`{input}`")).collect();
        let mut turn = self.turn(TurnStatus::Waiting);
        turn.note = Some(format!(
            "{} cannot be done without the secret {}, which was given by hand and is not kept: \
             `resume_workflow` with workflow_id {} and `inputs: {{\"{first}\": …}}` gives it again \
             (the value, or `env:NAME` or `file:PATH` of the server), or `{}` when the server is started",
            steps.join(", "),
            inputs.join(", "),
            self.driver.id,
            secret::variable(first)
        ));
        turn.missing_secrets = missing.into_iter().collect();
        Some(turn)
    }

    fn tasks_step(&self, tasks: &Tasks<'_>, which: step::Listed) -> AgentStep {
        let Driver { host, run, id, .. } = &self.driver;
        step::of_tasks(host, run, *id, tasks, which)
    }

    /// Whether an action calls a run that somebody else goes on with.
    fn is_called_elsewhere(&self, action: &Action) -> bool {
        if !self.behind || !matches!(action.what, Deed::Call { .. }) {
            return false;
        }
        let called = called(self.driver.id, action);
        let record = self.driver.host.journal().run(called);
        record.is_ok_and(|record| !record.status.is_final())
    }

    /// Whether something of a part is being done here.
    fn goes_on(&self, found: &Handouts<'_>) -> bool {
        found.goes_on || found.wakes.is_some() || !found.steps.is_empty()
    }

    /// Lists open tasks: as many as were asked for and fit, and whoever waits for them reads the
    /// list each time.
    fn list_open(&self, under_way: &[Tasks<'_>], page: TaskPage, turn: &mut Turn) {
        let (most, fits) = match page.most {
            Some(most) => (most, step::TASKS_FIT),
            None => (LISTED, LISTED_FIT),
        };
        turn.open_count = under_way.iter().map(Tasks::open).sum();
        let open = under_way
            .iter()
            .flat_map(|tasks| tasks.open_items().map(move |item| (tasks, item)));
        let mut bytes = 0;
        for (tasks, item) in open.skip(page.from).take(most) {
            let task = step::task(&self.driver.run, self.driver.id, tasks, item);
            bytes += task.size();
            if bytes > fits && !turn.open_tasks.is_empty() {
                break;
            }
            turn.open_tasks.push(task);
        }
        let next = page.from.saturating_add(turn.open_tasks.len());
        turn.open_next = Some(next).filter(|next| *next < turn.open_count);
    }

    fn called(&self, action: &Action, rest: Option<String>) -> Called {
        Called {
            run: called(self.driver.id, action),
            call: action.id,
            name: self.driver.run.step_name(action),
            task: self.task_of(self.driver.run.part(action)),
            rest,
        }
    }

    fn turn(&self, status: TurnStatus) -> Turn {
        Turn::new(self.driver.id, status)
    }

    /// How the run ended, if it is over.
    fn over(&self) -> Option<Turn> {
        let data = self.driver.run.data()?;
        let status = match data.status {
            Status::Running => return None,
            Status::Completed => TurnStatus::Completed,
            Status::Failed => TurnStatus::Failed,
            Status::Cancelled => TurnStatus::Cancelled,
        };
        let mut turn = self.turn(status);
        turn.output = secret::mask_value(&data.output);
        turn.error = data.error.as_ref().map(masked_failure);
        Some(turn)
    }

    async fn submit(
        &mut self,
        name: Option<&str>,
        submission: Submission,
    ) -> Result<Submitted, AgentError> {
        let run = &self.driver.run;
        let name = match name {
            Some(name) => self.meant_by(name),
            None => match self.first()? {
                Ok(name) => name,
                Err(called) => return Ok(Submitted::Called(called)),
            },
        };
        let action = match run.named(&name) {
            Named::Action(action) if self.is_awaited(action) => {
                if let Deed::Call { .. } = action.what {
                    return Err(self.not_pending(Some(&name)));
                }
                action.clone()
            }
            Named::Tasks(tasks) => {
                let (id, part) = (tasks.id, run.part_of_tasks(&tasks));
                return self.submit_tasks(name, id, part, submission).await;
            }
            Named::Called(action, rest) => {
                let called = self.called(action, Some(rest.to_owned()));
                return Ok(Submitted::Called(called));
            }
            Named::Past => return self.repeated(name, submission),
            // A task handed out one after another is also the name of its step.
            Named::Nobody => match run.named_task(&name) {
                NamedTask::Task(Part::Task { tasks, .. }, TaskState::Open { .. }) => {
                    let tasks = run.tasks(tasks).map(|it| (it.id, run.part_of_tasks(&it)));
                    let (id, part) = tasks.ok_or_else(|| self.not_pending(Some(&name)))?;
                    return self.submit_tasks(name, id, part, submission).await;
                }
                NamedTask::Task(..)
                | NamedTask::Past(_)
                | NamedTask::CalledBefore(..)
                | NamedTask::Forgotten => return self.repeated(name, submission),
                NamedTask::Nobody | NamedTask::Called(..) => {
                    return Err(self.not_pending(Some(&name)));
                }
            },
            Named::Action(_) | Named::Later => return Err(self.not_pending(Some(&name))),
        };
        let part = run.part(&action);
        let task = self.task_of(part);
        self.driver.host.expect_session_here(run)?;
        let happening = foreign(happening(&action, submission)?);
        let asks = |run: &Run| run.action(action.id).is_some();
        if !self.record_while(happening.clone(), asks).await? {
            // Somebody else was first, perhaps with the same.
            let Driver { host, id, .. } = &self.driver;
            let counts = host.answer_to(*id, action.id)?;
            let heard = match counts == Some(host.scrubbed(*id, happening)) {
                true => Heard::Repeated,
                false => Heard::Outdone,
            };
            return Ok(Submitted::Here {
                heard,
                step: name,
                task,
            });
        }
        // Its sub-agent is there after all.
        if let Part::Task { tasks, .. } = part {
            self.left.remove(&tasks);
        }
        self.driver.give_up(action.id);
        Ok(Submitted::Here {
            heard: Heard::Taken,
            step: name,
            task,
        })
    }

    /// What becomes of a result for a step that had one.
    fn repeated(&self, step: String, submission: Submission) -> Result<Submitted, AgentError> {
        let host = &self.driver.host;
        let recorded = host.recorded_result(self.driver.id, &step)?;
        let is_other = recorded.is_some_and(|(action, recorded)| {
            let said = happening(&action, submission);
            said.map_or(true, |said| {
                host.scrubbed(self.driver.id, foreign(said)) != recorded
            })
        });
        Ok(Submitted::Here {
            heard: match is_other {
                true => Heard::Outdone,
                false => Heard::Repeated,
            },
            task: task_before(&self.driver.run, &step),
            step,
        })
    }

    /// The name of the step that somebody means by a name: where one step that waits is shown so,
    /// or has that bare id, that one.
    fn meant_by(&self, name: &str) -> String {
        let run = &self.driver.run;
        if let Named::Nobody = run.named(name)
            && let NamedTask::Nobody = run.named_task(name)
        {
            let awaited = self.awaited();
            let shown = awaited.iter().find(|action| action.name() == name);
            let mut alike = awaited.iter().filter(|action| action.node == name);
            if let (Some(meant), _, _) | (None, Some(meant), None) =
                (shown, alike.next(), alike.next())
            {
                return run.step_name(meant);
            }
        }
        name.to_owned()
    }

    /// Tasks complete by themselves; whoever drives the run can only say that they cannot be done.
    async fn submit_tasks(
        &mut self,
        name: String,
        tasks: ActionId,
        part: Part,
        submission: Submission,
    ) -> Result<Submitted, AgentError> {
        let task = self.task_of(part);
        let heard = match submission.outcome {
            Outcome::Success => Heard::OfTasks,
            Outcome::Failed | Outcome::TimedOut | Outcome::Declined => {
                let failed = Happening::Failed {
                    action: tasks,
                    error: submission.failure(),
                    result: Value::Null,
                };
                self.record(foreign(failed)).await?;
                Heard::Taken
            }
        };
        Ok(Submitted::Here {
            heard,
            step: name,
            task,
        })
    }

    fn task_of(&self, part: Part) -> Option<String> {
        match part {
            Part::Main => None,
            Part::Task { tasks, item } => Some(self.driver.run.task_name(tasks, item)),
        }
    }

    /// Whether an action waits for a result: nobody here does it, or somebody else is being asked,
    /// and whoever answers first is heard.
    fn is_awaited(&self, action: &Action) -> bool {
        self.is_handed_out(action)
            || match &action.what {
                Deed::Prompt { .. }
                | Deed::Judge { .. }
                | Deed::Delegate { .. }
                | Deed::DelegateItem { .. } => true,
                Deed::Tool { .. } => self.driver.host.is_for_caller(&action.what),
                Deed::Shell { .. } | Deed::Call { .. } | Deed::Environment { .. } => false,
            }
    }

    /// Every action that waits for a result.
    fn awaited(&self) -> Vec<Action> {
        let pending = self.driver.run.pending().into_iter();
        pending
            .filter_map(|effect| match effect {
                Effect::Act(action) => Some(action),
                _ => None,
            })
            .filter(|action| self.is_awaited(action))
            .collect()
    }

    /// The name of the first step that waits for a result.
    fn first(&self) -> Result<Result<String, Called>, AgentError> {
        let run = &self.driver.run;
        let found = run.handouts(Part::Main);
        for handout in &found.steps {
            match handout {
                Handout::Action(action) if self.is_awaited(action) => {
                    return Ok(match action.what {
                        Deed::Call { .. } => Err(self.called(action, None)),
                        _ => Ok(run.step_name(action)),
                    });
                }
                Handout::Tasks(tasks) => return Ok(Ok(run.tasks_name(tasks))),
                Handout::Action(_) => {}
            }
        }
        Err(self.not_pending(None))
    }

    /// What waits, for somebody who named something else.
    fn not_pending(&self, name: Option<&str>) -> AgentError {
        let run = &self.driver.run;
        let pending = run.handouts(Part::Main).steps;
        let mut pending: Vec<String> = pending
            .iter()
            .filter_map(|handout| match handout {
                Handout::Action(action) if self.is_handed_out(action) => {
                    Some(run.step_name(action))
                }
                Handout::Tasks(tasks) => Some(run.tasks_name(tasks)),
                Handout::Action(_) => None,
            })
            .collect();
        // Those of sub-agents too.
        let awaited = self.awaited().into_iter();
        pending.extend(awaited.map(|action| run.step_name(&action)));
        pending.sort();
        pending.dedup();
        pending.truncate(LISTED);
        AgentError::NotPending {
            step: name.map(str::to_owned),
            pending,
            over: match run.status() {
                Status::Running => None,
                Status::Completed => Some("has completed"),
                Status::Failed => Some("has failed"),
                Status::Cancelled => Some("was cancelled"),
            },
        }
    }

    fn no_such_task(&self, name: &str) -> AgentError {
        let run = &self.driver.run;
        let found = run.handouts(Part::Main);
        let handed = found.steps.iter().filter_map(|handout| match handout {
            Handout::Tasks(tasks) => Some(tasks),
            Handout::Action(_) => None,
        });
        let names = handed.chain(&found.under_way).flat_map(|tasks| {
            let name = run.tasks_name(tasks);
            let items = tasks.open_items().take(LISTED);
            items.map(move |item| format!("{name}.{item}"))
        });
        let awaited = self.awaited();
        let mut steps = awaited.iter().map(|action| run.step_name(action));
        let step = steps.find(|step| {
            let rest = step.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        AgentError::NoTask {
            task: name.to_owned(),
            open: names.take(LISTED).collect(),
            step,
        }
    }
}

/// Something may have been recorded for a run by somebody else, while it is driven here.
async fn news(driven: Option<&(RunLock, Presence)>) {
    match driven {
        Some((_, presence)) => presence.news().await,
        None => std::future::pending().await,
    }
}

/// The sub-agent's task that the name of a step begins with.
fn task_before(run: &crate::run::Run, name: &str) -> Option<String> {
    let cuts = name.rmatch_indices('/').map(|(cut, _)| cut);
    let mut befores = cuts.map(|cut| &name[..cut]);
    let task = befores.find(|before| run.is_for_sub_agent(before));
    task.map(str::to_owned)
}

fn happening(action: &Action, submission: Submission) -> Result<Happening, Unfit> {
    let (id, failure) = (action.id, submission.failure());
    Ok(match submission.outcome {
        Outcome::Success => match meant(&action.what, submission.result)? {
            Meant::Result(result) => Happening::Completed { action: id, result },
            Meant::Done => Happening::Done { action: id },
            Meant::Failed(reason, result) => Happening::Failed {
                action: id,
                error: Failure::new(FailureKind::Action, reason),
                result,
            },
        },
        Outcome::Failed => Happening::Failed {
            action: id,
            error: failure,
            result: submission.result.unwrap_or_default(),
        },
        Outcome::TimedOut => Happening::TimedOut {
            action: id,
            result: submission.result.unwrap_or_default(),
        },
        Outcome::Declined => Happening::Declined {
            action: id,
            reason: failure.message,
        },
    })
}
