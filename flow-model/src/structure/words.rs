//! What the grammar takes, in the words of a message.

use crate::grammar::{Instead, Key, Record, Type};

pub(super) const TRUTH: &str = "true or false";

/// What a type takes, for people.
pub(super) fn describe(ty: &'static Type) -> String {
    match ty {
        Type::Text(..) | Type::Template => "text".to_owned(),
        Type::Regex => "a regular expression as text".to_owned(),
        Type::Condition => "an expression".to_owned(),
        Type::Any | Type::Literal => "any value".to_owned(),
        Type::Null => "nothing".to_owned(),
        Type::Bool => TRUTH.to_owned(),
        Type::True => "only `true`".to_owned(),
        Type::Int(..) => "a whole number".to_owned(),
        Type::Number(..) => "a number".to_owned(),
        Type::Duration(..) => "seconds, or text such as `30s`".to_owned(),
        Type::Millis(..) => "milliseconds".to_owned(),
        Type::Word(words) => format!("one of {}", quoted(words.iter().copied())),
        Type::List(Type::Step, _) => "a list of steps".to_owned(),
        Type::List(..) => "a list".to_owned(),
        Type::Map(..) => "a map".to_owned(),
        Type::Record(record) => match record.keys.first() {
            Some(first) => format!("a map such as `{{{}: …}}`", first.name),
            None => "a map".to_owned(),
        },
        Type::Step | Type::ActionStep => "a step, which is a map with `type:`".to_owned(),
        Type::Either(types) => {
            let mut parts: Vec<String> = Vec::new();
            for ty in *types {
                let part = describe(ty);
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            parts.join(", or ")
        }
    }
}

/// How a list or a map is written, as far as the grammar says what stands in it.
pub(super) fn shape(ty: &'static Type) -> Option<String> {
    match ty {
        Type::List(..) | Type::Map(..) | Type::Record(_) => Some(example(ty, 2)),
        Type::Either(types) => types.iter().find_map(|ty| shape(ty)),
        _ => None,
    }
}

fn example(ty: &'static Type, depth: usize) -> String {
    let inside = |ty| match depth {
        0 => "…".to_owned(),
        depth => example(ty, depth - 1),
    };
    match ty {
        Type::List(of, _) => format!("[{}]", inside(of)),
        Type::Map(_, of, _) => format!("{{NAME: {}}}", inside(of)),
        Type::Record(record) => {
            let mut keys: Vec<&Key> = record.keys.iter().filter(|key| key.required).collect();
            if keys.is_empty() {
                keys.extend(record.keys.first());
            }
            let keys = keys
                .iter()
                .map(|key| format!("{}: {}", key.name, inside(key.ty)));
            format!("{{{}}}", keys.collect::<Vec<_>>().join(", "))
        }
        Type::Step | Type::ActionStep => "{type: …}".to_owned(),
        Type::Word(words) => words.first().copied().unwrap_or("…").to_owned(),
        Type::Either(types) => types
            .first()
            .map_or("…".to_owned(), |ty| example(ty, depth)),
        _ => "…".to_owned(),
    }
}

pub(super) fn names(record: &'static Record) -> String {
    let keys = record
        .all_keys()
        .filter(|key| key.instead == Instead::Canonical);
    quoted(keys.map(|key| key.name))
}

pub(super) fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// A record with an article; one that is named after its key stands as that key.
pub(super) fn article(record: &'static Record) -> String {
    let name = record.noun();
    let key = match record.name {
        "limits" | "config" | "retry" | "mcp" | "computed" => Some(record.name),
        name if name.contains('_') && record.find("id").is_none() => name.rsplit(' ').next(),
        _ => None,
    };
    match key {
        Some(key) => format!("`{key}`"),
        None if name.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {name}"),
        None => format!("a {name}"),
    }
}

pub(super) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
