//! The project around a directory, and what its `flow.toml` says.

use std::env;
use std::path::{Path, PathBuf};

use super::Error;
use super::settings::{FILE, Owner, Settings};

/// The directory that makes a directory a project.
const MARK: &str = ".flow";

/// A directory with `.flow/` or `flow.toml` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    directories: Vec<PathBuf>,
    pub(super) settings: Settings,
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
        if !is_root(root) {
            return Ok(None);
        }
        let settings = Settings::of(root, Owner::Project)?;
        let mut directories = vec![workflows(root)];
        directories.extend(settings.workflows.iter().cloned());
        Ok(Some(Project {
            root: root.to_owned(),
            directories,
            settings,
        }))
    }

    /// The directory that makes the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
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
    directory.join(FILE).is_file() || directory.join(MARK).is_dir()
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
