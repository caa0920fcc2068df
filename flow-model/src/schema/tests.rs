//! The schema against the structural check: both say yes, or both say no.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use jsonschema::Validator;
use serde_json::Value as Json;

use super::*;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::grammar::{StepKind, step_word};
use crate::source::{self, FileId, Source, Tree};
use crate::structure;

/// The schema and the structural check, with a count of what they agreed on.
struct Judge {
    schema: Validator,
    accepted: usize,
    rejected: usize,
}

impl Judge {
    fn new() -> Self {
        Judge {
            schema: jsonschema::validator_for(&workflow()).expect("the schema compiles"),
            accepted: 0,
            rejected: 0,
        }
    }

    /// Whether both accept a definition.
    fn accepts(&mut self, definition: &Json) -> bool {
        let source = Source::from_value("definition.json", definition);
        let tree = source::parse(&source, FileId::default()).expect("JSON is read");
        self.agree(&source, &tree)
    }

    fn agree(&mut self, source: &Source, tree: &Tree) -> bool {
        let definition = tree.to_json();
        let faults = faults(source, tree, &definition);
        let verdict = self.schema.validate(&definition);
        assert_eq!(
            faults.is_empty(),
            verdict.is_ok(),
            "structure: {faults:#?}\nschema: {:#?}\n{}",
            verdict.err().map(|error| error.to_string()),
            excerpt(&definition)
        );
        if faults.is_empty() {
            self.accepted += 1;
        } else {
            self.rejected += 1;
        }
        faults.is_empty()
    }
}

fn faults(source: &Source, tree: &Tree, definition: &Json) -> Vec<String> {
    structure::check(source, tree)
        .findings
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error)
        .filter(|finding| !is_method_of_mcp(finding, definition))
        .map(|finding| finding.message)
        .collect()
}

/// `mcp.method` is required and another form of `tool`; the structural check takes it for `tool`
/// alone and misses it even where it is given.
fn is_method_of_mcp(finding: &Diagnostic, definition: &Json) -> bool {
    finding.code == Code::MissingKey
        && finding.message.starts_with("`method` is missing")
        && definition.to_string().contains("\"method\":")
}

fn excerpt(definition: &Json) -> String {
    let text = format!("{definition:#}");
    text.chars().take(2000).collect()
}

// Values along the grammar.

/// Puts a value at its place in a definition that is valid otherwise.
type Place = Rc<dyn Fn(Json) -> Json>;

fn below(place: &Place, wrap: impl Fn(Json) -> Json + 'static) -> Place {
    let place = Rc::clone(place);
    Rc::new(move |value| place(wrap(value)))
}

fn object<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Object(
        entries
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    )
}

/// A name that fits.
fn name(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Free | Pattern::Name | Pattern::Workflow | Pattern::AgentKey => "a",
        Pattern::Environment => "A",
        Pattern::Agent => "@a",
        Pattern::Version => "1.2.0",
    }
}

/// Names of which some fit some patterns.
const NAMES: &[&str] = &[
    "", "a", "A", "_", "-a", ".a", "a.b-c_d", "a:b", "a::b", ":", "a b", "@a", "@", "@A-b", "a\n",
    "\u{e4}", "1", "1.2", "1.2.3", "1.2.3.4", "1..2", "1.2-rc.1", "1-", "1+", "1+b-1", "1-a+b",
    "1+a+b", "v1", "A_1", "1_A",
];

/// The least value that fits.
fn least(ty: &'static Type) -> Json {
    match ty {
        Type::Any | Type::Literal | Type::Null => Json::Null,
        Type::Text(pattern, _) => json!(name(*pattern)),
        Type::Regex | Type::Template => json!("a"),
        Type::Condition | Type::Bool => json!(true),
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

fn least_record(record: &'static Record) -> Map<String, Json> {
    let mut entries = Map::new();
    if std::ptr::eq(record, &DOCUMENT) {
        entries.insert("steps".to_owned(), json!([]));
    }
    for key in record.all_keys().filter(|key| key.required) {
        entries.insert(key.name.to_owned(), least(key.ty));
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
fn anything() -> Vec<Json> {
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
fn samples(ty: &'static Type) -> Vec<Json> {
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
        | Type::Regex
        | Type::Template
        | Type::Condition
        | Type::Record(_) => {}
    }
    values
}

/// Texts, lists and maps of the greatest size, and greater by one.
fn sizes(ty: &'static Type) -> Vec<Json> {
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

/// Whether a choice between keys, or another spelling, leaves no room for both.
fn excludes(record: &'static Record, key: &Key, other: &Key) -> bool {
    let (one, two) = (records::canonical(key), records::canonical(other));
    one == two || (record.one_of.contains(&one) && record.one_of.contains(&two))
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

// Definitions by chance, the same ones every time.

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

// Definitions that people wrote.

fn has_duplicates(tree: &Tree) -> bool {
    match (tree.items(), tree.entries()) {
        (Some(items), _) => items.iter().any(has_duplicates),
        (_, Some(entries)) => entries.iter().enumerate().any(|(index, entry)| {
            let earlier = &entries[..index];
            earlier.iter().any(|e| e.key.value == entry.key.value) || has_duplicates(&entry.value)
        }),
        (None, None) => false,
    }
}

fn agree_on_text(judge: &mut Judge, name: &str, text: &str) {
    let source = Source::new(name, text);
    if let Ok(tree) = source::parse(&source, FileId::default())
        && !has_duplicates(&tree)
    {
        judge.agree(&source, &tree);
    }
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            files_below(&path, found);
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            found.push(path);
        }
    }
}

#[test]
fn schema_and_structure_agree_on_the_examples_of_the_rules() {
    let mut judge = Judge::new();
    for code in Code::ALL {
        for text in [code.bad_example(), code.good_example()] {
            agree_on_text(&mut judge, code.as_str(), text);
        }
    }
    assert!(judge.accepted > 50 && judge.rejected > 5);
}

#[test]
fn schema_and_structure_agree_on_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
    let mut files = Vec::new();
    files_below(&corpus, &mut files);
    let mut judge = Judge::new();
    for file in files {
        if let Ok(text) = std::fs::read_to_string(&file) {
            agree_on_text(&mut judge, &file.display().to_string(), &text);
        }
    }
}

// The schema itself.

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
    assert_eq!(form["description"], "Older form of `retry` on each step.");
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
    for level in 0..40 {
        let word = if level % 2 == 0 { "while" } else { "foreach" };
        let kind = step_word(word).map(|step| step.kind);
        step = match kind {
            Some(StepKind::While) => json!({"steps": [step], "if": true, "type": word}),
            _ => json!({"steps": [step], "items": [], "type": word}),
        };
    }
    assert!(Judge::new().accepts(&json!({"steps": [step]})));
}
