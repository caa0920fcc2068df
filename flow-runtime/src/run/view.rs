//! What an expression sees of a run.

use std::sync::Arc;

use flow_model::expression::Dialect;
use flow_model::graph::{Expression, Form, Graph, Rule, Template, Text, Tier};
use flow_model::tools;
use indexmap::{IndexMap, IndexSet};

use super::computed::{Cell, Dependents};
use super::data::Data;
use super::event::Failure;
use super::frame::{Frame, Item};
use super::state::Store;
use crate::expression::Computation;
use crate::value::Value;

/// Evaluates expressions. Everything it may depend on is in the view.
pub trait Evaluator: Send + Sync {
    /// The value of a template.
    ///
    /// # Errors
    ///
    /// Why it has none.
    fn render(&self, template: &Template, view: &View<'_>) -> Result<Value, Failure>;

    /// Whether an expression holds.
    ///
    /// # Errors
    ///
    /// Why that cannot be told.
    fn test(&self, expression: &Expression, view: &View<'_>) -> Result<bool, Failure>;

    /// A command with every value quoted for its place.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn command(&self, template: &Template, view: &View<'_>) -> Result<String, Failure>;

    /// The value of a computed field's rule.
    ///
    /// # Errors
    ///
    /// Why it has none.
    fn compute(&self, rule: &Rule, input: &Value, view: &View<'_>) -> Result<Value, Failure>;

    /// The values of the rules of several computed fields that do not depend on each other. Each
    /// is what [`Evaluator::compute`] gives for it.
    fn compute_each(
        &self,
        rules: &[Computation<'_>],
        view: &View<'_>,
    ) -> Vec<Result<Value, Failure>> {
        let each = rules.iter();
        each.map(|it| self.compute(it.rule, &it.input, &view.seeded(it.seed)))
            .collect()
    }

    /// Whether a computed value satisfies a JavaScript expression over `output`.
    ///
    /// # Errors
    ///
    /// Why that cannot be told.
    fn validate(&self, expression: &str, output: &Value, view: &View<'_>) -> Result<bool, Failure>;
}

/// The names in reach of an expression, and the moment it is evaluated in.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) graph: &'a Graph,
    pub(super) dependents: &'a Dependents,
    pub(crate) data: &'a Data,
    pub(crate) frame: Option<&'a Frame>,
    /// The fields that may be read; `None` for all.
    pub(crate) needs: Option<&'a [Text]>,
    pub(crate) error: Option<&'a Value>,
    pub(crate) result: Option<&'a Value>,
    /// Names set earlier in the same step.
    pub(crate) locals: &'a [(String, Value)],
    /// The item that is looked at, where that is not the frame's own.
    pub(crate) item: Option<&'a Item>,
    /// Whether there is state to read.
    pub(crate) has_state: bool,
    /// Milliseconds since 1970.
    pub at: u64,
    /// What random values are made from; differs for every evaluation.
    pub seed: u64,
}

/// What a state field is.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// It has this value.
    Value(Value),
    /// Nothing wrote it yet, or it does not exist.
    Unset,
    /// It is computed, and its rule failed.
    Failed(String),
    /// It exists, but the step's `needs_state` does not list it.
    Hidden,
}

impl Field {
    /// What a computed field is.
    fn of(cell: Option<&Cell>) -> Self {
        match cell {
            Some(Cell::Value(value)) => Field::Value(value.clone()),
            Some(Cell::Failed(reason)) => Field::Failed(reason.clone()),
            Some(Cell::Unset) | None => Field::Unset,
        }
    }
}

impl<'a> View<'a> {
    /// The same with other randomness.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        View { seed, ..self }
    }

    /// All of a run's own state, and nothing of any step.
    pub(super) fn of_state(
        graph: &'a Graph,
        dependents: &'a Dependents,
        data: &'a Data,
        at: u64,
        seed: u64,
    ) -> Self {
        View {
            graph,
            dependents,
            data,
            frame: None,
            needs: None,
            error: None,
            result: None,
            locals: &[],
            item: None,
            has_state: true,
            at,
            seed,
        }
    }

    fn store(&self) -> &'a Store {
        match self.frame.and_then(|frame| frame.store.as_ref()) {
            Some(own) => own,
            None => &self.data.store,
        }
    }

    /// The computed fields of workflows that were included.
    fn included(&self) -> &'a IndexMap<Arc<str>, Cell> {
        match self.frame.filter(|frame| frame.store.is_some()) {
            Some(own) => &own.included,
            None => &self.data.included,
        }
    }

