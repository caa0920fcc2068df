//! One directory with workflows: what a name leads to, and which names there are.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{EXTENSIONS, Entry, Error, Location, Place, Refused, is_name};
use flow_model::grammar::Pattern;

/// Directories are searched this deep.
const DEEPEST: usize = 16;

/// A directory with workflows.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    pub(crate) place: Place,
    pub(crate) directory: PathBuf,
    /// What links may not leave; `None` when they may lead anywhere.
    pub(crate) boundary: Option<PathBuf>,
}

impl Shelf {
    /// The file that a name leads to. The name has been checked.
    pub(crate) fn get(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        for stem in [name.to_owned(), name.replace(':', "/")] {
            for extension in EXTENSIONS {
                let path = self.directory.join(format!("{stem}.{extension}"));
                if path.is_file() {
                    self.allow(&path)?;
                    return Ok(Some(path));
                }
            }
            if !name.contains(':') {
                break;
            }
        }
        Ok(None)
    }

    /// Whether a path, with every link followed, stays where it may be.
    fn allow(&self, path: &Path) -> Result<(), Error> {
        let Some(boundary) = &self.boundary else {
            return Ok(());
        };
        let real = fs::canonicalize(path).map_err(|cause| Error::from_system(path, cause))?;
        let inside = |outer: &Path| fs::canonicalize(outer).is_ok_and(|it| real.starts_with(it));
        // A directory that `flow.toml` lists may itself be elsewhere.
        if inside(boundary) || inside(&self.directory) {
            return Ok(());
        }
        Err(Error::Outside {
            path: path.to_owned(),
            boundary: boundary.clone(),
        })
    }

    /// Adds every workflow of the directory, in the order in which names are tried.
    pub(crate) fn list(&self, found: &mut Vec<Entry>, refused: &mut Vec<Refused>) {
        let mut walk = Walk {
            shelf: self,
            found: Vec::new(),
            refused,
            seen: HashSet::new(),
        };
        walk.directory(&self.directory, "", 0);
        let mut names = walk.found;
        names.sort();
        found.extend(names.into_iter().map(|candidate| Entry {
            name: candidate.name,
            place: self.place,
            location: Location::File(candidate.path),
        }));
    }
}

/// A file that a name leads to; candidates of one name sort as they are tried.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    name: String,
    nested: bool,
    extension: usize,
    path: PathBuf,
}

struct Walk<'s> {
    shelf: &'s Shelf,
    found: Vec<Candidate>,
    refused: &'s mut Vec<Refused>,
    seen: HashSet<PathBuf>,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &Path, prefix: &str, depth: usize) {
        // A link back up would be walked for ever.
        let new = fs::canonicalize(directory).is_ok_and(|real| self.seen.insert(real));
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        if !new || depth > DEEPEST {
            return;
        }
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                let part = !name.contains(':') && Pattern::Workflow.accepts(&name);
                if part && self.allowed(&path, &format!("{prefix}{name}")) {
                    self.directory(&path, &format!("{prefix}{name}:"), depth + 1);
                }
            } else {
                self.file(&path, prefix);
            }
        }
    }

    fn file(&mut self, path: &Path, prefix: &str) {
        let extension = path.extension().unwrap_or_default();
        let Some(extension) = EXTENSIONS.iter().position(|known| extension == *known) else {
            return;
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{stem}");
        if !is_name(&name) {
            let looks = Pattern::Workflow.words();
            self.refuse(path, name, format!("a workflow's name has {looks}"));
        } else if !prefix.is_empty() && stem.contains(':') {
            let reason = "a name is spelt with directories or with `:`, not with both".to_owned();
            self.refuse(path, name, reason);
        } else if self.allowed(path, &name) {
            self.found.push(Candidate {
                name,
                nested: !prefix.is_empty(),
                extension,
                path: path.to_owned(),
            });
        }
    }

    fn allowed(&mut self, path: &Path, name: &str) -> bool {
        match self.shelf.allow(path) {
            Ok(()) => true,
            Err(error) => {
                self.refuse(path, name.to_owned(), error.to_string());
                false
            }
        }
    }

    fn refuse(&mut self, path: &Path, name: String, reason: String) {
        self.refused.push(Refused {
            name,
            place: self.shelf.place,
            path: path.to_owned(),
            reason,
        });
    }
}
