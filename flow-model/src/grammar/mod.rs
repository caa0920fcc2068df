//! The surface of the language as data: every key with its type, limits, default and meaning.
//!
//! The structural check walks a tree along these tables, the JSON Schema and the reference in the
//! documentation are printed from them, and the reader asks them which spelling a key has. What
//! the language accepts is therefore said once.

pub(crate) mod habit;
mod tables;

pub use tables::*;

use crate::graph;

/// A map with known keys.
#[derive(Debug)]
pub struct Record {
    /// What messages and the schema call it.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its keys; those of `more` count too.
    pub keys: &'static [Key],
    /// Keys shared with other records.
    pub more: &'static [Key],
    /// The type of keys not listed; `None` when there may be none.
    pub rest: Option<&'static Type>,
    /// How many keys it needs at least.
    pub at_least: usize,
    /// Canonical keys of which exactly one is given; empty when there is no such choice.
    pub one_of: &'static [&'static str],
}

impl Record {
    /// All keys, canonical spellings first.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static Key> + Clone {
        self.keys.iter().chain(self.more)
    }

    /// The key whose own record has this key: `validation` for the `pattern` of an input.
    pub(crate) fn around(&self, name: &str) -> Option<&'static Key> {
        let has = |ty: &Type| matches!(ty, Type::Record(inner) if inner.find(name).is_some());
        self.all_keys()
            .filter(|key| key.instead == Instead::Canonical)
            .find(|key| match key.ty {
                Type::Either(types) => types.iter().any(|ty| has(ty)),
                ty => has(ty),
            })
    }

    /// What messages call one: `shell step`, `transition`.
    #[must_use]
    pub fn noun(&self) -> String {
        match self.find("id") {
            Some(_) => format!("{} step", self.name),
            None if self.name == "computed" => "computed field".to_owned(),
            None => self.name.to_owned(),
        }
    }

    /// The key with this spelling.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Key> {
        self.all_keys().find(|key| key.name == name)
    }
}

/// A key of a record.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its spelling.
    pub name: &'static str,
    /// What it takes.
    pub ty: &'static Type,
    /// Whether it must be given.
    pub required: bool,
    /// What it is when not given, as text for people.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// The canonical key, when this is another spelling.
    pub instead: Instead,
}

/// How a key relates to the canonical one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// It is the canonical one.
    Canonical,
    /// Another name for this key, with the same values.
    Name(&'static str),
    /// Another form of what the text names, with values of its own.
    Form(&'static str),
}

/// What a value may be.
#[derive(Debug)]
pub enum Type {
    /// Text without templates.
    Text(Pattern, usize),
    /// A regular expression.
    Regex,
    /// Text that may contain templates.
    Template,
    /// A sole `{{ … }}`, a bare expression, or a boolean.
    Condition,
    /// Any value; every text in it may contain templates.
    Any,
    /// Any value, taken as it is.
    Literal,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// `true`: a key that says what holds anyway.
    True,
    /// A whole number between two bounds.
    Int(i64, i64),
    /// A number between two bounds.
    Number(f64, f64),
    /// Seconds, or text such as `30s`, `5m`, `1h`, `500ms`, between two bounds in seconds.
    Duration(f64, f64),
    /// Milliseconds, between two bounds in milliseconds.
    Millis(f64, f64),
    /// One of several words.
    Word(&'static [&'static str]),
    /// A list of so many at most.
    List(&'static Type, usize),
    /// A map with free keys, so many at most.
    Map(Pattern, &'static Type, usize),
    /// A map with known keys.
    Record(&'static Record),
    /// One step.
    Step,
    /// The action of a state: a step that acts, without `id`, `when` and `on_error`.
    ActionStep,
    /// The first of these whose kind fits.
    Either(&'static [&'static Type]),
}

/// What a name may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Anything.
    Free,
    /// A workflow: parts of letters, digits, `_` and `-`, joined by `:`.
    Workflow,
    /// A step, state, task, input, state field.
    Name,
    /// An environment variable.
    Environment,
    /// `@` and lower-case letters, digits, hyphens.
    Agent,
    /// The same without the `@`.
    AgentKey,
    /// A semantic version.
    Version,
}

impl Pattern {
    /// The pattern as a regular expression, as the schema has it.
    #[must_use]
    pub const fn regex(self) -> Option<&'static str> {
        match self {
            Pattern::Free => None,
            Pattern::Workflow => Some("^[A-Za-z0-9][A-Za-z0-9_-]*(:[A-Za-z0-9][A-Za-z0-9_-]*)*$"),
            Pattern::Name => Some("^[A-Za-z0-9_][A-Za-z0-9_.-]*$"),
            Pattern::Environment => Some("^[A-Z][A-Z0-9_]*$"),
            Pattern::Agent => Some("^@[a-z0-9-]+$"),
            Pattern::AgentKey => Some("^@?[a-z0-9-]+$"),
            Pattern::Version => {
                Some("^[0-9]+(\\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?(\\+[0-9A-Za-z.-]+)?$")
            }
        }
    }

    /// What such a name looks like, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Pattern::Free => "any text",
            Pattern::Workflow => {
                "letters, digits, `_` and `-`, starting with a letter or digit; parts joined by `:`"
            }
            Pattern::Name => "letters, digits, `_`, `-` and `.`, not starting with `-` or `.`",
            Pattern::Environment => "capital letters, digits and `_`, starting with a letter",
            Pattern::Agent => "`@` and lower-case letters, digits and hyphens",
            Pattern::AgentKey => "lower-case letters, digits and hyphens",
            Pattern::Version => "a semantic version such as `1.2.0`",
        }
    }

    /// Whether a text looks like it.
    #[must_use]
    pub fn accepts(self, text: &str) -> bool {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let agent = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match self {
            Pattern::Free => true,
            Pattern::Workflow => text.split(':').all(|part| {
                part.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && part.chars().all(|c| word(c) || c == '-')
            }),
            Pattern::Name => {
                text.starts_with(word) && text.chars().all(|c| word(c) || c == '-' || c == '.')
            }
            Pattern::Environment => {
                text.starts_with(|c: char| c.is_ascii_uppercase())
                    && text
                        .chars()
                        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            }
            Pattern::Agent => text
                .strip_prefix('@')
                .is_some_and(|name| !name.is_empty() && name.chars().all(agent)),
            Pattern::AgentKey => {
                let name = text.strip_prefix('@').unwrap_or(text);
                !name.is_empty() && name.chars().all(agent)
            }
            Pattern::Version => version(text),
        }
    }
}

