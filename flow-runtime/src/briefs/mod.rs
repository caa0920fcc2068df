//! Agents and prompts: Markdown files with front matter, found by name as workflows are.
//!
//! ```text
//! ---
//! description: Reviews a change
//! arguments:
//!   branch: {type: string, required: true, description: what to review}
//! ---
//! Review {{ branch }} against main.
//! ```
//!
//! A file's name is what it is found by. The arguments have the types and rules of a workflow's
//! inputs, and the text is a template in which they are named. Files under `.claude/agents` are
//! another program's: they are found too, and their text is taken as it is.

mod front_matter;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow_model::compile;
use flow_model::diagnostic::Severity;
use flow_model::grammar::Pattern;
use flow_model::graph::{Dialect, Expression, Field, Graph, Template};
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_model::suggest::nearest;
use serde_json::{Map, Value as Json, json};

use crate::expression::{Absent, Context, Engine, EvalError, Instant, Scope, View};
use crate::input::{InputFault, complete};
use crate::library::{self, Location, Place, read, root_around, user_directory};
use crate::value::Value;

/// What a brief is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Who somebody is and how they work.
    Agent,
    /// What is asked.
    Prompt,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Agent => "agent",
            Kind::Prompt => "prompt",
        }
    }

    /// What its directory is called.
    const fn directory(self) -> &'static str {
        match self {
            Kind::Agent => "agents",
            Kind::Prompt => "prompts",
        }
    }
}

/// Why a brief cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BriefError {
    /// There is none of this name.
    #[error("there is no {} `{name}`{}", kind.word(), near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NotFound {
        /// What was looked for.
        kind: Kind,
        /// What was asked for.
        name: String,
        /// What was perhaps meant.
        near: Option<String>,
        /// What there is, by name.
        available: Vec<String>,
    },
    /// Its file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] library::Error),
    /// Its front matter is not what it should be.
    #[error("{file}:{line}: {message}")]
    FrontMatter {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The arguments given do not fit those declared.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Arguments(Vec<InputFault>),
    /// Its text cannot be made with these arguments.
    #[error("{file}: {message}")]
    Text {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
}

/// Where a brief is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is found by.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// Where it comes from.
    pub place: Place,
    /// Where its text is.
    pub location: Location,
    /// Whether its text is taken as it is.
    pub verbatim: bool,
}

impl Found {
    /// The file, or the word for one that is compiled in.
    fn shown(&self) -> String {
        match &self.location {
            Location::File(path) => path.display().to_string(),
            Location::Text(_) => format!("builtin:{}", self.name),
        }
    }
}

/// A brief that was read.
#[derive(Clone, Debug)]
pub struct Brief {
    /// Where it was found.
    pub found: Found,
    /// What it is for, in its own words.
    pub description: Option<String>,
    /// Everything its front matter says, the keys above included.
    pub head: Map<String, Json>,
    /// Its text, before arguments are filled in.
    pub body: String,
    /// Its arguments; `None` accepts any.
    signature: Graph,
}

/// Every place in which briefs of a kind are looked for.
#[derive(Clone, Debug)]
pub struct Briefs {
    kind: Kind,
    shelves: Vec<Shelf>,
    builtins: BTreeMap<String, Cow<'static, str>>,
}

#[derive(Clone, Debug)]
struct Shelf {
    place: Place,
    directory: PathBuf,
    /// What links may not leave; `None` when they may lead anywhere.
    boundary: Option<PathBuf>,
    verbatim: bool,
}

impl Briefs {
    /// The project's around a directory, then the user's.
    #[must_use]
    pub fn around(kind: Kind, directory: &Path) -> Self {
        let root = root_around(directory);
        let mut briefs = Briefs {
            kind,
            shelves: Vec::new(),
            builtins: BTreeMap::new(),
        };
        briefs.add(Place::Project, root.join(".flow"), Some(root), false);
        briefs.add(Place::Project, root.join(".claude"), Some(root), true);
        if let Some(directory) = user_directory() {
            briefs.add(Place::User, directory, None, false);
        }
        if let Some(home) = env::home_dir() {
            briefs.add(Place::User, home.join(".claude"), None, true);
        }
        briefs
    }

