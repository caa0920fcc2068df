//! Which names an expression may use where it stands, and which ones expressions have used.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::secrets::{SecretFields, secret_fields};
use crate::document::{Act, Document, StateField, Step, Task, Write, all_steps};
use crate::expression::Dialect;
use crate::graph::Tier;
use crate::lower::split_path;
use crate::source::{Span, Spanned};

/// A state that some steps share: the workflow's, or a task's own.
#[derive(Debug, Default)]
pub(crate) struct Space<'d> {
    /// Fields with the tiers they stand in.
    pub(crate) fields: BTreeMap<&'d str, BTreeSet<Place>>,
    /// Fields that do not only come from writes.
    declared: BTreeSet<&'d str>,
    /// Fields that something writes, whole or in part.
    pub(crate) written: BTreeSet<&'d str>,
    /// Fields that hold a secret and nothing else.
    pub(crate) secrets: SecretFields<'d>,
    /// A write whose field is only known at run time makes every field possible.
    pub(crate) open: bool,
}

/// The tier of a field, in the order in which reading finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Computed,
    Raw,
    State,
}

impl Place {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Place::Computed => "computed",
            Place::Raw => "raw",
            Place::State => "state",
        }
    }
}

impl<'d> Space<'d> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.open || self.fields.contains_key(name)
    }

    pub(crate) fn has_in(&self, name: &str, place: Place) -> bool {
        self.open
            || self
                .fields
                .get(name)
                .is_some_and(|tiers| tiers.contains(&place))
    }

    fn declare(&mut self, name: &'d str, place: Place) {
        self.fields.entry(name).or_default().insert(place);
    }

    fn declare_state(&mut self, state: &'d [StateField<'d>]) {
        for field in state {
            let place = if field.by_hand {
                Place::State
            } else {
                Place::Raw
            };
            self.declare(&field.name.value, place);
            self.declared.insert(&field.name.value);
        }
    }

    fn declare_writes(&mut self, steps: &'d [Step<'d>], dialect: Dialect) {
        for step in all_steps(steps) {
            for write in step.writes.iter().chain(&step.error_writes) {
                self.declare_write(write, dialect);
            }
            if let crate::document::Act::FanOut {
                collect_to: Some(tree),
                ..
            } = &step.act
            {
                self.declare_path(tree.as_str().unwrap_or_default(), dialect);
            }
        }
    }

    fn declare_write(&mut self, write: &Write<'d>, dialect: Dialect) {
        self.declare_path(write.path.text, dialect);
    }

    fn declare_path(&mut self, path: &'d str, dialect: Dialect) {
        let field = static_field(path, dialect);
        self.written.extend(field.map(|(_, field)| field));
        match field {
            Some((Tier::Raw, field)) => self.declare(field, Place::Raw),
            // `state.x` writes the `x` that the workflow declares, wherever it is.
            Some((Tier::State, field)) if self.declared.contains(field) => {}
            Some((Tier::State, field)) => self.declare(field, Place::State),
            Some((Tier::Computed, _)) => {}
            None => self.open = self.open || split_path(path, dialect).is_some(),
        }
    }
}

/// The field a path starts with, when the text tells it.
pub(crate) fn static_field(path: &str, dialect: Dialect) -> Option<(Tier, &str)> {
    let (tier, segments) = split_path(path, dialect)?;
    let field = &path[segments.first()?.clone()];
    (!field.contains("{{")).then_some((tier, field))
}

