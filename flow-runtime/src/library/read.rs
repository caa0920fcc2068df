//! Reading a file no further than a definition may reach.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use flow_model::diagnostic::Diagnostic;
use flow_model::source::{MAX_BYTES, Source};

use super::Error;

/// What was read: all of it, or one byte more than a definition may have.
#[derive(Clone, Debug)]
pub struct Bytes(Vec<u8>);

impl Bytes {
    /// Reads until the end, or until there is more than a definition may have.
    ///
    /// # Errors
    ///
    /// What the reader says.
    pub fn take(reader: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_BYTES + 1).unwrap_or(u64::MAX);
        reader.take(limit).read_to_end(&mut bytes)?;
        Ok(Bytes(bytes))
    }

    /// The text, as far as it can be read.
    #[must_use]
    pub fn lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The bytes as a source.
    ///
    /// # Errors
    ///
    /// The finding that they are not UTF-8, with what can be read of them.
    pub fn into_source(self, name: &str) -> Result<Source, Box<(Source, Diagnostic)>> {
        if self.0.len() > MAX_BYTES {
            // Too long is the finding, even where the cut goes through a character.
            return Ok(Source::new(name, self.lossy()));
        }
        Source::from_bytes(name, &self.0)
    }
}

/// Reads a file, but never a pipe or a device, and never much more than a definition may have.
///
/// # Errors
///
/// Why it cannot be read.
pub fn read(path: &Path) -> Result<Bytes, Error> {
    let failed = |cause| Error::from_system(path, cause);
    let kind = fs::metadata(path).map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(Error::Directory {
            path: path.to_owned(),
        });
    }
    if !kind.is_file() {
        return Err(Error::NotAFile {
            path: path.to_owned(),
        });
    }
    let file = File::open(path).map_err(failed)?;
    Bytes::take(file).map_err(failed)
}
