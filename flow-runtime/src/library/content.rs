//! What makes two definitions the same workflow.

use flow_model::source::{Source, Tree, Value};
use serde_json::Value as Json;

use crate::journal::Hash;

/// Keys below which the order of entries means something: of writes, and of positional inputs.
const ORDERED: [&str; 4] = ["updates", "inputs", "parameters", "outputs"];
/// Keys of a document that say nothing about what it does.
const NAMING: [&str; 2] = ["name", "description"];

/// The hash of what a definition does: its name, its description, its layout and the order of its
/// keys do not matter. `None` for a text that is no definition.
pub(super) fn hash(source: &Source) -> Option<Hash> {
    let tree = source.tree().ok()?;
    let entries = document(&tree).entries()?;
    let meaning = entries
        .iter()
        .filter(|entry| !NAMING.contains(&entry.key.value.as_str()))
        .map(|entry| (entry.key.value.as_str(), &entry.value));
    let mut text = String::new();
    map(&mut text, meaning, false);
    Some(Hash::of(text.as_bytes()))
}

/// The map with the definition: the tree, or what is wrapped in `workflow:`.
pub(super) fn document(tree: &Tree) -> &Tree {
    match tree.entries() {
        Some([only]) if only.key.value == "workflow" => &only.value,
        _ => tree,
    }
}

/// The name that a definition gives itself.
pub(super) fn declared_name(tree: &Tree) -> Option<&Tree> {
    document(tree).get("name")
}

fn write(text: &mut String, tree: &Tree, in_order: bool) {
    match &tree.value {
        Value::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|entry| (entry.key.value.as_str(), &entry.value));
            map(text, entries, in_order);
        }
        Value::List(items) => {
            text.push('[');
            for item in items {
                write(text, item, false);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {
            text.push_str(&tree.to_json().to_string());
        }
    }
}

fn map<'t>(text: &mut String, entries: impl Iterator<Item = (&'t str, &'t Tree)>, in_order: bool) {
    let mut entries: Vec<_> = entries.collect();
    if !in_order {
        entries.sort_by_key(|(key, _)| *key);
    }
    text.push('{');
    for (key, value) in entries {
        text.push_str(&Json::from(key).to_string());
        text.push(':');
        write(text, value, ORDERED.contains(&key));
        text.push(',');
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Hash> {
        hash(&Source::new("x.yaml", text))
    }

    #[test]
    fn names_layout_and_order_of_keys_do_not_matter() {
        let yaml = "name: a\ndescription: one\nsteps:\n  - {type: shell, command: make}\n";
        let json = r#"{"steps": [{"command": "make", "type": "shell"}], "name": "b"}"#;
        let wrapped = "workflow:\n  name: c\n  steps:\n    - {type: shell, command: 'make'}\n";
        assert!(of(yaml).is_some());
        assert_eq!(of(yaml), of(json));
        assert_eq!(of(yaml), of(wrapped));
    }

    #[test]
    fn what_a_definition_does_matters() {
        let one = "steps:\n  - {type: set_state, updates: {a: 1, b: 2}}\n";
        let other_order = "steps:\n  - {type: set_state, updates: {b: 2, a: 1}}\n";
        let inner_name = "steps:\n  - {type: set_state, updates: {a: 1, b: 2}, description: x}\n";
        let text = "steps:\n  - {type: set_state, updates: {a: '1', b: 2}}\n";
        for other in [other_order, inner_name, text] {
            assert_ne!(of(one), of(other), "{other}");
        }
        assert_eq!(of("just text"), None);
        assert_eq!(of("a: [\n"), None);
    }
}