    fn add(&mut self, place: Place, directory: PathBuf, boundary: Option<&Path>, verbatim: bool) {
        // The other program's prompts are commands of its own, with rules of their own.
        if verbatim && self.kind == Kind::Prompt {
            return;
        }
        self.shelves.push(Shelf {
            place,
            directory: directory.join(self.kind.directory()),
            boundary: boundary.map(Path::to_owned),
            verbatim,
        });
    }

    /// Adds briefs that are compiled in, as names and texts.
    #[must_use]
    pub fn with_builtins(
        mut self,
        builtins: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Self {
        let builtins = builtins.into_iter();
        self.builtins
            .extend(builtins.map(|(name, text)| (name.to_owned(), Cow::Borrowed(text))));
        self
    }

    /// What kind they are.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The directories that are looked into, in order.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.shelves.iter().map(|shelf| shelf.directory.as_path())
    }

    /// What each name leads to, by name. Nothing is read.
    #[must_use]
    pub fn list(&self) -> Vec<Found> {
        let mut names: BTreeMap<String, Found> = BTreeMap::new();
        for shelf in &self.shelves {
            for (name, path) in shelf.files() {
                let found = self.found(&name, shelf, path);
                names.entry(name).or_insert(found);
            }
        }
        for (name, text) in &self.builtins {
            let found = self.builtin(name, text.clone());
            names.entry(name.clone()).or_insert(found);
        }
        names.into_values().collect()
    }

    /// What a name leads to.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Found> {
        if !Pattern::Workflow.accepts(name) {
            return None;
        }
        for shelf in &self.shelves {
            for stem in [name.to_owned(), name.replace(':', "/")] {
                let path = shelf.directory.join(format!("{stem}.md"));
                if shelf.allows(&path) {
                    return Some(self.found(name, shelf, path));
                }
            }
        }
        let text = self.builtins.get(name)?;
        Some(self.builtin(name, text.clone()))
    }

    /// Reads what a name leads to.
    ///
    /// # Errors
    ///
    /// [`BriefError::NotFound`], and those of [`Brief::read`].
    pub fn brief(&self, name: &str) -> Result<Brief, BriefError> {
        if let Some(found) = self.get(name) {
            return Brief::read(found);
        }
        let available: Vec<String> = self.list().into_iter().map(|found| found.name).collect();
        Err(BriefError::NotFound {
            kind: self.kind,
            near: nearest(name, available.iter().map(String::as_str)).map(str::to_owned),
            name: name.to_owned(),
            available,
        })
    }

    fn found(&self, name: &str, shelf: &Shelf, path: PathBuf) -> Found {
        Found {
            name: name.to_owned(),
            kind: self.kind,
            place: shelf.place,
            location: Location::File(path),
            verbatim: shelf.verbatim,
        }
    }

    fn builtin(&self, name: &str, text: Cow<'static, str>) -> Found {
        Found {
            name: name.to_owned(),
            kind: self.kind,
            place: Place::Builtin,
            location: Location::Text(text),
            verbatim: false,
        }
    }
}

impl Shelf {
    /// Whether a path is a file that may be read.
    fn allows(&self, path: &Path) -> bool {
        let Ok(real) = fs::canonicalize(path) else {
            return false;
        };
        let inside = |outer: &PathBuf| fs::canonicalize(outer).is_ok_and(|it| real.starts_with(it));
        real.is_file() && self.boundary.as_ref().is_none_or(inside)
    }

    /// The files with the names they are found by: `a/b.md` is `a:b`.
    fn files(&self) -> Vec<(String, PathBuf)> {
        let mut files = Vec::new();
        self.walk(&self.directory, "", 0, &mut files);
        files.sort();
        files
    }

