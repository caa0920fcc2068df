//! How the program ends.

use std::io;
use std::process::ExitCode;

use flow_runtime::journal::RunId;
use flow_runtime::{host, journal, library};

use crate::output::Output;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was done.
    Done,
    /// It could not be done.
    Failed,
    /// What was asked for cannot be meant: a file that is not there, a name nobody knows.
    Usage,
    /// The definition has errors.
    Invalid,
    /// A person or a policy has refused.
    Refused,
    /// A run waits for somebody and can be resumed.
    Waiting,
    /// It was told to stop; a run can be resumed.
    Interrupted,
    /// Whoever read the output has gone; as a shell reports a program that the signal ended.
    Unheard,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Invalid => 3,
            Exit::Refused => 4,
            Exit::Waiting => 5,
            Exit::Interrupted => 130,
            Exit::Unheard => 141,
        })
    }
}

/// Something asked for that cannot be meant, with what to do instead.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Usage {
    message: String,
    help: Option<String>,
}

impl Usage {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Usage {
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Something asked for that the policy forbids, with what may be done instead.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Forbidden {
    pub(crate) message: String,
    pub(crate) help: String,
}

/// A run that could not be driven on, and can be once the reason is gone.
#[derive(Debug, thiserror::Error)]
#[error("the run has stopped")]
pub(crate) struct Stopped(pub(crate) RunId);

/// Whether whoever read the output has gone.
pub(crate) fn is_unheard(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Says why nothing came of it.
pub(crate) fn report(error: &anyhow::Error, output: &mut Output) -> Exit {
    if is_unheard(error) {
        return Exit::Unheard;
    }
    // What was done before comes first.
    let _ = output.flush();
    output.error(&format!("{error:#}"));
    if let Some(Stopped(run)) = error.downcast_ref::<Stopped>() {
        output.help(&format!(
            "then `flow resume {run}` goes on from what is recorded"
        ));
    }
    if let Some(usage) = error.downcast_ref::<Usage>() {
        if let Some(help) = &usage.help {
            output.help(help);
        }
        return Exit::Usage;
    }
    if let Some(forbidden) = error.downcast_ref::<Forbidden>() {
        output.help(&forbidden.help);
        return Exit::Refused;
    }
    if error.is::<library::Error>() {
        return Exit::Usage;
    }
    let journal = match error.downcast_ref::<host::Error>() {
        Some(
            host::Error::Refused(_)
            | host::Error::Inputs(_)
            | host::Error::TooLate { .. }
            | host::Error::NotAsked { .. },
        ) => return Exit::Usage,
        Some(host::Error::SessionElsewhere { .. }) => return Exit::Waiting,
        Some(host::Error::Journal(error)) => Some(error),
        _ => error.downcast_ref::<journal::Error>(),
    };
    match journal {
        Some(
            journal::Error::NoSuchRun { .. }
            | journal::Error::Ambiguous { .. }
            | journal::Error::NotARunId { .. },
        ) => Exit::Usage,
        _ => Exit::Failed,
    }
}
