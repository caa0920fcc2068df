//! Why a run of a compiled workflow does not give what it should.

use std::sync::Arc;

use flow_runtime::host;
use flow_runtime::journal::{self, RunId};
use flow_runtime::run::{Action, Failure};

use crate::{Invalid, UnknownState};

/// Why a run does not give its output, or cannot be begun or found.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The inputs are not as declared.
    #[error("the workflow `{workflow}` is not started: {faults}")]
    Inputs {
        /// The workflow.
        workflow: &'static str,
        /// Every fault.
        faults: Invalid,
    },
    /// The run failed. It can be resumed: the failed step is tried again.
    #[error("the run {run} failed{}: {}", at(.error), .error.message)]
    Failed {
        /// The run.
        run: RunId,
        /// Why, and in which step.
        error: Failure,
    },
    /// The run waits for somebody. It stays in the journal; [`super::Run::answer`] lets it go on.
    #[error("the run {run} waits for {}", steps(.pending))]
    Waiting {
        /// The run.
        run: RunId,
        /// What it waits for.
        pending: Vec<Action>,
    },
    /// The run was cancelled.
    #[error("the run {run} was cancelled")]
    Cancelled {
        /// The run.
        run: RunId,
    },
    /// The host was told to stop, or the runtime it ran on is gone. The run can be resumed.
    #[error("the run {run} was interrupted; it can be resumed")]
    Interrupted {
        /// The run.
        run: RunId,
    },
    /// What the run gave is not what this version of the definition declares.
    #[error("the run {run} gave an output that is not as declared: {faults}")]
    Output {
        /// The run.
        run: RunId,
        /// Every fault.
        faults: Invalid,
    },
    /// The run is in a state that this version of the definition does not have.
    #[error("the run {run} began with another version of its definition: {state}")]
    State {
        /// The run.
        run: RunId,
        /// The state.
        state: UnknownState,
    },
    /// The run is one of another workflow.
    #[error("{run} is a run of `{workflow}`, not of `{expected}`")]
    OtherWorkflow {
        /// The run.
        run: RunId,
        /// The workflow it is a run of.
        workflow: String,
        /// The one that was meant.
        expected: &'static str,
    },
    /// No step of this name waits for an answer.
    #[error("no step `{step}` of the run {run} waits for an answer{}", others(.waiting))]
    NotAsked {
        /// The run.
        run: RunId,
        /// The step.
        step: String,
        /// Those that do.
        waiting: Vec<String>,
    },
    /// The host cannot do what was asked.
    #[error(transparent)]
    Host(Arc<host::Error>),
}

impl From<host::Error> for Error {
    fn from(error: host::Error) -> Self {
        Error::Host(Arc::new(error))
    }
}

impl From<journal::Error> for Error {
    fn from(error: journal::Error) -> Self {
        host::Error::from(error).into()
    }
}

fn at(error: &Failure) -> String {
    match &error.step {
        Some(step) => format!(" in `{step}`"),
        None => String::new(),
    }
}

fn steps(pending: &[Action]) -> String {
    let steps: Vec<String> = pending
        .iter()
        .map(|action| format!("`{}`", action.node))
        .collect();
    steps.join(", ")
}

fn others(waiting: &[String]) -> String {
    match waiting {
        [] => "; none does".to_owned(),
        some => format!("; those that do: {}", some.join(", ")),
    }
}
