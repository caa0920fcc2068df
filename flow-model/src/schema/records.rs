//! Which records a definition can contain, and what the schema calls them.

use crate::grammar::{self, Instead, Key, Record, STEPS, Type};

/// A record and the records its keys lead to, each once, in the order of the keys. Steps are not
/// entered.
pub(crate) fn reachable(from: &'static Record) -> Vec<&'static Record> {
    let mut found = Vec::new();
    visit(from, &mut found);
    found
}

/// The records that keys lead to, each once, in the order of the keys.
pub(crate) fn below(keys: &'static [Key]) -> Vec<&'static Record> {
    let mut found = Vec::new();
    for key in keys {
        visit_type(key.ty, &mut found);
    }
    found
}

fn visit(record: &'static Record, found: &mut Vec<&'static Record>) {
    if contains(found, record) {
        return;
    }
    found.push(record);
    for key in record.all_keys() {
        visit_type(key.ty, found);
    }
    if let Some(rest) = record.rest {
        visit_type(rest, found);
    }
}

fn visit_type(ty: &'static Type, found: &mut Vec<&'static Record>) {
    match ty {
        Type::Record(record) => visit(record, found),
        Type::List(of, _) | Type::Map(_, of, _) => visit_type(of, found),
        Type::Either(types) => types.iter().for_each(|ty| visit_type(ty, found)),
        Type::Text(..)
        | Type::Regex
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
        | Type::Step
        | Type::ActionStep => {}
    }
}

/// The records of steps, each once, in the order of their words.
pub(crate) fn of_steps() -> Vec<&'static Record> {
    let mut found = Vec::new();
    for step in STEPS {
        if !contains(&found, step.record) {
            found.push(step.record);
        }
    }
    found
}

/// Every record of the language, each once: from the document down, then steps.
pub(crate) fn all() -> Vec<&'static Record> {
    let mut found = reachable(&grammar::DOCUMENT);
    for step in of_steps() {
        visit(step, &mut found);
    }
    found
}

/// The bounds of every duration, each pair once.
pub(crate) fn durations() -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for key in all().into_iter().flat_map(Record::all_keys) {
        if let Type::Duration(min, max) = key.ty
            && !found.contains(&(*min, *max))
        {
            found.push((*min, *max));
        }
    }
    found
}

/// Whether the list has this very record.
pub(crate) fn contains(records: &[&'static Record], record: &'static Record) -> bool {
    records.iter().any(|other| std::ptr::eq(*other, record))
}

/// The words of `type:` that open this record.
pub(crate) fn words(record: &'static Record) -> impl Iterator<Item = &'static grammar::StepWord> {
    STEPS
        .iter()
        .filter(move |step| std::ptr::eq(step.record, record))
}

/// What the schema calls a record.
pub(crate) fn name(record: &'static Record) -> String {
    let name = record.name.replace(' ', "_");
    if words(record).next().is_some() && !name.ends_with("_step") {
        format!("{name}_step")
    } else {
        name
    }
}

/// The key that this one is another spelling of, with the same values; itself as a rule.
pub(crate) fn canonical(key: &Key) -> &'static str {
    match key.instead {
        Instead::Name(name) => name,
        Instead::Canonical | Instead::Form(_) => key.name,
    }
}

/// Whether a key, being given, stands for another: as itself, as another spelling, or as another
/// form.
pub(crate) fn stands_for(found: &Key, key: &Key) -> bool {
    let covers = match found.instead {
        Instead::Form(text) => text.split(['`', ' ', '.']).any(|part| part == key.name),
        Instead::Canonical | Instead::Name(_) => false,
    };
    covers || canonical(found) == key.name
}

/// What a key is another spelling or form of, as a phrase with code marks.
pub(crate) fn phrase(text: &str) -> String {
    let open = text.matches('`').count() % 2 == 1;
    let close = if open { "" } else { "`" };
    format!("`{text}{close}")
}
