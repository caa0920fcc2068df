//! Derived state: recomputed when what it is made from changes, and only then.

use std::collections::{BTreeMap, HashMap};

use flow_model::expression::{self, Read};
use flow_model::graph::{Computed, Dependency, Graph, OnComputeError, Rule, Template, Text, Tier};
use serde::{Deserialize, Serialize};

use super::event::{Failure, FailureKind};
use super::machine::Machine;
use super::observe::Transformation;
use super::state::{Written, within};
use super::view::{Evaluator, Field, View};
use crate::expression::Computation;
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

impl Cell {
    /// The value, if it has one.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match self {
            Cell::Value(value) => Some(value),
            Cell::Unset | Cell::Failed(_) => None,
        }
    }
}

/// Which computed fields follow which field, and in which order they can be made.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    index: HashMap<Text, usize>,
    /// The computed fields made from a field of that name, with what of it they are made from.
    written: HashMap<Text, Vec<(usize, Dependency)>>,
    /// The computed fields made from each computed field.
    followers: Vec<Vec<usize>>,
    /// Fields of one level do not depend on each other, only on lower levels. What looks at all of
    /// the state has an odd level to itself.
    levels: Vec<u32>,
}

impl Dependents {
    /// The dependents of every field of a graph.
    #[must_use]
    pub(super) fn of(graph: &Graph) -> Self {
        let count = graph.computed.len();
        let names = graph.computed.iter().enumerate();
        let mut all = Dependents {
            index: names.map(|(at, field)| (field.name.clone(), at)).collect(),
            written: HashMap::new(),
            followers: vec![Vec::new(); count],
            levels: Vec::with_capacity(count),
        };
        let mut highest = 0;
        for (index, field) in graph.computed.iter().enumerate() {
            let mut level = 0;
            for dependency in field.from.iter().chain(field.reads.iter()) {
                let Some(name) = dependency.path.first() else {
                    continue;
                };
                let made_from = match dependency.tier {
                    None | Some(Tier::Computed) => all.index.get(name).copied(),
                    Some(Tier::Raw | Tier::State) => None,
                };
                if let Some(made_from) = made_from.filter(|made_from| *made_from < index) {
                    level = level.max(all.levels[made_from] + 1);
                    push_once(&mut all.followers[made_from], index);
                }
                let made = all.written.entry(name.clone()).or_default();
                made.push((index, dependency.clone()));
            }
            // What looks at all of the state comes after everything listed before it.
            let level = if reads_everything(&field.rule) {
                highest | 1
            } else {
                level.next_multiple_of(2)
            };
            highest = highest.max(level + 1);
            all.levels.push(level);
        }
        all
    }

    fn written(&self, name: &str) -> &[(usize, Dependency)] {
        self.written.get(name).map_or(&[], Vec::as_slice)
    }

    /// The place of a computed field in the graph's order.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

fn push_once(list: &mut Vec<usize>, index: usize) {
    if list.last() != Some(&index) {
        list.push(index);
    }
}

/// Whether a rule looks at a whole view of the state, so that its text does not say which fields
/// it reads.
fn reads_everything(rule: &Rule) -> bool {
    let views = ["state", "this", "raw", "computed"];
    let mentions = |text: &str| views.iter().any(|view| text.contains(view));
    let whole = |reads: &[Read]| {
        let mut reads = reads.iter();
        reads.any(|read| matches!(&*read.path, [only] if views.contains(&only.as_str())))
    };
    match rule {
        Rule::Transform(text) | Rule::Body(text) => {
            mentions(text) && whole(&expression::transform(text).analysis.reads)
        }
        Rule::Value(Template::Expression(value)) => {
            let text = &value.source;
            mentions(text) && whole(&expression::expression(text, value.dialect).reads)
        }
        Rule::Value(
            Template::Text(value) | Template::Command(value) | Template::Pattern(value),
        ) => {
            let text = &value.source;
            mentions(text) && whole(&expression::template(text, value.dialect).reads)
        }
        // Nested templates are rare enough to be made one after another.
        Rule::Value(Template::List(_) | Template::Map(_)) => true,
        Rule::Value(Template::Literal(_)) => false,
    }
}

/// What computed fields may have to be made again for.
#[derive(Clone, Copy)]
pub(super) enum Changed<'a> {
    /// Everything: the run begins.
    All,
    /// What was written.
    Written(&'a [Written]),
    /// Computed fields of a workflow that was included.
    Included(&'a [Text]),
}

/// A field that is due, and the field whose change made it so; none at the start of a run.
#[derive(Clone, Copy)]
struct Due<'a> {
    index: usize,
    cause: Option<&'a str>,
}

/// The fields that are due, by level; each is put in once.
struct Queue<'a> {
    dependents: &'a Dependents,
    levels: BTreeMap<u32, Vec<Due<'a>>>,
    queued: Vec<bool>,
}

