//! Parameters, as the schema of their tool describes them.

use serde_json::Value;

use crate::graph::Type;

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: String,
    /// Whether a call must give it. A demand on several parameters is a rule of the tool.
    pub required: bool,
    /// What it is when absent.
    pub default: Option<Value>,
    /// Which values it takes.
    pub shape: Shape,
}

/// Which values fit.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Shape {
    /// The types allowed; none listed allows any.
    pub types: Vec<Type>,
    /// The only texts allowed, when there is a list of them.
    pub allowed: Vec<String>,
    /// The smallest number allowed.
    pub minimum: Option<f64>,
    /// The largest number allowed.
    pub maximum: Option<f64>,
    /// What the items of a list must fit.
    pub items: Option<Box<Shape>>,
    /// What the values of a map must fit.
    pub values: Option<Box<Shape>>,
    /// The only fields of an object, when they are listed.
    pub fields: Vec<Parameter>,
}

/// The parameters that the schema of a request describes.
pub(super) fn all_of(schema: &Value) -> Vec<Parameter> {
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| Parameter {
            name: name.clone(),
            description: property["description"].as_str().unwrap_or_default().into(),
            required: required(name),
            default: property.get("default").cloned(),
            shape: shape_of(property),
        })
        .collect()
}

fn shape_of(schema: &Value) -> Shape {
    let nested = |key: &str| {
        let inner = schema.get(key).filter(|inner| inner.is_object())?;
        Some(Box::new(shape_of(inner)))
    };
    Shape {
        types: texts(&schema["type"]).filter_map(type_of).collect(),
        allowed: texts(&schema["enum"]).map(str::to_owned).collect(),
        minimum: schema["minimum"].as_f64(),
        maximum: schema["maximum"].as_f64(),
        items: nested("items"),
        values: nested("additionalProperties"),
        fields: match schema["additionalProperties"] {
            Value::Bool(false) => all_of(schema),
            _ => Vec::new(),
        },
    }
}

/// One text, or a list of them.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    value
        .as_str()
        .into_iter()
        .chain(list.iter().filter_map(Value::as_str))
}

fn type_of(name: &str) -> Option<Type> {
    Some(match name {
        "string" => Type::String,
        "number" => Type::Number,
        "integer" => Type::Integer,
        "boolean" => Type::Boolean,
        "array" => Type::Array,
        "object" => Type::Object,
        _ => return None,
    })
}
