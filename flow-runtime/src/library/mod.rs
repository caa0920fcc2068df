//! Workflows by name: the project's, the user's, and those compiled in.
//!
//! A name is looked for in the project's directories (`.flow/workflows`, then those that
//! `flow.toml` lists), in the user's, and among the built-ins; the first one found wins. `a:b` is
//! `a:b.yaml` or `a/b.yaml`, and `.yml` and `.json` work as `.yaml` does.
//!
//! No name leads out of its directory: a name is letters, digits, `_`, `-` and `:`. A symbolic link
//! in a project is followed only to a file inside the project, since whoever wrote the project made
//! the link; one in the user's own directory is followed anywhere.
//!
//! [`Library::create`], [`Library::save_for_reuse`] and [`Library::delete`] change what the project
//! has. A workflow is its file and nothing else: there is no index that could disagree with it, and
//! how often it ran is the [journal](crate::journal)'s to say.
//!
//! ```
//! use flow_runtime::library::Library;
//!
//! let library = Library::empty().with_builtins([("hello", "steps: [{type: shell, command: echo hello}]")]);
//! let catalogue = library.catalogue();
//! assert_eq!(catalogue.workflows[0].entry.name, "hello");
//! assert!(catalogue.workflows[0].definition.is_ok());
//! ```

mod atomic;
mod card;
mod catalogue;
mod content;
mod error;
mod file_loader;
mod original;
mod project;
mod read;
mod role;
mod settings;
mod shelf;
mod store;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flow_model::grammar::Pattern;
use flow_model::graph::Graph;
use flow_model::loader::{Loader, Lookup};
use flow_model::source::Source;
use flow_model::{Compiled, compile};

use crate::terminal;

pub use card::Card;
pub use catalogue::{Catalogue, Fault, Workflow};
pub use error::Error;
pub use file_loader::FileLoader;
pub use original::{Import, Original};
pub use project::{Project, user_directory};
pub(crate) use project::{project_root, root_around};
pub use read::{Bytes, read};
pub use role::Role;
pub use settings::Unknown;
use settings::{Owner, Settings};
use shelf::Shelf;
use store::Store;
pub use store::{Created, Definition, Deleted, Saved, StoreError, says_name};

/// The endings of a definition's file, in the order in which they are tried.
pub const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];
/// A workflow's name has this many characters at most.
const LONGEST_NAME: usize = 64;

/// Where a workflow comes from, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The project's directories.
    Project,
    /// The user's directory.
    User,
    /// Compiled into the program.
    Builtin,
}

impl Place {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Place::Project => "project",
            Place::User => "user",
            Place::Builtin => "builtin",
        }
    }
}

/// A workflow that was found; it may not have been read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is found by.
    pub name: String,
    /// Where it comes from.
    pub place: Place,
    /// Where its text is.
    pub location: Location,
}

/// Where a definition's text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In this file.
    File(PathBuf),
    /// In the program.
    Text(Cow<'static, str>),
}

impl Entry {
    /// The file, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.location {
            Location::File(path) => Some(path),
            Location::Text(_) => None,
        }
    }

    /// What its text is for; a file that cannot be read is taken for a workflow.
    #[must_use]
    pub fn role(&self) -> Role {
        match &self.location {
            Location::File(path) => {
                read(path).map_or(Role::Workflow, |bytes| Role::of(&bytes.lossy()))
            }
            Location::Text(text) => Role::of(text),
        }
    }
}

/// Every place in which workflows are looked for.
#[derive(Clone, Debug, Default)]
pub struct Library {
    project: Option<Project>,
    /// The user's own settings, and the file they stand in.
    user: Option<(PathBuf, Settings)>,
    /// What the environment says of terminals.
    environment: settings::Terminal,
    shelves: Vec<Shelf>,
    builtins: BTreeMap<String, Cow<'static, str>>,
    /// Those of them that were checked when the program was built.
    compiled: BTreeMap<&'static str, &'static Graph>,
    store: Option<Store>,
}

/// What stands in a library, by name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// What each name leads to, by name.
    pub entries: Vec<Entry>,
    /// What a name does not lead to, because another stands before it.
    pub shadowed: Vec<Entry>,
    /// Files and directories that cannot be part of the library, and why.
    pub refused: Vec<Refused>,
}

/// A file that no name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What it would be found by.
    pub name: String,
    /// Where it was found.
    pub place: Place,
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

impl Library {
    /// A library without any place.
    #[must_use]
    pub fn empty() -> Self {
        Library::default()
    }