fn version(text: &str) -> bool {
    let tail = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-')
    };
    let (rest, build) = match text.split_once('+') {
        Some((rest, build)) => (rest, tail(build)),
        None => (text, true),
    };
    let (core, pre) = match rest.split_once('-') {
        Some((core, pre)) => (core, tail(pre)),
        None => (rest, true),
    };
    let numbers: Vec<&str> = core.split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    build && pre && numbers.len() <= 3 && numbers.iter().all(number)
}

/// A word that `type:` may have, with the record it opens.
#[derive(Debug)]
pub struct StepWord {
    /// The word.
    pub word: &'static str,
    /// What it means.
    pub kind: StepKind,
    /// Its keys, beyond those every step has.
    pub record: &'static Record,
    /// Whether it is another spelling.
    pub alias: bool,
}

/// A step type, after aliases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// Branches.
    Condition,
    /// Loops while something holds.
    While,
    /// Once per item.
    Foreach,
    /// Leaves a loop.
    Break,
    /// Starts a loop's next iteration.
    Continue,
    /// Jumps.
    Goto,
    /// Ends the run or task.
    Return,
    /// Writes state.
    SetState,
    /// Runs another workflow.
    Call,
    /// Runs a command.
    Shell,
    /// Calls a tool.
    McpCall,
    /// Tells or asks a person.
    Prompt,
    /// Lets time pass.
    Wait,
    /// Hands a task to an agent.
    Delegate,
}

impl StepKind {
    /// Whether it can be the action of a state.
    #[must_use]
    pub const fn acts(self) -> bool {
        match self {
            StepKind::SetState
            | StepKind::Call
            | StepKind::Shell
            | StepKind::McpCall
            | StepKind::Prompt
            | StepKind::Wait
            | StepKind::Delegate => true,
            StepKind::Condition
            | StepKind::While
            | StepKind::Foreach
            | StepKind::Break
            | StepKind::Continue
            | StepKind::Goto
            | StepKind::Return => false,
        }
    }

    /// Whether it has a result that `output_to` can store.
    #[must_use]
    pub const fn has_result(self) -> bool {
        self.acts() || matches!(self, StepKind::Foreach)
    }
}

/// The step type that a word names.
#[must_use]
pub fn step_word(word: &str) -> Option<&'static StepWord> {
    STEPS.iter().find(|step| step.word == word)
}

/// A type of the language by its word.
#[must_use]
pub fn type_word(word: &str) -> Option<graph::Type> {
    Some(match word {
        "string" => graph::Type::String,
        "number" => graph::Type::Number,
        "integer" => graph::Type::Integer,
        "boolean" => graph::Type::Boolean,
        "array" => graph::Type::Array,
        "object" => graph::Type::Object,
        _ => return None,
    })
}

/// Seconds of a duration text such as `90`, `30s`, `1.5m`.
#[must_use]
pub fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, factor) = [
        ("ms", 0.001),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86400.0),
    ]
    .into_iter()
    .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, factor)))
    .unwrap_or((text, 1.0));
    let number = number.trim();
    if number.is_empty() || !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    number.parse::<f64>().ok().map(|value| value * factor)
}
