//! JSON values as YAML in block style.

use serde_json::Value;

/// The value as a YAML document.
pub(crate) fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => block(&mut text, value, 0),
        _ => {
            text.push_str(&inline(value));
            text.push('\n');
        }
    }
    text
}

fn block(text: &mut String, value: &Value, depth: usize) {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (index, (key, value)) in map.iter().enumerate() {
                // The first key of an item stands after its dash.
                if index > 0 || !text.ends_with("- ") {
                    text.push_str(&pad);
                }
                text.push_str(&scalar(key));
                text.push(':');
                below(text, value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                text.push_str(&pad);
                text.push_str("- ");
                if is_block(item) {
                    block(text, item, depth + 1);
                } else {
                    text.push_str(&inline(item));
                    text.push('\n');
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn below(text: &mut String, value: &Value, depth: usize) {
    if is_block(value) {
        text.push('\n');
        block(text, value, depth + 1);
    } else {
        text.push(' ');
        text.push_str(&inline(value));
        text.push('\n');
    }
}

/// Lists directly inside lists are rare enough to be written in one line.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty() && !items.iter().any(Value::is_array),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_empty(value: &Value) -> bool {
    !is_block(value)
}

/// A value in one line. JSON is YAML, so whatever is not a plain word is written as JSON.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn scalar(text: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '/' || c == '.';
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| word(c) || c == ' ')
        && !text.ends_with(' ')
        && !is_reserved(text);
    if plain {
        text.to_owned()
    } else {
        Value::String(text.to_owned()).to_string()
    }
}

/// Words that some reader of YAML takes for something else than text.
fn is_reserved(text: &str) -> bool {
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    words.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::write;

    #[test]
    fn maps_and_lists_stand_in_lines() {
        let value = json!({
            "workflows": [
                {"name": "a:b", "description": null, "parameters": [{"name": "x", "default": [1, [2]]}]},
                {"name": "true", "parameters": []},
            ],
            "shadowed": [],
        });
        let expected = "\
workflows:
  - name: \"a:b\"
    description: null
    parameters:
      - name: x
        default: [1,[2]]
  - name: \"true\"
    parameters: []
shadowed: []
";
        assert_eq!(write(&value), expected);
    }
}