    fn walk(
        &self,
        directory: &Path,
        prefix: &str,
        depth: usize,
        files: &mut Vec<(String, PathBuf)>,
    ) {
        /// A link back up would be walked for ever.
        const DEEPEST: usize = 8;
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let file = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{prefix}{file}");
            if !Pattern::Workflow.accepts(&name) {
                continue;
            }
            if path.is_dir() && depth < DEEPEST {
                self.walk(&path, &format!("{name}:"), depth + 1, files);
            } else if path.extension().is_some_and(|it| it == "md") && self.allows(&path) {
                files.push((name, path));
            }
        }
    }
}

impl Brief {
    /// Reads a brief.
    ///
    /// # Errors
    ///
    /// [`BriefError::Unreadable`], [`BriefError::FrontMatter`].
    pub fn read(found: Found) -> Result<Self, BriefError> {
        let text = match &found.location {
            Location::File(path) => read(path)?.lossy().into_owned(),
            Location::Text(text) => text.clone().into_owned(),
        };
        let file = found.shown();
        let wrong = |line: usize, message: String| BriefError::FrontMatter {
            file: file.clone(),
            line,
            message,
        };
        let parted = front_matter::part(&file, &text);
        let parted = parted.map_err(|fault| wrong(fault.line, fault.message))?;
        let line = |at: Option<u32>| match (&parted.head, at) {
            (Some((source, _)), Some(at)) => source.position(at as usize).line,
            _ => 1,
        };
        let tree = parted.head.as_ref().map(|(_, tree)| tree);
        let head = match tree.map(flow_model::source::Tree::to_json) {
            None | Some(Json::Null) => Map::new(),
            Some(Json::Object(head)) => head,
            Some(_) => {
                let message = "the front matter is not `key: value` lines".to_owned();
                return Err(wrong(line(tree.map(|tree| tree.span.start)), message));
            }
        };
        let at = |key: &str| tree.and_then(|tree| tree.get(key)).map(|it| it.span.start);
        let description = match head.get("description") {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) => Some(text.trim().to_owned()),
            Some(_) => {
                let message = "`description` is not text".to_owned();
                return Err(wrong(line(at("description")), message));
            }
        };
        let declared = ["arguments", "parameters", "inputs"];
        let key = declared.into_iter().find(|key| head.contains_key(*key));
        let arguments = key.and_then(|key| head.get(key));
        let signature = signature(&found.name, arguments.filter(|_| !found.verbatim))
            .map_err(|message| wrong(line(key.and_then(at)), message))?;
        Ok(Brief {
            description,
            body: parted.body.trim_start_matches(['\n', '\r']).to_owned(),
            head,
            signature,
            found,
        })
    }

    /// Its arguments, in order; `None` when it declares none and accepts any.
    #[must_use]
    pub fn arguments(&self) -> Option<&[Field]> {
        self.signature.inputs.as_deref()
    }

    /// Its name and arguments as those of a workflow, for whatever reads a workflow's inputs.
    #[must_use]
    pub fn signature(&self) -> &Graph {
        &self.signature
    }

    /// Its text with arguments filled in.
    ///
    /// # Errors
    ///
    /// [`BriefError::Arguments`], [`BriefError::Text`].
    pub fn render(&self, arguments: &Value) -> Result<String, BriefError> {
        if self.found.verbatim {
            return Ok(self.body.clone());
        }
        let given: Vec<(&str, Value)> = arguments
            .as_map()
            .into_iter()
            .flat_map(|map| &map.0)
            .map(|(name, value)| (name.as_ref(), value.clone()))
            .collect();
        let arguments = match self.arguments() {
            None => Value::map(given),
            Some(fields) => complete(fields, &given).map_err(BriefError::Arguments)?,
        };
        let template = Template::Text(Expression {
            source: Cow::Owned(self.body.clone()),
            dialect: Dialect::Jinja,
        });
        let declared = self.arguments().unwrap_or_default().iter();
        let absent: Vec<&str> = declared
            .map(|field| field.name.as_ref())
            .filter(|name| arguments.get(name).is_none_or(|it| *it == Value::Null))
            .collect();
        let scope = Arguments(arguments);
        let instant = Instant::new(0, 0);
        // What is declared and not given is nothing; what is not declared is a mistake.
        let context = Context::new(&scope, &instant).forgiving(Absent {
            names: &absent,
            within: &Arguments::WHOLE,
        });
        let rendered = Engine::new().render(&template, &context);
        match rendered {
            Ok(Value::Str(text)) => Ok(text.to_string()),
            Ok(other) => Ok(other.to_string()),
            Err(error) => Err(BriefError::Text {
                file: self.found.shown(),
                message: error.message,
            }),
        }
    }
}

