//! The same for the definitions of the corpus.

use std::fs;
use std::path::{Path, PathBuf};

use flow_model::graph::{Field, Type};
use flow_runtime::library::Library;
use flow_runtime::value::Value;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::choices::Choices;
use super::world::World;
use super::{cancels, play, program, replays};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|it| it == "yaml" || it == "json")
        {
            found.push(path);
        }
    }
}

/// A value for a field that must be given.
fn sample(field: &Field) -> Value {
    let rules = &field.validation;
    if let Some(first) = rules.one_of.first() {
        return Value::from(first);
    }
    match field.ty {
        Type::Number | Type::Integer => Value::number(rules.min.unwrap_or(1.0)),
        Type::Boolean => Value::Bool(true),
        Type::Array => Value::list([Value::text("a"), Value::text("b")]),
        Type::Object => Value::map(
            rules
                .required_keys
                .iter()
                .map(|key| (key, Value::text("v"))),
        ),
        _ => Value::text("text"),
    }
}

#[test]
fn the_definitions_of_the_corpus_replay_cancel_and_end() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
    let mut found = Vec::new();
    for folder in ["good", "real", "workflows", "alias"] {
        files(&root.join(folder), &mut found);
    }
    found.sort();
    let library = Library::empty();
    let mut runner = TestRunner::deterministic();
    let numbers = proptest::collection::vec(proptest::num::u16::ANY, 0..200);
    let mut played = 0;
    for path in found {
        let Some(graph) = library
            .compile_file(&path)
            .ok()
            .and_then(|it| it.into_graph())
        else {
            continue;
        };
        let fields = graph.inputs.iter().flat_map(|fields| fields.iter());
        let inputs = fields.map(|field| {
            let value = match &field.default {
                Some(default) => Value::from(default),
                None => sample(field),
            };
            (field.name.to_string(), value)
        });
        let inputs = Value::map(inputs.collect::<Vec<_>>());
        let program = program(graph);
        for _ in 0..4 {
            let turns = numbers.new_tree(&mut runner).unwrap().current();
            let strays = Choices::new(turns.iter().rev().copied().collect());
            let mut world = play(World::new(program.clone(), inputs.clone()), turns);
            replays(&world);
            cancels(&world, &mut strays.clone());
            assert!(world.finish(20_000), "{} does not end", path.display());
        }
        played += 1;
    }
    assert!(played > 30, "only {played} definitions were tried");
}
