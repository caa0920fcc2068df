//! What can go wrong with a journal, and the way out.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::ErrorCode;

use super::{Hash, RunId};

/// What can go wrong with a journal. Cloning is cheap: one failing commit is the answer to all
/// writes that shared it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A directory stands where the journal should be.
    #[error("{path} is a directory; name a file for the journal, or remove the directory")]
    IsDirectory {
        /// The journal.
        path: PathBuf,
    },
    /// The journal is a link, or another thing that is not a file.
    #[error("{path} is not a regular file; name the journal's real place, or remove it")]
    NotAFile {
        /// The journal.
        path: PathBuf,
    },
    /// The system refuses access.
    #[error("{path} cannot be opened: permission denied; it must be readable and writable by you")]
    Denied {
        /// The file or directory.
        path: PathBuf,
    },
    /// The journal, or the file system it is on, cannot be written.
    #[error(
        "{path} is on a read-only file system or is read-only; make it writable, or name another place"
    )]
    ReadOnly {
        /// The file or directory.
        path: PathBuf,
    },
    /// The file is not a SQLite database, or it is damaged.
    #[error(
        "{path} is damaged: {detail}; move it away to start a new journal, or restore it from a copy"
    )]
    Corrupt {
        /// The journal.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file is a database of another program.
    #[error("{path} is a database of another program; name another file for the journal")]
    Foreign {
        /// The journal.
        path: PathBuf,
    },
    /// A newer version of the program made the journal.
    #[error(
        "{path} has version {found}, this program knows versions up to {known}; use a newer program"
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The version it has.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// Another process held the journal for longer than the busy timeout. Nothing was written.
    #[error(
        "{path} is locked by another process (waited {waited:?}); end that process or try again"
    )]
    Locked {
        /// The journal.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// No space is left for the journal.
    #[error(
        "{path} cannot grow: the disk or its quota is full; free some space, then start the process again that has it open, such as `flow serve`"
    )]
    Full {
        /// The journal.
        path: PathBuf,
    },
    /// The journal was moved, replaced or deleted while it was open.
    #[error("{path} was moved or deleted while in use; put it back, or open the journal again")]
    Moved {
        /// The journal.
        path: PathBuf,
    },
    /// The system failed to read or write.
    #[error("{path} cannot be read or written: {source}; check the disk and open it again")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An earlier write failed, so it is unknown what the disk holds; nothing is written any more.
    #[error("{cause}; nothing has been written since")]
    Poisoned {
        /// The journal.
        path: PathBuf,
        /// Why the first write failed.
        cause: Arc<Error>,
    },
    /// The journal is closed, or its writer ended.
    #[error("{path} is closed; open it again")]
    Closed {
        /// The journal.
        path: PathBuf,
    },
    /// SQLite refused a statement: a fault of this program.
    #[error("{path}: unexpected answer from SQLite: {source}; please report this")]
    Sqlite {
        /// The journal.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Arc<rusqlite::Error>,
    },

    /// Someone else appended to the run. Nothing of this append was written.
    #[error(
        "run {run} went on elsewhere: this writer had seen {expected} events, the journal has {found}; load it again"
    )]
    Fenced {
        /// The run.
        run: RunId,
        /// The last event this writer had seen.
        expected: u64,
        /// The last event of the journal.
        found: u64,
    },
    /// The journal has no such run.
    #[error("there is no run {run}; `flow runs` lists them")]
    NoSuchRun {
        /// The id or its beginning, as it was given.
        run: String,
    },
    /// A run with this id exists.
    #[error("run {run} exists already; start it with a new id")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// Several runs begin like this.
    #[error("{prefix} could be {}; give more of the id", listed(.matches, *.more))]
    Ambiguous {
        /// The beginning that was given.
        prefix: String,
        /// The newest runs that begin like it.
        matches: Vec<RunId>,
        /// Whether there are others.
        more: bool,
    },
    /// The text is not the id of a run.
    #[error("`{text}` is not the id of a run; they look like `r-01hzx3v9k4m2t7q8wd`")]
    NotARunId {
        /// What was given.
        text: String,
    },
    /// The journal has no such definition.
    #[error("there is no definition {hash} in the journal; store it before the run")]
    NoSuchDefinition {
        /// Its hash.
        hash: Hash,
    },
    /// A body or a value is too large to be stored.
    #[error("{size} bytes are too large for the journal, the limit is {limit}; keep it in a file")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Another process, or another place of this one, acts on the run.
    #[error("run {run} is in use by {}; wait for it, or cancel the run there", holder(*.pid))]
    Held {
        /// The run.
        run: RunId,
        /// The process, where it has said.
        pid: Option<u32>,
    },
}

fn listed(matches: &[RunId], more: bool) -> String {
    let mut text = matches
        .iter()
        .map(RunId::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if more {
        text.push_str(", …");
    }
    text
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

impl Error {
    /// Whether the disk's state is unknown after this error, so that no write may follow.
    pub(super) fn is_fatal(&self) -> bool {
        match self {
            Error::ReadOnly { .. }
            | Error::Corrupt { .. }
            | Error::Full { .. }
            | Error::Moved { .. }
            | Error::Denied { .. }
            | Error::Io { .. } => true,
            Error::IsDirectory { .. }
            | Error::NotAFile { .. }
            | Error::Foreign { .. }
            | Error::Newer { .. }
            | Error::Locked { .. }
            | Error::Poisoned { .. }
            | Error::Closed { .. }
            | Error::Sqlite { .. }
            | Error::Fenced { .. }
            | Error::NoSuchRun { .. }
            | Error::RunExists { .. }
            | Error::Ambiguous { .. }
            | Error::NotARunId { .. }
            | Error::NoSuchDefinition { .. }
            | Error::TooLarge { .. }
            | Error::Held { .. } => false,
        }
    }

    /// What the system said about a file or directory.
    pub(super) fn io(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Denied { path },
            io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { path },
            _ => Error::Io {
                path,
                source: Arc::new(source),
            },
        }
    }

    /// What SQLite said about the journal.
    pub(super) fn sqlite(path: &Path, waited: Duration, source: rusqlite::Error) -> Error {
        let path = path.to_owned();
        let rusqlite::Error::SqliteFailure(failure, message) = &source else {
            return match source {
                // A row that this program would not have written.
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..) => Error::Corrupt {
                    path,
                    detail: source.to_string(),
                },
                _ => Error::Sqlite {
                    path,
                    source: Arc::new(source),
                },
            };
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Locked { path, waited },
            ErrorCode::DiskFull => Error::Full { path },
            // Files beside the journal that cannot grow say so only here.
            ErrorCode::SystemIoFailure
                if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE =>
            {
                Error::Full { path }
            }
            ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
                Error::Denied { path }
            }
            ErrorCode::ReadOnly
                if failure.extended_code == rusqlite::ffi::SQLITE_READONLY_DBMOVED =>
            {
                Error::Moved { path }
            }
            ErrorCode::ReadOnly => Error::ReadOnly { path },
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Corrupt {
                path,
                detail: message.clone().unwrap_or_else(|| failure.to_string()),
            },
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::OutOfMemory
            | ErrorCode::NoLargeFileSupport => Error::Io {
                path,
                source: Arc::new(source),
            },
            _ => Error::Sqlite {
                path,
                source: Arc::new(source),
            },
        }
    }
}
