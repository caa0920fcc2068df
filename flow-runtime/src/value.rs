//! The values a run works on: JSON's, shared where they are copied and changed in place where they
//! are not.

use std::fmt;
use std::sync::Arc;

use flow_model::graph::Literal;
use indexmap::IndexMap;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value. Cloning is cheap: texts, lists and maps are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number. Never whole within the range of exact integers: see [`Value::number`].
    Float(f64),
    /// Text.
    Str(Arc<str>),
    /// A list.
    List(Arc<List>),
    /// A map, in order.
    Map(Arc<Map>),
}

/// The items of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List(pub Vec<Value>);

/// The entries of a map, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(pub IndexMap<Arc<str>, Value>);

/// Floats below this magnitude that are whole are integers.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Value {
    /// Text.
    pub fn text(text: impl AsRef<str>) -> Value {
        Value::Str(Arc::from(text.as_ref()))
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
        Value::List(Arc::new(List(items.into_iter().collect())))
    }

    /// A map.
    pub fn map<K: AsRef<str>>(entries: impl IntoIterator<Item = (K, Value)>) -> Value {
        let entries = entries.into_iter().map(|(k, v)| (Arc::from(k.as_ref()), v));
        Value::Map(Arc::new(Map(entries.collect())))
    }

    /// A number; a whole one becomes an integer, so that every way a number can enter gives the
    /// same value. What JSON has no number for is `null`, before it is written down and after.
    #[must_use]
    pub fn number(number: f64) -> Value {
        if !number.is_finite() {
            Value::Null
        } else if number.fract() == 0.0 && number.abs() < EXACT {
            Value::Int(number as i64)
        } else {
            Value::Float(number)
        }
    }

    /// The value under a key, if this is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => map.0.get(key),
            _ => None,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if it is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(list) => Some(&list.0),
            _ => None,
        }
    }

    /// The entries, if it is a map.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// What it is, as a word with an article for messages.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Str(_) => "a string",
            Value::List(_) => "an array",
            Value::Map(_) => "an object",
        }
    }

    /// Roughly the bytes of the value as JSON.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Value::Null => 4,
            Value::Bool(_) => 5,
            Value::Int(_) | Value::Float(_) => 8,
            Value::Str(text) => text.len() as u64 + 2,
            Value::List(list) => list.0.iter().map(|item| item.size() + 1).sum::<u64>() + 2,
            Value::Map(map) => {
                let entries = map.0.iter();
                entries
                    .map(|(key, value)| key.len() as u64 + value.size() + 4)
                    .sum::<u64>()
                    + 2
            }
        }
    }

    /// Whether its lists and maps nest in no more than so many levels.
    #[must_use]
    pub fn is_within(&self, levels: usize) -> bool {
        match (self, levels.checked_sub(1)) {
            (Value::List(_) | Value::Map(_), None) => false,
            (Value::List(list), Some(levels)) => list.0.iter().all(|item| item.is_within(levels)),
            (Value::Map(map), Some(levels)) => map.0.values().all(|value| value.is_within(levels)),
            _ => true,
        }
    }

    /// The same as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Str(text) => text.as_ref().into(),
            Value::List(list) => list.0.iter().map(Value::to_json).collect(),
            Value::Map(map) => {
                let entries = map
                    .0
                    .iter()
                    .map(|(key, value)| (key.to_string(), value.to_json()));
                serde_json::Value::Object(entries.collect())
            }
        }
    }
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Value::Int(whole),
                None => Value::number(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::text(text),
            serde_json::Value::Array(items) => Value::list(items.iter().map(Value::from)),
            serde_json::Value::Object(map) => {
                Value::map(map.iter().map(|(key, value)| (key, Value::from(value))))
            }
        }
    }
}

impl From<&Literal> for Value {
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Int(value) => Value::Int(*value),
            Literal::Float(value) => Value::number(*value),
            Literal::Str(text) => Value::text(text),
            Literal::List(items) => Value::list(items.iter().map(Value::from)),
            Literal::Map(entries) => {
                Value::map(entries.iter().map(|(key, value)| (key, Value::from(value))))
            }
        }
    }
}

impl fmt::Display for Value {
    /// As JSON, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json().to_string())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Str(text) => serializer.serialize_str(text),
            Value::List(list) => {
                let mut out = serializer.serialize_seq(Some(list.0.len()))?;
                for item in &list.0 {
                    out.serialize_element(item)?;
                }
                out.end()
            }
            Value::Map(map) => {
                let mut out = serializer.serialize_map(Some(map.0.len()))?;
                for (key, value) in &map.0 {
                    out.serialize_entry(key.as_ref(), value)?;
                }
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => Value::Int(value),
            Err(_) => Value::Float(value as f64),
        })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::with_capacity(access.size_hint().unwrap_or_default().min(1024));
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = IndexMap::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            entries.insert(Arc::from(key), value);
        }
        Ok(Value::Map(Arc::new(Map(entries))))
    }
}
