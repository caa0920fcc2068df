//! What a journal keeps about runs.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Hash, RunId};

/// Something that happened in a run. The journal does not look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in the run: 1, 2, 3, …
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What kind of event it is.
    pub kind: String,
    /// The event itself, as JSON text.
    pub body: Vec<u8>,
}

/// How a run is getting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A host acts on it, or died while it did.
    Running,
    /// It waits for a person or an agent.
    Waiting,
    /// It waits for a time.
    Sleeping,
    /// It ended well.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was ended from outside.
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 6] = [
        Status::Running,
        Status::Waiting,
        Status::Sleeping,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
    ];

    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        match self {
            Status::Completed | Status::Failed | Status::Cancelled => true,
            Status::Running | Status::Waiting | Status::Sleeping => false,
        }
    }

    /// Its word, as in the JSON of `flow runs`.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Sleeping => "sleeping",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = NotAStatus;

    fn from_str(text: &str) -> Result<Status, NotAStatus> {
        let found = Status::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| NotAStatus(text.to_owned()))
    }
}

/// The text is not a status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a status; use running, waiting, sleeping, completed, failed or cancelled")]
pub struct NotAStatus(String);

/// What is known of a run without reading its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Its id.
    #[serde(rename = "run_id")]
    pub id: RunId,
    /// The workflow it runs.
    pub workflow: String,
    /// The definition it is pinned to.
    pub definition: Hash,
    /// How it is getting on.
    pub status: Status,
    /// When it started, in milliseconds since 1970.
    pub started_at: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_at: u64,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// When it wants to go on, in milliseconds since 1970.
    pub wake_at: Option<u64>,
    /// What it waits for, in the host's words.
    pub pending: Option<String>,
    /// Why it failed, in the host's words.
    pub error: Option<String>,
    /// Whether it has given a result: see [`Journal::output`](super::Journal::output).
    pub has_output: bool,
}

/// A run that begins.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub(super) workflow: String,
    pub(super) definition: Hash,
    pub(super) started_at: u64,
    pub(super) status: Status,
    pub(super) parent: Option<RunId>,
    pub(super) counts: bool,
}

impl NewRun {
    /// A run of this workflow, pinned to this definition, running from this time on.
    pub fn new(workflow: impl Into<String>, definition: Hash, started_at: u64) -> NewRun {
        NewRun {
            workflow: workflow.into(),
            definition,
            started_at,
            status: Status::Running,
            parent: None,
            counts: true,
        }
    }

    /// It does not count for its workflow until it has really begun: see [`RunUpdate::begun`].
    #[must_use]
    pub fn uncounted(self) -> NewRun {
        NewRun {
            counts: false,
            ..self
        }
    }

    /// The run that starts this one.
    #[must_use]
    pub fn parent(self, parent: RunId) -> NewRun {
        NewRun {
            parent: Some(parent),
            ..self
        }
    }

    /// A status other than running.
    #[must_use]
    pub fn status(self, status: Status) -> NewRun {
        NewRun { status, ..self }
    }
}

/// What changes in the [`RunRecord`] of a run. What is not named stays.
#[derive(Clone, Debug)]
pub struct RunUpdate {
    pub(super) at: u64,
    pub(super) status: Option<Status>,
    pub(super) wake_at: Option<Option<u64>>,
    pub(super) pending: Option<Option<String>>,
    pub(super) error: Option<Option<String>>,
    pub(super) output: Option<Vec<u8>>,
    pub(super) begun: bool,
}

impl RunUpdate {
    /// A change at this time, in milliseconds since 1970.
    pub fn at(at: u64) -> RunUpdate {
        RunUpdate {
            at,
            status: None,
            wake_at: None,
            pending: None,
            error: None,
            output: None,
            begun: false,
        }
    }

    /// The run has begun, and counts for its workflow from now on.
    #[must_use]
    pub fn begun(mut self) -> RunUpdate {
        self.begun = true;
        self
    }

    /// How the run is getting on. A final status ends waiting for a time or a person.
    #[must_use]
    pub fn status(mut self, status: Status) -> RunUpdate {
        self.status = Some(status);
        if status.is_final() {
            self.wake_at = Some(None);
            self.pending = Some(None);
        }
        self
    }