/// The arguments of a brief that were given, by name.
struct Arguments(Value);

impl Arguments {
    /// What all of them together are called.
    const WHOLE: [&str; 2] = ["inputs", "arguments"];
}

impl Scope for Arguments {
    fn lookup(&self, name: &str) -> Option<Value> {
        match Arguments::WHOLE.contains(&name) {
            true => Some(self.0.clone()),
            false => self.0.get(name).cloned(),
        }
    }

    fn field(&self, _: View, _: &str) -> Result<Option<Value>, EvalError> {
        Ok(None)
    }

    fn fields(&self, _: View) -> Vec<Arc<str>> {
        Vec::new()
    }
}

/// Arguments held against the rules of a workflow's inputs.
fn signature(name: &str, arguments: Option<&Json>) -> Result<Graph, String> {
    // Only its inputs matter.
    let mut document = json!({"name": name, "steps": [{"type": "return"}]});
    if let Some(arguments) = arguments {
        document["inputs"] = typed(by_name(arguments)?);
    }
    let compiled = compile(Source::from_value(name, &document), &NoLoader);
    let errors = compiled
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let told: Vec<String> = errors
        .map(|finding| {
            let path = finding
                .path
                .strip_prefix("inputs.")
                .unwrap_or(&finding.path);
            let help = finding.help.as_deref().unwrap_or_default();
            format!("argument `{path}`: {}; {help}", finding.message)
        })
        .collect();
    compiled.into_graph().ok_or_else(|| told.join("\n"))
}

/// Arguments by name: as they are, or from a list of `{name: …}`.
fn by_name(arguments: &Json) -> Result<Json, String> {
    let items = match arguments {
        Json::Object(_) => return Ok(arguments.clone()),
        Json::Null => return Ok(json!({})),
        Json::Array(items) => items,
        _ => return Err("the arguments are neither a map nor a list".to_owned()),
    };
    let mut map = Map::new();
    for item in items {
        let (name, rest) = match item {
            Json::String(name) => (name.clone(), json!({})),
            Json::Object(entry) => {
                let mut entry = entry.clone();
                let name = entry.remove("name");
                match name.as_ref().and_then(Json::as_str) {
                    Some(name) => (name.to_owned(), Json::Object(entry)),
                    None => return Err("an argument has no `name`".to_owned()),
                }
            }
            _ => return Err("an argument is neither a name nor `{name: …}`".to_owned()),
        };
        if map.insert(name.clone(), rest).is_some() {
            return Err(format!("the argument `{name}` is declared twice"));
        }
    }
    Ok(Json::Object(map))
}

/// An argument that does not say its type is text.
fn typed(arguments: Json) -> Json {
    let Json::Object(mut arguments) = arguments else {
        return arguments;
    };
    for argument in arguments.values_mut() {
        match argument {
            Json::Object(rules) => {
                rules.entry("type").or_insert_with(|| json!("string"));
            }
            Json::Null => *argument = json!("string"),
            _ => {}
        }
    }
    Json::Object(arguments)
}
