//! The course of a run: places that are marked, going on after a failure or an absence, the end.

use flow_model::graph::Graph;

use super::super::driver::Driver;
use super::super::local::Error;
use super::desk::Request;
use super::{AgentError, Agents, Patience, TaskPage};
use crate::journal::RunId;
use crate::run::{Allowance, Checkpoint, Happening, Named, NamedTask, Status};
use crate::secret;

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

    /// Lets a run that has failed try again. Of one that goes on, the tasks under way are handed out
    /// again, to whoever starts sub-agents for them.
    ///
    /// # Errors
    ///
    /// When the run has completed or was cancelled, and those of the journal.
    pub async fn resume(&self, run: RunId) -> Result<(), AgentError> {
        self.resume_with(run, Allowance::default()).await
    }

    /// The same; one that tries again may do this much more.
    ///
    /// # Errors
    ///
    /// Those of [`Agents::resume`].
    pub async fn resume_with(&self, run: RunId, allowance: Allowance) -> Result<(), AgentError> {
        let status = self.read(run, |driver| driver.run.status()).await?;
        match status {
            Status::Running => self.take_up(run).await,
            Status::Failed | Status::Completed | Status::Cancelled => {
                self.record(run, Happening::Resumed(allowance)).await
            }
        }
    }

    async fn take_up(&self, run: RunId) -> Result<(), AgentError> {
        for called in self.ask(run, Request::TakeUp).await? {
            Box::pin(self.take_up(called)).await?;
        }
        Ok(())
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
