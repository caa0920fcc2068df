//! One run while it is driven: events are recorded, then what they want is done.

mod hold;
mod listing;
mod record;
mod report;

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::deed::Doing;
use super::local::{Error, Host, Report, ReportStatus, now};
use super::presence::Presence;
use super::recorded::Recorded;
use super::secrets::masked_effect;
use super::sessions;
use crate::expression::{Decided, judged};
use crate::journal::{self, RunId};
use crate::run::{
    Action, ActionId, Deed, Due, Effect, Failure, FailureKind, Happening, Place, Refusal, Run,
    Status,
};
use crate::terminal::Untold;
use crate::value::Value;
use hold::Hold;
use listing::Listed;
use record::restored;

pub(super) use hold::Caller;

/// How long a time that has come waits for what was over before.
const LOOK_SOON: Duration = Duration::from_millis(20);
/// How often a host looks whether somebody else has written to its run.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);

/// One run while it is driven.
pub(super) struct Driver {
    pub(super) host: Host,
    pub(super) id: RunId,
    pub(super) run: Run,
    last: u64,
    listed: Listed,
    since_snapshot: u64,
    bytes_since_snapshot: usize,
    spent_since_snapshot: Duration,
    snapshot_bytes: usize,
    pub(super) last_at: u64,
    tasks: HashMap<ActionId, JoinHandle<()>>,
    /// What was told to stop and may not have done so: what begins next begins after it.
    stopping: Vec<JoinHandle<()>>,
    /// Actions that nobody here can answer.
    pub(super) parked: HashSet<ActionId>,
    /// What the last events wanted when the run was read, those recorded here that nobody has been
    /// shown; else those of the last one.
    unseen: Vec<Effect>,
    /// Nobody has driven it before.
    is_new: bool,
    /// It has called others from here.
    pub(super) has_called: bool,
    /// What keeps it, and those it has called, driven.
    hold: Hold,
    /// What the clock decided at the start of the run, and nobody has recorded yet.
    unrecorded: Decided,
    /// Where its commands run.
    directory: Arc<Path>,
    /// The call that it was begun by and that stays with it, if there is one.
    caller: Option<Caller>,
    happened: mpsc::UnboundedSender<Message>,
    inbox: mpsc::UnboundedReceiver<Message>,
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
    /// With the terminal session that was opened, which is closed where this is not recorded.
    Happened(Happening, Option<Box<Untold>>),
    /// Nobody is there to answer this.
    Parked(ActionId),
    /// What was called waits; whoever drives it stays.
    Rests(ActionId),
    /// What was called and waited goes on.
    GoesOn(ActionId),
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
        let began = Instant::now();
        let mut last_at = 0;
        let mut unseen = Vec::new();
        let mut unrecorded = Decided::default();
        let recorded = Recorded::all(&loaded.events)?;
        let fresh = host.fresh().get(&id).cloned();
        let fresh = fresh.filter(|fresh| *fresh.end() == last);
        for event in &recorded {
            last_at = event.event.at;
            let effects = if recorded.len() == 1 && event.is_new() {
                let patience = host.inner.options.patience();
                let (applied, found) = judged(patience, || run.apply(&event.event));
                unrecorded = found;
                applied?
            } else {
                event.apply(&mut run, None)?
            };
            let goes_on = |fresh: &RangeInclusive<u64>| event.seq > *fresh.start();
            if !fresh.as_ref().is_some_and(goes_on) {
                unseen.clear();
            }
            unseen.extend(effects);
        }
        if let Some(data) = run.data() {
            host.learn(id, &data.start);
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
            spent_since_snapshot: began.elapsed(),
            snapshot_bytes: loaded.snapshot.map_or(0, |snapshot| snapshot.body.len()),
            last_at,
            tasks: HashMap::new(),
            stopping: Vec::new(),
            parked: HashSet::new(),
            unseen,
            is_new: fresh.is_some_and(|fresh| *fresh.start() == 1),
            has_called: false,
            hold: Hold::default(),
            unrecorded,
            directory,
            caller: None,
            happened,
            inbox,
        })
    }

    /// The same for a run that a call of this host has begun.
    pub(super) fn called_by(mut self, caller: Option<Caller>) -> Self {
        if let Some(caller) = &caller {
            self.hold = caller.hold.clone();
        }
        self.caller = caller;
        self
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Shows whoever watches what the last events did, if they were recorded here; gives whether.
    pub(super) fn show_unseen(&mut self) -> bool {
        let is_fresh = self.host.fresh().remove(&self.id).is_some();
        if is_fresh && self.is_new {
            let coming = self.host.inner.unbegun.coming(self.id);
            coming.recorded(typed(&self.run.taken_over(now())));
        }
        for effect in std::mem::take(&mut self.unseen) {
            // What is to be done is begun otherwise.
            let is_news = matches!(
                effect,
                Effect::Entered(_) | Effect::Left { .. } | Effect::Told { .. } | Effect::Finish(_)
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
            if self.has_begun(&effect) {
                continue;
            }
            if let Effect::Act(action) = &effect
                && !is_fresh
            {
                // Another host began it; here it begins now.
                self.act(Effect::Entered(Place {
                    frame: action.frame,
                    node: action.node.clone(),
                    within: action.within.clone(),
                }));
            }
            self.begin_left(effect);
        }
    }

    /// Begins what the run wants and nobody here does.
    pub(super) fn begin_missing(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if !self.has_begun(&effect) {
                self.begin_left(effect);
            }
        }
    }

    fn begin_left(&mut self, effect: Effect) {
        match &effect {
            // Whoever began it is gone.
            Effect::Act(action) if self.is_interrupted(action) => {
                let happening = sessions::interrupted(action);
                let _ = self.happened.send(happened(happening));
            }
            _ => self.act(effect),
        }
    }

    /// Whether something that is typed may have been begun by somebody who is gone.
    fn is_interrupted(&self, action: &Action) -> bool {
        let unbegun = &self.host.inner.unbegun;
        sessions::types(&action.what) && !unbegun.contains(self.id, action.id)
    }

    /// Waits until it is known what nobody has begun of what others in this process have recorded.
    pub(super) async fn know_unbegun(&self) {
        self.host.inner.unbegun.known(self.id).await;
    }

    /// Whether something that the run wants is being done here, or waits for somebody.
    fn has_begun(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Act(action) => {
                self.tasks.contains_key(&action.id) || self.parked.contains(&action.id)
            }
            Effect::Sleep { timer, .. } => self.tasks.contains_key(timer),
            Effect::Yield
            | Effect::Told { .. }
            | Effect::Stop(_)
            | Effect::Entered(_)
            | Effect::Left { .. }
            | Effect::Finish(_) => false,
        }
    }

    /// Records that times have come which came while nobody drove the run: what they put an end to
    /// must not be begun again.
    pub(super) async fn note_due(&mut self) -> Result<(), Error> {
        let at = now();
        let mut due: Vec<(u64, ActionId)> = Vec::new();
        for effect in self.run.pending() {
            if let Effect::Sleep { timer, until } = effect
                && until <= at
            {
                due.push((until, timer));
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        due.sort_unstable();
        for (until, timer) in due {
            if self.unheard_ends(until).next().is_some() {
                break;
            }
            while self.sleeps_for(timer) && !self.tasks.contains_key(&timer) {
                match self.append(Happening::Woke { timer }).await {
                    Ok(effects) => effects.into_iter().for_each(|effect| self.act(effect)),
                    Err(Error::Journal(journal::Error::Fenced { .. })) => self.catch_up()?,
                    Err(error) => return Err(error),
                }
            }
        }
        // What was called before is wanted by nobody any more.
        let host = self.host.clone();
        host.end_forgotten(self.id, &self.run).await
    }

    /// The step that something that comes from outside answers.
    pub(super) fn answered_step(&self, answer: &Happening) -> Option<String> {
        let asked = self.run.action(answer.ends()?)?;
        let is_answer = asked.what.is_asked() && !self.run.is_agent_driven();
        is_answer.then(|| asked.name())
    }

    /// What has happened instead of an answer that comes after its time, and how that is refused.
    /// An agent that drives a run keeps the time itself.
    pub(super) fn late_answer(&self, answer: &Happening) -> Option<(Happening, Error)> {
        let asked = match answer {
            Happening::Completed { action, .. }
            | Happening::Done { action }
            | Happening::Declined { action, .. } => self.run.action(*action)?,
            _ => return None,
        };
        let (over, at) = self.over(asked)?;
        let step = asked.name();
        Some((over, Error::TooLate { step, at }))
    }

    /// What has happened to something that waits and has no more time, and when.
    pub(super) fn over(&self, asked: &Action) -> Option<(Happening, u64)> {
        let due = self.answered_by(asked).filter(|due| due.at <= now())?;
        let over = match due.timer {
            Some(timer) => Happening::Woke { timer },
            None => Happening::TimedOut {
                action: asked.id,
                result: Value::Null,
            },
        };
        Some((over, due.at))
    }

    /// By when something that waits for somebody, itself or in a run that was called, must be
    /// answered.
    pub(super) fn answered_by(&self, asked: &Action) -> Option<Due> {
        let is_kept_here = asked.what.runs_on() && !self.run.is_agent_driven();
        self.run.due(asked).filter(|_| is_kept_here)
    }

    /// The calls of runs that were over by a time, which this one has not heard yet: what was over in time
    /// comes before the time.
    fn unheard_ends(&self, by: u64) -> impl Iterator<Item = ActionId> {
        self.run.pending().into_iter().filter_map(move |effect| {
            let Effect::Act(call) = effect else {
                return None;
            };
            let called =
                matches!(call.what, Deed::Call { .. }).then(|| Host::called_by(self.id, &call))?;
            self.host.was_over(called, by).then_some(call.id)
        })
    }

    /// Whether the run waits for a timer.
    fn sleeps_for(&self, timer: ActionId) -> bool {
        let mut pending = self.run.pending().into_iter();
        pending.any(|effect| matches!(effect, Effect::Sleep { timer: own, .. } if own == timer))
    }

    pub(super) async fn drive(&mut self, presence: &Presence) -> Result<Report, Error> {
        let report = self.go_on(presence).await;
        self.host.asks_now(self.id, false);
        report
    }

    async fn go_on(&mut self, presence: &Presence) -> Result<Report, Error> {
        let mut asked = false;
        let mut stop = self.host.inner.stop.subscribe();
        let is_fresh = self.host.fresh().contains_key(&self.id);
        self.wake().await?;
        if !is_fresh {
            self.note_due().await?;
        }
        if *stop.borrow() && self.run.status() == Status::Running {
            // Nothing is begun that would be ended at once.
            self.note_stopped().await?;
            return Ok(self.report(Some(ReportStatus::Interrupted)));
        }
        self.know_unbegun().await;
        // Of a called run; its caller is not let go of meanwhile.
        let mut going = match self.caller {
            Some(_) => match self.hold.goes_on() {
                Some(going) => Some(going),
                None => return Ok(self.report(Some(ReportStatus::Waiting))),
            },
            None => None,
        };
        self.take_over();
        let mut look = look();
        let mut rests = false;
        loop {
            if self.run.status() != Status::Running {
                self.note_standing().await?;
                return Ok(self.report(None));
            }
            self.note_sleep().await?;
            match (self.is_going(), rests) {
                (true, true) => {
                    self.wake_up().await?;
                    rests = false;
                }
                // Everything under way waits for somebody.
                (false, false) => {
                    if let Some(caller) = self.caller.clone() {
                        if self.rest().await? {
                            self.note_standing().await?;
                            caller.rests();
                            rests = true;
                            going = None;
                        }
                    } else if self.hold.let_go() {
                        self.note_standing().await?;
                        return Ok(self.report(Some(ReportStatus::Waiting)));
                    }
                    // Else one of those that it has called is about to say that it goes on.
                }
                (false, true) => going = None,
                (true, false) => {}
            }
            if asked != self.asks_elsewhere() {
                asked = !asked;
                self.host.asks_now(self.id, asked);
            }
            let turn = tokio::select! {
                // What a host that is told to stop does to its own actions has not happened.
                biased;
                _ = stop.wait_for(|stop| *stop) => Turn::Stop,
                message = self.inbox.recv() => Turn::Message(message),
                () = presence.news() => Turn::Look,
                _ = look.tick() => Turn::Look,
            };
            if rests && going.is_none() && !matches!(turn, Turn::Stop) {
                going = self.hold.goes_on();
                if going.is_none() {
                    return Ok(self.report(Some(ReportStatus::Waiting)));
                }
            }
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

    /// The run waits for somebody while its caller goes on: its clock stands still. `false` when
    /// somebody has written to the run meanwhile.
    async fn rest(&mut self) -> Result<bool, Error> {
        let counts = self.run.data().is_some_and(|data| data.limit.is_some());
        if !counts {
            return Ok(true);
        }
        self.note(Happening::Rested).await
    }

    /// The run goes on after it has rested.
    async fn wake_up(&mut self) -> Result<(), Error> {
        if let Some(caller) = &self.caller {
            caller.goes_on();
        }
        while self.run.data().is_some_and(|data| data.resting) {
            self.note(Happening::Continued).await?;
        }
        Ok(())
    }

    /// Records something and does what follows from it; `false`, with what others have written
    /// taken in, when they were first.
    async fn note(&mut self, what: Happening) -> Result<bool, Error> {
        match self.append(what).await {
            Ok(effects) => {
                effects.into_iter().for_each(|effect| self.act(effect));
                Ok(true)
            }
            Err(Error::Journal(journal::Error::Fenced { .. })) => {
                self.catch_up()?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the run's clock up: the time in which nobody drove the run is not the run's.
    pub(super) async fn wake(&mut self) -> Result<(), Error> {
        match self.note_start().await {
            Ok(()) | Err(Error::Journal(journal::Error::Fenced { .. })) => {}
            Err(error) => return Err(error),
        }
        let is_fresh = self.host.fresh().contains_key(&self.id);
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
                Err(Error::Journal(journal::Error::Fenced { .. })) => drop(self.read_on()?),
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
            Message::Happened(happening, untold) => self.happen(happening, untold).await,
            Message::Parked(action) => {
                self.tasks.remove(&action);
                // Somebody else may have answered it meanwhile.
                if self.run.action(action).is_some() {
                    self.parked.insert(action);
                }
                Ok(())
            }
            Message::Rests(call) => {
                if self.tasks.contains_key(&call) {
                    self.parked.insert(call);
                }
                Ok(())
            }
            Message::GoesOn(call) => {
                self.parked.remove(&call);
                Ok(())
            }
        }
    }

    /// Lets go of what came of something under way: whoever has the run by now sees to it.
    pub(super) fn leave(&mut self, message: &Message) {
        match message {
            Message::Happened(happening, _) => {
                if let Some(ended) = happening.ends() {
                    self.give_up(ended);
                }
            }
            Message::Parked(action) => self.give_up(*action),
            Message::Rests(_) | Message::GoesOn(_) => {}
        }
    }

    /// Stops doing something, such as what has a result from elsewhere.
    pub(super) fn give_up(&mut self, action: ActionId) {
        self.parked.remove(&action);
        if let Some(task) = self.tasks.remove(&action)
            && !task.is_finished()
        {
            task.abort();
            self.stopping.push(task);
        }
    }

    /// Whether something here goes on, or has come to an end that was not taken in.
    pub(super) fn is_going(&self) -> bool {
        self.is_busy() || !self.inbox.is_empty()
    }

    /// Whether something here goes on. Clocks that only bound what they are around do not count
    /// while something waits for somebody.
    fn is_busy(&self) -> bool {
        let mut tasks = self.tasks.keys();
        tasks.any(|task| {
            let is_idle = !self.parked.is_empty() && self.run.is_bound(*task);
            !is_idle && !self.parked.contains(task)
        })
    }

    /// Records and applies an event, then does what follows from it. A terminal session that it tells
    /// of is the run's once it is recorded, else it is closed.
    async fn happen(
        &mut self,
        happening: Happening,
        untold: Option<Box<Untold>>,
    ) -> Result<(), Error> {
        if let Happening::Woke { .. } = happening
            && self
                .unheard_ends(u64::MAX)
                .any(|call| self.tasks.contains_key(&call))
        {
            let happened = self.happened.clone();
            tokio::spawn(async move {
                tokio::time::sleep(LOOK_SOON).await;
                let _ = happened.send(Message::Happened(happening, untold));
            });
            return Ok(());
        }
        if let Some(ended) = happening.ends() {
            self.tasks.remove(&ended);
            self.parked.remove(&ended);
        }
        let has_called = self.has_called;
        match self.append(happening.clone()).await {
            Ok(effects) => {
                if let Some(untold) = untold {
                    untold.told();
                }
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
                let _ = self.happened.send(Message::Happened(happening, untold));
                Ok(())
            }
            // Nobody is there to correct what a tool returned here: its step has failed.
            Err(Error::Refused(unfit @ Refusal::Unfit { .. })) => {
                let Happening::Completed { action, result } = happening else {
                    return Ok(());
                };
                let error = Failure::new(FailureKind::Validation, unfit.to_string());
                let failed = Happening::Failed {
                    action,
                    error,
                    result,
                };
                Box::pin(self.happen(failed, None)).await
            }
            Err(Error::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes in what others have written to this run, and does what they want because of it. Only
    /// whoever has the right to act on the run may call this.
    fn catch_up(&mut self) -> Result<(), Error> {
        let effects = self.read_on()?;
        effects.into_iter().for_each(|effect| self.act(effect));
        self.host.fresh().remove(&self.id);
        self.try_again();
        Ok(())
    }

    /// Tries what was not done for want of a secret, if that is known by now.
    fn try_again(&mut self) {
        if !self.host.inner.vault.misses(self.id) {
            return;
        }
        for effect in self.run.taken_over(now()) {
            if let Effect::Act(action) = &effect
                && action.what.has_secrets()
                && self.host.lacking(self.id, &action.what).is_empty()
                && self.parked.remove(&action.id)
            {
                self.act(effect);
            }
        }
    }

    /// Whether something that was wanted still is, and nobody here does it.
    pub(super) fn still_wants(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Act(action) => {
                self.run.action(action.id).is_some() && !self.tasks.contains_key(&action.id)
            }
            Effect::Sleep { timer, .. } => {
                self.sleeps_for(*timer) && !self.tasks.contains_key(timer)
            }
            Effect::Yield => self.run.pending().contains(&Effect::Yield),
            Effect::Stop(_)
            | Effect::Entered(_)
            | Effect::Left { .. }
            | Effect::Told { .. }
            | Effect::Finish(_) => true,
        }
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
                        let _ = happened.send(self::happened(Happening::Woke { timer }));
                    }),
                );
            }
            Effect::Stop(action) => self.give_up(action),
            Effect::Yield => {
                let _ = self.happened.send(happened(Happening::Continued));
            }
            Effect::Entered(_) | Effect::Left { .. } | Effect::Told { .. } | Effect::Finish(_) => {}
        }
    }

    pub(super) fn begin(&mut self, action: Action) {
        let host = self.host.clone();
        let happened = self.happened.clone();
        let (id, run) = (action.id, self.id);
        self.parked.remove(&id);
        if sessions::types(&action.what) {
            host.inner.unbegun.begin(run, id);
        }
        self.has_called |= matches!(action.what, Deed::Call { .. });
        let directory = Arc::clone(&self.directory);
        let agent_driven = self.run.is_agent_driven();
        let data = self.run.data();
        let closed = data.and_then(|data| data.closed_session(&action));
        // Whom an agent drives, it drives through each run by itself.
        let caller = (!agent_driven).then(|| Caller {
            call: id,
            tell: happened.clone(),
            hold: self.hold.clone(),
        });
        let doing = Doing {
            run,
            directory,
            agent_driven,
            closed: closed.map(str::to_owned),
            caller,
            untold: Mutex::default(),
        };
        let stopping = std::mem::take(&mut self.stopping);
        self.tasks.insert(
            id,
            tokio::spawn(async move {
                for task in stopping {
                    let _ = task.await;
                }
                let message = match host.perform(&doing, &action).await {
                    Some(happening) => {
                        Message::Happened(happening, doing.take_untold().map(Box::new))
                    }
                    None => Message::Parked(id),
                };
                let _ = happened.send(message);
            }),
        );
    }

    /// Lets go of the runs that it has called and that rest, unless one of them is about to go on.
    /// Gives their calls.
    pub(super) async fn let_go(&mut self) -> Vec<ActionId> {
        let calls = self.tasks.keys().filter(|call| self.parked.contains(call));
        let calls: Vec<ActionId> = calls.copied().collect();
        if calls.is_empty() || !self.hold.let_go() {
            return Vec::new();
        }
        for task in calls.iter().filter_map(|call| self.tasks.remove(call)) {
            task.abort();
            let _ = task.await;
        }
        self.hold = Hold::default();
        calls
    }

    /// Ends everything under way.
    pub(super) async fn stop_all(&mut self) {
        let tasks = self.tasks.drain().map(|(_, task)| task);
        for task in tasks.chain(self.stopping.drain(..)) {
            task.abort();
            // An aborted command kills its group while it is dropped.
            let _ = task.await;
        }
    }
}

/// What is to be typed.
fn typed(effects: &[Effect]) -> Vec<ActionId> {
    let typed = effects.iter().filter_map(|effect| match effect {
        Effect::Act(action) if sessions::types(&action.what) => Some(action.id),
        _ => None,
    });
    typed.collect()
}

/// That something has happened which tells of no terminal session.
fn happened(happening: Happening) -> Message {
    Message::Happened(happening, None)
}

/// Ticks when a host is to look whether somebody else has written to its run.
pub(super) fn look() -> tokio::time::Interval {
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    look
}