    /// The project around a directory, and the user's directory as the environment has it, each with
    /// its settings. Without
    /// a project, definitions are stored in `.flow/workflows` of the repository around the
    /// directory, or of the directory itself, which becomes a project by it.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] when the project's or the user's `flow.toml` cannot be read, or a variable
    /// of the environment is not what it should be.
    pub fn around(directory: &Path) -> Result<Self, Error> {
        let mut library = Library {
            environment: settings::Terminal::of_environment()?,
            ..Library::empty()
        };
        library = match Project::around(directory)? {
            Some(project) => library.with_project(project),
            None => library.with_store(project::future_root(directory)),
        };
        if let Some(directory) = user_directory() {
            let settings = Settings::of(&directory, Owner::User)?;
            library = library.with_directory(Place::User, directory.join("workflows"));
            for directory in &settings.workflows {
                library = library.with_directory(Place::User, directory.clone());
            }
            library.user = Some((directory.join(settings::FILE), settings));
        }
        Ok(library)
    }

    /// Adds a project's directories.
    #[must_use]
    pub fn with_project(mut self, project: Project) -> Self {
        for directory in project.directories() {
            self.shelves.push(Shelf {
                place: Place::Project,
                directory: directory.clone(),
                boundary: Some(project.root().to_owned()),
            });
        }
        self.store = Some(Store {
            directory: project::workflows(project.root()),
            root: project.root().to_owned(),
        });
        self.project = Some(project);
        self.sorted()
    }

    /// Stores in a directory that becomes a project when the first definition is stored.
    fn with_store(mut self, root: &Path) -> Self {
        let directory = project::workflows(root);
        self.shelves.push(Shelf {
            place: Place::Project,
            directory: directory.clone(),
            boundary: Some(root.to_owned()),
        });
        self.store = Some(Store {
            directory,
            root: root.to_owned(),
        });
        self.sorted()
    }

    /// Adds a directory.
    #[must_use]
    pub fn with_directory(mut self, place: Place, directory: PathBuf) -> Self {
        let boundary = match place {
            Place::Project | Place::Builtin => Some(directory.clone()),
            Place::User => None,
        };
        self.shelves.push(Shelf {
            place,
            directory,
            boundary,
        });
        self.sorted()
    }

    /// Adds workflows that are compiled in, as names and texts.
    #[must_use]
    pub fn with_builtins<N, T>(mut self, builtins: impl IntoIterator<Item = (N, T)>) -> Self
    where
        N: Into<String>,
        T: Into<Cow<'static, str>>,
    {
        let builtins = builtins.into_iter();
        self.builtins
            .extend(builtins.map(|(name, text)| (name.into(), text.into())));
        self
    }

