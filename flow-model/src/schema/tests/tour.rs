//! Every key of every record in every spelling, at its place in a definition that is valid
//! otherwise.

use std::rc::Rc;

use serde_json::{Map, Value as Json, json};

use super::judge::Judge;
use super::samples::{anything, excludes, least, least_record, name, object, samples, sizes};
use crate::grammar::{self, DOCUMENT, Key, Record, STEPS, Type};
use crate::schema::records;

/// Puts a value at its place in a definition that is valid otherwise.
type Place = Rc<dyn Fn(Json) -> Json>;

fn below(place: &Place, wrap: impl Fn(Json) -> Json + 'static) -> Place {
    let place = Rc::clone(place);
    Rc::new(move |value| place(wrap(value)))
}

/// Every key of every record in every spelling, with values that fit and values that do not.
struct Tour {
    judge: Judge,
    seen: Vec<&'static Record>,
    sizes_seen: Vec<*const Type>,
    steps_seen: bool,
    action_seen: bool,
}

impl Tour {
    fn record(&mut self, record: &'static Record, place: &Place) {
        if records::contains(&self.seen, record) {
            return;
        }
        self.seen.push(record);
        let base = least_record(record);
        let least = place(Json::Object(base.clone()));
        assert!(self.judge.accepts(&least), "{}", record.name);
        self.given(record, place, &base);
    }

    /// The record's keys beside those of a base that is valid.
    fn given(&mut self, record: &'static Record, place: &Place, base: &Map<String, Json>) {
        let with = |entries: Map<String, Json>| place(Json::Object(entries));
        self.judge.accepts(&with(base.clone()));
        for unknown in ["unknown", "<<", ""] {
            let mut entries = base.clone();
            entries.insert(unknown.to_owned(), json!(1));
            self.judge.accepts(&with(entries));
        }
        for name in base.keys() {
            let mut entries = base.clone();
            entries.remove(name);
            self.judge.accepts(&with(entries));
        }
        let keys: Vec<&'static Key> = record.all_keys().collect();
        for key in &keys {
            self.key(record, key, place, base);
            for other in &keys {
                let mut entries = beside(record, key, base);
                entries.insert(key.name.to_owned(), least(key.ty));
                entries.insert(other.name.to_owned(), least(other.ty));
                self.judge.accepts(&with(entries));
            }
        }
    }

    fn key(
        &mut self,
        record: &'static Record,
        key: &'static Key,
        place: &Place,
        base: &Map<String, Json>,
    ) {
        let name = key.name;
        let base = beside(record, key, base);
        let place = below(place, move |value| {
            let mut entries = base.clone();
            entries.insert(name.to_owned(), value);
            Json::Object(entries)
        });
        let before = self.judge.accepted;
        if records::words(record).next().is_some() && name == "type" {
            for step in STEPS {
                self.judge.accepts(&place(json!(step.word)));
            }
        }
        self.value(key.ty, &place);
        let fits = self.judge.accepted > before;
        assert!(
            fits || self.excluded(record, key),
            "{}: {name}",
            record.name
        );
    }

    /// Whether a key fits nowhere beside the rest: one form of a document excludes the other, and
    /// a state's action is no step of its own.
    fn excluded(&self, record: &'static Record, key: &'static Key) -> bool {
        let form = std::ptr::eq(record, &DOCUMENT) && ["steps", "states"].contains(&key.name);
        let acts = records::words(record).any(|step| step.kind.acts());
        let own = ["id", "when", "on_error", "timeout"].contains(&key.name);
        form || (self.action_seen && (own || !acts))
    }

