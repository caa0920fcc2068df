//! One run while agents work on it: a task that owns the run, takes requests in their order, and
//! does what is the server's to do meanwhile.
//!
//! A run that waits for its agents holds no lock and nothing goes on for it; it can be put away at
//! any time. What others write to the run is noticed before every request.

mod seeing;
mod submitting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::step::TaskPage;
use super::{AgentError, Submission, Turn, TurnStatus};
use crate::host::called::calls;
use crate::host::driver::{Driver, Message, look};
use crate::host::local::{Error, Host, now};
use crate::host::presence::Presence;
use crate::host::secrets::foreign;
use crate::journal::{self, RunId, RunLock};
use crate::run::{ActionId, Effect, Happening, Run, Status};

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
    /// The time of the step was over.
    TooLate,
    /// The step is over when its tasks are, and takes no result.
    OfTasks,
}

/// A step that has waited longer than it may.
struct Expired {
    step: String,
    node: String,
}

impl Expired {
    /// The step that is meant by a name, or by none, if it is this one or within it.
    fn of(&self, name: Option<&str>) -> Option<String> {
        let Some(name) = name else {
            return Some(self.step.clone());
        };
        let inside = name.strip_prefix(&*self.step);
        let is_meant =
            name == self.node || inside.is_some_and(|it| it.is_empty() || it.starts_with('/'));
        is_meant.then(|| name.to_owned())
    }
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
    /// The process that had its terminal session then, where that was not this one.
    kept_in: Option<u32>,
    /// Something came of what was begun here while somebody else had the run, who may have left it
    /// undone.
    owes: bool,
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
            kept_in: None,
            owes: false,
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
        self.driver.host.forget_secrets(self.driver.id, over);
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
            if !going && !waits && self.let_go().await? {
                continue;
            }
            if !open && !going && !waits && !self.owes {
                return Ok(());
            }
            let event = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => Event::Stop,
                request = self.requests.recv(), if open => Event::Asked(request),
                // Also while all waits: what was called may go on.
                message = self.driver.next() => Event::Came(message),
                () = news(self.lock.as_ref()) => Event::Look,
                _ = look.tick(), if going || waits || self.owes => Event::Look,
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
        if is_ours && self.lock.is_some() {
            self.driver.leave_here()?;
        }
        Ok(())
    }

    /// Lets go of what the run has called: as long as nobody waits here, runs that wait are in the
    /// journal alone. Gives whether one of them goes on all the same, since somebody has written to it.
    async fn let_go(&mut self) -> Result<bool, Error> {
        let calls = self.driver.let_go().await;
        let (host, id, run) = (&self.driver.host, self.driver.id, &self.driver.run);
        if calls.is_empty() || !host.has_moved(id, run)? {
            return Ok(false);
        }
        let again = calls.iter().filter_map(|call| run.action(*call).cloned());
        self.act(again.map(Effect::Act).collect()).await?;
        Ok(self.driver.is_going())
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
                self.kept_in = None;
                self.elsewhere = pid != Some(std::process::id());
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        // Whoever has the run hears of it from the first moment.
        let presence = self.driver.host.inner.presences.enter(run);
        let missed = self.driver.read_on()?;
        // Nobody may have it, and it can still go on in one place only. What was missed is begun by
        // whoever has it next.
        self.kept_in = self.driver.kept_in();
        self.elsewhere = self.kept_in.is_some();
        if self.elsewhere {
            self.owes = false;
            return Ok(false);
        }
        self.owes = false;
        self.driver.host.take_up(run);
        self.driver.host.end_orphans(run).await?;
        self.lock = Some((lock, presence));
        self.driver.know_unbegun().await;
        self.driver.begin_missing(missed);
        Ok(true)
    }

    /// Takes in what came of something under way. What is left over from when the run was here, such
    /// as a clock, is nothing to whoever has it now.
    async fn take(&mut self, message: Message) -> Result<(), Error> {
        if self.lock.is_none() && !self.take_over().await? {
            self.driver.leave(&message);
            self.behind = true;
            self.owes = self.kept_in.is_none();
            self.awake |= self.owes;
            return Ok(());
        }
        self.driver.take(message).await
    }

    /// Whether the run still is to go on here: it does already, or somebody who has asked for that
    /// waits. Whoever was answered may not come back, and then nothing is begun for them.
    fn is_driven_on(&self) -> bool {
        let mut waiting = self.waiters.iter().chain(self.queued.values().flatten());
        self.lock.is_some()
            || self.owes
            || waiting.any(|waiter| waiter.what.drives && !waiter.reply.is_closed())
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
            self.driver.know_unbegun().await;
            let wanted = self.driver.run.taken_over(now());
            self.driver.begin_missing(wanted);
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
            Request::Look { what, reply } => {
                if what.drives {
                    self.expire().await?;
                }
                self.look(what, reply).await?;
            }
            Request::Submit {
                step,
                submission,
                reply,
            } => {
                let late = self.expire().await?.into_iter();
                let submitted = match late.filter_map(|it| it.of(step.as_deref())).next() {
                    Some(step) => Ok(Submitted::Here {
                        heard: Heard::TooLate,
                        step,
                        task: None,
                    }),
                    None => self.submit(step.as_deref(), submission).await,
                };
                self.reply(reply, submitted)?;
            }
            Request::Record { happening, reply } => {
                let recorded = match (&*happening, self.driver.expect_session_here()) {
                    (Happening::Resumed(_), Err(elsewhere)) => Err(elsewhere),
                    (_, Ok(()) | Err(_)) => self.record(foreign(*happening)).await,
                };
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

    /// Records that the time of what waits for somebody is over, where the run keeps it: nobody may
    /// have been there when it was.
    async fn expire(&mut self) -> Result<Vec<Expired>, Error> {
        let (mut expired, mut seen) = (Vec::new(), BTreeSet::new());
        loop {
            let run = &self.driver.run;
            let pending = run.pending().into_iter();
            let mut over = pending.filter_map(|effect| match effect {
                Effect::Act(action) => Some((self.driver.over(&action)?.0, action)),
                _ => None,
            });
            let Some((over, action)) = over.find(|(_, it)| !seen.contains(&it.id)) else {
                return Ok(expired);
            };
            seen.insert(action.id);
            expired.push(Expired {
                step: run.step_name(&action),
                node: action.node.to_string(),
            });
            let waits = |run: &Run| run.action(action.id).is_some();
            self.record_while(over, waits).await?;
        }
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
        calls(self.driver.id, run)
            .into_iter()
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
}

/// Something may have been recorded for a run by somebody else, while it is driven here.
async fn news(driven: Option<&(RunLock, Presence)>) {
    match driven {
        Some((_, presence)) => presence.news().await,
        None => std::future::pending().await,
    }
}
