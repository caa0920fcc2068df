//! JSON Schemas of the request and response types, written for agents to read.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// The schema of what a tool takes.
pub(super) fn of_request<T: JsonSchema>() -> Value {
    let mut schema = settings()
        .for_deserialize()
        .with_transform(Absent)
        .into_generator()
        .into_root_schema_for::<T>();
    finish(&mut schema)
}

/// The schema of what a tool answers.
pub(super) fn of_response<T: JsonSchema>() -> Value {
    let mut schema = settings()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    finish(&mut schema)
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(Plain)
}

/// The tool has a title and a description of its own; those of the Rust type are for Rust.
fn finish(schema: &mut Schema) -> Value {
    schema.remove("title");
    schema.remove("description");
    if schema.get("properties").is_none() {
        schema.insert("properties".into(), Value::Object(Map::new()));
    }
    std::mem::take(schema).to_value()
}

/// Says things the way clients understand best: no Rust number formats, one `enum` instead of a
/// `oneOf` of constants, paragraphs on one line.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("format");
        fold_constants(schema);
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = unwrapped(description);
        }
    }
}

/// Turns the documented variants of an enumeration into `enum`, their documentation into text.
fn fold_constants(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else {
        return;
    };
    let mut names = Vec::new();
    let mut lines = Vec::new();
    for variant in variants {
        let Some(Value::String(name)) = variant.get("const") else {
            return;
        };
        names.push(Value::String(name.clone()));
        if let Some(Value::String(description)) = variant.get("description") {
            lines.push(format!("- {name}: {}", unwrapped(description)));
        }
    }
    schema.remove("oneOf");
    schema.insert("type".into(), "string".into());
    schema.insert("enum".into(), Value::Array(names));
    if !lines.is_empty() {
        let description = match schema.get("description") {
            Some(Value::String(description)) => {
                format!("{}\n\n{}", unwrapped(description), lines.join("\n"))
            }
            _ => lines.join("\n"),
        };
        schema.insert("description".into(), description.into());
    }
}

/// The text with its source lines joined; paragraphs and lists stay apart.
fn unwrapped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_end();
        if !result.is_empty() {
            let apart = line.is_empty() || line.starts_with("- ") || result.ends_with('\n');
            result.push(if apart { '\n' } else { ' ' });
        }
        result.push_str(line);
    }
    result
}

/// An optional parameter is left out, so its schema need not offer `null` as well. A `null` that
/// comes nevertheless is read as absent.
#[derive(Clone)]
struct Absent;

impl Transform for Absent {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if schema.get("default") == Some(&Value::Null) {
            schema.remove("default");
        }
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".into(), only);
            }
        }
    }
}
