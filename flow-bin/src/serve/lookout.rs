//! Whether files have changed since they were read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::notices::Notices;

/// Directories are searched this deep, as the library does.
const DEEPEST: usize = 16;

/// Everything in some directories that could be, or hold, a definition, as it was at some time.
#[derive(Debug)]
pub(super) struct Lookout {
    /// By path.
    sights: Vec<Sight>,
    notices: Notices,
}

/// One file or directory, or that there is none.
#[derive(Debug)]
struct Sight {
    path: PathBuf,
    stamp: Option<Stamp>,
    /// Whether its changes are told of; else it has to be looked at.
    is_told: bool,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    created: Option<SystemTime>,
    /// Seconds and nanoseconds; unlike the time of the content, nobody can set it.
    changed: (i64, i64),
    length: u64,
    /// A file that was replaced by another of the same age and length.
    file: (u64, u64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp {
            created: metadata.created().or_else(|_| metadata.modified()).ok(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            length: metadata.len(),
            file: (metadata.dev(), metadata.ino()),
        })
    }
}

impl Sight {
    fn holds(&self) -> bool {
        Stamp::of(&self.path) == self.stamp
    }
}

impl Lookout {
    /// Looks at directories. What changes from now on does not hold any more, also when it changes
    /// before this returns.
    pub(super) fn over<'d>(directories: impl Iterator<Item = &'d Path>) -> Self {
        let mut walk = Walk {
            notices: Notices::new(),
            sights: Vec::new(),
        };
        for directory in directories {
            // One that is moved with what is around it is told of by nobody.
            walk.directory(directory.to_owned(), false, 0);
        }
        let mut sights = walk.sights;
        sights.sort_by(|a, b| a.path.cmp(&b.path));
        Lookout {
            sights,
            notices: walk.notices,
        }
    }

    /// Whether nothing has changed.
    pub(super) fn holds(&self) -> bool {
        let looked_at = self.sights.iter().filter(|sight| !sight.is_told);
        !self.notices.came() && looked_at.into_iter().all(Sight::holds)
    }

    /// The same from a look at everything: a file that a program changes in its own memory is not
    /// told of.
    pub(super) fn holds_throughout(&self) -> bool {
        !self.notices.came() && self.sights.iter().all(Sight::holds)
    }

    /// When a file was made, in milliseconds since 1970.
    pub(super) fn created(&self, path: &Path) -> Option<u64> {
        let found = self
            .sights
            .binary_search_by(|it| it.path.as_path().cmp(path));
        let stamp = self.sights.get(found.ok()?)?.stamp?;
        let since = stamp.created?.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    }
}

struct Walk {
    notices: Notices,
    sights: Vec<Sight>,
}

impl Walk {
    fn sight(&mut self, path: PathBuf, is_told: bool) {
        self.sights.push(Sight {
            stamp: Stamp::of(&path),
            path,
            is_told,
        });
    }

    fn directory(&mut self, directory: PathBuf, is_told: bool, depth: usize) {
        // Before it is looked at, so that nothing falls between.
        let tells = self.notices.watch(&directory);
        self.sight(directory.clone(), is_told);
        if depth > DEEPEST {
            return;
        }
        let Ok(entries) = fs::read_dir(&directory) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let path = entry.path();
            // What a link leads to is elsewhere.
            let is_told = tells && entry.file_type().is_ok_and(|kind| !kind.is_symlink());
            if path.is_dir() {
                self.directory(path, is_told, depth + 1);
            } else {
                self.sight(path, is_told);
            }
        }
    }
}
