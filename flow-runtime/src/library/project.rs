//! The project around a directory, and what its `flow.toml` says.

use std::env;
use std::path::{Path, PathBuf};

use flow_model::suggest;

use super::{Error, read};

/// The file with a project's settings.
const SETTINGS: &str = "flow.toml";
/// The one key of the settings.
const WORKFLOWS: &str = "workflows";
/// The directory that makes a directory a project.
const MARK: &str = ".flow";

/// A directory with `.flow/` or `flow.toml` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    directories: Vec<PathBuf>,
    unknown: Vec<String>,
}

impl Project {
    /// The nearest project at or above a directory.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] when its `flow.toml` cannot be read.
    pub fn around(directory: &Path) -> Result<Option<Self>, Error> {
        for root in directory.ancestors() {
            if let Some(project) = Self::at(root)? {
                return Ok(Some(project));
            }
        }
        Ok(None)
    }

    /// The project whose root a directory is.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] when its `flow.toml` cannot be read.
    pub fn at(root: &Path) -> Result<Option<Self>, Error> {
        let settings = root.join(SETTINGS);
        let has_settings = settings.is_file();
        if !has_settings && !root.join(MARK).is_dir() {
            return Ok(None);
        }
        let mut directories = vec![workflows(root)];
        let mut unknown = Vec::new();
        if has_settings {
            let table = table(&settings)?;
            for directory in listed(&settings, &table)? {
                directories.push(root.join(directory));
            }
            unknown.extend(table.keys().filter(|key| *key != WORKFLOWS).cloned());
        }
        Ok(Some(Project {
            root: root.to_owned(),
            directories,
            unknown,
        }))
    }

    /// The directory that makes the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Keys of its settings that mean nothing, each with the one that was perhaps meant.
    pub fn unknown_keys(&self) -> impl Iterator<Item = (&str, Option<&'static str>)> {
        let unknown = self.unknown.iter();
        unknown.map(|key| (key.as_str(), suggest::nearest(key, [WORKFLOWS])))
    }

    /// The directories with its workflows, in the order in which names are looked for.
    #[must_use]
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }
}

/// Where the workflows of a project are by custom.
pub(crate) fn workflows(root: &Path) -> PathBuf {
    root.join(MARK).join("workflows")
}

/// The root of the project or repository around a directory, else the directory.
pub(crate) fn root_around(directory: &Path) -> &Path {
    let mut above = directory.ancestors();
    above
        .find(|outer| is_root(outer))
        .unwrap_or_else(|| future_root(directory))
}

/// What would become a project if a directory without one stored something: the repository around
/// it, else itself.
pub(crate) fn future_root(directory: &Path) -> &Path {
    let mut above = directory.ancestors();
    above
        .find(|outer| outer.join(".git").exists())
        .unwrap_or(directory)
}

/// The root of the project around a directory, if there is one.
pub(crate) fn project_root(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|outer| is_root(outer))
}

/// Whether a directory is a project's root, whatever its settings say.
pub(crate) fn is_root(directory: &Path) -> bool {
    directory.join(SETTINGS).is_file() || directory.join(MARK).is_dir()
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::Settings {
        path: path.to_owned(),
        reason,
    }
}

/// What the settings say.
fn table(path: &Path) -> Result<toml::Table, Error> {
    let bytes = read(path)?;
    let text = bytes.lossy();
    text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        wrong(path, format!("line {line}: {}", error.message()))
    })
}

/// The directories under `workflows` of the settings.
fn listed(path: &Path, table: &toml::Table) -> Result<Vec<String>, Error> {
    let Some(value) = table.get(WORKFLOWS) else {
        return Ok(Vec::new());
    };
    let directories = value.as_array().and_then(|items| {
        let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>()
    });
    directories.ok_or_else(|| {
        let reason = "`workflows` is a list of directories, such as `workflows = [\"flows\"]`";
        wrong(path, reason.to_owned())
    })
}

/// The user's directory: `$FLOW_CONFIG_DIR`, else `$XDG_CONFIG_HOME/flow`, else `~/.config/flow`.
#[must_use]
pub fn user_directory() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directory) = variable("FLOW_CONFIG_DIR") {
        return Some(PathBuf::from(directory));
    }
    // A relative path here is to be ignored, says the XDG specification.
    let base = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(env::home_dir()?.join(".config")))?;
    Some(base.join("flow"))
}
