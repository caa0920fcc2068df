//! A run with the types of its workflow.

use std::fmt;
use std::marker::PhantomData;

use flow_model::value::Whole;
use flow_runtime::host::{Boxed, Host, Report, ReportStatus, StartOptions};
use flow_runtime::journal::{Listing, RunId, Status};
use flow_runtime::run::{Action, Allowance, Failure, FailureKind, Happening};
use flow_runtime::value;

use super::{Error, Workflow};
use crate::Value;

/// A run of a compiled workflow.
///
/// What it does is recorded in the host's journal before it is done: the handle can be dropped and
/// the process can die, and [`Run::resume`] goes on with the run by its id. Every module that
/// `workflow!` makes has a `Run` of its own, with its types.
pub struct Run<W> {
    host: Host,
    id: RunId,
    workflow: PhantomData<fn() -> W>,
}

impl<W> Clone for Run<W> {
    fn clone(&self) -> Self {
        Run {
            host: self.host.clone(),
            id: self.id,
            workflow: PhantomData,
        }
    }
}

impl<W> fmt::Debug for Run<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<W: Workflow> Run<W> {
    /// Records a new run and drives it in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Inputs`]; those of the host.
    pub fn start(inputs: W::Inputs, host: &Host) -> Boxed<'_, Result<Self, Error>> {
        let graph = W::graph();
        // Looked at before anything waits, so that they need not be sent anywhere.
        let inputs = inputs.leave();
        Box::pin(async move {
            let inputs = inputs.map_err(|faults| Error::Inputs {
                workflow: &graph.name,
                faults,
            })?;
            let inputs = value::Value::from(&inputs);
            let options = StartOptions::default();
            let id = host.start_compiled(graph, &inputs, options).await?;
            host.drive_in_background(id);
            Ok(Run::new(id, host))
        })
    }

    /// Runs the workflow until it is over or waits for somebody.
    ///
    /// # Errors
    ///
    /// Those of [`Run::start`] and of [`Run::wait`].
    pub fn complete(inputs: W::Inputs, host: &Host) -> Boxed<'_, Result<W::Output, Error>> {
        let started = Self::start(inputs, host);
        Box::pin(async move { started.await?.wait().await })
    }

    /// The run of an id, as it is: nothing is done with it.
    ///
    /// # Errors
    ///
    /// [`Error::OtherWorkflow`]; those of the journal.
    pub fn find(id: RunId, host: &Host) -> Result<Self, Error> {
        let graph = W::graph();
        let record = host.journal().run(id)?;
        if record.workflow != graph.name {
            return Err(Error::OtherWorkflow {
                run: id,
                workflow: record.workflow,
                expected: &graph.name,
            });
        }
        host.adopt(graph)?;
        Ok(Run::new(id, host))
    }

    /// Goes on with a run in the background. One that failed tries its failed step again; one that
    /// is over stays so.
    ///
    /// # Errors
    ///
    /// Those of [`Run::find`] and of the host.
    pub fn resume(id: RunId, host: &Host) -> Boxed<'_, Result<Self, Error>> {
        Box::pin(async move {
            let run = Run::find(id, host)?;
            if run.status()? == Status::Failed {
                host.record(id, Happening::Resumed(Allowance::default()))
                    .await?;
            }
            host.drive_in_background(id);
            Ok(run)
        })
    }

    /// The runs of this workflow that are not over, newest first: what a program that was stopped
    /// resumes when it starts again.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn unfinished(host: &Host) -> Result<Vec<Self>, Error> {
        let graph = W::graph();
        host.adopt(graph)?;
        let mut listing = Listing::new().workflow(&*graph.name);
        for status in Status::ALL {
            if !status.is_final() {
                listing = listing.status(status);
            }
        }
        let mut runs = Vec::new();
        loop {
            let page = host.journal().list(&listing, 1000)?;
            runs.extend(page.runs.iter().map(|record| Run::new(record.id, host)));
            match page.next {
                Some(cursor) => listing = listing.before(cursor),
                None => return Ok(runs),
            }
        }
    }

    fn new(id: RunId, host: &Host) -> Self {
        Run {
            host: host.clone(),
            id,
            workflow: PhantomData,
        }
    }

    /// Its id, by which it is found again.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Drives the run, if nobody here does, until it is over or waits for somebody.
    ///
    /// # Errors
    ///
    /// Why there is no output: [`Error::Failed`], [`Error::Waiting`], [`Error::Cancelled`],
    /// [`Error::Interrupted`], [`Error::Output`]; those of the host.
    pub async fn wait(&self) -> Result<W::Output, Error> {
        match self.host.drive_in_background(self.id).end().await {
            Some(Ok(report)) => self.output(report),
            Some(Err(error)) => Err(Error::Host(error)),
            None => Err(Error::Interrupted { run: self.id }),
        }
    }

    fn output(&self, report: Report) -> Result<W::Output, Error> {
        let run = self.id;
        match report.status {
            ReportStatus::Completed => W::Output::enter(report.output.to_json())
                .map_err(|faults| Error::Output { run, faults }),
            ReportStatus::Failed => Err(Error::Failed {
                run,
                error: report
                    .error
                    .unwrap_or_else(|| Failure::new(FailureKind::Action, "nothing says why")),
            }),
            ReportStatus::Waiting => Err(Error::Waiting {
                run,
                pending: report.pending.into_iter().map(|it| it.action).collect(),
            }),
            ReportStatus::Cancelled => Err(Error::Cancelled { run }),
            ReportStatus::Interrupted => Err(Error::Interrupted { run }),
        }
    }

    /// How it stands in the journal.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn status(&self) -> Result<Status, Error> {
        Ok(self.host.journal().run(self.id)?.status)
    }

    /// The state it is in, or was in last.
    ///
    /// # Errors
    ///
    /// [`Error::State`]; those of the journal.
    pub fn state(&self) -> Result<W::State, Error> {
        let report = self.host.report(self.id)?;
        let name = report.last_node.unwrap_or_default();
        name.parse().map_err(|state| Error::State {
            run: self.id,
            state,
        })
    }

    /// Everything that is known of it.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn report(&self) -> Result<Report, Error> {
        Ok(self.host.report(self.id)?)
    }

    /// Answers what a step asks, and goes on in the background. A plain value stands for the field
    /// that the answer has: `true` for `{"confirmed": true}`.
    ///
    /// # Errors
    ///
    /// [`Error::NotAsked`]; an answer that is not valid, with the reason; those of the host.
    pub async fn answer(&self, step: &str, answer: impl Into<Value>) -> Result<(), Error> {
        let action = self.asked(step)?;
        let result = action.what.shape(value::Value::from(&answer.into()));
        let action = action.id;
        self.record(Happening::Completed { action, result }).await
    }

    /// Says that nobody will answer a step, and goes on in the background: the step fails.
    ///
    /// # Errors
    ///
    /// [`Error::NotAsked`]; those of the host.
    pub async fn decline(&self, step: &str, reason: impl Into<String>) -> Result<(), Error> {
        let action = self.asked(step)?.id;
        let reason = reason.into();
        self.record(Happening::Declined { action, reason }).await
    }

    /// Ends the run: what it does is stopped.
    ///
    /// # Errors
    ///
    /// When it is over already; those of the host.
    pub async fn cancel(&self, reason: impl Into<String>) -> Result<(), Error> {
        let reason = reason.into();
        self.record(Happening::Cancelled { reason }).await
    }

    async fn record(&self, happening: Happening) -> Result<(), Error> {
        self.host.record(self.id, happening).await?;
        self.host.drive_in_background(self.id);
        Ok(())
    }

    fn asked(&self, step: &str) -> Result<Action, Error> {
        let mut pending = self.host.report(self.id)?.pending;
        pending.retain(|awaited| awaited.action.what.is_asked());
        let named = pending.iter().position(|awaited| awaited.step == step);
        let alike = || {
            pending
                .iter()
                .position(|awaited| awaited.action.node == step)
        };
        match named.or_else(alike) {
            Some(at) => Ok(pending.swap_remove(at).action),
            None => Err(Error::NotAsked {
                run: self.id,
                step: step.to_owned(),
                waiting: pending.into_iter().map(|awaited| awaited.step).collect(),
            }),
        }
    }
}
