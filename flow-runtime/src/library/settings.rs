//! What a `flow.toml` says: the project's, and the user's.

use std::env;
use std::path::{Component, Path, PathBuf};

use flow_model::suggest;

use super::{Error, read};
use crate::terminal;

/// The file with the settings.
pub(super) const FILE: &str = "flow.toml";

const WORKFLOWS: &str = "workflows";
const TERMINAL: &str = "terminal";
const KEYS: [&str; 2] = [WORKFLOWS, TERMINAL];

const PROGRAMS: &str = "programs";
const DIRECTORIES: &str = "directories";
const MAX_SESSIONS: &str = "max_sessions";
const AUDIT: &str = "audit";
/// No bound: it makes debug builds late.
const LAG: &str = "lag";
const TERMINAL_KEYS: [&str; 4] = [PROGRAMS, DIRECTORIES, MAX_SESSIONS, AUDIT];

/// The settings of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// Directories with workflows.
    pub(super) workflows: Vec<PathBuf>,
    pub(super) terminal: Terminal,
    pub(super) unknown: Vec<Unknown>,
}

/// What bounds terminals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Terminal {
    programs: Option<Vec<String>>,
    directories: Option<Vec<PathBuf>>,
    max_sessions: Option<usize>,
    audit: Option<PathBuf>,
}

/// A key that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The key.
    pub key: String,
    /// The one that was perhaps meant.
    pub meant: Option<String>,
    /// Those there are.
    pub known: Vec<String>,
}

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// Whoever wrote the project; what it names stays inside.
    Project,
    /// The user.
    User,
}

impl Settings {
    /// What the file in a directory says; nothing where there is none.
    pub(super) fn of(root: &Path, owner: Owner) -> Result<Settings, Error> {
        let path = root.join(FILE);
        if !path.is_file() {
            return Ok(Settings::default());
        }
        let table = parsed(&path)?;
        let reader = Reader {
            path: &path,
            root,
            owner,
        };
        let mut settings = Settings::default();
        settings.note_unknown(&table);
        if let Some(value) = table.get(WORKFLOWS) {
            let form = "`workflows` is a list of directories, such as `workflows = [\"flows\"]`";
            let listed = reader.texts(value, form)?;
            settings.workflows = listed.iter().map(|it| root.join(it)).collect();
        }
        if let Some(value) = table.get(TERMINAL) {
            let Some(table) = value.as_table() else {
                return Err(reader.wrong("`terminal` is a table: write `[terminal]` on a line"));
            };
            // What was to bound terminals must not be passed over for a slip of the pen.
            let unknown = table
                .keys()
                .find(|it| !TERMINAL_KEYS.contains(&it.as_str()));
            if let Some(key) = unknown {
                let way = match suggest::nearest(key, TERMINAL_KEYS.iter().copied()) {
                    Some(meant) => format!("did you mean `terminal.{meant}`?"),
                    None => format!("there are `{}`", TERMINAL_KEYS.join("`, `")),
                };
                return Err(reader.wrong(format!("`terminal.{key}` means nothing; {way}")));
            }
            settings.terminal = reader.terminal(table)?;
        }
        Ok(settings)
    }

    fn note_unknown(&mut self, table: &toml::Table) {
        for key in table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.unknown.push(Unknown {
                key: key.clone(),
                meant: suggest::nearest(key, KEYS.iter().copied()).map(str::to_owned),
                known: KEYS.iter().map(|key| (*key).to_owned()).collect(),
            });
        }
    }
}

impl Terminal {
    /// What the environment says, in variables named like the settings. Lists are written like
    /// `PATH`, and paths are taken from the current directory.
    pub(super) fn of_environment() -> Result<Terminal, Error> {
        // As in the file, what was to bound terminals is not passed over.
        let given = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for name in given {
            let Some(key) = name.strip_prefix("FLOW_TERMINAL_").map(str::to_lowercase) else {
                continue;
            };
            if !TERMINAL_KEYS.contains(&key.as_str()) && key != LAG {
                let way = match suggest::nearest(&key, TERMINAL_KEYS.iter().copied()) {
                    Some(meant) => format!("did you mean FLOW_TERMINAL_{}?", meant.to_uppercase()),
                    None => format!(
                        "there are FLOW_TERMINAL_{}",
                        TERMINAL_KEYS.join(", FLOW_TERMINAL_").to_uppercase()
                    ),
                };
                return Err(Error::Settings {
                    path: PathBuf::from(format!("${name}")),
                    reason: format!("it means nothing; {way}"),
                });
            }
        }
        let variable = |key: &str| {
            let name = format!("FLOW_TERMINAL_{}", key.to_uppercase());
            env::var_os(&name).map(|value| (name, value))
        };
        // An empty list is one that lets nothing through, as in the file.
        let list = |key| {
            let (_, value) = variable(key)?;
            let paths = env::split_paths(&value).filter(|it| !it.as_os_str().is_empty());
            Some(paths.collect::<Vec<_>>())
        };
        let here = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let mut terminal = Terminal {
            programs: list(PROGRAMS).map(|it| {
                let names = it.iter().map(|path| path.to_string_lossy().into_owned());
                names.collect()
            }),
            directories: list(DIRECTORIES).map(|it| it.into_iter().map(here).collect()),
            max_sessions: None,
            audit: None,
        };
        if let Some((name, file)) = variable(AUDIT) {
            if file.is_empty() {
                return Err(Error::Settings {
                    path: PathBuf::from(format!("${name}")),
                    reason: "it names no file; unset it where nothing is to be recorded".to_owned(),
                });
            }
            terminal.audit = Some(here(PathBuf::from(file)));
        }
        if let Some((name, value)) = variable(MAX_SESSIONS) {
            let most = value.to_str().and_then(|value| value.parse().ok());
            terminal.max_sessions = Some(most.ok_or_else(|| Error::Settings {
                path: PathBuf::from(format!("${name}")),
                reason: format!(
                    "it is a whole number from 0 on, and not `{}`",
                    value.to_string_lossy()
                ),
            })?);
        }
        Ok(terminal)
    }