    /// Adds workflows that are compiled in, as names, texts and graphs: those are not read again.
    #[must_use]
    pub fn with_compiled(
        mut self,
        builtins: impl IntoIterator<Item = (&'static str, &'static str, &'static Graph)>,
    ) -> Self {
        for (name, text, graph) in builtins {
            self.builtins.insert(name.to_owned(), text.into());
            self.compiled.insert(name, graph);
        }
        self
    }

    fn sorted(mut self) -> Self {
        self.shelves.sort_by_key(|shelf| shelf.place);
        self
    }

    /// The project, if there is one.
    #[must_use]
    pub fn project(&self) -> Option<&Project> {
        self.project.as_ref()
    }

    /// What terminals may do: what the environment, the user's settings and the project's let them,
    /// all together. An audit file of the environment's stands before one of the user's, and that
    /// before one of the project's.
    #[must_use]
    pub fn terminal_options(&self) -> terminal::Options {
        let mut options = terminal::Options::default();
        let project = self.project.as_ref().map(|project| &project.settings);
        let user = self.user.as_ref().map(|(_, settings)| settings);
        for settings in project.into_iter().chain(user) {
            settings.terminal.bound(&mut options);
        }
        self.environment.bound(&mut options);
        options
    }

    /// Keys of settings that mean nothing, with the file each stands in.
    pub fn unknown_keys(&self) -> impl Iterator<Item = (PathBuf, &Unknown)> {
        let project = self.project.as_ref();
        let project = project.map(|it| (it.root().join(settings::FILE), &it.settings));
        let user = self.user.as_ref().map(|(file, it)| (file.clone(), it));
        let both = project.into_iter().chain(user);
        both.flat_map(|(file, settings)| {
            settings.unknown.iter().map(move |key| (file.clone(), key))
        })
    }

    /// The directories in which names are looked for, in order.
    pub fn directories(&self) -> impl Iterator<Item = (Place, &Path)> {
        self.shelves
            .iter()
            .map(|shelf| (shelf.place, shelf.directory.as_path()))
    }

    /// The workflow that a name leads to.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] when it is a link that leads out of the project.
    pub fn get(&self, name: &str) -> Result<Option<Entry>, Error> {
        if !is_name(name) {
            return Ok(None);
        }
        for shelf in &self.shelves {
            if let Some(path) = shelf.get(name)? {
                return Ok(Some(Entry {
                    name: name.to_owned(),
                    place: shelf.place,
                    location: Location::File(path),
                }));
            }
        }
        Ok(self.builtins.get(name).map(|text| Entry {
            name: name.to_owned(),
            place: Place::Builtin,
            location: Location::Text(text.clone()),
        }))
    }

    /// Every workflow, by name. Nothing is read.
    #[must_use]
    pub fn list(&self) -> Listing {
        let mut found = Vec::new();
        let mut listing = Listing::default();
        for shelf in &self.shelves {
            shelf.list(&mut found, &mut listing.refused);
        }
        found.extend(self.builtins.iter().map(|(name, text)| Entry {
            name: name.clone(),
            place: Place::Builtin,
            location: Location::Text(text.clone()),
        }));
        // Stable, so that of equal names the one found first stays first.
        found.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in found {
            match listing.entries.last() {
                Some(last) if last.name == entry.name => listing.shadowed.push(entry),
                Some(_) | None => listing.entries.push(entry),
            }
        }
        listing.refused.sort_by(|a, b| a.path.cmp(&b.path));
        listing
    }

    /// Reads, checks and lowers a workflow of the library.
    ///
    /// # Errors
    ///
    /// Why its file cannot be read.
    pub fn compile(&self, entry: &Entry) -> Result<Compiled, Error> {
        match &entry.location {
            Location::File(path) => {
                FileLoader::for_file(self, path).compile_as(path, Some(&entry.name))
            }
            Location::Text(text) => {
                if let Some(graph) = self.compiled.get(entry.name.as_str()) {
                    return Ok(Compiled::ready((*graph).clone()));
                }
                let source = Source::new(format!("builtin:{}", entry.name), text.as_ref());
                Ok(compile(source.titled(&entry.name), self))
            }
        }
    }

    /// Reads, checks and lowers a file, wherever it is.
    ///
    /// # Errors
    ///
    /// Why it cannot be read.
    pub fn compile_file(&self, path: &Path) -> Result<Compiled, Error> {
        FileLoader::for_file(self, path).compile_as(path, None)
    }

    /// Reads, checks and lowers a text that came without a file. What it imports is looked for in
    /// the directory. The name is what findings call it; without `<` and `>` around it, it is the
    /// workflow's name if the text says none.
    #[must_use]
    pub fn compile_bytes(&self, name: &str, bytes: Bytes, directory: &Path) -> Compiled {
        match bytes.into_source(name) {
            Ok(source) => {
                let title = name.trim_matches(['<', '>']);
                let loader = FileLoader::for_directory(self, directory);
                compile(source.titled(title), &loader)
            }
            Err(refused) => Compiled::refused(refused.0, refused.1),
        }
    }

    /// The text of an entry.
    fn source(&self, entry: &Entry) -> Result<Source, Error> {
        match &entry.location {
            Location::File(path) => {
                let bytes = read(path)?;
                let name = path.to_string_lossy();
                let source = bytes.into_source(&name).unwrap_or_else(|refused| refused.0);
                Ok(source.titled(&entry.name))
            }
            Location::Text(text) => {
                let source = Source::new(format!("builtin:{}", entry.name), text.as_ref());
                Ok(source.titled(&entry.name))
            }
        }
    }

    /// What is known of a called workflow; `beside` is a directory to look in as well.
    fn lookup(&self, name: &str, beside: Option<&Path>) -> Lookup {
        let beside = beside.map(|directory| Shelf {
            place: Place::Project,
            directory: directory.to_owned(),
            boundary: Some(directory.to_owned()),
        });
        let sibling = || {
            let path = beside.as_ref().filter(|_| is_name(name))?.get(name);
            path.ok()?
        };
        let entry = match self.get(name) {
            Ok(Some(entry)) => Some(entry),
            Ok(None) => sibling().map(|path| Entry {
                name: name.to_owned(),
                place: Place::Project,
                location: Location::File(path),
            }),
            Err(_) => return Lookup::Unknown,
        };
        if let Some(entry) = entry {
            return match self.source(&entry) {
                Ok(source) => Lookup::Found(Box::new(source)),
                Err(_) => Lookup::Unknown,
            };
        }
        let mut found = self.list().entries;
        if let Some(shelf) = &beside {
            shelf.list(&mut found, &mut Vec::new());
        }
        Lookup::NotFound(found.into_iter().map(|entry| entry.name).collect())
    }
}

/// A library on its own knows workflows, but no file that imports could be relative to.
impl Loader for Library {
    fn import(&self, _from: &str, _path: &str) -> Result<Source, String> {
        Err("there is no file that it could be relative to".to_owned())
    }

    fn workflow(&self, name: &str) -> Lookup {
        self.lookup(name, None)
    }
}

/// Whether a text can be a workflow's name.
fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && Pattern::Workflow.accepts(text)
}
