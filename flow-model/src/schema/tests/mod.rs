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
fn a_state_calls_a_tool_of_the_registry_with_its_parameters() {
    let schema = workflow();
    let names: Vec<&str> = tools::all().iter().map(|tool| tool.name).collect();
    let call = &schema["$defs"]["tool_call"]["then"];
    assert_eq!(call["properties"]["tool"]["enum"], json!(names));
    for tool in tools::all() {
        let parameters = &schema["$defs"][format!("{}_parameters", tool.name)]["properties"];
        for parameter in tool.parameters() {
            let property = &parameters[&parameter.name];
            assert_eq!(property["description"], json!(parameter.description));
        }
    }
    let mut judge = Judge::new();
    let mut accepts = |action: Json, tools: Json| {
        let mut definition = json!({
            "initial_state": "call",
            "states": {"call": {"action": action}},
        });
        if tools != Json::Null {
            definition["tools"] = tools;
        }
        judge.accepts(&definition)
    };
    let wait = |params: Json| json!({"tool": "await_output", "params": params});
    let none = Json::Null;
    assert!(accepts(
        wait(json!({"pattern": "a", "timeout": 5})),
        none.clone()
    ));
    assert!(accepts(
        wait(json!({"pattern": "a", "timeout": "{limit}"})),
        none.clone()
    ));
    assert!(accepts(
        wait(json!({"pattern": "a", "target": null})),
        none.clone()
    ));
    assert!(!accepts(
        wait(json!({"pattern": "a", "timeout": "soon"})),
        none.clone()
    ));
    assert!(!accepts(
        wait(json!({"pattern": "a", "timeout": 0})),
        none.clone()
    ));
    assert!(!accepts(
        wait(json!({"pattern": "a", "limit": 5})),
        none.clone()
    ));
    assert!(!accepts(
        wait(json!({"pattern": "a", "target": "window"})),
        none.clone()
    ));
    assert!(!accepts(wait(json!({"timeout": 5})), none.clone()));
    assert!(!accepts(
        json!({"tool": "send_input", "params": {}}),
        none.clone()
    ));
    assert!(!accepts(json!({"tool": "await"}), none.clone()));
    assert!(accepts(json!({"type": "shell", "command": "true"}), none));
    let declared = json!({"await": {}, "await_output": {}});
    assert!(accepts(json!({"tool": "await"}), declared.clone()));
    assert!(accepts(wait(json!({"limit": 5})), declared));
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
