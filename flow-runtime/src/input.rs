//! Inputs of a run against their declarations, by the rules that compiled workflows use too.

use std::fmt;
use std::sync::Arc;

use flow_model::expression::is_variable_name;
use flow_model::graph::{Field, Form, Graph, Type, Validation};
use flow_model::value::{self, Values};

use crate::secret::{self, Reference, Scrubber};
use crate::value::Value;

/// Bytes of a file that holds a secret.
const LARGEST_FILE: u64 = 64 * 1024;

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFault {
    /// The input's name, with the path below it.
    pub input: String,
    /// What is wrong, as the end of a sentence.
    pub reason: String,
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a definition says itself is a sentence of its own.
        let space = if self.reason.starts_with(':') {
            ""
        } else {
            " "
        };
        write!(f, "`{}`{space}{}", self.input, self.reason)
    }
}

impl From<value::InputFault> for InputFault {
    fn from(fault: value::InputFault) -> Self {
        let named = format!("`{}`", fault.path);
        let reason = fault.message.strip_prefix(&named).unwrap_or(&fault.message);
        InputFault {
            reason: reason.trim_start().to_owned(),
            input: fault.path,
        }
    }
}

/// Checks inputs and fills in defaults, in the order declared. `null` equals absent, and what is
/// absent is left out.
///
/// # Errors
///
/// Every fault.
pub fn complete(fields: &[Field], given: &[(&str, Value)]) -> Result<Value, Vec<InputFault>> {
    let given = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_json()));
    match value::accept(fields, given.collect()) {
        Ok(values) => Ok(Value::map(
            values
                .iter()
                .map(|(name, value)| (name, Value::from(value))),
        )),
        Err(invalid) => Err(invalid.0.into_iter().map(InputFault::from).collect()),
    }
}

/// Inputs that fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// All of them, in the order declared. Secrets are among them as they are.
    pub inputs: Value,
    /// The secret ones with their values, and where those come from.
    pub secrets: Vec<(String, String, Reference)>,
}

impl Accepted {
    /// The inputs as people may see them.
    #[must_use]
    pub fn shown(&self) -> Value {
        let mut shown = self.inputs.clone();
        if let Value::Map(map) = &mut shown {
            for (name, _, _) in &self.secrets {
                let masked = Value::text(secret::mask_of(name));
                Arc::make_mut(map)
                    .0
                    .insert(Arc::from(name.as_str()), masked);
            }
        }
        shown
    }
}

/// Checks inputs, fills in defaults, and finds the values of secret ones: from `env:NAME` or
/// `file:PATH` when that is what was given, from the variable of the input when nothing was.
///
/// # Errors
///
/// Every fault. None shows a secret.
pub fn accept(fields: Option<&[Field]>, given: &Value) -> Result<Accepted, Vec<InputFault>> {
    let mut given: Vec<(&str, Value)> = match given {
        Value::Map(map) => {
            let entries = map.0.iter();
            entries
                .map(|(name, value)| (&**name, value.clone()))
                .collect()
        }
        _ => Vec::new(),
    };
    let Some(fields) = fields else {
        return Ok(Accepted {
            inputs: Value::map(given),
            secrets: Vec::new(),
        });
    };
    let mut secrets = Vec::new();
    let mut faults = Vec::new();
    for field in fields.iter().filter(|field| field.secret) {
        let name = field.name.as_ref();
        let at = given.iter().position(|(known, _)| *known == name);
        let value = at.map(|at| given.swap_remove(at).1);
        match find_secret(field, value) {
            Ok(None) => {}
            Ok(Some((text, reference))) => {
                given.push((name, typed(field.ty, &text)));
                secrets.push((name.to_owned(), text, reference));
            }
            Err(reason) => faults.push(InputFault {
                input: name.to_owned(),
                reason,
            }),
        }
    }
    let mut scrubber = Scrubber::default();
    for (name, text, _) in &secrets {
        scrubber.add("", name, text);
    }
    match complete(fields, &given) {
        Ok(inputs) if faults.is_empty() => Ok(Accepted { inputs, secrets }),
        Ok(_) => Err(faults),
        Err(others) => {
            let known: Vec<String> = faults.iter().map(|fault| fault.input.clone()).collect();
            let others = others.into_iter();
            let others = others.filter(|fault| !known.contains(&fault.input));
            faults.extend(others.map(|fault| InputFault {
                reason: match scrubber.text(&fault.reason) {
                    Some(scrubbed) => secret::mask(&scrubbed).into_owned(),
                    None => fault.reason,
                },
                input: fault.input,
            }));
            Err(faults)
        }
    }
}

