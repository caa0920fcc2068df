//! The workflows as they stand on disk now, read again only when a file has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use flow_model::suggest::nearest_or_part;
use flow_runtime::library::{Catalogue, Entry, Library, Workflow};

/// Directories are searched this deep, as the library does.
const DEEPEST: usize = 16;

/// A library that remembers what it has read.
pub(crate) struct Shelves {
    library: Library,
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
            read: Mutex::default(),
        }
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    /// Every workflow, and whether it was read again just now because names came or went.
    pub(crate) fn look(&self) -> (Arc<Catalogue>, bool) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref()
            && read.stamps.iter().all(|(path, it)| Stamp::of(path) == *it)
        {
            return (Arc::clone(&read.catalogue), false);
        }
        // Stamps come first: what changes while it is read is read again next time.
        let stamps = self.stamps();
        let catalogue = Arc::new(self.library.catalogue());
        let names = |catalogue: &Catalogue| -> Vec<String> {
            let workflows = catalogue.workflows.iter();
            workflows.map(|it| it.entry.name.clone()).collect()
        };
        let is_new = match read.as_ref() {
            Some(before) => names(&before.catalogue) != names(&catalogue),
            None => false,
        };
        *read = Some(Read {
            stamps,
            catalogue: Arc::clone(&catalogue),
        });
        (catalogue, is_new)
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
        let (catalogue, _) = self.look();
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

/// When a workflow's file was made, in milliseconds since 1970.
pub(crate) fn created(workflow: &Workflow) -> Option<u64> {
    let metadata = fs::metadata(workflow.entry.file()?).ok()?;
    let made = metadata.created().or_else(|_| metadata.modified()).ok()?;
    let since = made.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