    fn shares_state(&self) -> bool {
        self.frame.is_none_or(|frame| frame.store.is_none())
    }

    /// A field of one tier, or of the flattened view: computed, then raw, then state.
    #[must_use]
    pub fn field(&self, tier: Option<Tier>, name: &str) -> Field {
        if !self.has_state {
            return Field::Unset;
        }
        let found = self.unguarded(tier, name);
        let allowed = match self.needs {
            None => true,
            Some(needs) => {
                needs.iter().any(|needed| needed == name)
                    || self.locals.iter().any(|(local, _)| local == name)
            }
        };
        if !allowed && found != Field::Unset {
            return Field::Hidden;
        }
        found
    }

    fn unguarded(&self, tier: Option<Tier>, name: &str) -> Field {
        let store = self.store();
        let written = |tier| match store.get(tier, name) {
            Some(value) => Field::Value(value.clone()),
            None => Field::Unset,
        };
        match tier {
            Some(Tier::Computed) => self.computed(name),
            Some(tier) => written(tier),
            None => {
                let own = self.own_computed(name).filter(|own| *own != Field::Unset);
                own.unwrap_or_else(|| match written(Tier::Raw) {
                    Field::Unset => match written(Tier::State) {
                        Field::Unset => self.computed(name),
                        found => found,
                    },
                    found => found,
                })
            }
        }
    }

    /// A computed field: the workflow's own where it has a value, else one of a workflow that it
    /// includes.
    fn computed(&self, name: &str) -> Field {
        let own = self.own_computed(name).filter(|own| *own != Field::Unset);
        if let Some(own) = own {
            return own;
        }
        Field::of(self.included().get(name))
    }

    /// A computed field that the workflow itself declares.
    fn own_computed(&self, name: &str) -> Option<Field> {
        let index = self.dependents.index(name);
        let index = index.filter(|_| self.shares_state())?;
        Some(Field::of(self.data.computed.get(index)))
    }

