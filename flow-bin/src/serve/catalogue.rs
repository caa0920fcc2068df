//! The workflows as they stand on disk now, read again only when a file has changed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flow_runtime::library::{Catalogue, Entry, Library};
use tokio::sync::broadcast;
use tokio::time::MissedTickBehavior;

use super::library::Lists;
use super::lookout::Lookout;
use crate::target;

/// How often directories are looked at while somebody wants to be told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Changes that a slow connection may lag behind; it is told once that something changed.
const CHANGES_KEPT: usize = 16;

/// That workflows appeared or are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed;

/// A library that remembers what it has read.
pub(crate) struct Shelves {
    library: Library,
    changes: broadcast::Sender<Changed>,
    read: Mutex<Option<Read>>,
}

struct Read {
    /// Everything whose change makes reading again necessary.
    lookout: Lookout,
    reading: Arc<Reading>,
}

/// The workflows as they were read.
pub(crate) struct Reading {
    pub(crate) catalogue: Catalogue,
    /// When the file of each was made, in milliseconds since 1970.
    pub(crate) created: Vec<Option<u64>>,
    /// The lists that were made of them.
    pub(crate) lists: Lists,
}

impl Reading {
    fn new(library: &Library, lookout: &Lookout) -> Self {
        let catalogue = library.catalogue();
        let files = catalogue.workflows.iter().map(|it| it.entry.file());
        let created = files.map(|file| lookout.created(file?)).collect();
        Reading {
            catalogue,
            created,
            lists: Lists::default(),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let workflows = self.catalogue.workflows.iter();
        workflows.map(|it| it.entry.name.as_str())
    }
}

impl Shelves {
    pub(crate) fn new(library: Library) -> Self {
        Shelves {
            library,
            changes: broadcast::Sender::new(CHANGES_KEPT),
            read: Mutex::default(),
        }
    }

    /// Tells from now on when workflows appear or go.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Changed> {
        let changes = self.changes.subscribe();
        // What there is now is what changes from now on are told from.
        self.reading();
        changes
    }

    /// Looks now and then whether workflows came or went, for those who wait to be told.
    pub(crate) async fn look_out(&self) {
        let mut often = tokio::time::interval(LOOK_EVERY);
        often.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            often.tick().await;
            if self.changes.receiver_count() > 0 {
                self.read(Lookout::holds_throughout);
            }
        }
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    /// Every workflow as it stands on disk now. Whoever waits for changes is told of them.
    pub(crate) fn reading(&self) -> Arc<Reading> {
        self.read(Lookout::holds)
    }

    fn read(&self, holds: impl Fn(&Lookout) -> bool) -> Arc<Reading> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref()
            && holds(&read.lookout)
        {
            return Arc::clone(&read.reading);
        }
        // Looking comes first: what changes while it is read is read again next time.
        let lookout = Lookout::over(self.library.directories().map(|(_, directory)| directory));
        let reading = Arc::new(Reading::new(&self.library, &lookout));
        if let Some(before) = read.as_ref()
            && !before.reading.names().eq(reading.names())
        {
            // Nobody may be there to be told.
            let _ = self.changes.send(Changed);
        }
        *read = Some(Read {
            lookout,
            reading: Arc::clone(&reading),
        });
        reading
    }

    /// The names of every workflow.
    pub(crate) fn names(&self) -> Vec<String> {
        self.reading().names().map(str::to_owned).collect()
    }

    /// That there is no workflow of a name, with the one that was probably meant and all there are.
    pub(crate) fn no_such(&self, name: &str) -> String {
        target::no_workflow(name, &self.names())
    }
}

/// Where a workflow was found, as text: its file, or `builtin:NAME`.
pub(crate) fn found_at(entry: &Entry) -> String {
    match entry.file() {
        Some(path) => path.display().to_string(),
        None => format!("builtin:{}", entry.name),
    }
}