    /// When the run wants to go on: see [`Journal::due`](super::Journal::due).
    #[must_use]
    pub fn wake_at(mut self, at: Option<u64>) -> RunUpdate {
        self.wake_at = Some(at);
        self
    }

    /// What the run waits for.
    #[must_use]
    pub fn pending(mut self, pending: Option<String>) -> RunUpdate {
        self.pending = Some(pending);
        self
    }

    /// Why the run failed.
    #[must_use]
    pub fn error(mut self, error: Option<String>) -> RunUpdate {
        self.error = Some(error);
        self
    }

    /// The result of the run, as JSON text.
    #[must_use]
    pub fn output(mut self, output: impl Into<Vec<u8>>) -> RunUpdate {
        self.output = Some(output.into());
        self
    }
}

/// What is written about a run in one go: entirely or not at all.
///
/// ```
/// use flow_runtime::journal::{Append, Journal, NewRun, RunId, RunUpdate, Status};
///
/// # let dir = tempfile::tempdir()?;
/// let journal = Journal::open(dir.path().join("journal.db"))?;
/// let definition = journal.put_definition(b"name: hello")?;
/// let (run, now) = (RunId::new(1_767_225_600_000, 7), 1_767_225_600_000);
/// let last = journal.append(
///     Append::start(run, NewRun::new("hello", definition, now))
///         .event(now, "started", r#"{"inputs":{}}"#),
/// )?;
/// journal.append(
///     Append::after(run, last)
///         .event(now + 5, "ended", r#"{"output":1}"#)
///         .update(RunUpdate::at(now + 5).status(Status::Completed).output("1")),
/// )?;
/// let loaded = journal.load(run)?;
/// assert_eq!(loaded.run.status, Status::Completed);
/// assert_eq!(loaded.events.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is written before it is given to a journal"]
pub struct Append {
    pub(super) run: RunId,
    /// None for whichever is the last.
    pub(super) after: Option<u64>,
    pub(super) start: Option<NewRun>,
    pub(super) events: Vec<NewEvent>,
    pub(super) update: Option<RunUpdate>,
    pub(super) snapshot: Option<Vec<u8>>,
}

/// An event without its number.
#[derive(Clone, Debug)]
pub(super) struct NewEvent {
    pub(super) at: u64,
    pub(super) kind: Cow<'static, str>,
    pub(super) body: Vec<u8>,
}

impl Append {
    /// The beginning of a run.
    pub fn start(run: RunId, new: NewRun) -> Append {
        Append {
            start: Some(new),
            ..Append::after(run, 0)
        }
    }

    /// What follows the event with this number, which must be the last one.
    pub fn after(run: RunId, last: u64) -> Append {
        Append {
            run,
            after: Some(last),
            start: None,
            events: Vec::new(),
            update: None,
            snapshot: None,
        }
    }

    /// What may follow any event of a run that goes on, such as its end: it follows the last one
    /// that is written by then. A run that is over, or whose start is all there is, is fenced.
    pub fn at_end(run: RunId) -> Append {
        Append {
            after: None,
            ..Append::after(run, 0)
        }
    }

    /// One more event: when, what kind, and its JSON text.
    pub fn event(
        mut self,
        at: u64,
        kind: impl Into<Cow<'static, str>>,
        body: impl Into<Vec<u8>>,
    ) -> Append {
        self.events.push(NewEvent {
            at,
            kind: kind.into(),
            body: body.into(),
        });
        self
    }

    /// What these events change in the record of the run.
    pub fn update(self, update: RunUpdate) -> Append {
        Append {
            update: Some(update),
            ..self
        }
    }

    /// The whole run as it is after these events, in the place of an older snapshot.
    pub fn snapshot(self, body: impl Into<Vec<u8>>) -> Append {
        Append {
            snapshot: Some(body.into()),
            ..self
        }
    }
}

/// The whole run as it was at one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that is part of it.
    pub seq: u64,
    /// The run, in the host's format.
    pub body: Vec<u8>,
}

/// What it takes to go on with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its record.
    pub run: RunRecord,
    /// The newest snapshot.
    pub snapshot: Option<Snapshot>,
    /// The events after the snapshot; all of them where there is none.
    pub events: Vec<Event>,
}

impl Loaded {
    /// The number of the last event: what the next [`Append`] goes after.
    pub fn last(&self) -> u64 {
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
        self.events.last().map_or(snapshot, |event| event.seq)
    }
}