    /// The names of all fields that may be read, each once.
    pub fn field_names(&self) -> Vec<&'a str> {
        let mut names = self.all_names();
        if let Some(needs) = self.needs {
            names.retain(|name| needs.iter().any(|needed| needed == name));
        }
        names
    }

    /// The names of all fields, each once.
    pub(super) fn all_names(&self) -> Vec<&'a str> {
        let store = self.store();
        let mut names: IndexSet<&'a str> = IndexSet::new();
        if self.shares_state() {
            let computed = self.graph.computed.iter();
            names.extend(computed.map(|field| field.name.as_ref()));
        }
        names.extend(self.included().keys().map(|name| &**name));
        names.extend(store.raw.keys().map(|name| &**name));
        names.extend(store.state.keys().map(|name| &**name));
        names.into_iter().collect()
    }

    /// A name that is not a state root: `inputs`, `item`, `loop`, `env`, `run`, `error`, `result`,
    /// a name set earlier in the same step, a field of the result, a variable, a bare input.
    #[must_use]
    pub fn name(&self, name: &str) -> Option<Value> {
        match name {
            "inputs" => return Some(self.inputs().clone()),
            "item" => {
                if let Some(value) = self.item() {
                    return Some(value);
                }
            }
            "loop" => {
                if let Some(value) = self.looping() {
                    return Some(value);
                }
            }
            "env" => return Some(non_null(&self.data.environment)),
            "run" => return Some(self.run()),
            "error" if self.error.is_some() => return self.error.cloned(),
            "result" if self.result.is_some() => return self.result.cloned(),
            _ => {}
        }
        if let Some((_, value)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Some(value.clone());
        }
        if let Some(value) = self.result.and_then(|result| result.get(name)) {
            return Some(value.clone());
        }
        if let Some(value) = self.variable(name) {
            return Some(value);
        }
        // In JavaScript an input of the workflow or task is nearer than a field of the state.
        if self.dialect() == Dialect::Js
            && self.frame.is_some()
            && let Some(value) = self.inputs().get(name)
        {
            return Some(value.clone());
        }
        // State comes before bare inputs; a hidden or failed field is not replaced by one.
        match self.field(None, name) {
            Field::Unset => match (self.inputs().get(name), name) {
                (None, "workflow_id") => Some(Value::text(&self.data.start.run)),
                (input, _) => input.cloned(),
            },
            Field::Value(value) => Some(value),
            Field::Failed(_) | Field::Hidden => None,
        }
    }

    /// A variable of the states form.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<Value> {
        let session = match (name, self.graph.form) {
            ("session_id", Form::States) => self.data.session_variable(self.frame),
            _ => None,
        };
        let session = session.map(Value::text);
        session.or_else(|| self.data.variables.get(name).cloned())
    }

    /// Whether a name is one that the states form knows, set or not.
    #[must_use]
    pub fn knows_variable(&self, name: &str) -> bool {
        self.data.variables.contains_key(name)
            || tools::standard_variable(name).is_some()
            || self.is_state_field(name)
    }

    /// Whether a name is `<state>_<field>` of some state, whether that has run or not.
    fn is_state_field(&self, name: &str) -> bool {
        self.graph.form == Form::States
            && self.graph.body.nodes.iter().any(|node| {
                let rest = name.strip_prefix(node.id.as_ref());
                let field = rest.and_then(|rest| rest.strip_prefix('_'));
                field.is_some_and(|field| !field.is_empty() && node.kind.may_give(field))
            })
    }

    /// The dialect of expressions that do not say otherwise.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.graph.dialect
    }

    fn inputs(&self) -> &'a Value {
        match self.frame {
            Some(frame) => &frame.inputs,
            None => &self.data.start.inputs,
        }
    }

    fn item(&self) -> Option<Value> {
        if let Some(item) = self.item {
            return Some(item.value.clone());
        }
        let frame = self.frame?;
        let looped = frame.loops.iter().rev().find_map(|looped| {
            let items = looped.items.as_ref()?.as_list()?;
            items.get(usize::try_from(looped.index).ok()?).cloned()
        });
        looped.or_else(|| frame.item.as_ref().map(|item| item.value.clone()))
    }

    fn looping(&self) -> Option<Value> {
        let around = self.frame.and_then(|frame| frame.loops.last());
        let own = self.frame.and_then(|frame| frame.item.as_ref());
        let (index, length) = match (self.item, around, own) {
            (None, Some(inner), _) => {
                let items = inner.items.as_ref().and_then(Value::as_list);
                (inner.index, items.map(|items| items.len() as u64))
            }
            (Some(item), _, _) | (None, None, Some(item)) => {
                (item.index as u64, Some(item.length as u64))
            }
            (None, None, None) => return None,
        };
        let whole = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        Some(Value::map([
            ("index", whole(index)),
            ("iteration", whole(index + 1)),
            ("first", Value::Bool(index == 0)),
            (
                "last",
                length.map_or(Value::Null, |length| Value::Bool(index + 1 == length)),
            ),
            ("length", length.map_or(Value::Null, whole)),
        ]))
    }

    fn run(&self) -> Value {
        Value::map([
            ("id", Value::text(&self.data.start.run)),
            ("workflow", Value::text(&self.graph.name)),
            (
                "started_at",
                Value::text(super::time::iso(self.data.started_at)),
            ),
        ])
    }
}

fn non_null(value: &Value) -> Value {
    match value {
        Value::Null => Value::map::<&str>([]),
        other => other.clone(),
    }
}
