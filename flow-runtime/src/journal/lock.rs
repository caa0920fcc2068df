//! Who acts on a run.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::store::{private_dir, private_file};
use super::{Error, Journal, RunId};

/// The right to act on a run. It ends when this is dropped or the process dies, however it dies.
#[derive(Debug)]
#[must_use = "the run is free again as soon as this is dropped"]
pub struct RunLock {
    run: RunId,
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Takes the right to act on a run, of which there is one among all processes. The run need
    /// not exist yet.
    ///
    /// # Errors
    ///
    /// [`Error::Held`] at once when someone has it; those of writing to the directory `locks`
    /// beside the journal.
    pub fn lock(&self, run: RunId) -> Result<RunLock, Error> {
        private_dir(&self.lock_dir())?;
        RunLock::acquire(&self.lock_file(run), run)
    }

    /// Whether somebody acts on a run now. A run that is marked as running and that nobody acts on
    /// has lost its host.
    pub fn is_held(&self, run: RunId) -> bool {
        // A host takes its file with it, so a file is there only while it lives or after it died.
        match File::open(self.lock_file(run)) {
            Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
            Err(_) => false,
        }
    }

    fn lock_dir(&self) -> PathBuf {
        self.store.path().with_file_name("locks")
    }

    /// Where the lock of a run is.
    pub(super) fn lock_file(&self, run: RunId) -> PathBuf {
        self.lock_dir().join(run.to_string())
    }
}

impl RunLock {
    fn acquire(path: &Path, run: RunId) -> Result<RunLock, Error> {
        let raise = |error| Error::io(path, error);
        loop {
            let mut file = private_file(path).map_err(raise)?;
            match file.try_lock() {
                Ok(()) => (),
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    // The holder writes its number after it has the lock: it may not be there yet.
                    let _ = file.read_to_string(&mut text);
                    let pid = text.trim().parse().ok();
                    return Err(Error::Held { run, pid });
                }
                Err(TryLockError::Error(error)) => return Err(raise(error)),
            }
            // The holder before may have deleted the file after it was opened here; a lock on it
            // would then keep nobody out.
            if !is_at(&file, path) {
                continue;
            }
            file.set_len(0).map_err(raise)?;
            file.rewind().map_err(raise)?;
            writeln!(file, "{}", std::process::id()).map_err(raise)?;
            return Ok(RunLock {
                run,
                path: path.to_owned(),
                file,
            });
        }
    }

    /// The run this is about.
    pub fn run(&self) -> RunId {
        self.run
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(found)) = (file.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (found.dev(), found.ino())
}

impl Drop for RunLock {
    /// Deletes the file while it is still locked, so that waiting runs leave none behind.
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            // A file that stays is harmless: it is locked again by whoever needs it.
            let _ = fs::remove_file(&self.path);
        }
    }
}
