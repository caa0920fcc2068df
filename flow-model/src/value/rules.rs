//! One value against one declaration.

use serde_json::Value;

use super::accept::{inside, whole};
use super::{FaultKind, InputFault};
use crate::graph::{Field, Literal, Type, Validation};

/// Adds the faults of a value that is not null.
pub(crate) fn check(path: &str, field: &Field, value: &Value, found: &mut Vec<InputFault>) {
    let rules = &field.validation;
    let mut report_at = |path: &str, kind, standard: String| {
        let message = match &rules.error_message {
            Some(said) => format!("`{path}`: {said}"),
            None => standard,
        };
        found.push(InputFault {
            path: path.to_owned(),
            kind,
            message,
        });
    };
    let mut report = |kind, standard| report_at(path, kind, standard);
    if !has_type(value, field.ty) {
        let message = format!(
            "`{path}` must be {}, and is {}",
            word(field.ty),
            noun(value)
        );
        report(FaultKind::WrongType, message);
        return;
    }
    if !rules.one_of.is_empty() && !rules.one_of.iter().any(|one| same(one, value)) {
        let words: Vec<String> = rules.one_of.iter().map(shown).collect();
        let message = format!("`{path}` must be one of {}", words.join(", "));
        report(FaultKind::Invalid, message);
    }
    match value {
        Value::String(text) => text_rules(path, rules, text, &mut report),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let least = rules.min.filter(|least| number < *least);
            let most = rules.max.filter(|most| number > *most);
            if let Some(least) = least {
                report(
                    FaultKind::Invalid,
                    format!("`{path}` must be at least {least}"),
                );
            }
            if let Some(most) = most {
                report(
                    FaultKind::Invalid,
                    format!("`{path}` must be at most {most}"),
                );
            }
        }
        Value::Array(items) => {
            let length = items.len() as u64;
            count(
                path,
                "item",
                length,
                rules.min_items,
                rules.max_items,
                &mut report,
            );
            if let Some(ty) = rules.item_type {
                for (at, item) in items.iter().enumerate() {
                    if !has_type(item, ty) {
                        let path = format!("{path}[{at}]");
                        let message =
                            format!("`{path}` must be {}, and is {}", word(ty), noun(item));
                        report_at(&path, FaultKind::WrongType, message);
                    }
                }
            }
        }
        Value::Object(map) => {
            for key in rules.required_keys.iter() {
                let declared = rules
                    .properties
                    .iter()
                    .any(|field| field.name == *key && field.required);
                if !declared && map.get(&**key).is_none_or(Value::is_null) {
                    report(FaultKind::Missing, format!("`{path}` must have `{key}`"));
                }
            }
            if rules.is_closed() {
                inside(&format!("{path}."), &rules.properties, map, found);
            } else {
                let declared = map
                    .iter()
                    .filter(|(name, _)| rules.properties.iter().any(|f| f.name == **name))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                inside(&format!("{path}."), &rules.properties, &declared, found);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn text_rules(
    path: &str,
    rules: &Validation,
    text: &str,
    report: &mut impl FnMut(FaultKind, String),
) {
    let length = text.chars().count() as u64;
    count(
        path,
        "character",
        length,
        rules.min_length,
        rules.max_length,
        report,
    );
    if let Some(pattern) = &rules.pattern
        && let Ok(regex) = regex::Regex::new(pattern)
        && !regex.is_match(text)
    {
        report(
            FaultKind::Invalid,
            format!("`{path}` must match `{pattern}`"),
        );
    }
}

fn count(
    path: &str,
    noun: &str,
    length: u64,
    least: Option<u64>,
    most: Option<u64>,
    report: &mut impl FnMut(FaultKind, String),
) {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    if let Some(least) = least.filter(|least| length < *least) {
        let message = format!(
            "`{path}` must have at least {least} {noun}{}",
            plural(least)
        );
        report(FaultKind::Invalid, message);
    }
    if let Some(most) = most.filter(|most| length > *most) {
        let message = format!("`{path}` must have at most {most} {noun}{}", plural(most));
        report(FaultKind::Invalid, message);
    }
}

/// Whether a value has a type.
pub(crate) fn has_type(value: &Value, ty: Type) -> bool {
    match ty {
        Type::Any => true,
        Type::String => value.is_string(),
        Type::Number => value.is_number(),
        Type::Integer => integer(value).is_some(),
        Type::Boolean => value.is_boolean(),
        Type::Array => value.is_array(),
        Type::Object => value.is_object(),
    }
}

/// The integer that a value is, if it is one.
pub(super) fn integer(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().filter(|_| value.is_f64()).and_then(whole))
}

fn same(literal: &Literal, value: &Value) -> bool {
    match (literal, value) {
        (Literal::Int(_) | Literal::Float(_), Value::Number(number)) => {
            match (Value::from(literal).as_i64(), number.as_i64()) {
                (Some(one), Some(other)) => one == other,
                _ => Value::from(literal).as_f64() == number.as_f64(),
            }
        }
        _ => Value::from(literal) == *value,
    }
}

fn shown(literal: &Literal) -> String {
    match literal {
        Literal::Str(text) => format!("`{text}`"),
        other => Value::from(other).to_string(),
    }
}

/// A type with an article.
pub(crate) const fn word(ty: Type) -> &'static str {
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

/// What a value is, with an article.
pub(super) fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(number) if number.as_i64().is_none() => "a number beyond 64 bits",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
