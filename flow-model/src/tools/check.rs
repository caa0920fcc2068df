//! Whether parameters fit a tool.

use std::fmt;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::nearest::nearest;
use super::{Key, Request, Rule, Shape, Tool};
use crate::graph::Type;

/// A parameter's value where it is known; `None` when only a run will tell.
pub type Known<'a> = Option<&'a Value>;

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
        /// The value as it would fit, when only quotes make the difference.
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
    /// Its text is not a regular expression.
    InvalidPattern {
        /// Why not.
        reason: String,
    },
    /// It cannot be read for another reason.
    Unreadable,
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

/// Reads the parameters of a call into the tool's request type.
///
/// `null` is read as absent, and a number such as `5.0` as the integer it is.
///
/// ```
/// use flow_model::tools::{self, AwaitOutputRequest};
/// use serde_json::json;
///
/// let request: AwaitOutputRequest = tools::request(json!({"pattern": "ready"}))?;
/// assert_eq!(request.timeout, 10.0);
/// # Ok::<(), tools::InvalidParameters>(())
/// ```
///
/// # Errors
///
/// Every fault that [`check`] finds.
pub fn request<R: Request>(params: Value) -> Result<R, InvalidParameters> {
    let tool = R::tool();
    let invalid = |faults| InvalidParameters {
        tool: tool.name,
        faults,
    };
    let faults = check(tool, &params);
    if !faults.is_empty() {
        return Err(invalid(faults));
    }
    serde_json::from_value(normal(tool, params)).map_err(|error| {
        invalid(vec![ParameterFault {
            parameter: String::new(),
            path: Vec::new(),
            kind: FaultKind::Unreadable,
            message: format!("the parameters of `{}` cannot be read: {error}", tool.name),
            help: None,
        }])
    })
}

/// The parameters without `null`, and with integers where the tool wants them.
fn normal(tool: &Tool, params: Value) -> Value {
    let Value::Object(params) = params else {
        return Value::Object(Map::new());
    };
    let given = params.into_iter().filter(|(_, value)| !value.is_null());
    let integral = |name: &str, value: Value| {
        let integer = tool
            .parameter(name)
            .is_some_and(|parameter| parameter.shape.types.contains(&Type::Integer));
        match value.as_f64() {
            // The range of every integer parameter, checked before, is far within `i64`.
            Some(number) if integer => Value::from(number as i64),
            _ => value,
        }
    };
    given
        .map(|(name, value)| {
            let value = integral(&name, value);
            (name, value)
        })
        .collect()
}

