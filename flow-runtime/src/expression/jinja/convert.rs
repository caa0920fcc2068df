//! Our values as minijinja's, and back.
//!
//! Texts, lists and maps cross without being copied: minijinja holds the same `Arc`, and what
//! comes back is that `Arc` again.

use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::Value as Jinja;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};

use super::super::error::EvalError;
use super::super::meter;
use super::super::{DEEPEST, shallow};
use super::filters::{Unquoted, Written};
use super::moment::{Day, Moment};
use crate::value::{List, Map, Value};

/// A value for minijinja.
pub(in super::super) fn to_jinja(value: &Value) -> Jinja {
    match value {
        Value::Null => Jinja::from(()),
        Value::Bool(value) => Jinja::from(*value),
        Value::Int(value) => Jinja::from(*value),
        Value::Float(value) => Jinja::from(*value),
        Value::Str(text) => Jinja::from(text.clone()),
        Value::List(list) => Jinja::from_dyn_object(list.clone()),
        Value::Map(map) => Jinja::from_dyn_object(map.clone()),
    }
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.0.get(key.as_usize()?).map(to_jinja)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

impl Object for Map {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.0.get(key.as_str()?).map(to_jinja)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        self.0.get(key).map(to_jinja)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let map = self.clone();
        Enumerator::RevKeyValueIter(Box::new((0..self.0.len()).map(move |index| {
            map.0.get_index(index).map_or_else(
                || (Jinja::from(()), Jinja::from(())),
                |(key, value)| (Jinja::from(key.clone()), to_jinja(value)),
            )
        })))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}

/// A value from minijinja. Undefined, anywhere inside, is an error.
pub(in super::super) fn from_jinja(value: &Jinja) -> Result<Value, EvalError> {
    convert(value, 0)
}

fn convert(value: &Jinja, depth: usize) -> Result<Value, EvalError> {
    match value.kind() {
        ValueKind::Undefined => Err(EvalError::nameless()),
        ValueKind::None => Ok(Value::Null),
        ValueKind::Bool => Ok(Value::Bool(value.is_true())),
        ValueKind::Number => Ok(number(value)),
        ValueKind::String => Ok(Value::Str(value.to_str().unwrap_or_default())),
        ValueKind::Bytes => Ok(Value::text(String::from_utf8_lossy(
            value.as_bytes().unwrap_or_default(),
        ))),
        ValueKind::Seq => match value.downcast_object::<List>() {
            Some(list) => shared(Value::List(list), depth),
            None => list(value, depth),
        },
        ValueKind::Iterable => list(value, depth),
        ValueKind::Map => match value.downcast_object::<Map>() {
            Some(map) => shared(Value::Map(map), depth),
            None => map(value, depth),
        },
        ValueKind::Invalid => {
            let error = value.try_iter().err();
            Err(error.map_or_else(
                || EvalError::wrong_type("this value is invalid"),
                |error| super::error(&error),
            ))
        }
        _ => plain(value),
    }
}

/// A value of ours inside `depth` new lists and maps. Alone it is as deep as it was before.
fn shared(value: Value, depth: usize) -> Result<Value, EvalError> {
    if depth > 0 {
        shallow(&value, DEEPEST - depth)?;
    }
    Ok(value)
}

/// Numbers that no JSON can hold are null, as they are in JavaScript's own JSON.
fn number(value: &Jinja) -> Value {
    match i64::try_from(value.clone()) {
        Ok(whole) if value.is_integer() => Value::Int(whole),
        _ => match f64::try_from(value.clone()) {
            Ok(number) if number.is_finite() => Value::number(number),
            _ => Value::Null,
        },
    }
}

fn plain(value: &Jinja) -> Result<Value, EvalError> {
    if let Some(moment) = value.downcast_object_ref::<Moment>() {
        return Ok(Value::text(moment.text()));
    }
    if let Some(day) = value.downcast_object_ref::<Day>() {
        return Ok(Value::text(day.text()));
    }
    if let Some(unquoted) = value.downcast_object_ref::<Unquoted>() {
        return Ok(Value::text(&*unquoted.0));
    }
    if let Some(written) = value.downcast_object_ref::<Written>() {
        return Ok(Value::text(&*written.0));
    }
    Err(EvalError::wrong_type(format!(
        "`{value}` cannot be used as a value; call it"
    )))
}

fn member(value: &Jinja, depth: usize) -> Result<Value, EvalError> {
    if depth >= DEEPEST {
        return Err(EvalError::too_deep());
    }
    meter::produce(16)?;
    meter::work(1)?;
    convert(value, depth + 1)
}

fn list(value: &Jinja, depth: usize) -> Result<Value, EvalError> {
    let mut items = Vec::new();
    for item in value.try_iter().map_err(|error| super::error(&error))? {
        items.push(member(&item, depth)?);
    }
    Ok(Value::List(Arc::new(List(items))))
}

fn map(value: &Jinja, depth: usize) -> Result<Value, EvalError> {
    let mut entries = IndexMap::new();
    let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
    for (key, value) in pairs.into_iter().flatten() {
        let key = match key.to_str() {
            Some(key) => key,
            None => Arc::from(super::super::text::text(&member(&key, depth)?)?),
        };
        entries.insert(key, member(&value, depth)?);
    }
    Ok(Value::Map(Arc::new(Map(entries))))
}

/// Counts the members of a value, all levels; an error when it nests too deeply.
pub(super) fn weigh(value: &Jinja) -> Result<(), EvalError> {
    descend(value, 0, false)
}

/// The same for what a namespace is to hold, which may not be a namespace: it could hold itself.
pub(super) fn weigh_held(value: &Jinja) -> Result<(), EvalError> {
    descend(value, 0, true)
}

fn descend(value: &Jinja, depth: usize, held: bool) -> Result<(), EvalError> {
    meter::work(1)?;
    let Some(object) = value.as_object() else {
        return Ok(());
    };
    if depth >= DEEPEST {
        return Err(EvalError::too_deep());
    }
    if held && object.type_name().ends_with("Namespace") {
        return Err(EvalError::wrong_type(
            "a namespace cannot be kept in a namespace",
        ));
    }
    match object.repr() {
        ObjectRepr::Map => {
            for (_, value) in object.try_iter_pairs().into_iter().flatten() {
                descend(&value, depth + 1, held)?;
            }
        }
        ObjectRepr::Seq | ObjectRepr::Iterable => {
            for value in object.try_iter().into_iter().flatten() {
                descend(&value, depth + 1, held)?;
            }
        }
        _ => {}
    }
    Ok(())
}
