//! The JSON Schema of definitions, for editors and other programs.

mod calls;
mod duration;
pub(crate) mod records;

use serde_json::{Map, Value, json};

use crate::grammar::{
    self, COMMON, DOCUMENT, Instead, Key, Pattern, Record, STEPS, StepWord, Type,
};
use crate::tools;

/// The JSON Schema (draft 2020-12) of a definition.
///
/// It is printed from the grammar and the registry of tools. It accepts what the structural check
/// accepts, as far as the tools of states and their parameters are flow's or declared, with these
/// exceptions, which JSON Schema cannot say or JSON cannot write:
///
/// * the number of steps of a whole definition, nested ones included (each list is bounded);
/// * the size and depth of the text, duplicate keys, infinities and not-a-number;
/// * a whole number from 9·10¹⁵ on that is written with a point or an exponent;
/// * a duration text less than one part in 10¹⁵ away from a bound in a unit in which the bound has
///   no finite decimal, or with a character of Unicode that only some call white space.
///
/// ```
/// let schema = flow_model::schema::workflow();
/// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// ```
#[must_use]
pub fn workflow() -> Value {
    let mut definitions = Map::new();
    for record in records::all() {
        definitions.insert(records::name(record), of_record(record));
    }
    definitions.insert("step".to_owned(), step());
    definitions.insert("action_step".to_owned(), action_step());
    definitions.insert(STEP_KEYS.to_owned(), step_keys());
    definitions.extend(calls::definitions());
    for (min, max) in records::durations() {
        definitions.insert(duration::name(min, max), duration::schema(min, max));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Workflow",
        "description": "A workflow definition of flow.",
        "type": "object",
        "if": {"required": ["workflow"]},
        "then": {
            "properties": {"workflow": reference(&records::name(&DOCUMENT))},
            "additionalProperties": false,
        },
        "else": reference(&records::name(&DOCUMENT)),
        "$defs": definitions,
    })
}

/// Where the keys of every step are defined.
const STEP_KEYS: &str = "step_keys";

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// What holds for a record beyond its keys one by one.
fn together(record: &'static Record) -> Vec<Value> {
    if std::ptr::eq(record, &DOCUMENT) {
        whole_document()
    } else if std::ptr::eq(record, &grammar::TRANSITION) {
        vec![json!({
            "if": {"properties": {"condition": {"enum": ["pattern_match", "pattern_no_match"]}}},
            "then": {"required": ["pattern"]},
            "else": {"properties": {"pattern": false}},
        })]
    } else if std::ptr::eq(record, &grammar::CONDITION_MAP) {
        vec![json!({"if": {"required": ["description"]}, "then": {"maxProperties": 1}})]
    } else {
        Vec::new()
    }
}

fn whole_document() -> Vec<Value> {
    let something = [
        "steps",
        "states",
        "tasks",
        "sub_agent_tasks",
        "computed",
        "state_schema",
        "agents",
    ];
    vec![
        any_given(&something),
        json!({
            "if": {"required": ["steps"]},
            "then": {"properties": {"states": false, "initial_state": {"type": "object"}}},
        }),
        json!({
            "if": {"required": ["states"]},
            "then": {
                "properties": {
                    "initial_state": {"type": "string"},
                    "states": {"minProperties": 1},
                },
                "required": ["initial_state"],
            },
        }),
        calls::of_states(),
    ]
}

/// A step: the record that its type opens. Branches are chosen by type, so that a fault is
/// reported for the step as it is meant, and nested steps are looked at once.
fn step() -> Value {
    let branches: Vec<Value> = records::of_steps()
        .into_iter()
        .map(|record| {
            json!({
                "if": {"properties": {"type": type_words(records::words(record))}, "required": ["type"]},
                "then": reference(&records::name(record)),
            })
        })
        .collect();
    let older_last =
        [false, true].map(|older| STEPS.iter().filter(move |step| step.alias == older));
    let mut word = one_of_words(older_last.into_iter().flatten());
    word.insert("description".to_owned(), json!("What the step does."));
    json!({
        "description": "A step; its type decides which keys it has.",
        "type": "object",
        "properties": {"type": word},
        "required": ["type"],
        "allOf": branches,
    })
}

/// A step as the action of a state, which has the name, the timeout and the transitions itself.
fn action_step() -> Value {
    json!({
        "description": "A step that acts. The state has the name, the timeout and the transitions.",
        "$ref": "#/$defs/step",
        "properties": {
            "type": one_of_words(STEPS.iter().filter(|step| step.kind.acts())),
            "id": false,
            "when": false,
            "on_error": false,
            "timeout": false,
        },
    })
}

