//! Definitions in files, and what they import.

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};

use flow_model::loader::{Loader, Lookup};
use flow_model::source::Source;

/// What a definition's file may be called.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Finds imports and called workflows in the file system, and remembers what it read.
///
/// Sources are named by their path relative to a base directory, with `/` between the parts, on
/// every system.
#[derive(Debug)]
pub struct Files {
    base: PathBuf,
    read: RefCell<Vec<PathBuf>>,
}

impl Files {
    /// Files whose names are relative to a directory.
    #[must_use]
    pub fn new(base: impl Into<PathBuf>) -> Self {
        Files {
            base: base.into(),
            read: RefCell::new(Vec::new()),
        }
    }

    /// The files read so far.
    #[must_use]
    pub fn read_so_far(&self) -> Vec<PathBuf> {
        self.read.borrow().clone()
    }

    /// Reads a file by its name.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in a few words.
    pub fn open(&self, name: &str) -> Result<Source, String> {
        let path = self.base.join(name);
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        })?;
        let mut read = self.read.borrow_mut();
        if !read.contains(&path) {
            read.push(path);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(error) => Err(format!(
                "byte {} is not UTF-8",
                error.utf8_error().valid_up_to()
            )),
        }
    }

    /// The name of a file.
    #[must_use]
    pub fn name_of(&self, path: &Path) -> String {
        slashed(path.strip_prefix(&self.base).unwrap_or(path))
    }
}

impl Loader for Files {
    fn import(&self, from: &str, path: &str) -> Result<Source, String> {
        let directory = Path::new(from).parent().unwrap_or(Path::new(""));
        self.open(&slashed(&directory.join(path)))
    }

    /// A workflow beside the definition, in a file of its name. Others may still be found when it
    /// runs.
    fn workflow(&self, name: &str) -> Lookup {
        let first = self.read.borrow().first().cloned();
        let directory = first.as_deref().and_then(Path::parent);
        let Some(directory) = directory.filter(|_| !name.contains(['/', '\\'])) else {
            return Lookup::Unknown;
        };
        let found = EXTENSIONS
            .iter()
            .map(|extension| directory.join(format!("{name}.{extension}")))
            .find(|path| path.is_file());
        match found.map(|path| self.open(&self.name_of(&path))) {
            Some(Ok(source)) => Lookup::Found(Box::new(source)),
            Some(Err(_)) | None => Lookup::Unknown,
        }
    }
}

/// Whether a file holds a definition that stands for itself. One whose name starts with `_` is
/// only there to be imported.
#[cfg(feature = "format")]
pub(crate) fn is_definition(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let extension = path.extension().and_then(|extension| extension.to_str());
    name.is_some_and(|name| !name.starts_with(['_', '.']))
        && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// A path with `/` and without `.` and `..` where that can be done by its text.
pub(crate) fn slashed(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if parts
                    .last()
                    .is_some_and(|last| last != ".." && !last.is_empty()) =>
            {
                parts.pop();
            }
            Component::RootDir => parts.push(String::new()),
            other => parts.push(other.as_os_str().to_string_lossy().into_owned()),
        }
    }
    match parts.as_slice() {
        [root] if root.is_empty() => "/".to_owned(),
        _ => parts.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tidy() {
        for (path, name) in [
            ("a/b.yaml", "a/b.yaml"),
            ("./a/./b.yaml", "a/b.yaml"),
            ("a/../b.yaml", "b.yaml"),
            ("../b.yaml", "../b.yaml"),
            ("/a/../b.yaml", "/b.yaml"),
            ("/../b.yaml", "/../b.yaml"),
        ] {
            assert_eq!(slashed(Path::new(path)), name);
        }
    }
}
