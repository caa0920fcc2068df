//! Rust types whose values are declared in a definition.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::accept::whole;
use super::rules::{integer, noun};
use super::{FaultKind, InputFault, Invalid, Values, accept, faults};
use crate::graph::Field;

/// A struct with a field for each declared value. The code generator writes these.
pub trait Record: Sized {
    /// The declaration.
    const FIELDS: &'static [Field];

    /// The values by name; what is `None` is left out.
    fn to_values(&self) -> Values;

    /// Reads accepted values.
    ///
    /// # Errors
    ///
    /// A value is missing or has another type, which accepted values do not.
    fn from_values(values: Values) -> Result<Self, Invalid>;
}

/// A type that a declared value can have.
pub trait Part: Sized {
    /// The value as JSON.
    fn to_value(&self) -> Value;

    /// The value from JSON; `None` when it has another type.
    fn from_value(value: Value) -> Option<Self>;

    /// What stands for a value that is not given.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }
}

/// What a run or a tool is given or gives as a whole: a [`Record`], or anything where nothing is
/// declared.
pub trait Whole: Sized {
    /// Takes a value in, with defaults.
    ///
    /// # Errors
    ///
    /// Every fault.
    fn enter(value: Value) -> Result<Self, Invalid>;

    /// Lets the value out.
    ///
    /// # Errors
    ///
    /// Every fault.
    fn leave(&self) -> Result<Value, Invalid>;
}

impl<T: Record> Whole for T {
    fn enter(value: Value) -> Result<Self, Invalid> {
        accept(T::FIELDS, Values::enter(value)?).and_then(T::from_values)
    }

    fn leave(&self) -> Result<Value, Invalid> {
        let values = self.to_values();
        let found = faults(T::FIELDS, &values);
        match found.is_empty() {
            true => Ok(Value::Object(values)),
            false => Err(Invalid(found)),
        }
    }
}

impl Whole for Values {
    fn enter(value: Value) -> Result<Self, Invalid> {
        match value {
            Value::Object(values) => Ok(values),
            Value::Null => Ok(Values::new()),
            other => Err(Invalid(vec![InputFault {
                path: String::new(),
                kind: FaultKind::WrongType,
                message: format!("an object is needed, and this is {}", noun(&other)),
            }])),
        }
    }

    fn leave(&self) -> Result<Value, Invalid> {
        Ok(Value::Object(self.clone()))
    }
}

impl Whole for Value {
    fn enter(value: Value) -> Result<Self, Invalid> {
        Ok(value)
    }

    fn leave(&self) -> Result<Value, Invalid> {
        Ok(self.clone())
    }
}

/// Collects named values and leaves out those that are null.
#[must_use]
pub fn values<const N: usize>(all: [(&'static str, Value); N]) -> Values {
    all.into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Reads one value of a record.
///
/// # Errors
///
/// The value is missing or has another type.
pub fn read<T: Part>(values: &mut Values, name: &str) -> Result<T, Invalid> {
    let fault = |kind, message| {
        Err(Invalid(vec![InputFault {
            path: name.to_owned(),
            kind,
            message,
        }]))
    };
    match values.remove(name).filter(|value| !value.is_null()) {
        Some(value) => {
            let noun = noun(&value);
            match T::from_value(value) {
                Some(part) => Ok(part),
                None => fault(FaultKind::WrongType, format!("`{name}` cannot be {noun}")),
            }
        }
        None => match T::absent() {
            Some(part) => Ok(part),
            None => fault(FaultKind::Missing, format!("`{name}` must be given")),
        },
    }
}

/// Checks a record against its declaration.
///
/// # Errors
///
/// Every fault.
pub fn validate<T: Record>(record: &T) -> Result<(), Invalid> {
    record.leave().map(drop)
}

/// Writes a record as a map.
///
/// # Errors
///
/// What the serializer says.
pub fn serialize<T: Record, S: Serializer>(record: &T, serializer: S) -> Result<S::Ok, S::Error> {
    record.to_values().serialize(serializer)
}

/// Reads a record from a map and checks it.
///
/// # Errors
///
/// What the deserializer says, or every fault.
pub fn deserialize<'de, T: Record, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let given = Values::deserialize(deserializer)?;
    accept(T::FIELDS, given)
        .and_then(T::from_values)
        .map_err(de::Error::custom)
}

impl<T: Record> Part for T {
    fn to_value(&self) -> Value {
        Value::Object(self.to_values())
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => T::from_values(map).ok(),
            _ => None,
        }
    }
}

impl Part for String {
    fn to_value(&self) -> Value {
        Value::String(self.clone())
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl Part for i64 {
    fn to_value(&self) -> Value {
        Value::from(*self)
    }

    fn from_value(value: Value) -> Option<Self> {
        integer(&value)
    }
}

impl Part for f64 {
    /// A number without a fraction is written as an integer, as it is read.
    fn to_value(&self) -> Value {
        match whole(*self) {
            Some(whole) => Value::from(whole),
            None => Value::from(*self),
        }
    }

    fn from_value(value: Value) -> Option<Self> {
        value.as_f64()
    }
}

impl Part for bool {
    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }

    fn from_value(value: Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Part for Value {
    fn to_value(&self) -> Value {
        self.clone()
    }

    fn from_value(value: Value) -> Option<Self> {
        Some(value)
    }

    /// Any value includes none.
    fn absent() -> Option<Self> {
        Some(Value::Null)
    }
}

impl Part for Values {
    fn to_value(&self) -> Value {
        Value::Object(self.clone())
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }
}

impl<T: Part> Part for Vec<T> {
    fn to_value(&self) -> Value {
        self.iter().map(Part::to_value).collect()
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Array(items) => items.into_iter().map(T::from_value).collect(),
            _ => None,
        }
    }
}

impl<T: Part> Part for Option<T> {
    fn to_value(&self) -> Value {
        match self {
            Some(part) => part.to_value(),
            None => Value::Null,
        }
    }

    fn from_value(value: Value) -> Option<Self> {
        T::from_value(value).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}
