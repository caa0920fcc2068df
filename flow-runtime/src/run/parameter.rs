//! Values of a tool's parameters, made to fit the types that the tool declares.
//!
//! A value keeps its type on its way into a parameter, and variables may all be texts. Where a type
//! leaves no doubt what is meant, the value becomes it; everything else is left for the tool's own
//! check, which names it.

use std::sync::Arc;

use flow_model::graph::{Field, Type};
use flow_model::tools::{Shape, Tool};

use crate::input;
use crate::value::{Map, Value};

/// The parameters of one of flow's own tools.
pub(super) fn fitted(tool: &Tool, parameters: Value) -> Value {
    each(parameters, |name, value| match tool.parameter(name) {
        Some(parameter) => shaped(&parameter.shape, value),
        None => value,
    })
}

/// The parameters of a tool that the definition declares.
pub(super) fn declared(fields: &[Field], parameters: Value) -> Value {
    each(parameters, |name, value| {
        match fields.iter().find(|field| *field.name == *name) {
            Some(field) => typed(&[field.ty], value),
            None => value,
        }
    })
}

fn each(parameters: Value, fit: impl Fn(&str, Value) -> Value) -> Value {
    let Value::Map(map) = parameters else {
        return parameters;
    };
    let map = Arc::unwrap_or_clone(map).0.into_iter();
    let fitted = map.map(|(name, value)| {
        let value = fit(&name, value);
        (name, value)
    });
    Value::Map(Arc::new(Map(fitted.collect())))
}

fn shaped(shape: &Shape, value: Value) -> Value {
    match (&shape.items, &shape.values, typed(&shape.types, value)) {
        (Some(items), _, Value::List(list)) => {
            Value::list(list.0.iter().map(|item| shaped(items, item.clone())))
        }
        (_, Some(values), map @ Value::Map(_)) => each(map, |_, value| shaped(values, value)),
        (_, _, value) => value,
    }
}

/// A value as one of some types: itself where it is one, else a number as its text, a text that is
/// wholly a number as that, and `true` and `false` as what they say.
fn typed(types: &[Type], value: Value) -> Value {
    let takes = |wanted: &[Type]| wanted.iter().any(|ty| types.contains(ty));
    if types.is_empty() || takes(&[Type::Any]) {
        return value;
    }
    match &value {
        Value::Int(_) | Value::Float(_) if takes(&[Type::Integer, Type::Number]) => value,
        Value::Bool(_) if takes(&[Type::Boolean]) => value,
        Value::Int(_) | Value::Float(_) | Value::Bool(_) if takes(&[Type::String]) => {
            Value::text(value.to_string())
        }
        Value::Str(_) if takes(&[Type::String]) => value,
        Value::Str(text) => {
            let numbers = [Type::Integer, Type::Number];
            let number = numbers.into_iter().filter(|ty| takes(&[*ty]));
            let number = number.map(|ty| input::parse(ty, text)).find_map(Result::ok);
            match (number, text.trim()) {
                (Some(number), _) => number,
                (None, "true") if takes(&[Type::Boolean]) => Value::Bool(true),
                (None, "false") if takes(&[Type::Boolean]) => Value::Bool(false),
                (None, _) => value,
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::List(_)
        | Value::Map(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use flow_model::tools;
    use serde_json::{Value as Json, json};

    use super::{Value, fitted};

    fn fit(tool: &str, parameters: &Json) -> Json {
        let tool = tools::find(tool).expect("the tool is known");
        fitted(tool, Value::from(parameters)).to_json()
    }

    #[test]
    fn a_value_becomes_what_the_parameter_takes_where_that_leaves_no_doubt() {
        let cases = [
            (
                "send_input",
                json!({"input_text": 5}),
                json!({"input_text": "5"}),
            ),
            ("send_input", json!({"keys": [1]}), json!({"keys": ["1"]})),
            (
                "run_command",
                json!({"timeout": " 5 "}),
                json!({"timeout": 5}),
            ),
            (
                "run_command",
                json!({"timeout": "2.5"}),
                json!({"timeout": 2.5}),
            ),
            (
                "get_screen_content",
                json!({"line_count": "7"}),
                json!({"line_count": 7}),
            ),
        ];
        for (tool, given, wanted) in cases {
            assert_eq!(fit(tool, &given), wanted);
        }
    }

    #[test]
    fn a_value_that_may_mean_something_else_is_left_to_the_tool() {
        let kept = [
            ("run_command", json!({"timeout": "5s"})),
            ("run_command", json!({"timeout": true})),
            ("get_screen_content", json!({"line_count": "7.5"})),
            ("send_input", json!({"input_text": ["a"]})),
            ("send_input", json!({"input_text": "5"})),
            ("open_terminal", json!({"environment": {"N": 5}})),
        ];
        for (tool, given) in kept {
            assert_eq!(fit(tool, &given), given);
        }
    }
}
