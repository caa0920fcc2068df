//! State fields that hold a secret and nothing else: what stands for it goes where it is written.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::static_field;
use crate::document::{Act, Document, Field, Step, all_steps};
use crate::expression::{self, Dialect, Piece};
use crate::graph::Operation;
use crate::lower::split_path;
use crate::source::{Tree, Value};

/// Fields that hold a secret, each with the input that is secret.
pub(crate) type SecretFields<'d> = BTreeMap<&'d str, &'d str>;

/// Everything that is written to a state.
#[derive(Default)]
struct Writes<'d> {
    /// Texts that become the whole of a field, and where they stand.
    texts: Vec<(&'d str, &'d str, Unit<'d>)>,
    /// Fields that something else is written to.
    others: BTreeSet<&'d str>,
    /// Something is written to a field that is only known at run time.
    anywhere: bool,
}

/// Where a text stands.
#[derive(Clone, Copy)]
struct Unit<'d> {
    dialect: Dialect,
    inputs: &'d [Field<'d>],
}

/// The fields of the workflow and of every task that hold a secret: index 0, then the tasks.
pub(crate) fn secret_fields<'d>(document: &'d Document<'d>) -> Vec<SecretFields<'d>> {
    let main = Unit {
        dialect: document.dialect,
        inputs: document.inputs.as_deref().unwrap_or_default(),
    };
    let mut shared = Writes::default();
    for field in &document.state {
        shared.initial(&field.name.value, field.value, main);
    }
    shared.steps(&document.steps, main);
    shared.steps(&document.on_error.steps, main);
    let mut all = Vec::with_capacity(document.tasks.len() + 1);
    for task in &document.tasks {
        let unit = Unit {
            dialect: task.dialect,
            inputs: task.inputs.as_deref().unwrap_or_default(),
        };
        let mut own = Writes::default();
        let writes = if task.shares_state {
            &mut shared
        } else {
            &mut own
        };
        for field in &task.state {
            writes.initial(&field.name.value, field.value, unit);
        }
        writes.steps(&task.steps, unit);
        writes.steps(&task.cleanup, unit);
        all.push(own.secrets());
    }
    all.insert(0, shared.secrets());
    all
}

impl<'d> Writes<'d> {
    fn initial(&mut self, field: &'d str, value: Option<&'d Tree>, unit: Unit<'d>) {
        match value.map(|tree| &tree.value) {
            // Nothing yet.
            None | Some(Value::Null) => {}
            Some(Value::Str(scalar)) => self.texts.push((field, &scalar.text, unit)),
            Some(_) => {
                self.others.insert(field);
            }
        }
    }

    fn steps(&mut self, steps: &'d [Step<'d>], unit: Unit<'d>) {
        for step in all_steps(steps) {
            for write in step.writes.iter().chain(&step.error_writes) {
                let text = write.value.and_then(Tree::as_str);
                let text = text.filter(|_| write.operation == Operation::Set);
                self.path(write.path.text, text, unit);
            }
            if let Act::FanOut {
                collect_to: Some(tree),
                ..
            } = &step.act
            {
                self.path(tree.as_str().unwrap_or_default(), None, unit);
            }
        }
    }

    fn path(&mut self, path: &'d str, text: Option<&'d str>, unit: Unit<'d>) {
        let Some((_, field)) = static_field(path, unit.dialect) else {
            self.anywhere = true;
            return;
        };
        let whole = split_path(path, unit.dialect).is_some_and(|(_, parts)| parts.len() == 1);
        match text.filter(|_| whole) {
            Some(text) => self.texts.push((field, text, unit)),
            None => {
                self.others.insert(field);
            }
        }
    }

    /// The fields that hold a secret whoever wrote last. One secret field may fill another.
    fn secrets(self) -> SecretFields<'d> {
        let mut secrets = SecretFields::new();
        if self.anywhere {
            return secrets;
        }
        loop {
            let before = secrets.len();
            for (field, text, unit) in &self.texts {
                if let Some(input) = carried(text, *unit, &secrets) {
                    secrets.entry(field).or_insert(input);
                }
            }
            if secrets.len() == before {
                break;
            }
        }
        // What sometimes holds something else is no secret, and neither is what is filled from it.
        secrets.retain(|field, _| !self.others.contains(field));
        loop {
            let before = secrets.len();
            for (field, text, unit) in &self.texts {
                if carried(text, *unit, &secrets).is_none() {
                    secrets.remove(field);
                }
            }
            if secrets.len() == before {
                return secrets;
            }
        }
    }
}

/// The secret that a text puts into its field, alone or among other text.
fn carried<'d>(text: &str, unit: Unit<'d>, secrets: &SecretFields<'d>) -> Option<&'d str> {
    let pieces = expression::pieces(text, unit.dialect);
    pieces.into_iter().find_map(|piece| {
        let Piece::Interpolation(tag) = piece else {
            return None;
        };
        let mut names = text[tag.inner].trim().split('.');
        match (names.next()?, names.next(), names.next()) {
            ("inputs", Some(name), None) => {
                let mut inputs = unit.inputs.iter();
                let input = inputs.find(|field| field.secret && field.name.value == name);
                input.map(|field| field.name.value.as_str())
            }
            ("state" | "raw" | "this", Some(name), None) | (name, None, None) => {
                secrets.get(name).copied()
            }
            _ => None,
        }
    })
}
