//! The entrance for values.

use serde_json::Value;

use super::{FaultKind, InputFault, Invalid, Values, rules};
use crate::graph::{Field, Type};
use crate::suggest;

/// Takes values in: whole numbers become integers, `null` counts as absent, defaults are filled
/// in, and declared values come out in the order of their declaration.
///
/// ```
/// use flow_model::graph::{Type, build::field};
/// use flow_model::value::accept;
/// use serde_json::json;
///
/// let fields = [field("count", Type::Integer).required()];
/// let given = json!({"count": 3.0}).as_object().cloned().unwrap_or_default();
/// assert_eq!(accept(&fields, given).unwrap()["count"], json!(3));
/// ```
///
/// # Errors
///
/// Every fault, in the order of the declaration, unknown names last.
pub fn accept(fields: &[Field], mut given: Values) -> Result<Values, Invalid> {
    given.values_mut().for_each(settle);
    let found = faults(fields, &given);
    match found.is_empty() {
        true => Ok(complete(fields, given)),
        false => Err(Invalid(found)),
    }
}

/// Every fault of a set of values.
#[must_use]
pub fn faults(fields: &[Field], given: &Values) -> Vec<InputFault> {
    let mut found = Vec::new();
    inside("", fields, given, &mut found);
    found
}

/// Faults of the values of one map; `prefix` leads to it and ends in a dot.
pub(super) fn inside(prefix: &str, fields: &[Field], given: &Values, found: &mut Vec<InputFault>) {
    for field in fields {
        let path = format!("{prefix}{}", field.name);
        match given.get(&*field.name) {
            None | Some(Value::Null) => {
                if field.required && field.default.is_none() {
                    let word = rules::word(field.ty);
                    // The author's own message is about values that are there.
                    found.push(InputFault {
                        kind: FaultKind::Missing,
                        message: format!("`{path}` must be given ({word})"),
                        path,
                    });
                }
            }
            Some(value) => rules::check(&path, field, value, found),
        }
    }
    for (name, value) in given {
        if value.is_null() || fields.iter().any(|field| field.name == *name) {
            continue;
        }
        let path = format!("{prefix}{name}");
        let known = || fields.iter().map(|field| &*field.name);
        let known_list = known()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let message = match suggest::nearest(name, known()) {
            Some(near) => format!("`{path}` is not declared; did you mean `{near}`?"),
            None if fields.is_empty() => format!("`{path}` is not declared; nothing is"),
            None => format!("`{path}` is not declared; there is {known_list}"),
        };
        found.push(InputFault {
            path,
            kind: FaultKind::Unknown,
            message,
        });
    }
}

/// A number without a fraction is an integer, wherever it stands.
fn settle(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *value = Value::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(map) => map.values_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The integer that a float is, if it is one.
pub(super) fn whole(float: f64) -> Option<i64> {
    // 2^63 is a float; every float below it that has no fraction is an `i64`.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    let is_whole = float.fract() == 0.0 && (-BOUND..BOUND).contains(&float);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the bounds were looked at and there is no fraction"
    )]
    is_whole.then_some(float as i64)
}

/// Values that have no fault, with defaults, in declared order.
fn complete(fields: &[Field], mut given: Values) -> Values {
    let mut out = Values::new();
    for field in fields {
        let value = given.remove(&*field.name).filter(|value| !value.is_null());
        let mut value = match (value, &field.default) {
            (Some(value), _) => value,
            (None, Some(default)) => Value::from(default),
            (None, None) => continue,
        };
        settle(&mut value);
        if value.is_null() {
            continue;
        }
        if field.ty == Type::Object && field.validation.is_closed() {
            value = match value {
                Value::Object(map) => Value::Object(complete(&field.validation.properties, map)),
                other => other,
            };
        }
        out.insert(field.name.to_string(), value);
    }
    out
}
