//! Why an agent cannot be answered, and what it can do about it.

use std::sync::Arc;

use super::super::local::Error;
use super::result::Unfit;

/// Why an agent cannot be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The host says no.
    #[error(transparent)]
    Host(#[from] Error),
    /// The run can no longer be worked on here.
    #[error(transparent)]
    Broken(Arc<Error>),
    /// The host has been told to stop.
    #[error("the server is stopping; the run goes on when it is back")]
    Stopping,
    /// A result was submitted for a step that does not wait for one.
    #[error("{}", not_pending(.step.as_deref(), .pending, *.over))]
    NotPending {
        /// The step; none where the one that waits was meant.
        step: Option<String>,
        /// Those that wait for a result.
        pending: Vec<String>,
        /// How the run ended, if it has.
        over: Option<&'static str>,
    },
    /// The run has no such step.
    #[error("{}", no_step(.step, .waits.as_deref()))]
    NoStep {
        /// Its name.
        step: String,
        /// The one that waits for a result.
        waits: Option<String>,
    },
    /// A result cannot be the step's.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// There is no such task.
    #[error("{}", no_task(.task, .open, .step.as_deref()))]
    NoTask {
        /// Its name.
        task: String,
        /// Tasks that are not over.
        open: Vec<String>,
        /// The step of that name, or within what has it, that waits for whoever drives the run.
        step: Option<String>,
    },
    /// A task is over, too long ago to know more.
    #[error(
        "the task `{task}` is over, and so much has happened since that what became of it is no longer kept; get_next_step without a task_id says how the run stands"
    )]
    Forgotten {
        /// Its name.
        task: String,
    },
    /// The run is not over yet.
    #[error(
        "the run is not over: it goes on with get_next_step; to stop it, give status `cancelled` or `failed`"
    )]
    NotOver,
    /// The run has ended otherwise.
    #[error(
        "the run {ended} already and stays so; complete_workflow without a status gives its final state"
    )]
    Ended {
        /// How.
        ended: &'static str,
    },
}

fn not_pending(step: Option<&str>, pending: &[String], over: Option<&str>) -> String {
    let quoted: Vec<String> = pending.iter().map(|name| format!("`{name}`")).collect();
    let listed = quoted.join(", ");
    let Some(step) = step else {
        return match (over, pending) {
            (Some(over), _) => format!("no step waits for a result: the run {over}"),
            (None, []) => {
                "no step waits for a result; get_next_step says how the run stands".to_owned()
            }
            (None, _) => format!(
                "no step of the run itself waits for a result, but steps of its tasks do: name one with submit_step_result: {listed}"
            ),
        };
    };
    let step = match step.trim() {
        "" => "a step without a name".to_owned(),
        _ => format!("step `{step}`"),
    };
    match (over, pending) {
        (Some(over), _) => format!("{step} does not wait for a result: the run {over}"),
        (None, []) => format!(
            "{step} does not wait for a result, and no other does; get_next_step says how the run stands"
        ),
        (None, [_]) => format!("{step} does not wait for a result; {listed} does"),
        (None, _) => {
            format!("{step} does not wait for a result; it is not one of those that do: {listed}")
        }
    }
}

fn no_step(step: &str, waits: Option<&str>) -> String {
    let none = there_is_no("step", step);
    match waits {
        Some(waits) => format!("{none} in this run; `{waits}` waits for a result"),
        None => format!("{none} in this run; leave it out for the place where the run is"),
    }
}

fn no_task(task: &str, open: &[String], step: Option<&str>) -> String {
    let none = there_is_no("task", task);
    if let Some(step) = step {
        return format!(
            "{none} for a sub-agent; `{step}` waits for whoever drives the run: get_next_step without a task_id answers it"
        );
    }
    if open.is_empty() {
        return format!("{none}, and no task is open in this run");
    }
    let open: Vec<String> = open.iter().map(|name| format!("`{name}`")).collect();
    format!("{none}; open tasks are {}", open.join(", "))
}

fn there_is_no(what: &str, name: &str) -> String {
    match name.trim() {
        "" => format!("the name of the {what} is empty: there is none"),
        _ => format!("there is no {what} `{name}`"),
    }
}
