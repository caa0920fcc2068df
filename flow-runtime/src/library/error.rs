//! Why a definition or the project's settings cannot be read.

use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing of this name.
    #[error("there is no file `{}`", path.display())]
    Missing {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// It is a directory.
    #[error("`{}` is a directory, not a definition", path.display())]
    Directory {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// It is a pipe, a socket or a device, and reading one may never end.
    #[error("`{}` is not a regular file; pass its content through standard input instead", path.display())]
    NotAFile {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// It is a link that leads to a place it may not lead to.
    #[error("`{}` is a link that leads out of `{}`", path.display(), boundary.display())]
    Outside {
        /// The link.
        path: PathBuf,
        /// What it may not leave.
        boundary: PathBuf,
    },
    /// The system refuses.
    #[error("`{}` cannot be read: {cause}", path.display())]
    Unreadable {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The project's settings are not what they should be.
    #[error("{}: {reason}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, with the line.
        reason: String,
    },
}

impl Error {
    /// The same from what the system said about a path.
    pub(crate) fn from_system(path: &Path, cause: io::Error) -> Self {
        let path = path.to_owned();
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::Missing { path },
            _ => Error::Unreadable { path, cause },
        }
    }
}
