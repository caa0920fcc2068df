//! Values along the grammar, some of which fit.

use serde_json::{Map, Value as Json, json};

use crate::grammar::{ACTION, DOCUMENT, Key, Pattern, Record, STEPS, Type};
use crate::schema::records;

pub(super) fn object<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Object(
        entries
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    )
}

/// A name that fits.
pub(super) fn name(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Free | Pattern::Name | Pattern::Workflow | Pattern::AgentKey => "a",
        Pattern::Environment => "A",
        Pattern::Agent => "@a",
        Pattern::Version => "1.2.0",
    }
}

/// Names of which some fit some patterns.
pub(super) const NAMES: &[&str] = &[
    "", "a", "A", "_", "-a", ".a", "a.b-c_d", "a:b", "a::b", ":", "a b", "@a", "@", "@A-b", "a\n",
    "\u{e4}", "1", "1.2", "1.2.3", "1.2.3.4", "1..2", "1.2-rc.1", "1-", "1+", "1+b-1", "1-a+b",
    "1+a+b", "v1", "A_1", "1_A",
];

/// The least value that fits.
pub(super) fn least(ty: &'static Type) -> Json {
    match ty {
        Type::Any | Type::Literal | Type::Null => Json::Null,
        Type::Text(pattern, _) => json!(name(*pattern)),
        Type::Regex | Type::Template => json!("a"),
        Type::Condition | Type::Bool | Type::True => json!(true),
        Type::Int(min, _) => json!(min),
        Type::Number(min, _) | Type::Duration(min, _) | Type::Millis(min, _) => {
            json!(if min.is_finite() { *min } else { 0.0 })
        }
        Type::Word(words) => json!(words[0]),
        Type::List(..) => json!([]),
        Type::Map(..) => json!({}),
        Type::Record(record) => Json::Object(least_record(record)),
        Type::Step | Type::ActionStep => {
            object([("type", json!("shell")), ("command", json!("true"))])
        }
        Type::Either(types) => least(types[0]),
    }
}

pub(super) fn least_record(record: &'static Record) -> Map<String, Json> {
    let mut entries = Map::new();
    if std::ptr::eq(record, &DOCUMENT) {
        entries.insert("steps".to_owned(), json!([]));
    }
    for key in record.all_keys().filter(|key| key.required) {
        entries.insert(key.name.to_owned(), least(key.ty));
    }
    if std::ptr::eq(record, &ACTION) {
        entries.insert("tool".to_owned(), json!("list_terminal_sessions"));
    }
    if let Some(step) = records::words(record).next() {
        entries.insert("type".to_owned(), json!(step.word));
    }
    let choice = record.one_of.first().and_then(|name| record.find(name));
    for key in record.all_keys().take(record.at_least).chain(choice) {
        entries.insert(key.name.to_owned(), least(key.ty));
    }
    entries
}

/// Values of every kind.
pub(super) fn anything() -> Vec<Json> {
    vec![
        Json::Null,
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("a"),
        json!("{{ a }}"),
        json!([]),
        json!(["a"]),
        json!([null, 1]),
        json!({}),
        json!({"a": 1}),
        json!({"type": "string"}),
    ]
}

