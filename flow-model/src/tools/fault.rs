//! What can be wrong with parameters, and how it is said.

use std::fmt;

use super::{Key, Parameter, Rule, Tool};
use crate::graph::Type;

/// A parameter that does not fit its tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterFault {
    /// The parameter's name; empty when the parameters as a whole are at fault.
    pub parameter: String,
    /// Where in the parameter's value; empty for the value itself.
    pub path: Vec<Segment>,
    /// What is wrong.
    pub kind: FaultKind,
    /// What is wrong, in a sentence that names tool and parameter.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The value of a key.
    Key(String),
    /// An item, counted from 0.
    Index(usize),
}

/// What is wrong with a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// The tool has no such parameter.
    Unknown {
        /// The parameter that was probably meant.
        suggestion: Option<String>,
    },
    /// It is needed and not given.
    Missing,
    /// It is given beside another that excludes it.
    Conflict {
        /// The other one.
        with: String,
    },
    /// Its value has the wrong type.
    WrongType {
        /// The types allowed.
        expected: Vec<Type>,
        /// The type it has, with its article.
        found: &'static str,
        /// The value as it would fit, when only quotes, or the brackets of a list, make the difference.
        suggestion: Option<String>,
    },
    /// Its number is too small or too large.
    OutOfRange {
        /// The smallest allowed.
        minimum: Option<f64>,
        /// The largest allowed.
        maximum: Option<f64>,
        /// The number it is.
        found: f64,
    },
    /// Its text is none of those allowed.
    NotOneOf {
        /// Those allowed.
        allowed: Vec<String>,
        /// The text it is.
        found: String,
        /// The one that was probably meant.
        suggestion: Option<String>,
    },
    /// Its text names no key.
    NotAKey {
        /// The text it is.
        found: String,
        /// The key that was probably meant.
        suggestion: Option<Key>,
    },
    /// Its text is not a regular expression.
    InvalidPattern {
        /// Why not.
        reason: String,
    },
    /// It cannot be read for another reason.
    Unreadable {
        /// The reason.
        reason: String,
    },
}

/// Parameters that a tool refuses, with every fault they have.
#[derive(Clone, Debug, PartialEq)]
pub struct InvalidParameters {
    /// The tool's name.
    pub tool: &'static str,
    /// The faults; at least one.
    pub faults: Vec<ParameterFault>,
}

impl std::error::Error for InvalidParameters {}

