//! Results that agents submit, and what became of them.

use super::{Called, Desk, Heard, LISTED, Submitted};
use crate::host::agent::result::{Meant, Unfit, meant};
use crate::host::agent::{AgentError, Outcome, Submission};
use crate::host::deed::called;
use crate::host::driver::Driver;
use crate::host::local::{Error, PastResult};
use crate::host::secrets::foreign;
use crate::journal;
use crate::run::{
    Action, ActionId, Deed, Effect, Failure, FailureKind, Handout, Happening, Named, NamedTask,
    Part, Run, Status, TaskState,
};
use crate::value::Value;

impl Desk {
    pub(super) async fn submit(
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
        self.driver.expect_session_here()?;
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
        let is_other = match host.recorded_result(self.driver.id, &step)? {
            PastResult::Recorded(result) if !self.is_ever_handed_out(&result.0.what) => {
                return Err(self.not_pending(Some(&step)));
            }
            PastResult::Recorded(result) => {
                let (action, recorded) = *result;
                let said = happening(&action, submission);
                said.map_or(true, |said| {
                    host.scrubbed(self.driver.id, foreign(said)) != recorded
                })
            }
            PastResult::OutOfTime => {
                return Ok(Submitted::Here {
                    heard: Heard::TooLate,
                    task: task_before(&self.driver.run, &step),
                    step,
                });
            }
            // Names of tasks and of what they call are told apart by more than the run itself.
            PastResult::NobodyAsked if is_numbered(&step) => {
                return Err(self.not_pending(Some(&step)));
            }
            PastResult::Unknown | PastResult::NobodyAsked => false,
        };
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

    pub(super) fn task_of(&self, part: Part) -> Option<String> {
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

    /// Whether what is to be done is anybody's but the server's.
    fn is_ever_handed_out(&self, what: &Deed) -> bool {
        match self.driver.run.is_agent_driven() {
            true => what.is_for_agent(),
            false => what.is_asked() || self.driver.host.is_for_caller(what),
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

    /// The name of the first step that waits for a result, or the run that was called and has it.
    fn first(&self) -> Result<Result<String, Called>, AgentError> {
        let run = &self.driver.run;
        let found = run.handouts(Part::Main);
        for handout in &found.steps {
            match handout {
                Handout::Action(action) if matches!(action.what, Deed::Call { .. }) => {
                    // Somebody else may drive it.
                    if self.is_handed_out(action) || self.is_asked_below(action)? {
                        return Ok(Err(self.called(action, None)));
                    }
                }
                Handout::Action(action) if self.is_awaited(action) => {
                    return Ok(Ok(run.step_name(action)));
                }
                Handout::Tasks(tasks) => return Ok(Ok(run.tasks_name(tasks))),
                Handout::Action(_) => {}
            }
        }
        Err(self.not_pending(None))
    }

    /// Whether the run that an action calls, or one below it, waits for a result.
    fn is_asked_below(&self, call: &Action) -> Result<bool, Error> {
        let host = &self.driver.host;
        let called = called(self.driver.id, call);
        match host.journal().run(called) {
            Ok(record) if !record.status.is_final() => {}
            Ok(_) | Err(journal::Error::NoSuchRun { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let report = host.report(called)?;
        Ok(host.pending(&report)?.iter().any(|it| it.asked))
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

    pub(super) fn no_such_task(&self, name: &str) -> AgentError {
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

/// The sub-agent's task that the name of a step begins with.
fn task_before(run: &Run, name: &str) -> Option<String> {
    let cuts = name.rmatch_indices('/').map(|(cut, _)| cut);
    let mut befores = cuts.map(|cut| &name[..cut]);
    let task = befores.find(|before| run.is_for_sub_agent(before));
    task.map(str::to_owned)
}

/// Whether the name of a step says which time it was handed out.
fn is_numbered(step: &str) -> bool {
    let last = step.rsplit('/').next().unwrap_or(step);
    let number = last.rsplit_once('~').map(|(_, number)| number);
    number.is_some_and(|it| it.parse::<u64>().is_ok())
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