/// Values of every kind, and those on both sides of what fits.
pub(super) fn samples(ty: &'static Type) -> Vec<Json> {
    let mut values = anything();
    values.push(least(ty));
    match ty {
        Type::Text(..) => values.extend(NAMES.iter().map(|name| json!(name))),
        Type::Word(words) => {
            for word in *words {
                values.extend([
                    json!(word),
                    json!(word.to_uppercase()),
                    json!(format!("{word} ")),
                ]);
            }
        }
        Type::Int(min, max) => {
            for bound in [*min, *max] {
                values.extend(
                    [bound.checked_sub(1), Some(bound), bound.checked_add(1)].map(|n| json!(n)),
                );
            }
            values.extend([json!(*min as f64), json!(*min as f64 + 0.5)]);
        }
        Type::Number(min, max) | Type::Millis(min, max) => values.extend(around(*min, *max)),
        Type::Duration(min, max) => {
            values.extend(around(*min, *max));
            let texts = [
                "30s", "5 m", " 1h ", "1d", "500ms", "7", "s", "1.2.3s", ".", "-1s", "1e2", "1 s s",
            ];
            values.extend(texts.map(|text| json!(text)));
            for (unit, length) in [
                ("ms", 0.001),
                ("s", 1.0),
                ("", 1.0),
                ("m", 60.0),
                ("h", 3600.0),
                ("d", 86_400.0),
            ] {
                for bound in [min / length, max / length] {
                    for factor in [0.5, 0.99, 1.01, 2.0] {
                        values.push(json!(format!("{:.9}{unit}", bound * factor)));
                    }
                    values.push(json!(format!("{bound:.0}{unit}")));
                }
            }
        }
        Type::List(of, _) => values.extend([json!([least(of)]), json!([least(of), []])]),
        Type::Map(_, of, _) => {
            values.extend(NAMES.iter().map(|name| object([(name, least(of))])));
        }
        Type::Step | Type::ActionStep => {
            for step in STEPS {
                let mut entries = least_record(step.record);
                entries.insert("type".to_owned(), json!(step.word));
                for key in ["id", "when", "on_error", "timeout"] {
                    let mut more = entries.clone();
                    let key = step.record.find(key).expect("every step has it");
                    more.insert(key.name.to_owned(), least(key.ty));
                    values.push(Json::Object(more));
                }
                values.push(Json::Object(entries));
            }
            values.push(json!({"type": "shel", "command": "true"}));
            values.push(json!({"type": 1, "command": "true"}));
            values.push(json!({"command": "true"}));
        }
        Type::Either(types) => values.extend(types.iter().flat_map(|ty| samples(ty))),
        Type::Any
        | Type::Literal
        | Type::Null
        | Type::Bool
        | Type::True
        | Type::Regex
        | Type::Template
        | Type::Condition
        | Type::Record(_) => {}
    }
    values
}

/// Texts, lists and maps of the greatest size, and greater by one.
pub(super) fn sizes(ty: &'static Type) -> Vec<Json> {
    match ty {
        Type::Text(pattern, max) => {
            let fill = |unit: &str, count: usize| json!(unit.repeat(count));
            let name = name(*pattern);
            vec![
                fill(name, max / name.len()),
                fill("a", *max),
                fill("a", max + 1),
                fill("\u{e4}", *max),
                fill("A", max + 1),
            ]
        }
        // All steps together are bounded, which the schema cannot say.
        Type::List(of @ Type::Step, max) => vec![Json::Array(vec![least(of); max + 1])],
        Type::List(of, max) => [*max, max + 1]
            .map(|count| Json::Array(vec![least(of); count]))
            .to_vec(),
        Type::Map(pattern, of, max) => {
            let name = name(*pattern);
            let lengths =
                [64, 65, 500, 501].map(|length| object([(&name.repeat(length), least(of))]));
            let counts = [*max, max + 1].map(|count| {
                let names = (0..count).map(|at| format!("{name}{at}"));
                Json::Object(names.map(|name| (name, least(of))).collect())
            });
            lengths.into_iter().chain(counts).collect()
        }
        Type::Either(types) => types.iter().flat_map(|ty| sizes(ty)).collect(),
        Type::Regex
        | Type::Template
        | Type::Condition
        | Type::Any
        | Type::Literal
        | Type::Null
        | Type::Bool
        | Type::True
        | Type::Int(..)
        | Type::Number(..)
        | Type::Duration(..)
        | Type::Millis(..)
        | Type::Word(_)
        | Type::Record(_)
        | Type::Step
        | Type::ActionStep => Vec::new(),
    }
}

fn around(min: f64, max: f64) -> Vec<Json> {
    [min, max]
        .into_iter()
        .filter(|bound| bound.is_finite())
        .flat_map(|bound| [bound - 0.001, bound, bound + 0.001])
        .map(|number| json!(number))
        .collect()
}

/// Whether a choice between keys, or another spelling, leaves no room for both.
pub(super) fn excludes(record: &'static Record, key: &Key, other: &Key) -> bool {
    let (one, two) = (records::canonical(key), records::canonical(other));
    one == two || (record.one_of.contains(&one) && record.one_of.contains(&two))
}
