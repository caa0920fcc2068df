//! The workflows as they stand on disk now, read again only when a file has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flow_model::suggest::nearest_or_part;
use flow_runtime::library::{Catalogue, Entry, Library};
use tokio::sync::broadcast;
use tokio::time::MissedTickBehavior;

/// Directories are searched this deep, as the library does.
const DEEPEST: usize = 16;

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
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    catalogue: Arc<Catalogue>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    /// A file that was replaced by another of the same age and length.
    file: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            file: metadata.ino(),
        })
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
        self.changes.subscribe()
    }

    /// Looks now and then whether workflows came or went, for those who wait to be told.
    pub(crate) async fn look_out(&self) {
        let mut often = tokio::time::interval(LOOK_EVERY);
        often.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            often.tick().await;
            if self.changes.receiver_count() > 0 {
                self.catalogue();
            }
        }
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    /// Every workflow as it stands on disk now. Whoever waits for changes is told of them.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref()
            && read.stamps.iter().all(|(path, it)| Stamp::of(path) == *it)
        {
            return Arc::clone(&read.catalogue);
        }
        // Stamps come first: what changes while it is read is read again next time.
        let stamps = self.stamps();
        let catalogue = Arc::new(self.library.catalogue());
        let names = |catalogue: &Catalogue| -> Vec<String> {
            let workflows = catalogue.workflows.iter();
            workflows.map(|it| it.entry.name.clone()).collect()
        };
        if let Some(before) = read.as_ref()
            && names(&before.catalogue) != names(&catalogue)
        {
            // Nobody may be there to be told.
            let _ = self.changes.send(Changed);
        }
        *read = Some(Read {
            stamps,
            catalogue: Arc::clone(&catalogue),
        });
        catalogue
    }

    fn stamps(&self) -> Vec<(PathBuf, Option<Stamp>)> {
        let mut paths = Vec::new();
        for (_, directory) in self.library.directories() {
            walk(directory, 0, &mut paths);
        }
        let stamped = paths.into_iter().map(|path| {
            let stamp = Stamp::of(&path);
            (path, stamp)
        });
        stamped.collect()
    }

    /// The names of every workflow.
    pub(crate) fn names(&self) -> Vec<String> {
        let catalogue = self.catalogue();
        let workflows = catalogue.workflows.iter();
        workflows.map(|it| it.entry.name.clone()).collect()
    }

    /// That there is no workflow of a name, with the one that was probably meant and all there are.
    pub(crate) fn no_such(&self, name: &str) -> String {
        let names = self.names();
        let near = nearest_or_part(name, names.iter().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        let known = if names.is_empty() {
            "there are none yet; create_workflow stores one".to_owned()
        } else {
            format!("available workflows: {}", names.join(", "))
        };
        format!("there is no workflow `{name}`: {help}{known}")
    }
}

/// A directory with everything in it that could be, or hold, a definition.
fn walk(directory: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
    paths.push(directory.to_owned());
    if depth > DEEPEST {
        return;
    }
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            walk(&path, depth + 1, paths);
        } else {
            paths.push(path);
        }
    }
}

/// Where a workflow was found, as text: its file, or `builtin:NAME`.
pub(crate) fn found_at(entry: &Entry) -> String {
    match entry.file() {
        Some(path) => path.display().to_string(),
        None => format!("builtin:{}", entry.name),
    }
}

/// When a file was made, in milliseconds since 1970.
pub(crate) fn created(path: &Path) -> Option<u64> {
    let metadata = fs::metadata(path).ok()?;
    let made = metadata.created().or_else(|_| metadata.modified()).ok()?;
    let since = made.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
