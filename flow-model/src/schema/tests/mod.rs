//! The schema as a schema, and against the structural check.

mod chance;
mod judge;
mod samples;
mod tour;
mod written;

use serde_json::Value as Json;

use super::*;
use judge::Judge;

fn walk(schema: &Json, visit: &mut dyn FnMut(&Json)) {
    visit(schema);
    match schema {
        Json::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Json::Object(entries) => entries.values().for_each(|value| walk(value, visit)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[test]
fn the_schema_is_a_schema() {
    let schema = workflow();
    jsonschema::draft202012::meta::validate(&schema).expect("it fits the metaschema");
}

#[test]
fn every_reference_resolves_and_every_definition_is_used() {
    let schema = workflow();
    let mut used = Vec::new();
    walk(&schema, &mut |part| {
        if let Some(Json::String(target)) = part.get("$ref") {
            let pointer = target.strip_prefix('#').expect("it stays in the schema");
            assert!(schema.pointer(pointer).is_some(), "{target}");
            used.push(target.clone());
        }
    });
    for name in schema["$defs"]
        .as_object()
        .expect("it has definitions")
        .keys()
    {
        let target = format!("#/$defs/{name}");
        assert!(
            used.iter().any(|other| other.starts_with(&target)),
            "{name}"
        );
    }
}

#[test]
fn records_have_names_of_their_own() {
    let mut names: Vec<String> = records::all().into_iter().map(records::name).collect();
    names.extend(["step", "action_step", STEP_KEYS].map(str::to_owned));
    let durations = records::durations();
    names.extend(
        durations
            .into_iter()
            .map(|(min, max)| duration::name(min, max)),
    );
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn older_spellings_are_marked_and_name_the_new_one() {
    let schema = workflow();
    let alias = &schema["$defs"]["workflow"]["properties"]["parameters"];
    assert_eq!(alias["deprecated"], true);
    assert_eq!(alias["description"], "Older spelling of `inputs`.");
    let form = &schema["$defs"]["config"]["properties"]["max_retries"];
    assert_eq!(form["description"], "Older form of `retry`.");
}

#[test]
fn only_the_tool_of_a_state_lists_the_tools() {
    let schema = workflow();
    let mut places = 0;
    walk(&schema, &mut |part| {
        let text = part.get("description").and_then(Json::as_str);
        places += usize::from(text.is_some_and(|text| text.contains("`open_terminal`")));
    });
    assert_eq!(places, 1);
    let tool = &schema["$defs"]["action"]["properties"]["tool"]["description"];
    for known in tools::all() {
        assert!(tool.as_str().is_some_and(|text| text.contains(known.name)));
    }
}

#[test]
fn deeply_nested_steps_take_no_longer_than_as_many_side_by_side() {
    let mut step = json!({"command": "true", "type": "shell"});
    for _ in 0..20 {
        let inner = json!({"steps": [step], "items": [], "type": "foreach"});
        step = json!({"steps": [inner], "if": true, "type": "while"});
    }
    assert!(Judge::new().accepts(&json!({"steps": [step]})));
}
