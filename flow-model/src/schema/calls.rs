//! Calls of flow's own tools, as the registry has them.

use serde_json::{Map, Value, json};

use super::{plain, reference};
use crate::tools::{self, Parameter, Rule, Tool};

/// The definition of a call.
const CALL: &str = "tool_call";

/// What holds for the states of a document that declares no tools of its own.
pub(super) fn of_states() -> Value {
    json!({
        "if": {"not": {"required": ["tools"]}},
        "then": {"properties": {"states": {
            "additionalProperties": {"properties": {"action": reference(CALL)}},
        }}},
    })
}

/// The definitions of a call and of the parameters of every tool, each with its name.
pub(super) fn definitions() -> Vec<(String, Value)> {
    let names: Vec<&str> = tools::all().iter().map(|tool| tool.name).collect();
    let each: Vec<Value> = tools::all()
        .iter()
        .map(|tool| {
            let parameters = reference(&parameters_of(tool));
            json!({
                "if": {"properties": {"tool": {"const": tool.name}}},
                "then": {"properties": {"params": parameters, "parameters": parameters}},
            })
        })
        .collect();
    let call = json!({
        "description": "A call of one of flow's tools; others are declared under `tools`.",
        "if": {"type": "object", "required": ["tool"], "not": {"required": ["type"]}},
        "then": {"properties": {"tool": {"enum": names}}, "allOf": each},
    });
    let all = tools::all().iter();
    let parameters = all.map(|tool| (parameters_of(tool), parameters(tool)));
    std::iter::once((CALL.to_owned(), call))
        .chain(parameters)
        .collect()
}

fn parameters_of(tool: &Tool) -> String {
    format!("{}_parameters", tool.name)
}

fn parameters(tool: &Tool) -> Value {
    let all = tool.parameters().iter();
    let properties: Map<String, Value> = all
        .clone()
        .map(|parameter| (parameter.name.clone(), property(parameter)))
        .collect();
    let required: Vec<&str> = all
        .filter(|parameter| parameter.required)
        .map(|parameter| parameter.name.as_str())
        .collect();
    let mut schema = json!({
        "description": format!("{}.", tool.title),
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let demands: Vec<Value> = tool
        .rules
        .iter()
        .filter_map(|rule| match rule {
            Rule::ExactlyOne(names) | Rule::AtLeastOne(names) => Some(super::any_given(names)),
            Rule::Pattern(_)
            | Rule::Keys(_)
            | Rule::Command(_)
            | Rule::Typed(_)
            | Rule::Definition(_) => None,
        })
        .collect();
    if !demands.is_empty() {
        schema["allOf"] = json!(demands);
    }
    schema
}

/// A parameter: a value of its type, text with a variable or a template in it, or nothing.
fn property(parameter: &Parameter) -> Value {
    let shape = &parameter.shape;
    let mut own = Map::new();
    if !shape.allowed.is_empty() {
        own.insert("enum".to_owned(), json!(shape.allowed));
    } else if !shape.types.is_empty() {
        let types: Vec<&str> = shape.types.iter().map(|ty| ty.word()).collect();
        own.insert("type".to_owned(), json!(types));
    }
    for (name, bound) in [("minimum", shape.minimum), ("maximum", shape.maximum)] {
        if let Some(bound) = bound {
            own.insert(name.to_owned(), plain(bound));
        }
    }
    let mut schema = json!({
        "description": parameter.description,
        "anyOf": [own, {"type": "string", "pattern": "\\{"}, {"type": "null"}],
    });
    if let Some(default) = &parameter.default {
        schema["default"] = default.clone();
    }
    schema
}
