//! What the list of runs says of a run that is driven.

use super::Driver;
use crate::host::local::{Error, ReportStatus, now};
use crate::journal::{self, Append, RunUpdate};
use crate::run::{Action, Deed, Effect, Handout, Happening, Part, Status, unnumbered};
use crate::secret;

/// How exactly the list of runs knows when a run went on last, in milliseconds.
const LISTED_EVERY: u64 = 1000;
/// Steps that the list of runs names for one run.
const NAMES: usize = 8;

/// What the list of runs says of a run, as far as its driver knows.
#[derive(Clone, Copy)]
pub(super) enum Listed {
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

impl Driver {
    /// What the list of runs is to say after an event; `None` when it says that already. While a
    /// run goes on, the list need not know of every event.
    pub(super) fn listed_after(&self, at: u64, waits: bool) -> Option<Listed> {
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
    pub(super) fn update(&self, at: u64, waits: bool) -> RunUpdate {
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
    pub(super) fn waits_after(&self, what: &Happening, effects: &[Effect]) -> bool {
        let ended = what.ends();
        let idle = self.tasks.keys().all(|task| Some(*task) == ended);
        self.run.is_agent_driven() && idle && effects.iter().all(|effect| self.is_quiet(effect))
    }

    /// Whether nothing goes on here because of an effect.
    pub(in crate::host) fn is_quiet(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Act(action) => self.run.is_agent_driven() && action.what.is_for_agent(),
            Effect::Sleep { .. } | Effect::Yield => false,
            Effect::Stop(_)
            | Effect::Entered(_)
            | Effect::Left { .. }
            | Effect::Told { .. }
            | Effect::Finish(_) => true,
        }
    }

    /// Whether somebody is asked for an action. What this host does, or another one did when it
    /// was interrupted, is nobody's to answer.
    pub(super) fn asks(&self, what: &Deed) -> bool {
        let is_driven = self.run.is_agent_driven();
        match what {
            // A command of this host answers in the place of an agent.
            Deed::Delegate { .. } | Deed::DelegateItem { .. } => {
                is_driven || self.host.inner.options.agent.is_none()
            }
            what => {
                what.is_asked()
                    || self.host.is_for_caller(what)
                    || (is_driven && what.is_for_agent())
            }
        }
    }

    /// Whether the run, or one that it has called, waits for somebody.
    fn is_awaited(&self) -> Result<bool, Error> {
        let found = self.run.handouts(Part::Main);
        let mut steps = found.steps.iter();
        if !found.under_way.is_empty() || steps.any(|step| matches!(step, Handout::Tasks(_))) {
            return Ok(true);
        }
        let report = self.report(Some(ReportStatus::Interrupted));
        let pending = self.host.pending(&report)?;
        Ok(pending.iter().any(|awaited| awaited.asked))
    }

    /// Whether somebody who is not here is asked, by this run or by one that it has called.
    pub(super) fn asks_elsewhere(&self) -> bool {
        let mut parked = self.parked.iter();
        parked.any(|id| match self.run.action(*id) {
            Some(action) => matches!(action.what, Deed::Call { .. }) || self.asks(&action.what),
            None => false,
        })
    }

    /// The steps that wait for somebody, as the list of runs shows them.
    fn pending_names(&self) -> String {
        let found = self.run.handouts(Part::Main);
        let waits = |action: &Action| {
            let is_call = matches!(action.what, Deed::Call { .. });
            is_call || self.parked.contains(&action.id) || self.asks(&action.what)
        };
        let steps = found.steps.iter().filter_map(|step| match step {
            Handout::Action(action) => waits(action).then(|| action.name()),
            Handout::Tasks(tasks) => Some(unnumbered(&self.run.tasks_name(tasks))),
        });
        let tasks = found.under_way.iter();
        let tasks = tasks.map(|tasks| unnumbered(&self.run.tasks_name(tasks)));
        let mut names: Vec<String> = steps.chain(tasks).take(NAMES + 1).collect();
        if names.len() > NAMES {
            names[NAMES] = "…".to_owned();
        }
        names.join(", ")
    }

    /// Whether the list of runs does not say yet that the run waits, or is over.
    pub(in crate::host) fn is_unnoticed(&self) -> bool {
        match self.run.status() {
            Status::Running => !matches!(self.listed, Listed::Waiting | Listed::Sleeping(_)),
            Status::Completed | Status::Failed | Status::Cancelled => {
                !matches!(self.listed, Listed::Over)
            }
        }
    }

    /// Tells the list of runs how the run stands when nothing here can go on: it waits, or it was
    /// over with its first event.
    pub(in crate::host) async fn note_standing(&mut self) -> Result<(), Error> {
        let (update, listed) = match self.run.status() {
            Status::Running => match self.run.sleeps() {
                Some(until) => (self.sleeping(until), Listed::Sleeping(until)),
                None => (self.waiting(), Listed::Waiting),
            },
            Status::Completed | Status::Failed | Status::Cancelled if self.is_unnoticed() => {
                self.keep_definition();
                (self.update(self.last_at, false), Listed::Over)
            }
            Status::Completed | Status::Failed | Status::Cancelled => return Ok(()),
        };
        self.list(update, listed).await
    }

    /// Tells the list of runs how a run stands that its host lets go of: one that waits for nobody
    /// was only interrupted, and is listed like one whose host is gone.
    pub(in crate::host) async fn note_stopped(&mut self) -> Result<(), Error> {
        let is_running = self.run.status() == Status::Running;
        if !is_running || self.run.sleeps().is_some() || self.is_awaited()? {
            return self.note_standing().await;
        }
        let at = now();
        self.list(self.update(at, false), Listed::Running(at)).await
    }

    /// Tells the list of runs that the run sleeps, if it does.
    pub(in crate::host) async fn note_sleep(&mut self) -> Result<(), Error> {
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
                if let Listed::Waiting = listed {
                    self.host.inner.waits.notify_one();
                }
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
            .wake_at(self.first_due())
            .pending(Some(waits_for))
    }

    /// When the first time is up of all that waits for somebody.
    fn first_due(&self) -> Option<u64> {
        let pending = self.run.pending().into_iter();
        let due = pending.filter_map(|effect| match effect {
            Effect::Act(action) => Some(self.answered_by(&action)?.at),
            _ => None,
        });
        due.min()
    }
}
