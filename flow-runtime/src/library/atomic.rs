//! Files that are there whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Error;

/// What a file is called until it is complete. Hidden, so that it is no workflow.
const PREFIX: &str = ".flow-";
const SUFFIX: &str = ".tmp";

/// A directory that nobody else changes while this is held, here or in another process.
///
/// The lock is the system's and on the directory itself: it ends with its holder, however that
/// ends, and leaves no file behind.
#[derive(Debug)]
pub(super) struct Held {
    directory: PathBuf,
    handle: File,
}

impl Held {
    /// Waits for the directory, making it where needed for the user alone. With every link
    /// followed it must be inside `root`.
    pub(super) fn directory(directory: &Path, root: &Path) -> Result<Self, Error> {
        let failed = |cause| Error::from_system(directory, cause);
        // Looked at before anything is made: a link must not get directories made elsewhere.
        let mut nearest = directory;
        while fs::symlink_metadata(nearest).is_err() {
            nearest = nearest.parent().unwrap_or(Path::new("/"));
        }
        inside(nearest, root)?;
        let mut maker = DirBuilder::new();
        maker.recursive(true).mode(0o700);
        maker.create(directory).map_err(failed)?;
        let handle = File::open(directory).map_err(failed)?;
        handle.lock().map_err(failed)?;
        let held = Held {
            directory: directory.to_owned(),
            handle,
        };
        held.sweep();
        Ok(held)
    }

    /// Removes what writers left that died: whoever holds the directory is the only writer.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Puts a text at a path, in the place of what is there. Whoever looks sees the old text or the
    /// new one, also after a crash. A new file is the user's alone; an old one keeps its permissions.
    pub(super) fn put(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut random = [0; 8];
        let _ = getrandom::fill(&mut random);
        let random = u64::from_le_bytes(random);
        // Beside the file: a rename does not lead from one file system to another.
        let beside = path.parent().unwrap_or(&self.directory);
        let temporary = beside.join(format!("{PREFIX}{random:016x}{SUFFIX}"));
        let written = self.write(&temporary, path, text);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn write(&self, temporary: &Path, path: &Path, text: &str) -> io::Result<()> {
        let mut maker = OpenOptions::new();
        let mut file = maker
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(temporary)?;
        file.write_all(text.as_bytes())?;
        if let Ok(old) = fs::symlink_metadata(path)
            && old.is_file()
        {
            let mode: Permissions = old.permissions();
            file.set_permissions(mode)?;
        }
        file.sync_all()?;
        fs::rename(temporary, path)?;
        self.settle(path)
    }

    /// Removes a file for good.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)?;
        self.settle(path)
    }

    /// Makes what happened to a name survive a loss of power.
    fn settle(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if parent != self.directory => File::open(parent)?.sync_all(),
            _ => self.handle.sync_all(),
        }
    }
}

/// That a path, with every link followed, stays inside a directory.
fn inside(path: &Path, root: &Path) -> Result<(), Error> {
    let real =
        |path: &Path| fs::canonicalize(path).map_err(|cause| Error::from_system(path, cause));
    // A root that is yet to be made has nothing in it that could lead out.
    if root.starts_with(path) || real(path)?.starts_with(real(root)?) {
        return Ok(());
    }
    Err(Error::Outside {
        path: path.to_owned(),
        boundary: root.to_owned(),
    })
}