impl<'a> Queue<'a> {
    fn has(&self, index: usize) -> bool {
        self.queued.get(index) == Some(&true)
    }

    fn add(&mut self, due: &[usize], cause: Option<&'a str>) {
        if self.queued.is_empty() && !due.is_empty() {
            self.queued.resize(self.dependents.levels.len(), false);
        }
        for index in due.iter().copied() {
            if !std::mem::replace(&mut self.queued[index], true) {
                let level = self.dependents.levels[index];
                let level = self.levels.entry(level).or_default();
                level.push(Due { index, cause });
            }
        }
    }
}

impl<'r> Machine<'r> {
    /// Recomputes what depends on the values that have changed.
    ///
    /// Level by level: the fields of one level do not depend on each other, so they are evaluated
    /// together, and each field at most once, after everything it is made from. A field whose value
    /// stays the same makes nothing else due.
    pub(super) fn recompute(&mut self, changed: Changed<'_>) {
        let (graph, dependents) = (self.graph, self.dependents);
        let mut queue = Queue {
            dependents,
            levels: BTreeMap::new(),
            queued: Vec::new(),
        };
        self.data.computed.resize(graph.computed.len(), Cell::Unset);
        match changed {
            Changed::All => {
                let all: Vec<usize> = (0..graph.computed.len()).collect();
                queue.add(&all, None);
            }
            Changed::Written(writes) => {
                for written in writes {
                    for (index, dependency) in dependents.written(written.field()) {
                        if !queue.has(*index) && written.concerns(dependency, &self.data.store) {
                            queue.add(&[*index], Some(written.field()));
                        }
                    }
                }
            }
            Changed::Included(names) => {
                for name in names {
                    for (index, dependency) in dependents.written(name) {
                        if let None | Some(Tier::Computed) = dependency.tier {
                            queue.add(&[*index], Some(name));
                        }
                    }
                }
            }
        }
        let seed = self.data.seed();
        while let Some((_, due)) = queue.levels.pop_first() {
            for index in self.level(&due, seed) {
                let cause = graph.computed[index].name.as_ref();
                queue.add(&dependents.followers[index], Some(cause));
            }
        }
    }

