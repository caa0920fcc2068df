//! Storing definitions in the project: by request, and after an inline one has succeeded.

use std::io;
use std::path::{Path, PathBuf};

use flow_model::diagnostic::Severity;
use flow_model::source::Source;
use flow_model::suggest::nearest;
use flow_model::tools::WorkflowSignature;
use flow_model::{Compiled, compile};
use serde_json::Value as Json;

use super::atomic::Held;
use super::{
    Entry, Error, FileLoader, LONGEST_NAME, Library, Location, Place, Role, content, is_name,
};
use crate::journal::{self, Hash};

/// What findings call a definition that is not stored yet.
const GIVEN: &str = "definition";

/// A definition to store.
#[derive(Clone, Copy, Debug)]
pub enum Definition<'a> {
    /// YAML or JSON, kept as it is written.
    Text(&'a str),
    /// A JSON value, written as readable JSON.
    Value(&'a Json),
}

impl Definition<'_> {
    fn source(self) -> Source {
        match self {
            Definition::Text(text) => Source::new(GIVEN, text),
            Definition::Value(Json::String(text)) => Source::new(GIVEN, text),
            Definition::Value(value) => Source::from_value(GIVEN, value),
        }
    }
}

/// Whether a definition says its own name; one that does not is called by how it came.
pub fn says_name(definition: &Json) -> bool {
    match definition {
        Json::Object(map) => {
            let inner = map.get("workflow").and_then(|inner| inner.get("name"));
            map.get("name").or(inner).is_some()
        }
        Json::String(text) => text.lines().any(|line| {
            let line = line.trim_start_matches([' ', '{', '"', '\'']);
            let rest = line.strip_prefix("name");
            rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
        }),
        _ => false,
    }
}

/// A definition that was stored.
#[derive(Debug)]
pub struct Created {
    /// Where it stands.
    pub entry: Entry,
    /// Whether it took the place of another.
    pub replaced: bool,
    /// The environment variables it needs and sets, and what it is for.
    pub signature: WorkflowSignature,
    /// The definition with the lints that were found.
    pub compiled: Compiled,
}

/// What became of a definition that was to be kept for reuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It was stored.
    New(Entry),
    /// This workflow does the same, so nothing was stored.
    Known(Entry),
}

impl Saved {
    /// The workflow that does what was given.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        match self {
            Saved::New(entry) | Saved::Known(entry) => entry,
        }
    }
}

/// A definition that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// What was deleted.
    pub entry: Entry,
    /// What the name leads to now.
    pub uncovered: Option<Entry>,
}

/// Why a definition cannot be stored, found or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The library has no place to store anything.
    #[error("there is no project here to keep workflows in; `flow init` makes one")]
    NoPlace,
    /// The definition does not say what it is called.
    #[error("the definition has no name to store it under; add `name: …` to it")]
    Nameless,
    /// The definition does nothing: others may import it, but it is no workflow.
    #[error("the definition has neither `steps` nor `states`, so it is no workflow")]
    NothingToRun,
    /// The definition has errors: all of them are in its findings.
    #[error("{}", errors(.0))]
    Invalid(Box<Compiled>),
    /// There is a workflow of this name.
    #[error("there is a workflow `{}` already ({}); say that it is to be overwritten, or choose another name", .0.name, found(.0))]
    Exists(Entry),
    /// There is no workflow of this name.
    #[error("there is no workflow `{name}`{}", meant(.near.as_deref()))]
    NotFound {
        /// What was asked for.
        name: String,
        /// What was perhaps meant.
        near: Option<String>,
        /// What there is, by name.
        available: Vec<String>,
    },
    /// It is not the project's, so it is not deleted for the project's sake.
    #[error("the workflow `{}` is not the project's ({}) and stays", .0.name, found(.0))]
    NotOurs(Entry),
    /// It is there, but not as a workflow of its own.
    #[error("`{}` is no workflow: others import it, and it has neither `steps` nor `states`; delete its file by hand", .0.name)]
    NotAWorkflow(Entry),
    /// A file or directory cannot be read, or leads where it may not.
    #[error(transparent)]
    Library(#[from] Error),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The system refuses to write.
    #[error("`{}` cannot be written: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}

fn errors(compiled: &Compiled) -> String {
    let mut errors = compiled
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let Some(first) = errors.next() else {
        return "the definition is not valid".to_owned();
    };
    let at = match first.path.as_str() {
        "" => format!("line {}", compiled.sources.positions(first.span).0.line),
        path => path.to_owned(),
    };
    let first = format!("the definition is not valid: {at}: {}", first.message);
    match errors.count() {
        0 => first,
        more => format!("{first} (and {more} more)"),
    }
}

fn found(entry: &Entry) -> String {
    match &entry.location {
        Location::File(path) => path.display().to_string(),
        Location::Text(_) => "it is part of the program".to_owned(),
    }
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Where a library stores.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) directory: PathBuf,
    /// What the directory must be inside of, with every link followed.
    pub(super) root: PathBuf,
}

