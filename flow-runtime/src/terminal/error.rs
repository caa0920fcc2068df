//! Why a terminal could not do what was asked.

use std::path::PathBuf;

use flow_model::tools::InvalidParameters;

/// Why a terminal could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No session has this id.
    #[error(
        "no terminal session `{id}` ({known}); one ends when it is closed, or with the process that opened it"
    )]
    NoSession {
        /// The id.
        id: String,
        /// Which there are, in words.
        known: String,
    },
    /// No session is open at all.
    #[error("no terminal session is open; open one with `open_terminal`")]
    NoneOpen,
    /// Every session that is open is somebody else's.
    #[error(
        "no terminal session is open that was opened from here and is no other run's; open one with `open_terminal`, or name one with `session_id`"
    )]
    NoneOwn,
    /// The run had one of its own.
    #[error(
        "no terminal session is open: the run's own, `{id}`, was closed, and it goes on in no other by itself; open one with `open_terminal`, or name one with `session_id`"
    )]
    OwnClosed {
        /// The one it had.
        id: String,
    },
    /// The run has none that it could close without naming it.
    #[error(
        "no terminal session is open that the run has opened or was given; name the one to close with `session_id`"
    )]
    NoneToClose,
    /// The program does not exist.
    #[error("no program `{program}` was found; give a name on the search path or a path")]
    NoProgram {
        /// As it was asked for.
        program: String,
    },
    /// The program exists; what was asked for has arguments as well.
    #[error(
        "no program `{program}` was found: `shell` is a program alone; to give `{name}` arguments, open a shell and start it there with `send_input`, or name a script that does"
    )]
    Arguments {
        /// As it was asked for.
        program: String,
        /// The program.
        name: String,
    },
    /// The program cannot be executed.
    #[error("`{program}` cannot be executed: {reason}")]
    BadProgram {
        /// As it was asked for.
        program: String,
        /// Why not.
        reason: String,
    },
    /// The directory is not one.
    #[error("cannot start in {}: {reason}", directory.display())]
    BadDirectory {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A variable that no environment can hold.
    #[error("`{name}` cannot be an environment variable: {reason}")]
    BadVariable {
        /// Its name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// The policy says no.
    #[error("{0}")]
    Refused(String),
    /// There are as many sessions as there may be.
    #[error("{}", too_many(*limit, *ended))]
    TooMany {
        /// The limit.
        limit: usize,
        /// In how many of them nothing runs any more.
        ended: usize,
    },
    /// No session is opened any more.
    #[error("no terminal session is opened any more: the process that keeps them ends")]
    Over,
    /// The system gave no terminal.
    #[error("no terminal could be made: {0}")]
    Pty(String),
    /// The program has ended.
    #[error("the session's program has ended {0}")]
    Ended(String),
    /// The program does not read what is typed.
    #[error(
        "the program in front (`{program}`) has not read {waiting} bytes of earlier input; nothing \
         was typed"
    )]
    Unread {
        /// The program.
        program: String,
        /// How much waits.
        waiting: usize,
    },
    /// The command that ran has ended, and nobody has read this.
    #[error(
        "a command of several lines was being run in this session, and ended or was given up before a \
         program of it had read all of this; `message` says what was typed, and the rest can be sent \
         again if it is for what is there now"
    )]
    NotRead,
    /// More than is typed at a time.
    #[error(
        "{length} bytes cannot be typed at once, {limit} can: put them into a file, or send them in \
         parts"
    )]
    LongInput {
        /// How many there are.
        length: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A line that the kernel would cut.
    #[error(
        "a line of {length} bytes cannot be typed: the terminal cuts lines after {limit}; \
         put it into a file"
    )]
    LongLine {
        /// Its length.
        length: usize,
        /// What the kernel takes.
        limit: usize,
    },
    /// The log of inputs cannot be written, so nothing is typed.
    #[error("the audit log {} cannot be written: {error}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The environment is not known.
    #[error("the environment of session `{id}` is not known: {reason}")]
    NoEnvironment {
        /// The session.
        id: String,
        /// Why not.
        reason: String,
    },
}

/// Why a tool was not called at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No terminal tool has this name.
    #[error("no terminal tool `{0}`")]
    NoTool(String),
    /// The parameters do not fit; every fault names its argument.
    #[error(transparent)]
    Parameters(#[from] InvalidParameters),
}

fn too_many(limit: usize, ended: usize) -> String {
    let are = match limit {
        0 => return "no terminal session may be opened here: `max_sessions` is 0".to_owned(),
        1 => "1 terminal session is".to_owned(),
        limit => format!("{limit} terminal sessions are"),
    };
    let ended = match ended {
        0 => String::new(),
        ended => format!(", {ended} of them with a program that has ended"),
    };
    format!("{are} there, which is the limit{ended}; close one with `exit_terminal`")
}