    /// Bounds terminals by this as well.
    pub(super) fn bound(&self, options: &mut terminal::Options) {
        if self.programs.is_some() || self.directories.is_some() {
            options.policies.push(terminal::Policy {
                programs: self.programs.clone(),
                directories: self.directories.clone(),
            });
        }
        if let Some(most) = self.max_sessions {
            options.max_sessions = options.max_sessions.min(most);
        }
        if let Some(audit) = &self.audit {
            options.audit = Some(audit.clone());
        }
    }
}

struct Reader<'f> {
    path: &'f Path,
    root: &'f Path,
    owner: Owner,
}

impl Reader<'_> {
    fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::Settings {
            path: self.path.to_owned(),
            reason: reason.into(),
        }
    }

    fn texts(&self, value: &toml::Value, form: &str) -> Result<Vec<String>, Error> {
        let items = value.as_array().and_then(|items| {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        });
        items.ok_or_else(|| self.wrong(form))
    }

    fn terminal(&self, table: &toml::Table) -> Result<Terminal, Error> {
        let mut terminal = Terminal::default();
        if let Some(value) = table.get(PROGRAMS) {
            let form = "`terminal.programs` is a list of names or paths, such as `[\"bash\"]`";
            terminal.programs = Some(self.texts(value, form)?);
        }
        if let Some(value) = table.get(DIRECTORIES) {
            let form = "`terminal.directories` is a list of directories, such as `[\".\"]`";
            let listed = self.texts(value, form)?;
            terminal.directories = Some(listed.iter().map(|it| self.placed(it)).collect());
        }
        if let Some(value) = table.get(MAX_SESSIONS) {
            let most = value.as_integer().and_then(|it| usize::try_from(it).ok());
            let form = "`terminal.max_sessions` is a whole number from 0 on";
            terminal.max_sessions = Some(most.ok_or_else(|| self.wrong(form))?);
        }
        if let Some(value) = table.get(AUDIT) {
            let form = "`terminal.audit` is a file, such as `audit = \".flow/audit.jsonl\"`";
            let file = value.as_str().filter(|file| !file.is_empty());
            let file = file.ok_or_else(|| self.wrong(form))?;
            terminal.audit = match self.owner {
                // A project that was fetched from somewhere must not have other files written to.
                Owner::Project => Some(within(self.root, file).ok_or_else(|| {
                    self.wrong(format!(
                        "`terminal.audit` of a project is a file inside it, and `{file}` is not; the \
                         user's own `flow.toml` may name any"
                    ))
                })?),
                Owner::User => Some(self.placed(file)),
            };
        }
        Ok(terminal)
    }

    /// A path of the file, from where the file is.
    fn placed(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), env::home_dir()) {
            (Some(rest), Some(home)) => home.join(rest),
            // Without the `.` that may be all of it.
            _ => self.root.join(path).components().collect(),
        }
    }
}

/// Where a file is that stays below a directory, whatever links lead there; `None` if it does not.
fn within(root: &Path, file: &str) -> Option<PathBuf> {
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(file).components().all(stays) {
        return None;
    }
    let path = root.join(file);
    // A link that leads nowhere is there as well.
    let there = path.ancestors().find(|it| it.symlink_metadata().is_ok())?;
    let place = there.canonicalize().ok()?;
    let rest = path.strip_prefix(there).ok()?;
    let is_inside = place.starts_with(root.canonicalize().ok()?);
    is_inside.then(|| place.components().chain(rest.components()).collect())
}

fn parsed(path: &Path) -> Result<toml::Table, Error> {
    let bytes = read(path)?;
    let text = bytes.lossy();
    text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        Error::Settings {
            path: path.to_owned(),
            reason: format!("line {line}: {}", error.message()),
        }
    })
}
