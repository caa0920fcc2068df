//! Values as text.
//!
//! There is one way, whatever the dialect: strings as they are, whole numbers without a fraction,
//! `true`, `false` and `null`, and lists and maps as JSON on one line.

use std::fmt::Write;

use super::error::EvalError;
use super::meter;
use crate::value::Value;

/// Numbers from this one on are written with an exponent, as JavaScript does.
const LARGEST_WHOLE: f64 = 1e21;

/// Appends a value as text.
pub(super) fn write(out: &mut String, value: &Value) -> Result<(), EvalError> {
    meter::produce(value.size())?;
    append(out, value);
    Ok(())
}

/// A value as text.
pub(super) fn text(value: &Value) -> Result<String, EvalError> {
    let mut out = String::new();
    write(&mut out, value)?;
    Ok(out)
}

/// A value as text, without counting.
pub(crate) fn written(value: &Value) -> String {
    let mut out = String::new();
    append(&mut out, value);
    out
}

/// Appends without counting.
pub(super) fn append(out: &mut String, value: &Value) {
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Str(text) => out.write_str(text),
        Value::Int(number) => write!(out, "{number}"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Null => out.write_str("null"),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < LARGEST_WHOLE => {
            write!(out, "{number:.0}")
        }
        Value::Float(_) | Value::List(_) | Value::Map(_) => {
            out.write_str(&serde_json::to_string(value).unwrap_or_default())
        }
    };
}