/// Reads a text as a value of a type, as people write them.
///
/// # Errors
///
/// What it must be, as the end of a sentence.
pub fn parse(ty: Type, text: &str) -> Result<Value, String> {
    let json = || serde_json::from_str::<serde_json::Value>(text).map(|json| Value::from(&json));
    match ty {
        Type::String => Ok(Value::text(text)),
        Type::Any => Ok(match json() {
            Ok(value) => value,
            Err(_) => Value::text(text),
        }),
        Type::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" => Ok(Value::Bool(true)),
            "false" | "no" => Ok(Value::Bool(false)),
            _ => Err(format!("must be true or false, not `{text}`")),
        },
        Type::Number | Type::Integer => {
            let number = match text.trim().parse::<i64>() {
                Ok(whole) => Some(Value::Int(whole)),
                Err(_) => text
                    .trim()
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite())
                    .map(Value::number),
            };
            match number {
                Some(Value::Float(_)) | None if ty == Type::Integer => Err(not_whole(text)),
                Some(number) => Ok(number),
                None => Err(format!("must be a number, not `{text}`")),
            }
        }
        Type::Array => match json() {
            Ok(list @ Value::List(_)) => Ok(list),
            _ => Err(format!(
                "must be a JSON array such as `[1, 2]`, not `{text}`"
            )),
        },
        Type::Object => match json() {
            Ok(map @ Value::Map(_)) => Ok(map),
            _ => Err(format!(
                "must be a JSON object such as `{{\"key\": 1}}`, not `{text}`"
            )),
        },
    }
}

/// Why a text is not a whole number: it is none, or it is too large for one.
fn not_whole(text: &str) -> String {
    let is_whole = text.trim().parse::<f64>().is_ok_and(|it| it.fract() == 0.0);
    let digits = text.trim().trim_start_matches(['+', '-']);
    let is_long = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    match is_whole || is_long {
        true => format!(
            "must be a whole number of 64 bits, {} to {}, not `{text}`",
            i64::MIN,
            i64::MAX
        ),
        false => format!("must be a whole number, not `{text}`"),
    }
}

/// Reads a text as the value of an input. A secret stays a text until [`accept`] looks at its type,
/// so that no message shows it.
///
/// # Errors
///
/// What it must be, as the end of a sentence.
pub fn read(field: Option<&Field>, text: &str) -> Result<Value, String> {
    match field {
        Some(field) if field.secret => Ok(Value::text(text)),
        // There is none: `null` equals absent. A text of four letters is one.
        Some(field) if field.ty != Type::String && text.trim() == "null" => Ok(Value::Null),
        Some(field) => parse(field.ty, text),
        None => parse(Type::Any, text),
    }
}

/// An output as its declaration wants it: a text is read as people write one, and what is no text is
/// written as one where a text is declared. `null` says that there is none.
///
/// # Errors
///
/// What it must be, as the end of a sentence.
pub fn output(field: &Field, value: Value) -> Result<Value, String> {
    match (field.ty, value) {
        (Type::Any, value)
        | (_, value @ Value::Null)
        | (Type::String, value @ Value::Str(_))
        | (Type::Number, value @ (Value::Int(_) | Value::Float(_)))
        | (Type::Integer, value @ Value::Int(_))
        | (Type::Boolean, value @ Value::Bool(_))
        | (Type::Array, value @ Value::List(_))
        | (Type::Object, value @ Value::Map(_)) => Ok(value),
        (ty, Value::Str(text)) => parse(ty, text.trim()),
        (Type::String, value @ (Value::Int(_) | Value::Float(_) | Value::Bool(_))) => {
            Ok(Value::text(value.to_string()))
        }
        (ty, value) => {
            let article = if ty.word().starts_with(['a', 'i', 'o']) {
                "an"
            } else {
                "a"
            };
            Err(format!(
                "must be {article} {}, not {}",
                ty.word(),
                value.noun()
            ))
        }
    }
}

