//! Runs that call others: who called whom, and what all of them together wait for.

use super::deed;
use super::driver::Driver;
use super::local::{Error, Host, Report, ReportStatus};
use crate::journal::{self, Listing, RunId, RunRecord};
use crate::run::{Action, Deed, Effect, Handout, Happening, Part, Run};

/// Something that a run waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The run that waits: the one that was asked about, or one that it has called.
    pub run: RunId,
    /// Its name in the run that was asked about: what its result is submitted under.
    pub step: String,
    /// The same, as progress and history show it: with the items of the loops around it.
    pub place: String,
    /// What is wanted.
    pub action: Action,
    /// Whether somebody is asked for it; otherwise it is being done, or was when the run was
    /// interrupted.
    pub asked: bool,
    /// What is to be done with an item that an agent does whole.
    pub instructions: Option<String>,
    /// What the agent that it goes to is told before, if that is known.
    pub agent_instructions: Option<String>,
    /// When it is too late to answer, in milliseconds since 1970, if the definition says.
    pub answer_by: Option<u64>,
    /// What the answer of a person must satisfy.
    pub validation: Option<serde_json::Value>,
}

impl Pending {
    /// What it can be answered by beside others: the name that people read, where that is no
    /// other's.
    #[must_use]
    pub fn answered_as(&self, among: &[Pending]) -> &str {
        let mut others = among
            .iter()
            .filter(|it| (it.run, it.action.id) != (self.run, self.action.id));
        match others.any(|it| it.place == self.place || it.step == self.place) {
            true => &self.step,
            false => &self.place,
        }
    }

    /// Who called the run that waits has given it this much time.
    fn bound(&mut self, at: u64) {
        if self.asked {
            self.answer_by = Some(self.answer_by.map_or(at, |own| own.min(at)));
        }
    }
}

/// Tasks of a fan-out that are for sub-agents, and not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTasks {
    /// The name of the fan-out's step.
    pub step: String,
    /// How many there are.
    pub count: usize,
    /// The names of the first of them.
    pub names: Vec<String>,
}

/// The runs that a run has called, or is about to, and waits for.
pub(super) fn calls(id: RunId, run: &Run) -> Vec<RunId> {
    let pending = run.pending().into_iter();
    let called = pending.filter_map(|effect| match effect {
        Effect::Act(action) if matches!(action.what, Deed::Call { .. }) => {
            Some(deed::called(id, &action))
        }
        _ => None,
    });
    called.collect()
}