    fn value(&mut self, ty: &'static Type, place: &Place) {
        for value in samples(ty) {
            self.judge.accepts(&place(value));
        }
        if !self.sizes_seen.contains(&std::ptr::from_ref(ty)) {
            self.sizes_seen.push(ty);
            for value in sizes(ty) {
                self.judge.accepts(&place(value));
            }
        }
        match ty {
            Type::List(of, _) => self.value(of, &below(place, |value| json!([value]))),
            Type::Map(pattern, of, _) => {
                let name = name(*pattern);
                self.value(of, &below(place, move |value| object([(name, value)])));
            }
            Type::Either(types) => types.iter().for_each(|ty| self.value(ty, place)),
            Type::Record(record) => self.record(record, place),
            Type::Step if !self.steps_seen => {
                self.steps_seen = true;
                for record in records::of_steps() {
                    self.record(record, place);
                }
            }
            Type::ActionStep if !self.action_seen => {
                self.action_seen = true;
                for record in records::of_steps() {
                    self.given(record, place, &least_record(record));
                }
            }
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
}

/// A base in which a key has a place: without what it stands for or excludes.
fn beside(
    record: &'static Record,
    key: &'static Key,
    base: &Map<String, Json>,
) -> Map<String, Json> {
    let mut entries = base.clone();
    let is = |other, name| std::ptr::eq(record, other) && key.name == name;
    if is(&DOCUMENT, "states") {
        entries.remove("steps");
        entries.insert("initial_state".to_owned(), json!("a"));
    }
    if is(&grammar::TRANSITION, "pattern") {
        entries.insert("condition".to_owned(), json!("pattern_match"));
    }
    if std::ptr::eq(record, &grammar::CONDITION_MAP) {
        entries.remove("description");
    }
    entries.retain(|name, _| {
        record
            .find(name)
            .is_none_or(|other| !records::stands_for(key, other) && !excludes(record, key, other))
    });
    entries
}

#[test]
fn schema_and_structure_agree_on_every_key() {
    let mut tour = Tour {
        judge: Judge::new(),
        seen: Vec::new(),
        sizes_seen: Vec::new(),
        steps_seen: false,
        action_seen: false,
    };
    let root: Place = Rc::new(|value| value);
    tour.record(&DOCUMENT, &root);
    let bases = [
        json!({}),
        json!({"tasks": {}}),
        json!({"initial_state": "a", "states": {"a": least_record(&grammar::STATE)}}),
    ];
    for base in bases {
        let base = base.as_object().expect("it is a map").clone();
        tour.given(&DOCUMENT, &root, &base);
    }
    for record in records::all() {
        assert!(records::contains(&tour.seen, record), "{}", record.name);
    }
    let Judge {
        accepted, rejected, ..
    } = tour.judge;
    assert!(
        accepted > 5000 && rejected > 5000,
        "{accepted} and {rejected}"
    );
}

#[test]
fn a_key_with_rules_accepts_something_and_rejects_something() {
    let mut judge = Judge::new();
    for key in DOCUMENT.all_keys() {
        let definitions = samples(key.ty).into_iter().map(|value| {
            let mut definition = Map::new();
            if !["steps", "states"].contains(&key.name) {
                definition.insert("tasks".to_owned(), json!({}));
            }
            if key.name == "states" {
                definition.insert("initial_state".to_owned(), json!("a"));
            }
            definition.insert(key.name.to_owned(), value);
            Json::Object(definition)
        });
        let verdicts: Vec<bool> = definitions
            .map(|definition| judge.accepts(&definition))
            .collect();
        let both = verdicts.contains(&true) && verdicts.contains(&false);
        assert!(both || key.name == "states", "{}", key.name);
    }
}

#[test]
fn schema_and_structure_agree_on_documents_as_a_whole() {
    let mut judge = Judge::new();
    let state = least_record(&grammar::STATE);
    let steps = [None, Some(json!([]))];
    let states = [None, Some(json!({})), Some(json!({"a": state}))];
    let initial = [None, Some(json!("a")), Some(json!({})), Some(json!(1))];
    for steps in &steps {
        for states in &states {
            for initial in &initial {
                for more in [None, Some("tasks"), Some("inputs"), Some("imports")] {
                    let mut document = Map::new();
                    let given = [
                        ("steps", steps),
                        ("states", states),
                        ("initial_state", initial),
                    ];
                    for (name, value) in given {
                        document.extend(value.clone().map(|value| (name.to_owned(), value)));
                    }
                    if let Some(key) = more.and_then(|name| DOCUMENT.find(name)) {
                        document.insert(key.name.to_owned(), least(key.ty));
                    }
                    let document = Json::Object(document);
                    judge.accepts(&document);
                    judge.accepts(&object([("workflow", document.clone())]));
                    judge.accepts(&object([
                        ("workflow", document.clone()),
                        ("name", json!("a")),
                    ]));
                    judge.accepts(&object([("workflow", object([("workflow", document)]))]));
                }
            }
        }
    }
    for value in anything() {
        judge.accepts(&value);
        judge.accepts(&object([("workflow", value)]));
    }
}