impl Library {
    /// The directory that definitions are stored in; it may not exist yet.
    #[must_use]
    pub fn store(&self) -> Option<&Path> {
        self.store.as_ref().map(|store| store.directory.as_path())
    }

    /// Stores a definition in the project, under the name it gives itself.
    ///
    /// Nothing is stored unless the checker finds no error. A workflow of that name, wherever it
    /// comes from, is in the way unless `overwrite` is given; then the project's is replaced, and
    /// the user's or a built-in one is hidden. Waits while another process stores.
    ///
    /// ```
    /// use flow_runtime::library::{Definition, Library, Project};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::create_dir(dir.path().join(".flow"))?;
    /// let project = Project::at(dir.path())?.expect("it has a .flow");
    /// let library = Library::empty().with_project(project);
    /// let text = "name: hello\nsteps: [{type: shell, command: echo hello}]\n";
    /// let created = library.create(Definition::Text(text), false)?;
    /// assert_eq!(created.entry.name, "hello");
    /// assert!(library.get("hello")?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError`] without [`NotFound`](StoreError::NotFound).
    pub fn create(
        &self,
        definition: Definition<'_>,
        overwrite: bool,
    ) -> Result<Created, StoreError> {
        let store = self.store.as_ref().ok_or(StoreError::NoPlace)?;
        let source = definition.source();
        let name = declared(&source);
        let compiled = self.checked(source.clone(), store)?;
        let name = name.ok_or(StoreError::Nameless)?;
        let signature = compiled.graph().map(WorkflowSignature::of);
        let held = Held::directory(&store.directory, &store.root)?;
        let existing = self.get(&name)?;
        let path = match &existing {
            Some(existing) if !overwrite => return Err(StoreError::Exists(existing.clone())),
            Some(Entry {
                place: Place::Project,
                location: Location::File(path),
                ..
            }) => path.with_extension(extension(source.text())),
            Some(_) | None => self.path(store, &name, source.text()),
        };
        put(&held, &path, &closed(&source))?;
        if let Some(old) = existing.as_ref().filter(|it| it.place == Place::Project)
            && let Some(old) = old.file().filter(|old| *old != path)
        {
            let path = old.to_owned();
            held.remove(old)
                .map_err(|cause| StoreError::Unwritable { path, cause })?;
        }
        Ok(Created {
            entry: project_entry(name, path),
            replaced: existing.is_some(),
            signature: signature.unwrap_or_default(),
            compiled,
        })
    }

    /// Keeps a definition that was given whole and has succeeded.
    ///
    /// A workflow that does the same, whatever it is called and wherever it comes from, is the
    /// answer instead. A definition without a name gets one made from its content; one whose name
    /// is taken gets a number after it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] without [`NotFound`](StoreError::NotFound) and
    /// [`Exists`](StoreError::Exists).
    pub fn save_for_reuse(&self, definition: Definition<'_>) -> Result<Saved, StoreError> {
        let store = self.store.as_ref().ok_or(StoreError::NoPlace)?;
        let source = definition.source();
        let compiled = self.checked(source.clone(), store)?;
        let Some(hash) = content::hash(&source) else {
            return Err(StoreError::Invalid(Box::new(compiled)));
        };
        let held = Held::directory(&store.directory, &store.root)?;
        if let Some(known) = self.same(hash) {
            return Ok(Saved::Known(known));
        }
        let declared = declared(&source);
        let wanted = declared.clone().unwrap_or_else(|| {
            let digits = hash.to_string();
            format!("workflow_{}", digits.get(..16).unwrap_or(&digits))
        });
        let name = self.free_name(&wanted)?;
        let text = match declared {
            Some(declared) if declared != name => renamed(&source, &name),
            Some(_) | None => closed(&source),
        };
        let path = self.path(store, &name, &text);
        put(&held, &path, &text)?;
        Ok(Saved::New(project_entry(name, path)))
    }