    /// Makes the values of one level; gives the fields that have changed.
    fn level(&mut self, due: &[Due<'_>], seed: u64) -> Vec<usize> {
        let (graph, dependents, evaluator) = (self.graph, self.dependents, self.evaluator);
        let at = self.at;
        let mut before = Vec::with_capacity(due.len());
        let mut made: Vec<Option<Cell>> = Vec::with_capacity(due.len());
        let mut rules: Vec<Computation<'_>> = Vec::with_capacity(due.len());
        let mut asked: Vec<usize> = Vec::with_capacity(due.len());
        let mut known = None;
        for (place, due) in due.iter().enumerate() {
            let field = &graph.computed[due.index];
            let old = std::mem::take(&mut self.data.computed[due.index]);
            let cell = if field.once && old != Cell::Unset {
                Some(old.clone())
            } else {
                let view = View::of_state(graph, dependents, self.data, at, seed);
                match input(&view, field, &mut known) {
                    Input::Given(input) => {
                        rules.push(Computation {
                            rule: &field.rule,
                            input,
                            seed: own_seed(seed, due.index),
                        });
                        asked.push(place);
                        None
                    }
                    Input::Unset => Some(Cell::Unset),
                    // The rule has nothing to go by, which is a failure of the field like any other.
                    Input::Failed(reason) => {
                        let cell = otherwise(field, reason.clone(), &old);
                        if let Some(observer) = &mut self.observer {
                            observer.begins(&field.name);
                            observer.evaluated(&field.name);
                            observer.ended(Transformation {
                                at,
                                field,
                                cause: due.cause,
                                input: &Value::Null,
                                output: cell.value(),
                                error: Some(&reason),
                            });
                        }
                        Some(cell)
                    }
                }
            };
            before.push(old);
            made.push(cell);
        }
        let view = View::of_state(graph, dependents, self.data, at, seed);
        let values: Vec<Result<Value, Failure>> = match &mut self.observer {
            None => evaluator.compute_each(&rules, &view),
            // Whoever watches wants to know what each one takes.
            Some(observer) => {
                let turns = asked.iter().zip(&rules);
                let one = turns.map(|(place, computation)| {
                    let field = &graph.computed[due[*place].index];
                    observer.begins(&field.name);
                    let Computation { rule, input, seed } = computation;
                    let made = evaluator.compute(rule, input, &view.seeded(*seed));
                    observer.evaluated(&field.name);
                    made
                });
                one.collect()
            }
        };
        for ((place, value), computation) in asked.into_iter().zip(values).zip(&rules) {
            let field = &graph.computed[due[place].index];
            // What a validation draws is not what the rule drew.
            let view = view.seeded(!own_seed(seed, due[place].index));
            let value = value.and_then(|value| validated(field, value, evaluator, &view));
            let error = value.as_ref().err().map(|failure| failure.message.clone());
            let cell = cell(field, value, &before[place]);
            if let Some(observer) = &mut self.observer {
                observer.ended(Transformation {
                    at,
                    field,
                    cause: due[place].cause,
                    input: &computation.input,
                    output: cell.value(),
                    error: error.as_deref(),
                });
            }
            made[place] = Some(cell);
        }
        let mut changed = Vec::with_capacity(due.len());
        for ((due, made), before) in due.iter().zip(made).zip(before) {
            let made = made.unwrap_or_default();
            if made != before {
                self.data.transformations += 1;
                changed.push(due.index);
            }
            self.data.computed[due.index] = made;
        }
        changed
    }
}

/// Every field draws randomness of its own.
fn own_seed(seed: u64, index: usize) -> u64 {
    let mixed = (seed ^ (index as u64 + 1).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// What a field is made from.
enum Input {
    /// This, for its rule.
    Given(Value),
    /// Nothing yet: something of it is unset.
    Unset,
    /// Something of it has failed.
    Failed(String),
}

/// What a field's rule is handed. `known` is the last path that was read: fields made from the
/// same one stand together.
fn input<'a>(
    view: &View<'_>,
    field: &'a Computed,
    known: &mut Option<(&'a Dependency, Field)>,
) -> Input {
    let mut read = |dependency: &'a Dependency| {
        let found = match known {
            Some((path, found)) if *path == dependency => found.clone(),
            _ => {
                let found = at_path(view, dependency);
                *known = Some((dependency, found.clone()));
                found
            }
        };
        match found {
            Field::Value(value) => Ok(value),
            Field::Failed(reason) => Err(Input::Failed(reason)),
            Field::Unset | Field::Hidden => Err(Input::Unset),
        }
    };
    let given = match (field.from_list, &*field.from) {
        (false, []) => Ok(Value::Null),
        (false, [only]) => read(only),
        (_, all) => {
            let values: Result<Vec<_>, _> = all.iter().map(read).collect();
            values.map(Value::list)
        }
    };
    given.map_or_else(|missing| missing, Input::Given)
}

fn validated(
    field: &Computed,
    value: Value,
    evaluator: &dyn Evaluator,
    view: &View<'_>,
) -> Result<Value, Failure> {
    let Some(rule) = &field.validate else {
        return Ok(value);
    };
    if evaluator.validate(rule, &value, view)? {
        return Ok(value);
    }
    Err(Failure::new(
        FailureKind::Expression,
        format!("`{}` does not satisfy its `validate`: {value}", field.name),
    ))
}

fn cell(field: &Computed, value: Result<Value, Failure>, before: &Cell) -> Cell {
    match value {
        Ok(value) => Cell::Value(value),
        Err(failure) => {
            let reason = format!("computing `{}` failed: {}", field.name, failure.message);
            otherwise(field, reason, before)
        }
    }
}

/// What a field is that cannot be made.
fn otherwise(field: &Computed, reason: String, before: &Cell) -> Cell {
    match field.on_error {
        OnComputeError::UseFallback => Cell::Value(Value::from(&field.fallback)),
        OnComputeError::Ignore => before.clone(),
        OnComputeError::Propagate => Cell::Failed(reason),
    }
}

/// The value at a path of the state.
fn at_path(view: &View<'_>, dependency: &Dependency) -> Field {
    let Some((first, rest)) = dependency.path.split_first() else {
        return Field::Unset;
    };
    match view.field(dependency.tier, first) {
        Field::Value(value) => match within(&value, rest.iter().map(AsRef::as_ref)) {
            Some(value) => Field::Value(value.clone()),
            None => Field::Unset,
        },
        other => other,
    }
}