/// The state of the workflow and of every task: index 0, then the tasks in order. A task that
/// shares the workflow's state has none of its own; its expressions look at index 0.
pub(crate) fn spaces<'d>(document: &'d Document<'d>) -> Vec<Space<'d>> {
    let mut main = Space::default();
    main.declare_state(&document.state);
    for field in &document.computed {
        main.declare(&field.name.value, Place::Computed);
    }
    main.declare_writes(&document.steps, document.dialect);
    main.declare_writes(&document.on_error.steps, document.dialect);
    if let Some(tree) = document.on_error.collect_to {
        main.declare_path(tree.as_str().unwrap_or_default(), document.dialect);
    }
    for task in document.tasks.iter().filter(|task| task.shares_state) {
        main.declare_state(&task.state);
        main.declare_writes(&task.steps, task.dialect);
        main.declare_writes(&task.cleanup, task.dialect);
    }
    let shared = document.tasks.iter().filter(|task| task.shares_state);
    main.open |= includes(&document.steps)
        || includes(&document.on_error.steps)
        || shared.into_iter().any(task_includes);
    let mut all = Vec::with_capacity(document.tasks.len() + 1);
    all.push(main);
    for task in &document.tasks {
        let mut own = Space::default();
        if !task.shares_state {
            own.declare_state(&task.state);
            own.declare_writes(&task.steps, task.dialect);
            own.declare_writes(&task.cleanup, task.dialect);
            own.open |= task_includes(task);
        }
        all.push(own);
    }
    for (space, secrets) in all.iter_mut().zip(secret_fields(document)) {
        space.secrets = secrets;
    }
    all
}

/// Whether computed fields come with workflows that some steps call, so that more is known then.
fn includes(steps: &[Step<'_>]) -> bool {
    all_steps(steps).into_iter().any(|step| {
        matches!(
            &step.act,
            Act::Call {
                shares_computed: true,
                ..
            }
        )
    })
}

fn task_includes(task: &Task<'_>) -> bool {
    includes(&task.steps) || includes(&task.cleanup)
}

/// The names in reach of one expression.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'d> {
    /// 0 for the workflow, `n + 1` for its n-th task.
    pub(crate) unit: usize,
    /// Where state reads are counted: the unit whose state it is.
    pub(crate) space: usize,
    /// Declared inputs; `None` accepts any.
    pub(crate) inputs: Option<Vec<&'d str>>,
    pub(crate) dialect: Dialect,
    /// Whether there is a state to read.
    pub(crate) state: bool,
    /// Whether `item` exists.
    pub(crate) item: bool,
    /// Whether `loop` exists.
    pub(crate) looped: bool,
    /// Whether `error` exists.
    pub(crate) error: bool,
    /// Whether `result` exists.
    pub(crate) result: bool,
    /// Whether bare names may mean things that are only known at run time.
    pub(crate) open: bool,
    /// Whether `{name}` is a variable.
    pub(crate) braces: bool,
    /// The fields that may be read.
    pub(crate) needs: Option<&'d [Spanned<String>]>,
    /// Names set earlier in the same step.
    pub(crate) local: Vec<&'d str>,
    /// They are in the state already.
    pub(crate) written: bool,
}

/// What expressions have read.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Inputs by unit; `None` stands for all of them.
    pub(crate) inputs: HashMap<usize, BTreeSet<String>>,
    pub(crate) all_inputs: BTreeSet<usize>,
    /// State fields by space.
    pub(crate) state: HashMap<usize, BTreeSet<String>>,
    pub(crate) all_state: BTreeSet<usize>,
    /// State reads of each step, by the step's address.
    pub(crate) by_step: HashMap<*const (), Vec<FieldRead>>,
}

/// A state field that a step reads.
#[derive(Clone, Debug)]
pub(crate) struct FieldRead {
    pub(crate) field: String,
    pub(crate) span: Span,
    pub(crate) optional: bool,
}

impl Uses {
    pub(crate) fn input(&mut self, unit: usize, name: &str) {
        self.inputs.entry(unit).or_default().insert(name.to_owned());
    }

    pub(crate) fn field(&mut self, space: usize, name: &str) {
        self.state.entry(space).or_default().insert(name.to_owned());
    }

    pub(crate) fn reads_input(&self, unit: usize, name: &str) -> bool {
        self.all_inputs.contains(&unit)
            || self
                .inputs
                .get(&unit)
                .is_some_and(|names| names.contains(name))
    }

    pub(crate) fn reads_field(&self, space: usize, name: &str) -> bool {
        self.all_state.contains(&space)
            || self
                .state
                .get(&space)
                .is_some_and(|names| names.contains(name))
    }
}

/// The address of a step, as a key.
pub(crate) fn address(step: &Step<'_>) -> *const () {
    std::ptr::from_ref(step).cast()
}