    /// Deletes a workflow of the project. Runs under way go on: they have their definition.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::NotOurs`], [`StoreError::NotAWorkflow`],
    /// [`StoreError::NoPlace`], [`StoreError::Library`], [`StoreError::Unwritable`].
    pub fn delete(&self, name: &str) -> Result<Deleted, StoreError> {
        let store = self.store.as_ref().ok_or(StoreError::NoPlace)?;
        self.find(name)?;
        let held = Held::directory(&store.directory, &store.root)?;
        let entry = self.find(name)?;
        let (Place::Project, Location::File(path)) = (entry.place, &entry.location) else {
            return Err(StoreError::NotOurs(entry));
        };
        // What is neither is a broken workflow, for all the list of workflows says.
        if entry.role() == Role::Part {
            return Err(StoreError::NotAWorkflow(entry));
        }
        held.remove(path).map_err(|cause| StoreError::Unwritable {
            path: path.clone(),
            cause,
        })?;
        Ok(Deleted {
            uncovered: self.get(name)?,
            entry,
        })
    }

    /// The workflow that a name leads to, or what was perhaps meant.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Library`].
    pub fn find(&self, name: &str) -> Result<Entry, StoreError> {
        if let Some(entry) = self.get(name)? {
            return Ok(entry);
        }
        let available: Vec<String> = self
            .list()
            .entries
            .into_iter()
            .filter(|entry| entry.role() != Role::Part)
            .map(|entry| entry.name)
            .collect();
        Err(StoreError::NotFound {
            near: nearest(name, available.iter().map(String::as_str)).map(str::to_owned),
            name: name.to_owned(),
            available,
        })
    }

    /// Compiles a definition as if it stood in the store.
    fn checked(&self, source: Source, store: &Store) -> Result<Compiled, StoreError> {
        let loader = FileLoader::for_directory(self, &store.directory);
        let role = Role::of(source.text());
        let compiled = compile(source, &loader);
        match (compiled.is_ok(), role) {
            (false, _) => Err(StoreError::Invalid(Box::new(compiled))),
            (true, Role::Workflow) => Ok(compiled),
            (true, Role::Part | Role::Other) => Err(StoreError::NothingToRun),
        }
    }

    /// Where a new workflow goes. Its name has no `/` and no `.`, so that it stays in the directory.
    fn path(&self, store: &Store, name: &str, text: &str) -> PathBuf {
        let extension = extension(text);
        store.directory.join(format!("{name}.{extension}"))
    }

    /// The workflow that does the same.
    fn same(&self, hash: Hash) -> Option<Entry> {
        self.list().entries.into_iter().find(|entry| {
            let source = self.source(entry).ok();
            source.and_then(|source| content::hash(&source)) == Some(hash)
        })
    }

    /// The name, or the first with a number after it that leads nowhere yet.
    fn free_name(&self, wanted: &str) -> Result<String, StoreError> {
        let mut name = wanted.to_owned();
        let mut number = 2_u64;
        // What cannot be looked up is not free.
        while !matches!(self.get(&name), Ok(None)) {
            let suffix = format!("_{number}");
            let kept = LONGEST_NAME.saturating_sub(suffix.len()).min(wanted.len());
            let base = wanted[..kept].trim_end_matches([':', '-', '_']);
            name = format!("{base}{suffix}");
            number += 1;
        }
        Ok(name)
    }
}

fn put(held: &Held, path: &Path, text: &str) -> Result<(), StoreError> {
    held.put(path, text)
        .map_err(|cause| StoreError::Unwritable {
            path: path.to_owned(),
            cause,
        })
}

fn project_entry(name: String, path: PathBuf) -> Entry {
    Entry {
        name,
        place: Place::Project,
        location: Location::File(path),
    }
}

/// The name that a definition gives itself, if it can be one.
fn declared(source: &Source) -> Option<String> {
    let tree = source.tree().ok()?;
    let name = content::declared_name(&tree)?.as_str()?;
    is_name(name).then(|| name.to_owned())
}

/// The ending that fits a text.
fn extension(text: &str) -> &'static str {
    let json = text.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if json { "json" } else { "yaml" }
}

/// The text of a definition as it is stored; what we print ends its last line.
fn closed(source: &Source) -> String {
    match source.origin() {
        flow_model::source::Origin::Text => source.text().to_owned(),
        flow_model::source::Origin::Value => format!("{}\n", source.text()),
    }
}

/// The text with another name in the place of the one it gives itself.
fn renamed(source: &Source, name: &str) -> String {
    let mut text = closed(source);
    if let Ok(tree) = source.tree()
        && let Some(old) = content::declared_name(&tree)
        && text.get(old.span.range()).is_some()
    {
        text.replace_range(old.span.range(), &format!("\"{name}\""));
    }
    text
}
