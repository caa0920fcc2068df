//! What agents submit, and where it goes.

use super::desk::{Heard, Request, Submitted};
use super::{AgentError, Agents, Patience, TaskPage, Turn};
use crate::journal::RunId;
use crate::run::{Failure, FailureKind, unnumbered};
use crate::value::Value;

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
    pub(super) fn failure(&self) -> Failure {
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

impl Agents {
    /// Takes what came of a step, and gives what is next for whoever did it. Without a name it is
    /// the first step of the run that waits. The same step again changes nothing; where it
    /// waits for another result, or had another one, a note says so.
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
        self.lead_on(run, taken.callers)?;
        let task = taken.task.as_deref();
        let mut turn = self.next(run, task, page, patience).await?;
        let step = taken.step.as_str();
        let unused = match (taken.heard, &turn.step) {
            (Heard::Taken, _) => None,
            (Heard::TooLate, _) => Some(format!(
                "the result of `{step}` comes too late: its time was over (`answer_by`), and the run goes \
                 on without it"
            )),
            // Who submits a step of before for the one that waits is told.
            (Heard::Repeated | Heard::Outdone, Some(waits))
                if unnumbered(step) == unnumbered(&waits.id) =>
            {
                Some(format!(
                    "`{step}` had its result before and this one was not used; `{}` waits for a result",
                    waits.id
                ))
            }
            // Whoever submits the same once more is answered as before.
            (Heard::Repeated, _) => None,
            (Heard::Outdone, _) => Some(format!(
                "`{step}` had another result before, which counts; this one was not used"
            )),
            (Heard::OfTasks, _) => Some(format!(
                "`{step}` is over when its tasks are: a result for it is not used"
            )),
        };
        turn.note = unused.or(turn.note);
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
            Submitted::Here { heard, step, task } => Ok(Taken {
                step,
                task,
                heard,
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
                    step: format!("{}/{}", called.name, taken.step),
                    task: called.seen_from(taken.task),
                    heard: taken.heard,
                    callers,
                })
            }
        }
    }
}

/// A result that a desk has heard.
struct Taken {
    /// The name of its step.
    step: String,
    /// The task that its step belongs to.
    task: Option<String>,
    heard: Heard,
    /// Where the step is of a run that was called: the parts that wait for that run, and for the
    /// ones between, the innermost first.
    callers: Vec<Option<String>>,
}
