//! Literals to and from JSON.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Literal;

impl From<&Value> for Literal {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Literal::Null,
            Value::Bool(value) => Literal::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Literal::Int(whole),
                None => Literal::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Literal::Str(Cow::Owned(text.clone())),
            Value::Array(items) => Literal::List(items.iter().map(Literal::from).collect()),
            Value::Object(map) => Literal::Map(
                map.iter()
                    .map(|(key, value)| (Cow::Owned(key.clone()), Literal::from(value)))
                    .collect(),
            ),
        }
    }
}

impl From<&Literal> for Value {
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Int(value) => Value::from(*value),
            Literal::Float(value) => Value::from(*value),
            Literal::Str(text) => Value::String(text.to_string()),
            Literal::List(items) => Value::Array(items.iter().map(Value::from).collect()),
            Literal::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.to_string(), Value::from(value)))
                    .collect(),
            ),
        }
    }
}

impl Serialize for Literal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Literal::from(&value))
    }
}
