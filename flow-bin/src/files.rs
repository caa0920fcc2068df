//! Which files of a directory hold definitions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flow_runtime::library::{self, EXTENSIONS, Library, Role};

/// Directories that hold other people's files.
const FOREIGN: [&str; 2] = ["node_modules", "target"];

/// The definitions below a directory, sorted, and the directories that could not be read.
pub(crate) fn definitions(directory: &Path, library: &Library) -> Found {
    let real = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let on_shelf = library
        .directories()
        .any(|(_, shelf)| fs::canonicalize(shelf).is_ok_and(|shelf| real.starts_with(shelf)));
    let own = on_shelf || stands_for_workflows(&real);
    let mut found = Found::default();
    found.walk(directory, own);
    found
}

/// What a walk has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) failed: Vec<library::Error>,
}

impl Found {
    /// `own` says that everything here is meant to be a definition.
    fn walk(&mut self, directory: &Path, own: bool) {
        let mut entries = match entries(directory) {
            Ok(entries) => entries,
            Err(cause) => {
                let path = directory.to_owned();
                self.failed.push(library::Error::Unreadable { path, cause });
                return;
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                let hidden = name.starts_with('.') && name != ".flow";
                if !hidden && !FOREIGN.contains(&name.as_ref()) {
                    self.walk(&path, own || stands_for_workflows(&path));
                }
            } else if !name.starts_with('.') && has_ending(&path) && path.is_file() {
                self.file(path, own);
            }
        }
    }

    fn file(&mut self, path: PathBuf, own: bool) {
        match library::read(&path).map(|bytes| Role::of(&bytes.lossy())) {
            Ok(Role::Workflow) => self.files.push(path),
            Ok(Role::Other) if own => self.files.push(path),
            Ok(Role::Other | Role::Part) => {}
            Err(_) if !own => {}
            Err(error) => self.failed.push(error),
        }
    }
}

fn entries(directory: &Path) -> io::Result<Vec<fs::DirEntry>> {
    fs::read_dir(directory)?.collect()
}

fn has_ending(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    EXTENSIONS.iter().any(|known| extension == *known)
}

/// Whether a directory is called `workflows`, and is not another program's, as in `.github`.
fn stands_for_workflows(directory: &Path) -> bool {
    let parent = directory.parent().and_then(Path::file_name);
    let parent = parent.unwrap_or_default().to_string_lossy();
    directory
        .file_name()
        .is_some_and(|name| name == "workflows")
        && (!parent.starts_with('.') || parent == ".flow")
}