/// The faults of parameters that are all known.
pub fn check(tool: &Tool, params: &Value) -> Vec<ParameterFault> {
    match params {
        Value::Null => check_parameters(tool, &[]),
        Value::Object(params) => {
            let known: Vec<(&str, Known<'_>)> = params
                .iter()
                .map(|(name, value)| (name.as_str(), Some(value)))
                .collect();
            check_parameters(tool, &known)
        }
        other => {
            let kind = FaultKind::WrongType {
                expected: vec![Type::Object],
                found: noun_of(other),
                suggestion: None,
            };
            vec![ParameterFault {
                parameter: String::new(),
                path: Vec::new(),
                message: format!(
                    "the parameters of `{}` must be an object, not {}",
                    tool.name,
                    noun_of(other)
                ),
                kind,
                help: None,
            }]
        }
    }
}

/// The faults of parameters of which some are known only at run time.
///
/// What is not known is taken to fit. `null` equals absent. `session_id` is never missing: it is
/// injected.
pub fn check_parameters(tool: &Tool, params: &[(&str, Known<'_>)]) -> Vec<ParameterFault> {
    let mut check = Check {
        tool,
        params,
        faults: Vec::new(),
    };
    check.values();
    check.required();
    for rule in tool.rules {
        check.rule(*rule);
    }
    check.faults
}

struct Check<'a> {
    tool: &'a Tool,
    params: &'a [(&'a str, Known<'a>)],
    faults: Vec<ParameterFault>,
}

/// What a call says about a parameter.
enum Given<'a> {
    No,
    Perhaps,
    Yes(&'a Value),
}

impl<'a> Check<'a> {
    fn given(&self, name: &str) -> Given<'a> {
        match self.params.iter().find(|(given, _)| *given == name) {
            None | Some((_, Some(Value::Null))) => Given::No,
            Some((_, None)) => Given::Perhaps,
            Some((_, Some(value))) => Given::Yes(value),
        }
    }

    fn values(&mut self) {
        for (name, value) in self.params {
            let Some(parameter) = self.tool.parameter(name) else {
                let names = self.tool.parameters().iter().map(|known| &*known.name);
                let suggestion = nearest(name, names);
                self.fault(name, &[], FaultKind::Unknown { suggestion });
                continue;
            };
            if let Some(value) = value.filter(|value| !value.is_null()) {
                self.fits(name, &mut Vec::new(), &parameter.shape, value);
            }
        }
    }

    fn required(&mut self) {
        for parameter in self.tool.parameters() {
            if parameter.required && matches!(self.given(&parameter.name), Given::No) {
                self.fault(&parameter.name, &[], FaultKind::Missing);
            }
        }
    }

    fn rule(&mut self, rule: Rule) {
        match rule {
            Rule::AtLeastOne(names) => self.at_least_one(names),
            Rule::ExactlyOne(names) => {
                self.at_least_one(names);
                let mut certain = self.params.iter().filter(|(name, value)| {
                    names.contains(name) && value.is_some_and(|value| !value.is_null())
                });
                if let (Some((first, _)), Some((second, _))) = (certain.next(), certain.next()) {
                    let with = (*first).to_owned();
                    self.fault(second, &[], FaultKind::Conflict { with });
                }
            }
            Rule::Pattern(name) => {
                let Given::Yes(Value::String(pattern)) = self.given(name) else {
                    return;
                };
                let compiled = RegexBuilder::new(pattern)
                    .multi_line(true)
                    .crlf(true)
                    .build();
                if let Err(error) = compiled {
                    // The lines above the last draw the pattern.
                    let drawn = error.to_string();
                    let last = drawn.lines().last().unwrap_or_default();
                    let reason = last.trim_start_matches("error: ").to_owned();
                    self.fault(name, &[], FaultKind::InvalidPattern { reason });
                }
            }
            Rule::Keys(name) => {
                let Given::Yes(Value::Array(keys)) = self.given(name) else {
                    return;
                };
                for (index, key) in keys.iter().enumerate() {
                    let Some(key) = key.as_str().filter(|key| key.parse::<Key>().is_err()) else {
                        continue;
                    };
                    let kind = FaultKind::NotOneOf {
                        allowed: Key::names().map(str::to_owned).collect(),
                        found: key.to_owned(),
                        suggestion: nearest(key, Key::names()),
                    };
                    self.fault(name, &[Segment::Index(index)], kind);
                }
            }
        }
    }

    fn at_least_one(&mut self, names: &[&str]) {
        let none = names
            .iter()
            .all(|name| matches!(self.given(name), Given::No));
        if let (true, Some(first)) = (none, names.first()) {
            self.fault(first, &[], FaultKind::Missing);
        }
    }

    fn fits(&mut self, name: &str, path: &mut Vec<Segment>, shape: &Shape, value: &Value) {
        if !shape.types.is_empty() && !shape.types.iter().any(|kind| is_a(*kind, value)) {
            let kind = FaultKind::WrongType {
                expected: shape.types.clone(),
                found: noun_of(value),
                suggestion: requoted(&shape.types, value),
            };
            self.fault(name, path, kind);
            return;
        }
        match value {
            Value::Number(number) => {
                let found = number.as_f64().unwrap_or(f64::NAN);
                let (minimum, maximum) = (shape.minimum, shape.maximum);
                let low = minimum.is_some_and(|minimum| found < minimum);
                let high = maximum.is_some_and(|maximum| found > maximum);
                if low || high {
                    let kind = FaultKind::OutOfRange {
                        minimum,
                        maximum,
                        found,
                    };
                    self.fault(name, path, kind);
                }
            }
            Value::String(text) if !shape.allowed.is_empty() => {
                if !shape.allowed.contains(text) {
                    let kind = FaultKind::NotOneOf {
                        suggestion: nearest(text, shape.allowed.iter().map(String::as_str)),
                        allowed: shape.allowed.clone(),
                        found: text.clone(),
                    };
                    self.fault(name, path, kind);
                }
            }
            Value::Array(items) => {
                if let Some(shape) = &shape.items {
                    for (index, item) in items.iter().enumerate() {
                        path.push(Segment::Index(index));
                        self.fits(name, path, shape, item);
                        path.pop();
                    }
                }
            }
            Value::Object(entries) => {
                if let Some(shape) = &shape.values {
                    for (key, entry) in entries {
                        path.push(Segment::Key(key.clone()));
                        self.fits(name, path, shape, entry);
                        path.pop();
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    /// The wording of every fault.
    fn fault(&mut self, parameter: &str, path: &[Segment], kind: FaultKind) {
        let tool = self.tool.name;
        let place = place(parameter, path);
        let together = self.together(parameter);
        let (message, help) = match &kind {
            FaultKind::Unknown { suggestion } => {
                let names = self.tool.parameters().iter().map(|known| &*known.name);
                (
                    format!("`{tool}` has no parameter `{parameter}`"),
                    Some(match suggestion {
                        Some(name) => format!("did you mean `{name}`?"),
                        None if self.tool.parameters().is_empty() => "it takes none".to_owned(),
                        None => format!("it takes {}", list(names, "and")),
                    }),
                )
            }
            FaultKind::Missing => match together {
                Some(names) => (
                    format!("`{tool}` needs {}", list(names.iter().copied(), "or")),
                    None,
                ),
                None => (format!("`{tool}` needs `{parameter}`"), None),
            },
            FaultKind::Conflict { with } => (
                format!("`{tool}` takes `{with}` or `{parameter}`, not both"),
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
                    format!(
                        "`{place}` of `{tool}` must be {}, not {found}",
                        expected.join(" or ")
                    ),
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
                (
                    format!("`{place}` of `{tool}` must be {range}, not {found}"),
                    None,
                )
            }
            FaultKind::NotOneOf {
                allowed,
                found,
                suggestion,
            } => (
                format!("`{place}` of `{tool}` cannot be `{found}`"),
                Some(match suggestion {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!(
                        "it can be {}",
                        list(allowed.iter().map(|name| &**name), "or")
                    ),
                }),
            ),
            FaultKind::InvalidPattern { reason } => (
                format!("`{place}` of `{tool}` is not a regular expression: {reason}"),
                None,
            ),
            FaultKind::Unreadable => (format!("`{place}` of `{tool}` cannot be read"), None),
        };
        self.faults.push(ParameterFault {
            parameter: parameter.to_owned(),
            path: path.to_vec(),
            kind,
            message,
            help,
        });
    }

    /// The parameters that can stand for one another, this one among them.
    fn together(&self, parameter: &str) -> Option<&'static [&'static str]> {
        self.tool.rules.iter().find_map(|rule| match rule {
            Rule::ExactlyOne(names) | Rule::AtLeastOne(names) => {
                names.contains(&parameter).then_some(*names)
            }
            Rule::Pattern(_) | Rule::Keys(_) => None,
        })
    }
}

/// The value with or without quotes, when that makes it fit.
fn requoted(expected: &[Type], value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let bare: Value = serde_json::from_str(text).ok()?;
            let fits = expected.iter().any(|kind| is_a(*kind, &bare));
            fits.then(|| bare.to_string())
        }
        Value::Number(_) | Value::Bool(_) if expected.contains(&Type::String) => {
            Some(format!("\"{value}\""))
        }
        _ => None,
    }
}

fn is_a(kind: Type, value: &Value) -> bool {
    match kind {
        Type::Any => true,
        Type::String => value.is_string(),
        Type::Number => value.is_number(),
        Type::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Type::Boolean => value.is_boolean(),
        Type::Array => value.is_array(),
        Type::Object => value.is_object(),
    }
}

fn noun(kind: Type) -> &'static str {
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

fn noun_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => noun(Type::Boolean),
        Value::Number(_) if is_a(Type::Integer, value) => noun(Type::Integer),
        Value::Number(_) => noun(Type::Number),
        Value::String(_) => noun(Type::String),
        Value::Array(_) => noun(Type::Array),
        Value::Object(_) => noun(Type::Object),
    }
}

/// `environment.PORT`, `keys[1]`.
fn place(parameter: &str, path: &[Segment]) -> String {
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
    place
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
