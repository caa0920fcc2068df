//! What terminals may do, and how much they keep.

use std::path::{Path, PathBuf};

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a row.
    pub columns: u16,
    /// Rows of the screen.
    pub rows: u16,
}

/// Settings of a registry of terminals.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most sessions at a time.
    pub max_sessions: usize,
    /// Which programs may be opened, and where. Each must let it.
    pub policies: Vec<Policy>,
    /// The file that gets a line of JSON for every input; created readable by its owner alone.
    pub audit: Option<PathBuf>,
    /// Where a session starts that names no directory. `None`: where this process works.
    pub directory: Option<PathBuf>,
    /// Size of the screens.
    pub size: Size,
    /// Lines kept that have scrolled off a screen.
    pub scrollback: usize,
    /// Bytes of plain output kept for `await_output`.
    pub window: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_sessions: 64,
            policies: Vec::new(),
            audit: None,
            directory: None,
            size: Size {
                columns: 120,
                rows: 40,
            },
            scrollback: 4000,
            window: 1 << 20,
        }
    }
}

/// Which programs may be opened, and in which directories.
///
/// It bounds what [`open`](super::Terminals::open) starts. A shell that was let in can start
/// anything its user may: leave shells out where that matters.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Programs, by name or by path. `None`: any.
    pub programs: Option<Vec<String>>,
    /// Directories in or below which a session may start. `None`: any.
    pub directories: Option<Vec<PathBuf>>,
}

/// A path whose directory has one name alone. The program keeps its own: several may be one file.
fn placed(path: &Path) -> PathBuf {
    let directory = path.parent().and_then(|it| it.canonicalize().ok());
    match (directory, path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

fn listed(allowed: &[String]) -> String {
    match allowed {
        [] => "none".to_owned(),
        allowed => allowed.join(", "),
    }
}

impl Policy {
    /// Why a program may not be opened in a directory; both are absolute.
    pub(super) fn refusal(&self, asked: &str, program: &Path, directory: &Path) -> Option<String> {
        if let Some(programs) = &self.programs {
            let named = |allowed: &String| {
                let path = Path::new(allowed);
                if path.components().count() > 1 {
                    let found = path.canonicalize().is_ok_and(|path| path == program);
                    found || placed(path) == placed(program)
                } else {
                    // A name means the program that is found by it, not any of that name.
                    asked == allowed
                        || super::program::find(allowed)
                            .is_some_and(|found| placed(&found) == placed(program))
                }
            };
            if !programs.iter().any(named) {
                return Some(format!(
                    "the policy does not let `{asked}` be opened; allowed: {}",
                    listed(programs)
                ));
            }
        }
        if let Some(directories) = &self.directories {
            let inside = |root: &PathBuf| {
                let root = root.canonicalize().unwrap_or_else(|_| root.clone());
                directory.starts_with(root)
            };
            if !directories.iter().any(inside) {
                let list: Vec<_> = directories
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                return Some(format!(
                    "the policy does not let a session start in {}; allowed: {}",
                    directory.display(),
                    listed(&list)
                ));
            }
        }
        None
    }
}
