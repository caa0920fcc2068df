//! The environment variables that a workflow needs and sets in its terminal session.
//!
//! They are looked up by actions, so that what was found is in the journal: the arguments before
//! anything else happens, the return values after everything else has.

use flow_model::graph::Variable;
use flow_model::tools::ContractSide;

use super::effect::{Action, Deed, Effect};
use super::event::{Failure, FailureKind};
use super::frame::{ROOT, Waits};
use super::machine::{Machine, Next};
use super::time::after;
use crate::value::Value;

/// Seconds until a shell must be back at its prompt before a run, and after one without a limit.
const PATIENCE_BEFORE: f64 = 30.0;
const PATIENCE_AFTER: f64 = 300.0;
/// Milliseconds before the end of the run's time that are left to say what is missing.
const LAST_WORD: u64 = 300;

/// The value of a variable among those that were found. A list is found without one.
pub(crate) fn value_of<'v>(found: &'v Value, name: &str) -> Option<&'v Value> {
    let found = found.get(name)?;
    found.as_str().map(|_| found)
}

fn is_list(found: &Value, name: &str) -> bool {
    matches!(found.get(name), Some(Value::List(_)))
}

impl Machine<'_> {
    /// Begins the workflow: with its arguments, if it has any, and then with its initial state.
    pub(super) fn open(&mut self) {
        match self.graph.arguments.is_empty() {
            true => self.initialise(),
            false => self.look_up(ContractSide::Arguments, None),
        }
    }

    /// Asks for one side of the contract. `value` is what the run gives once that holds.
    pub(super) fn look_up(&mut self, side: ContractSide, value: Option<Value>) {
        let Some(session) = self.session(ROOT).map(str::to_owned) else {
            self.environment_found(side, value, &Value::Null);
            return;
        };
        let (name, deadline) = match side {
            ContractSide::Arguments => ("arguments", after(self.at, PATIENCE_BEFORE)),
            ContractSide::ReturnValues => {
                let last = self
                    .time_limit()
                    .map(|until| until.saturating_sub(LAST_WORD));
                let deadline = last.unwrap_or_else(|| after(self.at, PATIENCE_AFTER));
                ("return_values", deadline.max(self.at))
            }
        };
        let variables = self.side(side).iter();
        let deed = Deed::Environment {
            session,
            side,
            variables: variables.map(|it| it.name.to_string()).collect(),
        };
        let id = self.next_action();
        let action = Action {
            id,
            key: format!("{}-{}", self.data.start.run, id.0),
            frame: ROOT,
            node: name.to_owned(),
            within: String::new(),
            attempt: 1,
            deadline: Some(deadline),
            what: deed,
        };
        self.data.waiting.insert(id, ROOT);
        self.data.under_way += 1;
        self.effects.push(Effect::Act(action.clone()));
        let waits = Waits::Environment {
            action: Box::new(action),
            value,
        };
        self.wait(ROOT, 0, waits);
    }

    fn side(&self, side: ContractSide) -> &[Variable] {
        match side {
            ContractSide::Arguments => &self.graph.arguments,
            ContractSide::ReturnValues => &self.graph.return_values,
        }
    }

    /// One side of the contract was looked up: variables that are set, by name.
    pub(super) fn environment_found(
        &mut self,
        side: ContractSide,
        value: Option<Value>,
        found: &Value,
    ) {
        let declared = self.side(side);
        let set = declared.iter().filter_map(|variable| {
            let value = value_of(found, &variable.name)?;
            Some((variable.name.to_string(), value.clone()))
        });
        let set = Value::map(set);
        let missing: Vec<&Variable> = declared
            .iter()
            .filter(|variable| variable.required && set.get(&variable.name).is_none())
            .collect();
        let complaint = (!missing.is_empty()).then(|| self.complaint(side, &missing, found));
        match (side, complaint) {
            (ContractSide::Arguments, Some(message)) => {
                let failure = Failure::new(FailureKind::Arguments, message);
                self.end_failed(Some(failure));
            }
            (ContractSide::Arguments, None) => {
                self.data.environment = set;
                self.initialise();
            }
            (ContractSide::ReturnValues, Some(message)) => {
                self.data.return_values = Some(set);
                let failure = Failure::new(FailureKind::ReturnValues, message);
                self.fail_frame(ROOT, failure);
            }
            (ContractSide::ReturnValues, None) => {
                self.data.return_values = Some(set);
                self.complete_run(value);
            }
        }
    }

    /// One side of the contract could not be looked up.
    pub(super) fn environment_lost(&mut self, side: ContractSide, failure: &Failure) -> Next {
        let reason = match failure.kind {
            FailureKind::Timeout | FailureKind::TimeLimit => {
                "the session did not come back to its prompt in time"
            }
            _ => &failure.message,
        };
        let names = self.side(side).iter().map(|it| it.name.as_ref());
        let names = names.collect::<Vec<&str>>().join(", ");
        match side {
            ContractSide::Arguments => {
                let message = format!("the arguments {names} cannot be looked up: {reason}");
                let failure = Failure::new(FailureKind::Arguments, message);
                self.end_failed(Some(failure));
                Next::Over
            }
            ContractSide::ReturnValues => {
                let message = format!("the return values {names} cannot be looked up: {reason}");
                self.fail_frame(ROOT, Failure::new(FailureKind::ReturnValues, message))
            }
        }
    }

    /// Every variable that is missing, and what to do about it.
    fn complaint(&self, side: ContractSide, missing: &[&Variable], found: &Value) -> String {
        let names: Vec<&str> = missing.iter().map(|it| it.name.as_ref()).collect();
        let names = names.join(", ");
        let lists = missing.iter().filter(|it| is_list(found, &it.name));
        let lists: Vec<&str> = lists.map(|it| it.name.as_ref()).collect();
        let what = match lists.as_slice() {
            [] => String::new(),
            [list] => {
                format!("; {list} is a list (an array) there, and contracts take plain values")
            }
            _ => format!(
                "; {} are lists (arrays) there, and contracts take plain values",
                lists.join(", ")
            ),
        };
        match side {
            ContractSide::Arguments => {
                let mut message = format!("missing required environment variables: {names}{what}");
                match self.session(ROOT) {
                    Some(_) if self.data.start.own_session => message.push_str(
                        "; the run has the environment of the command that started it: set them \
                         there first:",
                    ),
                    Some(session) => {
                        message.push_str(&format!("; set them in the session `{session}` first:"));
                    }
                    None => message.push_str(
                        "; the run has no terminal session to look in: give it one in which they \
                         are set:",
                    ),
                }
                let lines: Vec<String> = missing
                    .iter()
                    .map(|variable| match is_list(found, &variable.name) {
                        // What is assigned to a list goes into it.
                        true => format!("unset {0}; export {0}=value", variable.name),
                        false => format!("export {}=value", variable.name),
                    })
                    .collect();
                message.push(' ');
                message.push_str(&lines.join("; "));
                message
            }
            ContractSide::ReturnValues => {
                let all: Vec<&str> = self.side(side).iter().map(|it| it.name.as_ref()).collect();
                let place = match self.session(ROOT) {
                    Some(session) => format!(" in the session `{session}`"),
                    None => ": it has no terminal session to set them in".to_owned(),
                };
                let all = all.join(", ");
                let way = match lists.first() {
                    Some(list) => format!("{what}: `unset {list}` before it is set"),
                    None => String::new(),
                };
                format!(
                    "the workflow did not set its required return values: {names}; it is to set \
                     {all}{place}{way}"
                )
            }
        }
    }
}
