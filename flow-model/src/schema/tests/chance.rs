//! Definitions by chance, the same ones every time.

use serde_json::{Map, Value as Json, json};

use super::judge::Judge;
use super::samples::{NAMES, anything, excludes, least, least_record, name};
use crate::grammar::{DOCUMENT, Key, Record, STEPS, StepWord, Type};
use crate::schema::records;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// A value that fits, as a rule.
    fn value(&mut self, ty: &'static Type, depth: usize) -> Json {
        if self.one_in(150) {
            return self.pick(&anything());
        }
        if depth == 0 {
            return least(ty);
        }
        let depth = depth - 1;
        match ty {
            Type::List(of, _) => {
                let count = self.below(4);
                (0..count).map(|_| self.value(of, depth)).collect()
            }
            Type::Map(pattern, of, _) => {
                let count = self.below(4);
                let entries = (0..count).map(|at| {
                    let name = match self.one_in(100) {
                        true => self.pick(NAMES).to_owned(),
                        false => format!("{}{at}", name(*pattern)),
                    };
                    (name, self.value(of, depth))
                });
                Json::Object(entries.collect())
            }
            Type::Record(record) => self.record(record, record.name, depth),
            Type::Step => {
                let step = &STEPS[self.below(STEPS.len())];
                self.record(step.record, step.word, depth)
            }
            Type::ActionStep => {
                let acting: Vec<&StepWord> = STEPS.iter().filter(|step| step.kind.acts()).collect();
                let step = self.pick(&acting);
                let mut value = self.record(step.record, step.word, depth);
                if let Json::Object(entries) = &mut value
                    && !self.one_in(20)
                {
                    let own = ["id", "when", "on_error", "timeout"];
                    entries.retain(|name, _| !own.contains(&name.as_str()));
                }
                value
            }
            Type::Either(types) => {
                let ty = self.pick(types);
                self.value(ty, depth)
            }
            Type::Any | Type::Literal => self.pick(&anything()),
            Type::Word(words) => json!(self.pick(words)),
            Type::Text(..)
            | Type::Regex
            | Type::Template
            | Type::Condition
            | Type::Null
            | Type::Bool
            | Type::True
            | Type::Int(..)
            | Type::Number(..)
            | Type::Duration(..)
            | Type::Millis(..) => least(ty),
        }
    }

    fn record(&mut self, record: &'static Record, word: &str, depth: usize) -> Json {
        let mut entries = Map::new();
        let keys: Vec<&'static Key> = record.all_keys().collect();
        let least = least_record(record);
        for name in least.keys().filter_map(|name| record.find(name)) {
            let spellings: Vec<&'static Key> = keys
                .iter()
                .copied()
                .filter(|key| records::stands_for(key, name))
                .collect();
            let key = self.pick(&spellings);
            if !self.one_in(100) {
                entries.insert(key.name.to_owned(), self.value(key.ty, depth));
            }
        }
        for key in keys {
            let twice = entries
                .keys()
                .filter_map(|name| record.find(name))
                .any(|other| excludes(record, key, other));
            if self.one_in(8) && (!twice || self.one_in(20)) {
                entries.insert(key.name.to_owned(), self.value(key.ty, depth));
            }
        }
        if self.one_in(150) {
            entries.insert("unknown".to_owned(), json!(1));
        }
        if records::words(record).next().is_some() {
            entries.insert("type".to_owned(), json!(word));
        }
        Json::Object(entries)
    }
}

#[test]
fn schema_and_structure_agree_on_definitions_by_chance() {
    let mut judge = Judge::new();
    let mut chance = Chance(1);
    for _ in 0..3000 {
        let mut document = chance.record(&DOCUMENT, "", 7);
        if let Json::Object(entries) = &mut document {
            // One of the two forms, as a rule; both are otherwise too likely to exclude each other.
            let drop: &[&str] = match chance.below(9) {
                0 => &[],
                1..=4 => &["states", "initial_state"],
                _ => &["steps"],
            };
            entries.retain(|name, _| !drop.contains(&name.as_str()));
            if drop == ["steps"] {
                entries.insert("initial_state".to_owned(), json!("a"));
                entries.entry("states").or_insert_with(|| {
                    chance.value(DOCUMENT.find("states").expect("it exists").ty, 7)
                });
            }
        }
        judge.accepts(&document);
    }
    let Judge {
        accepted, rejected, ..
    } = judge;
    assert!(
        accepted > 500 && rejected > 500,
        "{accepted} and {rejected}"
    );
}