fn step_keys() -> Value {
    let mut properties = Map::new();
    for key in COMMON.iter().filter(|key| key.name != "type") {
        properties.insert(key.name.to_owned(), of_key(key));
    }
    json!({"description": "Keys of every step.", "properties": properties})
}

fn one_of_words<'a>(steps: impl Iterator<Item = &'a StepWord>) -> Map<String, Value> {
    let words: Vec<&str> = steps.map(|step| step.word).collect();
    Map::from_iter([("enum".to_owned(), json!(words))])
}

/// The words of one record; a single one as a constant.
fn type_words(steps: impl Iterator<Item = &'static StepWord>) -> Map<String, Value> {
    let mut steps = steps.peekable();
    match (steps.next(), steps.peek()) {
        (Some(only), None) => Map::from_iter([("const".to_owned(), json!(only.word))]),
        (first, _) => one_of_words(first.into_iter().chain(steps)),
    }
}

fn of_record(record: &'static Record) -> Value {
    let mut properties = Map::new();
    for key in record.all_keys() {
        if !properties.contains_key(key.name) {
            properties.insert(key.name.to_owned(), of_key_in(key, record));
        }
    }
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(record.doc));
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert(
        "additionalProperties".to_owned(),
        record.rest.map_or(Value::Bool(false), of_type),
    );
    if record.at_least > 0 {
        schema.insert("minProperties".to_owned(), json!(record.at_least));
    }
    let (required, mut demands) = spellings(record);
    demands.extend(together(record));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    if !demands.is_empty() {
        schema.insert("allOf".to_owned(), json!(demands));
    }
    Value::Object(schema)
}

/// Keys that must be given in their only spelling; and what else has to hold so that every key is
/// given in one spelling at most, and required ones in one at least.
fn spellings(record: &'static Record) -> (Vec<&'static str>, Vec<Value>) {
    let mut required = Vec::new();
    let mut demands = Vec::new();
    if !record.one_of.is_empty() {
        let choice: Vec<&str> = record
            .all_keys()
            .filter(|key| record.one_of.contains(&records::canonical(key)))
            .map(|key| key.name)
            .collect();
        demands.push(one_given(&choice));
    }
    let leads =
        |key: &&Key| !matches!(key.instead, Instead::Name(_)) && !record.one_of.contains(&key.name);
    for key in record.all_keys().filter(leads) {
        let names: Vec<&str> = record
            .all_keys()
            .filter(|other| records::canonical(other) == key.name)
            .map(|other| other.name)
            .collect();
        let forms: Vec<&str> = record
            .all_keys()
            .filter(|other| !names.contains(&other.name) && records::stands_for(other, key))
            .map(|other| other.name)
            .collect();
        match (key.required, names.as_slice(), forms.as_slice()) {
            (true, [only], []) => required.push(*only),
            (true, names, []) => demands.push(one_given(names)),
            (true, names, forms) => {
                demands.push(any_given(&[names, forms].concat()));
                demands.extend(not_both(names));
            }
            (false, names, _) => demands.extend(not_both(names)),
        }
    }
    (required, demands)
}

fn one_given(names: &[&str]) -> Value {
    let each: Vec<Value> = names
        .iter()
        .map(|name| json!({"required": [name]}))
        .collect();
    json!({"oneOf": each})
}

fn any_given(names: &[&str]) -> Value {
    let each: Vec<Value> = names
        .iter()
        .map(|name| json!({"required": [name]}))
        .collect();
    json!({"anyOf": each})
}

fn not_both(names: &[&str]) -> Vec<Value> {
    let mut pairs = Vec::new();
    for (index, first) in names.iter().enumerate() {
        for second in &names[index + 1..] {
            pairs.push(json!({"not": {"required": [first, second]}}));
        }
    }
    pairs
}

fn of_key_in(key: &'static Key, record: &'static Record) -> Value {
    let is_step = records::words(record).next().is_some();
    if is_step && key.name == "type" {
        let mut words = type_words(records::words(record));
        words.insert("description".to_owned(), json!(type_description(record)));
        return Value::Object(words);
    }
    // Keys are the same when they read the same: constants have no identity to compare.
    let common = COMMON
        .iter()
        .any(|common| common.name == key.name && common.doc == key.doc);
    if is_step && common {
        return json!({"$ref": format!("#/$defs/{STEP_KEYS}/properties/{}", key.name)});
    }
    let mut schema = of_key(key);
    if std::ptr::eq(record, &grammar::ACTION) && key.name == "tool" {
        let tools: Vec<String> = tools::all()
            .iter()
            .map(|tool| format!("`{}`", tool.name))
            .collect();
        schema["description"] = json!(format!(
            "{} One of {}, or one declared under `tools`.",
            key.doc,
            tools.join(", ")
        ));
    }
    schema
}