impl fmt::Display for InvalidParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ParameterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.help {
            Some(help) => write!(f, "{}: {help}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl ParameterFault {
    /// The fault in its words; all wording is here.
    pub(super) fn new(tool: &Tool, parameter: &str, path: &[Segment], kind: FaultKind) -> Self {
        let name = tool.name;
        let place = place(tool, parameter, path);
        let (message, help) = match &kind {
            FaultKind::Unknown { suggestion } => {
                let (message, known) = match path.split_last() {
                    Some((Segment::Key(key), around)) => (
                        format!("{} has no `{key}`", self::place(tool, parameter, around)),
                        fields_at(tool, parameter, around),
                    ),
                    _ => (
                        format!("`{name}` has no parameter `{parameter}`"),
                        tool.parameters(),
                    ),
                };
                let names = known.iter().map(|known| &*known.name);
                (
                    message,
                    Some(match suggestion {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None if known.is_empty() => "it takes none".to_owned(),
                        None => format!("it takes {}", list(names, "and")),
                    }),
                )
            }
            FaultKind::Missing => match (path.split_last(), together(tool, parameter)) {
                (Some((Segment::Key(key), around)), _) => {
                    let around = self::place(tool, parameter, around);
                    (format!("{around} needs `{key}`"), None)
                }
                (_, Some(names)) => (
                    format!("`{name}` needs {}", list(names.iter().copied(), "or")),
                    None,
                ),
                (_, None) => (format!("`{name}` needs `{parameter}`"), None),
            },
            FaultKind::Conflict { with } => (
                format!("`{name}` takes `{with}` or `{parameter}`, not both"),
                Some("leave one of them out".to_owned()),
            ),
            FaultKind::WrongType {
                expected,
                found,
                suggestion,
            } => {
                let expected = expected.iter().map(|kind| noun(*kind));
                let expected: Vec<_> = expected.collect();
                (
                    format!("{place} must be {}, not {found}", expected.join(" or ")),
                    suggestion.as_ref().map(|value| format!("write `{value}`")),
                )
            }
            FaultKind::OutOfRange {
                minimum,
                maximum,
                found,
            } => {
                let range = match (minimum, maximum) {
                    (Some(minimum), Some(maximum)) => format!("from {minimum} to {maximum}"),
                    (Some(minimum), None) => format!("at least {minimum}"),
                    (None, Some(maximum)) => format!("at most {maximum}"),
                    (None, None) => "a number".to_owned(),
                };
                (format!("{place} must be {range}, not {found}"), None)
            }
            FaultKind::NotOneOf {
                allowed,
                found,
                suggestion,
            } => (
                format!("{place} cannot be `{found}`"),
                Some(match suggestion {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!(
                        "it can be {}",
                        list(allowed.iter().map(|name| &**name), "or")
                    ),
                }),
            ),
            FaultKind::NotAKey { found, suggestion } => (
                format!("{place} names no key: `{found}`"),
                Some(match suggestion {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!(
                        "a key is one character or {}, with `ctrl-`, `alt-` or `shift-` before it \
                         if held; text belongs in `input_text`",
                        list(Key::names(), "or")
                    ),
                }),
            ),
            FaultKind::InvalidPattern { reason } => (
                format!("{place} is not a regular expression: {reason}"),
                None,
            ),
            FaultKind::Unreadable { reason } => (format!("{place} cannot be read: {reason}"), None),
        };
        Self {
            parameter: parameter.to_owned(),
            path: path.to_vec(),
            kind,
            message,
            help,
        }
    }
}

/// The fields of the object at a place.
fn fields_at<'t>(tool: &'t Tool, parameter: &str, path: &[Segment]) -> &'t [Parameter] {
    let shape = tool.parameter(parameter).map(|parameter| &parameter.shape);
    let shape = path.iter().fold(shape, |shape, segment| match segment {
        Segment::Index(_) => shape?.items.as_deref(),
        Segment::Key(key) => {
            let shape = shape?;
            let field = shape.fields.iter().find(|field| field.name == *key);
            field.map(|field| &field.shape).or(shape.values.as_deref())
        }
    });
    shape.map_or(&[], |shape| &shape.fields)
}

/// The parameters that can stand for one another, this one among them.
fn together(tool: &Tool, parameter: &str) -> Option<&'static [&'static str]> {
    tool.rules.iter().find_map(|rule| match rule {
        Rule::ExactlyOne(names) | Rule::AtLeastOne(names) => {
            names.contains(&parameter).then_some(*names)
        }
        Rule::Pattern(_)
        | Rule::Keys(_)
        | Rule::Command(_)
        | Rule::Typed(_)
        | Rule::Definition(_) => None,
    })
}

/// The type with its article.
pub(super) fn noun(kind: Type) -> &'static str {
    match kind {
        Type::Any => "any value",
        Type::String => "a string",
        Type::Number => "a number",
        Type::Integer => "an integer",
        Type::Boolean => "a boolean",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}

/// `` `environment.PORT` of `open_terminal` ``
fn place(tool: &Tool, parameter: &str, path: &[Segment]) -> String {
    if parameter.is_empty() {
        return format!("the parameters of `{}`", tool.name);
    }
    let mut place = parameter.to_owned();
    for segment in path {
        match segment {
            Segment::Key(key) => {
                place.push('.');
                place.push_str(key);
            }
            Segment::Index(index) => place.push_str(&format!("[{index}]")),
        }
    }
    format!("`{place}` of `{}`", tool.name)
}

/// `` `a`, `b` and `c` ``
fn list<'a>(names: impl Iterator<Item = &'a str>, last: &str) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
