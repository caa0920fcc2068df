//! What there is to say to whoever asks for the next step.

use std::collections::BTreeSet;

use super::{Answer, Called, Desk, LISTED, LISTED_FIT, Look, Seen};
use crate::host::agent::step::{self, TaskPage};
use crate::host::agent::{AgentError, AgentStep, Turn, TurnStatus};
use crate::host::deed::{called, called_by};
use crate::host::driver::Driver;
use crate::host::local::Error;
use crate::host::secrets::masked_failure;
use crate::run::{
    Action, Deed, Failure, FailureKind, Handout, Handouts, Happening, NamedTask, Part, Refusal,
    Status, TaskState, Tasks,
};
use crate::secret;

impl Desk {
    /// What there is to say to somebody.
    pub(super) async fn see(&mut self, what: &Look) -> Result<Seen, AgentError> {
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
        if let Some(owner) = self.kept_in {
            turn.note = Some(format!(
                "the run goes on in the process {owner}, which has its terminal session"
            ));
        }
        self.list_open(&found.under_way, what.page, &mut turn);
        Seen::Going(turn)
    }

    /// Whether an action is for whoever drives the run to do. One with secrets is the host's, also
    /// while it does not know them.
    pub(super) fn is_handed_out(&self, action: &Action) -> bool {
        self.driver.parked.contains(&action.id) && !action.what.has_secrets()
    }

    /// What there is to say where something cannot be done for want of a secret.
    fn without_secrets<'a>(&self, actions: impl Iterator<Item = &'a Action>) -> Option<Turn> {
        let mut steps = Vec::new();
        let mut missing = BTreeSet::new();
        // Whoever has the run here knows no more than this desk.
        let is_beside = self.behind && !self.elsewhere;
        let waits = |action: &&Action| is_beside || self.driver.parked.contains(&action.id);
        for action in actions.filter(waits) {
            let lacking = self.driver.host.lacking(self.driver.id, &action.what);
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

    pub(super) fn called(&self, action: &Action, rest: Option<String>) -> Called {
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
}
