#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::path::Path;

use flow::Outcome;
use flow::graph::{Graph, Target};
use flow_codegen::Files;
use flow_model::compile;
use flow_model::source::Source;

use crate::{ALL, Case};

#[path = "journals.rs"]
mod journals;

/// The definition as it is interpreted.
fn interpreted(case: &Case) -> Graph {
    let files = Files::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let source = files
        .open(case.name)
        .unwrap_or_else(|_| Source::new(case.name, case.text));
    compile(source, &files).into_graph().unwrap()
}

fn outcomes() -> impl Iterator<Item = Outcome> {
    Outcome::PLAIN
        .into_iter()
        .chain((0..25).map(Outcome::Edge))
        .chain([Outcome::Edge(u16::MAX)])
}

#[test]
fn there_are_definitions_of_both_forms() {
    use flow::graph::Form;
    for form in [Form::Steps, Form::States] {
        assert!(ALL.iter().filter(|case| case.graph.form == form).count() >= 5);
    }
}

#[test]
fn the_graph_in_the_program_is_the_graph_of_the_definition() {
    for case in ALL {
        assert_eq!(interpreted(case), *case.graph, "{}", case.name);
    }
}

#[test]
fn compiled_and_interpreted_transitions_agree_on_every_state_and_outcome() {
    let mut compared = 0;
    for case in ALL {
        let graph = interpreted(case);
        for machine in case.machines {
            let body = (machine.body)(&graph).unwrap();
            assert_eq!(machine.states, body.nodes.len(), "{}", case.name);
            assert_eq!(
                Target::Node(machine.initial.try_into().unwrap()),
                body.entry
            );
            for (state, node) in body.nodes.iter().enumerate() {
                for outcome in outcomes() {
                    let next = match (machine.next)(state, outcome) {
                        Some(next) => Some(Target::Node(next.try_into().unwrap())),
                        None if (machine.completes)(state, outcome) => Some(Target::Complete),
                        None => None,
                    };
                    let place = (case.name, &node.id, outcome);
                    assert_eq!(next, node.next(outcome), "{place:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1_000);
}

#[test]
fn names_lead_back_to_their_states() {
    for case in ALL {
        for machine in case.machines {
            let body = (machine.body)(case.graph).unwrap();
            for (state, node) in body.nodes.iter().enumerate() {
                assert_eq!((machine.name)(state), node.id);
                assert_eq!((machine.from_name)(&node.id), Some(state));
                let ends = node.edges.iter().any(|edge| edge.to == Target::Complete);
                assert_eq!((machine.is_final)(state), ends);
            }
            assert_eq!((machine.from_name)("no such state"), None);
        }
    }
}