impl Host {
    /// The run that called this one, or its caller's caller, as long as those are not over.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn outermost(&self, run: RunId) -> Result<RunId, Error> {
        let mut outermost = run;
        while let Some(parent) = self.journal().run(outermost)?.parent {
            if self.journal().run(parent)?.status.is_final() {
                break;
            }
            outermost = parent;
        }
        Ok(outermost)
    }

    /// The run that an action of a run calls.
    #[must_use]
    pub fn called_by(run: RunId, call: &Action) -> RunId {
        deed::called(run, call)
    }

    /// The runs that a run has called.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn called(&self, run: RunId) -> Result<Vec<RunRecord>, Error> {
        let called = Listing::new().children_of(run);
        Ok(self.journal().list(&called, usize::MAX >> 1)?.runs)
    }

    /// Until when a run waits for nothing but a time, itself or in the runs it has called; in
    /// milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn sleeps_until(&self, report: &Report) -> Result<Option<u64>, Error> {
        let record = self.journal().run(report.run)?;
        if record.status == journal::Status::Sleeping {
            return Ok(record.wake_at);
        }
        let mut earliest: Option<u64> = None;
        for awaited in &report.pending {
            let Deed::Call { .. } = &awaited.action.what else {
                return Ok(None);
            };
            let called = deed::called(report.run, &awaited.action);
            if self.journal().run(called).is_err() {
                return Ok(None);
            }
            let Some(until) = self.sleeps_until(&self.report(called)?)? else {
                return Ok(None);
            };
            earliest = Some(earliest.map_or(until, |it| it.min(until)));
        }
        Ok(earliest)
    }

    /// The tasks of a run that are for sub-agents and not over, by their fan-outs; at most so many
    /// of each by name.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn open_tasks(&self, run: RunId, most: usize) -> Result<Vec<OpenTasks>, Error> {
        let driver = Driver::open(self.clone(), run)?;
        let found = driver.run.handouts(Part::Main);
        let handed_out = found.steps.iter().filter_map(|step| match step {
            Handout::Tasks(tasks) => Some(tasks),
            Handout::Action(_) => None,
        });
        let open = handed_out.chain(&found.under_way).map(|tasks| {
            let names = tasks.open_items().take(most);
            let names = names.map(|item| driver.run.task_name(tasks.id, item));
            OpenTasks {
                step: driver.run.tasks_name(tasks),
                count: tasks.open(),
                names: names.collect(),
            }
        });
        Ok(open.collect())
    }

    /// How many levels of calls lie below a run.
    pub(super) fn levels_below(&self, run: RunId) -> Result<u32, Error> {
        let mut levels = 0;
        for child in self.called(run)? {
            levels = levels.max(1 + self.levels_below(child.id)?);
        }
        Ok(levels)
    }

    /// Whether a run that waits can go on: somebody has written to it, or to one that it waits for,
    /// and nobody drives that.
    pub(super) fn has_moved(&self, id: RunId, run: &Run) -> Result<bool, Error> {
        if self.journal().is_held(id) {
            return Ok(false);
        }
        match self.journal().run(id)?.status {
            status if status.is_final() => return Ok(true),
            // Nor can what it waits for bring it on here.
            _ if self.session_elsewhere(run).is_some() => return Ok(false),
            journal::Status::Waiting => {}
            _ => return Ok(true),
        }
        for called in calls(id, run) {
            match Driver::open(self.clone(), called) {
                Ok(child) if self.has_moved(called, &child.run)? => return Ok(true),
                // It waits as well, or has not begun.
                Ok(_) | Err(Error::Journal(journal::Error::NoSuchRun { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// The process that goes on with a run which waits for nobody: it has the session of one that
    /// was called.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn goes_on_in(&self, report: &Report) -> Result<Option<u32>, Error> {
        if report.status != ReportStatus::Waiting || self.pending(report)?.iter().any(|it| it.asked)
        {
            return Ok(None);
        }
        for called in self.awaited(report.run)? {
            let driver = Driver::open(self.clone(), called)?;
            if let Some((_, owner)) = self.session_elsewhere(&driver.run) {
                return Ok(Some(owner));
            }
        }
        Ok(None)
    }

    /// The runs below a run, through all levels, that are not over.
    fn awaited(&self, run: RunId) -> Result<Vec<RunId>, Error> {
        let mut awaited = Vec::new();
        for child in self.called(run)? {
            if !child.status.is_final() {
                awaited.push(child.id);
                awaited.extend(self.awaited(child.id)?);
            }
        }
        Ok(awaited)
    }

    /// The call that a run waits for another with.
    fn call_of(&self, caller: RunId, run: &Run, called: RunId) -> Option<Action> {
        let mut pending = run.pending().into_iter();
        pending.find_map(|effect| match effect {
            Effect::Act(action) if matches!(action.what, Deed::Call { .. }) => {
                (deed::called(caller, &action) == called).then_some(action)
            }
            _ => None,
        })
    }

    /// The runs that wait for a run, each with its call, the nearest first.
    fn callers(&self, run: RunId) -> Result<Vec<(Driver, Action)>, Error> {
        let mut callers = Vec::new();
        let mut called = run;
        while let Some(parent) = self.journal().run(called)?.parent {
            let caller = Driver::open(self.clone(), parent)?;
            let Some(call) = self.call_of(parent, &caller.run, called) else {
                break;
            };
            callers.push((caller, call));
            called = parent;
        }
        Ok(callers)
    }

    /// By when the runs that wait for a run want it to be over, in milliseconds since 1970.
    fn wanted_by(&self, run: RunId) -> Result<Option<u64>, Error> {
        let callers = self.callers(run)?.into_iter();
        let due = callers.filter_map(|(caller, call)| Some(caller.answered_by(&call)?.at));
        Ok(due.min())
    }

    /// Records that a call which waits for a run has no more time, if so, and gives since when.
    pub(super) async fn callers_are_over(&self, run: RunId) -> Result<Option<u64>, Error> {
        loop {
            let callers = self.callers(run)?.into_iter();
            let mut late = callers.filter_map(|(caller, call)| {
                let (over, at) = caller.over(&call)?;
                Some((caller, over, at))
            });
            let Some((mut caller, over, at)) = late.next() else {
                return Ok(None);
            };
            match caller.append(over).await {
                Ok(_) => {
                    self.end_forgotten(caller.id, &caller.run).await?;
                    return Ok(Some(at));
                }
                // Somebody wrote first: look again.
                Err(Error::Journal(journal::Error::Fenced { .. })) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Cancels what a run has called and no longer waits for: the call had no more time, or the
    /// run failed beside it.
    pub(super) async fn end_forgotten(&self, id: RunId, run: &Run) -> Result<(), Error> {
        for child in self.called(id)? {
            if child.status.is_final() || self.call_of(id, run, child.id).is_some() {
                continue;
            }
            let reason = "the run that called it goes on without it".to_owned();
            match Box::pin(self.record(child.id, Happening::Cancelled { reason })).await {
                // It ended meanwhile.
                Ok(()) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What a run waits for, with what the runs it has called wait for. A step of a called run has
    /// the name of the call before its own.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn pending(&self, report: &Report) -> Result<Vec<Pending>, Error> {
        let mut pending = self.pending_below(report)?;
        if !pending.is_empty()
            && let Some(wanted) = self.wanted_by(report.run)?
        {
            pending.iter_mut().for_each(|it| it.bound(wanted));
        }
        Ok(pending)
    }

    fn pending_below(&self, report: &Report) -> Result<Vec<Pending>, Error> {
        let mut pending = Vec::new();
        for awaited in &report.pending {
            match &awaited.action.what {
                Deed::Call { .. } => {
                    let called = deed::called(report.run, &awaited.action);
                    match self.journal().run(called) {
                        Ok(child) if !child.status.is_final() => {}
                        // It is over, or has not begun.
                        Ok(_) | Err(journal::Error::NoSuchRun { .. }) => continue,
                        Err(error) => return Err(error.into()),
                    }
                    let below = self.pending_below(&self.report(called)?)?.into_iter();
                    pending.extend(below.map(|mut below| {
                        below.step = format!("{}/{}", awaited.step, below.step);
                        below.place = format!("{}/{}", awaited.place, below.place);
                        awaited.answer_by.inspect(|at| below.bound(*at));
                        below
                    }));
                }
                Deed::Judge { .. } => pending.push(Pending {
                    action: self.shown(awaited.run, &awaited.action).into_owned(),
                    ..awaited.clone()
                }),
                Deed::Environment { .. }
                | Deed::Shell { .. }
                | Deed::Tool { .. }
                | Deed::Prompt { .. }
                | Deed::Delegate { .. }
                | Deed::DelegateItem { .. } => pending.push(awaited.clone()),
            }
        }
        Ok(pending)
    }
}
