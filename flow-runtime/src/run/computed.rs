//! Derived state: recomputed when what it is made from changes, and only then.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use flow_model::graph::{Computed, Dependency, Graph, OnComputeError, Text};
use serde::{Deserialize, Serialize};

use super::data::Data;
use super::event::{Failure, FailureKind};
use super::view::{Evaluator, Field, View};
use crate::value::Value;

/// The value of a computed field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// Something it is made from is unset.
    #[default]
    Unset,
    /// It has this value.
    Value(Value),
    /// Its rule failed, and reading it fails.
    Failed(String),
}

/// Computed fields by name, and which of them depend on which field.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    dependents: HashMap<Text, Vec<usize>>,
    index: HashMap<Text, usize>,
}

impl Dependents {
    /// The dependents of every field of a graph.
    #[must_use]
    pub(super) fn of(graph: &Graph) -> Self {
        let mut all: HashMap<Text, Vec<usize>> = HashMap::new();
        for (index, field) in graph.computed.iter().enumerate() {
            for dependency in field.from.iter().chain(field.reads.iter()) {
                let Some(name) = dependency.path.first() else {
                    continue;
                };
                let dependents = all.entry(name.clone()).or_default();
                if dependents.last() != Some(&index) {
                    dependents.push(index);
                }
            }
        }
        let names = graph.computed.iter().enumerate();
        Dependents {
            dependents: all,
            index: names.map(|(at, field)| (field.name.clone(), at)).collect(),
        }
    }

    fn get(&self, name: &str) -> &[usize] {
        self.dependents.get(name).map_or(&[], Vec::as_slice)
    }

    /// The place of a computed field in the graph's order.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

/// The moment in which fields are recomputed.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// Milliseconds since 1970.
    pub(super) at: u64,
    /// What random values are made from.
    pub(super) seed: u64,
}

/// Recomputes what depends on the changed fields; every field when `changed` is `None`.
///
/// Graphs list computed fields in dependency order, so an index is a rank: taking the smallest
/// first computes each field at most once, after everything it is made from.
pub(super) fn recompute(
    graph: &Graph,
    dependents: &Dependents,
    evaluator: &dyn Evaluator,
    data: &mut Data,
    changed: Option<&[&str]>,
    moment: Moment,
) {
    let mut queue: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut queued = vec![false; graph.computed.len()];
    let mut add = |queue: &mut BinaryHeap<Reverse<usize>>, index: usize| {
        if !std::mem::replace(&mut queued[index], true) {
            queue.push(Reverse(index));
        }
    };
    match changed {
        None => (0..graph.computed.len()).for_each(|index| add(&mut queue, index)),
        Some(names) => {
            for name in names {
                for index in dependents.get(name) {
                    add(&mut queue, *index);
                }
            }
        }
    }
    data.computed.resize(graph.computed.len(), Cell::Unset);
    while let Some(Reverse(index)) = queue.pop() {
        let field = &graph.computed[index];
        let before = std::mem::take(&mut data.computed[index]);
        if field.once && before != Cell::Unset {
            data.computed[index] = before;
            continue;
        }
        let after = cell(graph, dependents, evaluator, data, field, &before, moment);
        let same = after == before;
        data.computed[index] = after;
        if !same {
            data.transformations += 1;
            for dependent in dependents.get(&field.name) {
                add(&mut queue, *dependent);
            }
        }
    }
}

fn cell(
    graph: &Graph,
    dependents: &Dependents,
    evaluator: &dyn Evaluator,
    data: &Data,
    field: &Computed,
    before: &Cell,
    moment: Moment,
) -> Cell {
    let view = View {
        graph,
        dependents,
        data,
        frame: None,
        needs: None,
        error: None,
        result: None,
        locals: &[],
        has_state: true,
        at: moment.at,
        seed: moment.seed,
    };
    let mut values = Vec::with_capacity(field.from.len());
    for dependency in field.from.iter() {
        match at_path(&view, dependency) {
            Field::Value(value) => values.push(value),
            Field::Failed(reason) => return Cell::Failed(reason),
            Field::Unset | Field::Hidden => return Cell::Unset,
        }
    }
    let input = match (field.from_list, values.len()) {
        (false, 1) => values.swap_remove(0),
        (false, 0) => Value::Null,
        _ => Value::list(values),
    };
    let computed = evaluator
        .compute(&field.rule, &input, &view)
        .and_then(|value| match &field.validate {
            None => Ok(value),
            Some(rule) => match evaluator.validate(rule, &value, &view) {
                Ok(true) => Ok(value),
                Ok(false) => Err(Failure::new(
                    FailureKind::Expression,
                    format!("`{}` does not satisfy its `validate`: {value}", field.name),
                )),
                Err(failure) => Err(failure),
            },
        });
    match (computed, field.on_error) {
        (Ok(value), _) => Cell::Value(value),
        (Err(_), OnComputeError::UseFallback) => Cell::Value(Value::from(&field.fallback)),
        (Err(_), OnComputeError::Ignore) => before.clone(),
        (Err(failure), OnComputeError::Propagate) => Cell::Failed(format!(
            "computing `{}` failed: {}",
            field.name, failure.message
        )),
    }
}

/// The value at a path of the state.
fn at_path(view: &View<'_>, dependency: &Dependency) -> Field {
    let Some((first, rest)) = dependency.path.split_first() else {
        return Field::Unset;
    };
    let mut here = match view.field(dependency.tier, first) {
        Field::Value(value) => value,
        other => return other,
    };
    for name in rest {
        let next = match &here {
            Value::Map(map) => map.0.get(name.as_ref()).cloned(),
            Value::List(list) => {
                let index = name.parse::<usize>().ok();
                index.and_then(|index| list.0.get(index).cloned())
            }
            _ => None,
        };
        match next {
            Some(next) => here = next,
            None => return Field::Unset,
        }
    }
    Field::Value(here)
}