/// Fills inputs from variables that are named like them, and gives both. A text for an input of
/// another type is read as people write it, since variables may all be texts.
///
/// # Errors
///
/// Every variable that its input cannot take, or that no `{name}` can stand for, and then every
/// other fault of the inputs.
pub fn fill(
    graph: &Graph,
    inputs: &Value,
    variables: &Value,
) -> Result<(Value, Value), Vec<InputFault>> {
    let Value::Map(all) = variables else {
        return Ok((inputs.clone(), variables.clone()));
    };
    let fields = graph.inputs.as_deref().unwrap_or_default();
    let mut given = match inputs {
        Value::Map(given) => given.0.clone(),
        _ => indexmap::IndexMap::new(),
    };
    let mut rest = Vec::new();
    let mut faults = Vec::new();
    for (name, value) in &all.0 {
        let Some(field) = fields.iter().find(|field| *field.name == **name) else {
            let is_named = graph.form == Form::Steps || is_variable_name(name);
            match is_named {
                true => rest.push((name.clone(), value.clone())),
                false => faults.push(InputFault {
                    input: name.to_string(),
                    reason: NO_VARIABLE.to_owned(),
                }),
            }
            continue;
        };
        if given.contains_key(name) {
            continue;
        }
        let read = match (value, field.ty) {
            (Value::Str(text), ty) if ty != Type::Any && !field.secret => parse(ty, text),
            _ => Ok(value.clone()),
        };
        match read {
            Ok(value) => drop(given.insert(name.clone(), value)),
            Err(reason) => faults.push(InputFault {
                input: name.to_string(),
                reason,
            }),
        }
    }
    if !faults.is_empty() {
        let given = Value::map(given);
        let others = accept(graph.inputs.as_deref(), &given).err();
        let mut others = others.unwrap_or_default();
        others.retain(|other| faults.iter().all(|fault| fault.input != other.input));
        faults.append(&mut others);
        return Err(faults);
    }
    let rest = match rest.is_empty() {
        true => Value::Null,
        false => Value::map(rest),
    };
    Ok((Value::map(given), rest))
}

const NO_VARIABLE: &str = "cannot be the name of a variable: `{name}` has letters, digits, `_`, `-` \
                           and `.`, begins with a letter or `_` and ends with none of `-` and `.`";

/// The value of a secret input, and where it comes from.
fn find_secret(field: &Field, given: Option<Value>) -> Result<Option<(String, Reference)>, String> {
    let variable = secret::variable(&field.name);
    let (text, reference) = match given {
        None | Some(Value::Null) => match (std::env::var(&variable), &field.default) {
            (Ok(value), _) => (value, Reference::Environment(variable)),
            (Err(_), Some(default)) => match Value::from(default) {
                Value::Str(text) => (text.to_string(), Reference::Default),
                other => (other.to_string(), Reference::Default),
            },
            (Err(_), None) if field.required => {
                return Err(format!(
                    "is secret and not given; set {variable}, or give `env:NAME` or `file:PATH`"
                ));
            }
            (Err(_), None) => return Ok(None),
        },
        Some(given) => return given_secret(&given).map(Some),
    };
    long_enough(text).map(|text| Some((text, reference)))
}

/// The value of a secret that somebody gives, and where it comes from.
pub(crate) fn given_secret(given: &Value) -> Result<(String, Reference), String> {
    let (text, reference) = match given {
        Value::Str(text) => match text.parse() {
            Ok(reference @ (Reference::Environment(_) | Reference::File(_))) => {
                let reference = whole(reference);
                match read_reference(&reference) {
                    Ok(Some(value)) => (value, reference),
                    Ok(None) => return Err(format!("is not to be found in `{reference}`")),
                    Err(reason) => return Err(reason),
                }
            }
            Ok(Reference::Default | Reference::Hand) | Err(_) => {
                (text.to_string(), Reference::Hand)
            }
        },
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => (given.to_string(), Reference::Hand),
        Value::Null | Value::List(_) | Value::Map(_) => {
            return Err("is secret and must be a text".to_owned());
        }
    };
    long_enough(text).map(|text| (text, reference))
}

fn long_enough(text: String) -> Result<String, String> {
    match text.len() < secret::SHORTEST {
        true => Err(format!(
            "is secret and has fewer than {} characters, too few to be kept out of what commands say",
            secret::SHORTEST
        )),
        false => Ok(text),
    }
}