fn type_description(record: &'static Record) -> String {
    let older: Vec<String> = records::words(record)
        .filter(|step| step.alias)
        .map(|step| format!("`{}`", step.word))
        .collect();
    if older.is_empty() {
        record.doc.to_owned()
    } else {
        format!("{} Older spellings: {}.", record.doc, older.join(", "))
    }
}

fn of_key(key: &'static Key) -> Value {
    let mut schema = match of_type(key.ty) {
        Value::Object(schema) => schema,
        // `true`, the schema of any value.
        _ => Map::new(),
    };
    schema.insert("description".to_owned(), json!(description(key)));
    if key.instead != Instead::Canonical {
        schema.insert("deprecated".to_owned(), json!(true));
    }
    Value::Object(schema)
}

fn description(key: &Key) -> String {
    let mut sentences = match key.instead {
        Instead::Canonical => Vec::new(),
        Instead::Name(name) => vec![format!("Older spelling of `{name}`.")],
        Instead::Form(text) => vec![format!("Older form of {}.", records::phrase(text))],
    };
    if !key.doc.is_empty() {
        sentences.push(key.doc.to_owned());
    }
    if !key.default.is_empty() {
        sentences.push(format!("Default: {}.", key.default));
    }
    sentences.join(" ")
}

fn of_type(ty: &'static Type) -> Value {
    match ty {
        Type::Any | Type::Literal => json!(true),
        Type::Null => json!({"type": "null"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::True => json!({"const": true}),
        Type::Regex | Type::Template => json!({"type": "string"}),
        Type::Condition => json!({"type": ["string", "boolean"]}),
        Type::Text(pattern, max) => {
            let mut schema = Map::from_iter([("type".to_owned(), json!("string"))]);
            schema.extend(text(*pattern, *max));
            Value::Object(schema)
        }
        Type::Word(words) => json!({"enum": words}),
        Type::Int(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Type::Number(min, max) | Type::Millis(min, max) => {
            Value::Object(between(json!("number"), *min, *max))
        }
        Type::Duration(min, max) => reference(&duration::name(*min, *max)),
        Type::List(of, max) => json!({"type": "array", "items": of_type(of), "maxItems": max}),
        Type::Map(pattern, of, max) => {
            // The structural check bounds names as it bounds values.
            let names = text(*pattern, if *pattern == Pattern::Free { 500 } else { 64 });
            let mut schema = Map::new();
            schema.insert("type".to_owned(), json!("object"));
            schema.insert("propertyNames".to_owned(), Value::Object(names));
            let values = of_type(of);
            if values != Value::Bool(true) {
                schema.insert("additionalProperties".to_owned(), values);
            }
            schema.insert("maxProperties".to_owned(), json!(max));
            Value::Object(schema)
        }
        Type::Record(record) => reference(&records::name(record)),
        Type::Step => reference("step"),
        Type::ActionStep => reference("action_step"),
        Type::Either(types) => either(types),
    }
}

fn text(pattern: Pattern, max: usize) -> Map<String, Value> {
    let mut schema = Map::new();
    if let Some(regex) = pattern.regex() {
        schema.insert("pattern".to_owned(), json!(regex));
    }
    schema.insert("maxLength".to_owned(), json!(max));
    schema
}

fn between(kind: Value, min: f64, max: f64) -> Map<String, Value> {
    let mut schema = Map::from_iter([("type".to_owned(), kind)]);
    for (name, bound) in [("minimum", min), ("maximum", max)] {
        if bound.is_finite() {
            schema.insert(name.to_owned(), plain(bound));
        }
    }
    schema
}

/// A number as people write it: `300`, not `300.0`.
fn plain(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        json!(number as i64)
    } else {
        json!(number)
    }
}

/// Alternatives differ in kind, but for an action: there `type` tells a step from a tool call.
fn either(types: &'static [&'static Type]) -> Value {
    let (steps, others): (Vec<&Type>, Vec<&Type>) =
        types.iter().partition(|ty| matches!(ty, Type::ActionStep));
    let mut schemas: Vec<Value> = others.into_iter().map(of_type).collect();
    let otherwise = match schemas.len() {
        1 => schemas.remove(0),
        _ => json!({"anyOf": schemas}),
    };
    if steps.is_empty() {
        return otherwise;
    }
    json!({
        "if": {"type": "object", "required": ["type"]},
        "then": of_type(&Type::ActionStep),
        "else": otherwise,
    })
}

#[cfg(test)]
mod tests;
