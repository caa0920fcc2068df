//! What runs leave on the disk: their events, and what has to be found again after the process is
//! gone.
//!
//! A journal is one SQLite file that several processes may use at once. It keeps the events of runs
//! in their order and knows nothing of what they mean.
//!
//! What is promised:
//!
//! * An [`Append`] that was answered with `Ok` survives the death of the process, and of the
//!   machine. One that was answered with [`Error::Fenced`] has left nothing behind.
//! * Of two writers that have seen the same last event of a run, one can append to it.
//! * After a failed write nothing more is written: see [`Error::Poisoned`]. What was answered
//!   before can be read, here and after the journal is opened again.
//! * Readers do not wait for writers.
//!
//! Writes go through one thread that commits what has gathered while the last commit was under way;
//! the events of a run that writes alone are committed where they are made. Each gives a [`Receipt`]
//! that can be waited for or awaited, with any executor.

mod append;
mod body;
mod error;
mod fault;
mod id;
mod lock;
mod log;
mod memory;
mod process;
mod prune;
mod receipt;
mod record;
mod runs;
mod schema;
mod store;
mod writer;

use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

pub use error::Error;
pub use id::{Hash, NotAHash, RunId};
pub use lock::RunLock;
pub use log::{Chunk, Log, Stream};
pub use process::{Orphan, ProcessGroup};
pub use prune::Pruned;
pub use receipt::Receipt;
pub use record::{
    Append, Event, Loaded, NewRun, NotAStatus, RunRecord, RunUpdate, Snapshot, Status,
};
pub use runs::{Cursor, Listing, Page, Tally};

use store::Store;
use writer::Writer;

/// A journal that is open. Cloning gives another handle; the last one to be dropped finishes what
/// is queued and closes the file.
#[derive(Clone, Debug)]
pub struct Journal {
    store: Arc<Store>,
    writer: Arc<Writer>,
}

/// How a journal is opened.
///
/// ```
/// use std::time::Duration;
/// use flow_runtime::journal::Options;
///
/// # let dir = tempfile::tempdir()?;
/// let journal = Options::new()
///     .busy_timeout(Duration::from_secs(1))
///     .open(dir.path().join("journal.db"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    busy_timeout: Duration,
    large_value: usize,
    log_limit: usize,
    max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            busy_timeout: Duration::from_secs(10),
            large_value: 4 << 10,
            log_limit: 1 << 20,
            max_bytes: None,
        }
    }
}

impl Options {
    /// What suits most: ten seconds of patience, values from 4 KiB on stored once, 1 MiB of log for
    /// each stream of an action.
    pub fn new() -> Options {
        Options::default()
    }

    /// How long a write waits for another process before it gives up with [`Error::Locked`].
    #[must_use]
    pub fn busy_timeout(self, busy_timeout: Duration) -> Options {
        Options {
            busy_timeout,
            ..self
        }
    }

    /// The size in bytes above which a value of an event is stored once, however often it occurs.
    #[must_use]
    pub fn large_value(self, large_value: usize) -> Options {
        Options {
            large_value,
            ..self
        }
    }

    /// How many bytes of each stream of an action are kept.
    #[must_use]
    pub fn log_limit(self, log_limit: usize) -> Options {
        Options { log_limit, ..self }
    }

    /// The size beyond which the file does not grow: writes then fail with [`Error::Full`].
    #[must_use]
    pub fn max_bytes(self, max_bytes: u64) -> Options {
        Options {
            max_bytes: Some(max_bytes),
            ..self
        }
    }

    /// Opens a journal: see [`Journal::open`].
    ///
    /// # Errors
    ///
    /// Those of [`Journal::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Journal, Error> {
        let (store, connection) = Store::open(path.as_ref(), self)?;
        let store = Arc::new(store);
        let writer = Writer::start(Arc::clone(&store), connection)?;
        Ok(Journal {
            store,
            writer: Arc::new(writer),
        })
    }
}

impl Journal {
    /// Opens the journal at a path. Makes it where there is none, with its directory, for the user
    /// alone; brings one of an older version up to date.
    ///
    /// # Errors
    ///
    /// [`Error::IsDirectory`], [`Error::NotAFile`], [`Error::Denied`], [`Error::ReadOnly`],
    /// [`Error::Corrupt`], [`Error::Foreign`], [`Error::Newer`], [`Error::Locked`],
    /// [`Error::Full`], [`Error::Io`]: each names the file and the way out.
    pub fn open(path: impl AsRef<Path>) -> Result<Journal, Error> {
        Options::new().open(path)
    }

    /// Where the journal is.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// Why nothing is written any more, after a write has failed.
    pub fn poison(&self) -> Option<Arc<Error>> {
        self.writer.poison()
    }

    /// Reads from one state of the journal.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.store
            .read(|connection| work(connection).map_err(|error| self.store.error(error)))
    }

    /// Queues a write that can fail only as SQLite fails.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Receipt<T> {
        let store = Arc::clone(&self.store);
        self.writer
            .submit(move |connection| work(connection).map_err(|error| store.error(error)))
    }
}

/// The first and the last number of a range.
fn inclusive(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let first = match range.start_bound() {
        Bound::Included(&first) => first,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    match range.end_bound() {
        Bound::Included(&last) => (first, last),
        Bound::Excluded(&0) => (1, 0),
        Bound::Excluded(&end) => (first, end - 1),
        Bound::Unbounded => (first, u64::MAX),
    }
}