/// A reference that means the same wherever the run is resumed.
fn whole(reference: Reference) -> Reference {
    match reference {
        Reference::File(path) => match std::path::absolute(&path) {
            Ok(whole) => Reference::File(whole.to_string_lossy().into_owned()),
            Err(_) => Reference::File(path),
        },
        other => other,
    }
}

/// A secret as the type that its input has.
fn typed(ty: Type, text: &str) -> Value {
    match ty {
        Type::String | Type::Any => Value::text(text),
        Type::Number | Type::Integer | Type::Boolean | Type::Array | Type::Object => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::text(text))
        }
    }
}

/// The value a reference leads to; `None` when there is none.
pub(crate) fn read_reference(reference: &Reference) -> Result<Option<String>, String> {
    match reference {
        Reference::Environment(name) => Ok(std::env::var(name).ok()),
        Reference::File(path) => {
            let size = std::fs::metadata(path).map(|file| file.len());
            if size.is_ok_and(|size| size > LARGEST_FILE) {
                return Err(format!("is in `{path}`, which is too large for a secret"));
            }
            match std::fs::read_to_string(path) {
                Ok(text) => {
                    let text = text.strip_suffix('\n').unwrap_or(&text);
                    Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()))
                }
                Err(error) => Err(format!("cannot be read from `{path}`: {error}")),
            }
        }
        Reference::Default | Reference::Hand => Ok(None),
    }
}

/// The first fault of the text that answers a prompt.
#[must_use]
pub fn check_text(rules: &Validation, text: &Value) -> Option<InputFault> {
    let field = Field {
        name: "input".into(),
        ty: Type::String,
        required: true,
        default: None,
        description: None,
        secret: false,
        validation: rules.clone(),
    };
    let given: Values = [("input".to_owned(), text.to_json())].into_iter().collect();
    let mut faults = value::faults(&[field], &given).into_iter();
    faults.next().map(InputFault::from)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's failure"
    )]

    use super::*;

    #[test]
    fn a_value_is_read_by_its_type() {
        assert_eq!(parse(Type::String, "5").unwrap(), Value::text("5"));
        assert_eq!(
            parse(Type::String, "{\"a\": 1}").unwrap(),
            Value::text("{\"a\": 1}")
        );
        assert_eq!(parse(Type::Integer, "-5").unwrap(), Value::Int(-5));
        assert_eq!(parse(Type::Integer, "5.0").unwrap(), Value::Int(5));
        assert_eq!(parse(Type::Number, "2.5").unwrap(), Value::Float(2.5));
        assert_eq!(parse(Type::Boolean, "Yes").unwrap(), Value::Bool(true));
        assert_eq!(parse(Type::Boolean, "false").unwrap(), Value::Bool(false));
        assert_eq!(
            parse(Type::Array, "[1, \"a\"]").unwrap(),
            Value::list([Value::Int(1), Value::text("a")])
        );
        assert_eq!(parse(Type::Any, "plain").unwrap(), Value::text("plain"));
        assert_eq!(parse(Type::Any, "true").unwrap(), Value::Bool(true));
    }

    #[test]
    fn null_gives_an_input_no_value_unless_it_is_a_text() {
        let null = |ty| read(Some(&flow_model::graph::build::field("n", ty)), "null");
        assert_eq!(null(Type::Number).unwrap(), Value::Null);
        assert_eq!(null(Type::Array).unwrap(), Value::Null);
        assert_eq!(null(Type::String).unwrap(), Value::text("null"));
    }

    #[test]
    fn a_value_of_another_type_is_refused_in_a_sentence() {
        let wrong = [
            (Type::Integer, "2.5"),
            (Type::Integer, "many"),
            (Type::Integer, "9223372036854775808"),
            (Type::Number, "NaN"),
            (Type::Boolean, "maybe"),
            (Type::Array, "{}"),
            (Type::Object, "[1]"),
        ];
        for (ty, text) in wrong {
            let reason = parse(ty, text).unwrap_err();
            assert!(
                reason.starts_with("must be ") && reason.contains(text),
                "{reason}"
            );
            assert_eq!(reason.contains("64 bits"), text.len() > 10, "{reason}");
        }
    }
}
