//! Inputs against their declarations: types, defaults, rules, every fault at once.

use std::fmt;

use flow_model::graph::{Field, Type, Validation};
use regex::Regex;

use crate::value::Value;

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFault {
    /// The input's name, with the path below it.
    pub input: String,
    /// What is wrong, as the end of a sentence.
    pub reason: String,
    /// A name that was probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.input, self.reason)?;
        match &self.suggestion {
            Some(near) => write!(f, " (did you mean `{near}`?)"),
            None => Ok(()),
        }
    }
}

/// Checks inputs and fills in defaults, in the order declared. `null` equals absent.
///
/// # Errors
///
/// Every fault.
pub fn complete(fields: &[Field], given: &[(&str, Value)]) -> Result<Value, Vec<InputFault>> {
    let mut faults = Vec::new();
    for (name, _) in given {
        if !fields.iter().any(|field| field.name == *name) {
            let known = fields.iter().map(|field| field.name.as_ref());
            faults.push(InputFault {
                input: (*name).to_owned(),
                reason: "is not an input of this workflow".to_owned(),
                suggestion: flow_model::suggest::nearest(name, known).map(str::to_owned),
            });
        }
    }
    let mut complete: Vec<(&str, Value)> = Vec::with_capacity(fields.len());
    for field in fields {
        let value = given
            .iter()
            .find(|(name, value)| field.name == *name && *value != Value::Null)
            .map(|(_, value)| value.clone())
            .or_else(|| field.default.as_ref().map(Value::from));
        match value {
            Some(value) => {
                check(
                    &field.name,
                    field.ty,
                    &field.validation,
                    &value,
                    &mut faults,
                );
                complete.push((field.name.as_ref(), value));
            }
            None if field.required => faults.push(InputFault {
                input: field.name.to_string(),
                reason: "is required".to_owned(),
                suggestion: None,
            }),
            None => complete.push((field.name.as_ref(), Value::Null)),
        }
    }
    if faults.is_empty() {
        Ok(Value::map(complete))
    } else {
        Err(faults)
    }
}

/// The faults of one value.
pub fn check(
    name: &str,
    ty: Type,
    rules: &Validation,
    value: &Value,
    faults: &mut Vec<InputFault>,
) {
    let mut fault = |reason: String| {
        let reason = match &rules.error_message {
            Some(message) => format!("is not valid: {message}"),
            None => reason,
        };
        faults.push(InputFault {
            input: name.to_owned(),
            reason,
            suggestion: None,
        });
    };
    if !has_type(value, ty) {
        let reason = format!("must be {}, not {}", word(ty), value.noun());
        fault(reason);
        return;
    }
    if !rules.one_of.is_empty() && !rules.one_of.iter().any(|one| Value::from(one) == *value) {
        let allowed: Vec<String> = rules
            .one_of
            .iter()
            .map(|one| Value::from(one).to_string())
            .collect();
        fault(format!("must be one of {}", allowed.join(", ")));
    }
    match value {
        Value::Str(text) => {
            let length = text.chars().count() as u64;
            if let Some(least) = rules.min_length.filter(|least| length < *least) {
                fault(format!("must have at least {least} characters"));
            }
            if let Some(most) = rules.max_length.filter(|most| length > *most) {
                fault(format!("must have at most {most} characters"));
            }
            if let Some(pattern) = &rules.pattern
                && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
            {
                fault(format!("must match `{pattern}`"));
            }
        }
        Value::Int(_) | Value::Float(_) => {
            let number = match value {
                Value::Int(whole) => *whole as f64,
                Value::Float(number) => *number,
                _ => f64::NAN,
            };
            if let Some(least) = rules.min.filter(|least| number < *least) {
                fault(format!("must be at least {least}"));
            }
            if let Some(most) = rules.max.filter(|most| number > *most) {
                fault(format!("must be at most {most}"));
            }
        }
        Value::List(list) => {
            let length = list.0.len() as u64;
            if let Some(least) = rules.min_items.filter(|least| length < *least) {
                fault(format!("must have at least {least} items"));
            }
            if let Some(most) = rules.max_items.filter(|most| length > *most) {
                fault(format!("must have at most {most} items"));
            }
            if let Some(ty) = rules.item_type {
                for (index, item) in list.0.iter().enumerate() {
                    check(
                        &format!("{name}[{index}]"),
                        ty,
                        &Validation::NONE,
                        item,
                        faults,
                    );
                }
            }
        }
        Value::Map(map) => {
            for key in rules.required_keys.iter() {
                if !map.0.contains_key(key.as_ref()) {
                    fault(format!("must have the key `{key}`"));
                }
            }
            for property in rules.properties.iter() {
                let path = format!("{name}.{}", property.name);
                match map.0.get(property.name.as_ref()) {
                    Some(value) if *value != Value::Null => {
                        check(&path, property.ty, &property.validation, value, faults);
                    }
                    _ if property.required => faults.push(InputFault {
                        input: path,
                        reason: "is required".to_owned(),
                        suggestion: None,
                    }),
                    _ => {}
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn has_type(value: &Value, ty: Type) -> bool {
    match ty {
        Type::Any => true,
        Type::String => matches!(value, Value::Str(_)),
        Type::Number => matches!(value, Value::Int(_) | Value::Float(_)),
        Type::Integer => matches!(value, Value::Int(_)),
        Type::Boolean => matches!(value, Value::Bool(_)),
        Type::Array => matches!(value, Value::List(_)),
        Type::Object => matches!(value, Value::Map(_)),
    }
}

fn word(ty: Type) -> &'static str {
    match ty {
        Type::Any => "any value",
        Type::String => "a string",
        Type::Number => "a number",
        Type::Integer => "an integer",
        Type::Boolean => "a boolean",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}
