//! A command that did not come to a run: the same object that tells of a run, for programs.

use anyhow::Result;
use flow_runtime::journal::RunId;
use serde_json::{Value, json};

use crate::cli::RunFormat;
use crate::exit::{self, Exit, Stopped};
use crate::output::Output;

/// Why nothing was run.
pub(crate) struct Unstarted<'a> {
    /// The workflow that was meant, as far as it is known.
    pub(crate) workflow: Option<&'a str>,
    /// The run that was meant, if there is one.
    pub(crate) run: Option<RunId>,
    /// The word for it, where there is one.
    pub(crate) final_state: Option<&'static str>,
    /// Each fault by itself.
    pub(crate) faults: Vec<String>,
}

impl Unstarted<'_> {
    /// Prints the object where a program reads; people are told otherwise.
    pub(crate) fn tell(&self, format: RunFormat, output: &mut Output) -> Result<()> {
        match format {
            RunFormat::Text => return Ok(()),
            RunFormat::Json => output.line(format_args!("{:#}", self.as_json()))?,
            RunFormat::Jsonl => output.line(self.as_json())?,
        }
        Ok(output.flush()?)
    }

    fn as_json(&self) -> Value {
        json!({
            "run_id": self.run.map(|run| run.to_string()),
            "workflow": self.workflow,
            "status": "failed",
            "final_state": self.final_state,
            "states_executed": 0,
            "output": null,
            "state": null,
            "error": self.faults.join("\n"),
            "validation_errors": self.faults,
            "elapsed_ms": 0,
            "pending": [],
        })
    }
}

/// What came of a command; an error is told as an object too, where a program reads.
pub(crate) fn told(
    done: Result<Exit>,
    workflow: Option<&str>,
    run: Option<RunId>,
    format: RunFormat,
    output: &mut Output,
) -> Result<Exit> {
    if let Err(error) = &done
        && !exit::is_unheard(error)
    {
        let stopped = error.downcast_ref::<Stopped>().map(|Stopped(run)| *run);
        let unstarted = Unstarted {
            workflow,
            run: stopped.or(run),
            final_state: None,
            faults: vec![format!("{error:#}")],
        };
        unstarted.tell(format, output)?;
    }
    done
}
