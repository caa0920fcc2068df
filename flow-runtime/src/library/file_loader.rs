//! Imports between files, and the workflows that a file's definition calls.

use std::cell::RefCell;
use std::fs;
use std::path::{Component, Path, PathBuf};

use flow_model::loader::{Loader, Lookup};
use flow_model::source::Source;
use flow_model::suggest::nearest;
use flow_model::{Compiled, compile};

use super::{EXTENSIONS, Error, Library, project, read};

/// Brings what one definition imports and calls.
///
/// An import is a path relative to the file it stands in. It may go up with `..`, but not out of
/// the project of the definition: the nearest directory above it with `.flow`, `flow.toml` or
/// `.git`, or the current directory when that is above the definition, whichever is wider; where
/// there is none of these, the definition's own directory. Links are followed first.
///
/// A called workflow is looked for in the library and then in the definition's own directory.
#[derive(Debug)]
pub struct FileLoader<'l> {
    library: &'l Library,
    /// Where the definition stands, with every link followed.
    directory: PathBuf,
    /// What imports may not leave, with every link followed.
    boundary: PathBuf,
    /// What findings call a file, and its path with every link followed: one file has one name,
    /// so that a circle of imports is seen.
    opened: RefCell<Vec<(String, PathBuf)>>,
}

impl<'l> FileLoader<'l> {
    /// For the definition in a file.
    #[must_use]
    pub fn for_file(library: &'l Library, path: &Path) -> Self {
        let real = real(path);
        let loader = Self::for_directory(library, real.parent().unwrap_or(Path::new("/")));
        let name = path.to_string_lossy().into_owned();
        loader.opened.borrow_mut().push((name, real));
        loader
    }

    /// For a definition that came without a file, as if it stood in a directory.
    #[must_use]
    pub fn for_directory(library: &'l Library, directory: &Path) -> Self {
        let directory = real(directory);
        let above = |outer: &Path| directory.starts_with(outer);
        let is_project = |outer: &&Path| project::is_root(outer) || outer.join(".git").exists();
        let project = directory.ancestors().find(is_project);
        let current = std::env::current_dir().map(|current| real(&current));
        let current = current.ok().filter(|current| above(current));
        let candidates = [project.map(Path::to_owned), current];
        // All of them are above the directory, so the shortest is the widest.
        let widest = candidates
            .into_iter()
            .flatten()
            .min_by_key(|path| path.components().count());
        FileLoader {
            library,
            boundary: widest.unwrap_or_else(|| directory.clone()),
            directory,
            opened: RefCell::default(),
        }
    }

    /// Reads, checks and lowers the definition in a file; `title` is its name if it says none.
    pub(crate) fn compile_as(&self, path: &Path, title: Option<&str>) -> Result<Compiled, Error> {
        let bytes = read(path)?;
        Ok(match bytes.into_source(&path.to_string_lossy()) {
            Ok(source) => {
                let source = match title {
                    Some(title) => source.titled(title),
                    None => source,
                };
                compile(source, self)
            }
            Err(refused) => Compiled::refused(refused.0, refused.1),
        })
    }

    /// What findings call a file that `from` imports as `path`.
    fn name(&self, from: &str, path: &str, file: &Path) -> String {
        let mut opened = self.opened.borrow_mut();
        if let Some((name, _)) = opened.iter().find(|(_, known)| known == file) {
            return name.clone();
        }
        let beside = Path::new(from).parent().unwrap_or(Path::new(""));
        let short = tidy(&beside.join(path));
        let name = if real(&short) == file { &short } else { file };
        let name = name.to_string_lossy().into_owned();
        opened.push((name.clone(), file.to_owned()));
        name
    }

    fn outside(&self) -> String {
        format!("it is outside `{}`", self.boundary.display())
    }
}

impl Loader for FileLoader<'_> {
    fn import(&self, from: &str, path: &str) -> Result<Source, String> {
        if path.contains("://") {
            return Err("only files can be imported".to_owned());
        }
        if Path::new(path).is_absolute() {
            return Err("its path is not relative to this file".to_owned());
        }
        let directory = {
            let opened = self.opened.borrow();
            let file = opened.iter().find(|(name, _)| name == from);
            let directory = file.and_then(|(_, file)| file.parent());
            directory.unwrap_or(&self.directory).to_owned()
        };
        let asked = tidy(&directory.join(path));
        if !asked.starts_with(&self.boundary) {
            return Err(self.outside());
        }
        let Ok(file) = fs::canonicalize(directory.join(path)) else {
            return Err(missing(&asked));
        };
        if !file.starts_with(&self.boundary) {
            return Err(self.outside());
        }
        let bytes = read(&file).map_err(|error| match error {
            Error::Directory { .. } => "it is a directory".to_owned(),
            Error::NotAFile { .. } => "it is not a regular file".to_owned(),
            Error::Unreadable { cause, .. } => cause.to_string(),
            Error::Missing { .. } | Error::Outside { .. } | Error::Settings { .. } => {
                missing(&asked)
            }
        })?;
        let name = self.name(from, path, &file);
        bytes
            .into_source(&name)
            .map_err(|refused| refused.1.message.clone())
    }

    fn workflow(&self, name: &str) -> Lookup {
        self.library.lookup(name, Some(&self.directory))
    }
}

/// That a file does not exist, with the one that was probably meant.
fn missing(path: &Path) -> String {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = fs::read_dir(path.parent().unwrap_or(path));
    let mut names: Vec<String> = beside
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| {
            let extension = Path::new(name).extension().unwrap_or_default();
            EXTENSIONS.iter().any(|known| extension == *known)
        })
        .collect();
    names.sort();
    match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(near) => format!("there is no such file; did you mean `{near}`?"),
        None => "there is no such file".to_owned(),
    }
}

/// The path with every link followed; made absolute where nothing of that name exists.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

/// The path without `.`, and without `..` where something stands before it.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        let last = tidy.components().next_back();
        match (component, last) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                tidy.pop();
            }
            _ => tidy.push(component),
        }
    }
    tidy
}
