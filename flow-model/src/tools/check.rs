//! Whether parameters fit a tool.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::fault::{FaultKind, InvalidParameters, ParameterFault, Segment, noun};
use super::{Key, Parameter, Request, Rule, Shape, Tool, habit};
use crate::graph::Type;
use crate::suggest::nearest_or_part;

/// A parameter's value where it is known; `None` when only a run will tell.
pub type Known<'a> = Option<&'a Value>;

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
        let reason = error.to_string();
        let kind = FaultKind::Unreadable { reason };
        invalid(vec![ParameterFault::new(tool, "", &[], kind)])
    })
}

/// The parameters without `null` where it is no value, and with integers where the tool wants them.
fn normal(tool: &Tool, params: Value) -> Value {
    let Value::Object(params) = params else {
        return Value::Object(Map::new());
    };
    let is_given = |name: &str, value: &Value| !value.is_null() || takes_null(tool, name);
    let given = params
        .into_iter()
        .filter(|(name, value)| is_given(name, value));
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

/// Whether `null` is a value of a parameter, and not that it is absent: it takes any JSON.
fn takes_null(tool: &Tool, name: &str) -> bool {
    let parameter = tool.parameter(name);
    parameter.is_some_and(|parameter| parameter.required && parameter.shape.types.is_empty())
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
            vec![ParameterFault::new(tool, "", &[], kind)]
        }
    }
}

/// The faults of parameters of which some are known only at run time.
///
/// What is not known is taken to fit. `null` equals absent, except for a required parameter that
/// takes any JSON. `session_id` is never missing: it is
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
    let mut faults = check.faults;
    // A misspelt parameter is not missing as well.
    let meant: Vec<String> = faults
        .iter()
        .filter_map(|fault| match &fault.kind {
            FaultKind::Unknown { suggestion } => suggestion.clone(),
            _ => None,
        })
        .collect();
    faults.retain(|fault| {
        !matches!(fault.kind, FaultKind::Missing) || !meant.contains(&fault.parameter)
    });
    faults
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
            None => Given::No,
            Some((_, Some(Value::Null))) if !takes_null(self.tool, name) => Given::No,
            Some((_, None)) => Given::Perhaps,
            Some((_, Some(value))) => Given::Yes(value),
        }
    }

    fn values(&mut self) {
        for (name, value) in self.params {
            let Some(parameter) = self.tool.parameter(name) else {
                let names = self.tool.parameters().iter().map(|known| &*known.name);
                let suggestion = habit::meant(name, names).map(str::to_owned);
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
                    let kind = FaultKind::NotAKey {
                        found: key.to_owned(),
                        suggestion: Key::meant(key),
                    };
                    self.fault(name, &[Segment::Index(index)], kind);
                }
            }
            // Any text is a command, and any can be typed.
            Rule::Command(_) | Rule::Typed(_) | Rule::Definition(_) => {}
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
                suggestion: requoted(&shape.types, value).or_else(|| listed(shape, value)),
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
                        suggestion: nearest_or_part(text, shape.allowed.iter().map(String::as_str))
                            .map(str::to_owned),
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
            Value::Object(entries) if !shape.fields.is_empty() => {
                self.fields(name, path, &shape.fields, entries);
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

    /// The fields of an object that has no others.
    fn fields(
        &mut self,
        name: &str,
        path: &mut Vec<Segment>,
        fields: &[Parameter],
        entries: &Map<String, Value>,
    ) {
        let mut meant: Vec<String> = Vec::new();
        for (key, entry) in entries {
            path.push(Segment::Key(key.clone()));
            match fields.iter().find(|field| field.name == *key) {
                Some(field) => self.fits(name, path, &field.shape, entry),
                None => {
                    let names = fields.iter().map(|field| &*field.name);
                    let suggestion = habit::meant(key, names).map(str::to_owned);
                    meant.extend(suggestion.clone());
                    self.fault(name, path, FaultKind::Unknown { suggestion });
                }
            }
            path.pop();
        }
        for field in fields {
            // A misspelt field is not missing as well.
            let is_given = entries.contains_key(&field.name) || meant.contains(&field.name);
            if field.required && !is_given {
                path.push(Segment::Key(field.name.clone()));
                self.fault(name, path, FaultKind::Missing);
                path.pop();
            }
        }
    }

    fn fault(&mut self, parameter: &str, path: &[Segment], kind: FaultKind) {
        let fault = ParameterFault::new(self.tool, parameter, path, kind);
        self.faults.push(fault);
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

/// The value as a list of it alone, when that makes it fit.
fn listed(shape: &Shape, value: &Value) -> Option<String> {
    let item = shape.items.as_deref()?;
    let fits = item.types.iter().any(|kind| is_a(*kind, value));
    let is_plain = !value.is_object() && !value.is_array();
    (fits && is_plain).then(|| format!("[{value}]"))
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
