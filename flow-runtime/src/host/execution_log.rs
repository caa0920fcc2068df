//! What happened in a run, an entry for each state: made from the journal in one pass.

use std::collections::HashMap;

use flow_model::graph::{Graph, Variable};
use flow_model::tools::{
    ContractCheck, ContractSide, LogEntry, LoggedTransition, VariableCheck, VariableStatus,
};
use serde_json::{Map, Value as Json, json};

use super::local::{Error, Host};
use super::secrets::masked_action;
use crate::journal::RunId;
use crate::run::{Action, ActionId, Deed, Effect, Ending, Event, Happening, Place, Run};
use crate::run::{Status, time::iso};
use crate::secret;
use crate::value::Value;

/// A part of what happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPage {
    /// The entries, oldest first.
    pub entries: Vec<LogEntry>,
    /// How many there are in all.
    pub total: usize,
}

impl LogPage {
    /// Where the next page begins, if there is one.
    #[must_use]
    pub fn next(&self, first: usize) -> Option<usize> {
        let next = first + self.entries.len();
        (next < self.total).then_some(next)
    }
}

impl Host {
    /// What happened in a run so far: an entry for each state or step that was left, with its
    /// transition inside, one for each look at the environment, and one for the error it ended
    /// with. `limit` entries from `first` on. Secrets are masked.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn execution_log(&self, run: RunId, first: usize, limit: usize) -> Result<LogPage, Error> {
        let program = self.program(self.journal().run(run)?.definition)?;
        let mut replayed = Run::new(program.clone());
        let mut log = Log::new(program.graph(), first, limit);
        for event in self.journal().events(run, 1.., usize::MAX)? {
            let event: Event = serde_json::from_slice(&event.body)
                .map_err(|error| Error::Unreadable(error.to_string()))?;
            log.event(&event);
            for effect in replayed.apply(&event)? {
                log.effect(event.at, &effect);
            }
        }
        Ok(LogPage {
            entries: log.entries,
            total: log.total,
        })
    }
}

/// The log while events are read.
struct Log<'g> {
    graph: &'g Graph,
    first: usize,
    limit: usize,
    total: usize,
    entries: Vec<LogEntry>,
    /// States that were entered and not left.
    open: HashMap<(u32, String), Visit>,
    /// The states that wait for actions.
    asked: HashMap<ActionId, (u32, String)>,
    /// Looks at the environment that are not answered.
    looks: HashMap<ActionId, ContractSide>,
}

/// A state that is being executed.
struct Visit {
    since: u64,
    action: Option<Action>,
    result: Json,
    /// What went wrong last.
    error: Option<String>,
}

impl<'g> Log<'g> {
    fn new(graph: &'g Graph, first: usize, limit: usize) -> Self {
        Log {
            graph,
            first,
            limit,
            total: 0,
            entries: Vec::new(),
            open: HashMap::new(),
            asked: HashMap::new(),
            looks: HashMap::new(),
        }
    }

    /// Counts an entry; makes it only when it is on the page.
    fn push(&mut self, entry: impl FnOnce() -> LogEntry) {
        if self.total >= self.first && self.entries.len() < self.limit {
            self.entries.push(entry());
        }
        self.total += 1;
    }

    fn event(&mut self, event: &Event) {
        let (action, result, error) = match &event.what {
            Happening::Completed { action, result } => (action, result, None),
            Happening::Failed {
                action,
                error,
                result,
            } => (action, result, Some(error.message.clone())),
            Happening::TimedOut { action, result } => {
                (action, result, Some("it did not end in time".to_owned()))
            }
            Happening::Declined { action, reason } => (action, &Value::Null, Some(reason.clone())),
            _ => return,
        };
        if let Some(side) = self.looks.remove(action) {
            let check = self.checked(side, result);
            let timestamp = iso(event.at);
            self.push(|| match side {
                ContractSide::Arguments => LogEntry::PreExecutionValidation {
                    validation_result: check,
                    timestamp,
                },
                ContractSide::ReturnValues => LogEntry::PostExecutionValidation {
                    validation_result: check,
                    timestamp,
                },
            });
            return;
        }
        if let Some(place) = self.asked.remove(action)
            && let Some(visit) = self.open.get_mut(&place)
        {
            visit.result = secret::mask_value(result).to_json();
            visit.error = error.map(|error| secret::mask(&error).into_owned());
        }
    }

    fn effect(&mut self, at: u64, effect: &Effect) {
        match effect {
            Effect::Entered(place) => {
                let visit = Visit {
                    since: at,
                    action: None,
                    result: Json::Null,
                    error: None,
                };
                self.open.insert(key(place), visit);
            }
            Effect::Act(action) => {
                if let Deed::Environment { side, .. } = &action.what {
                    self.looks.insert(action.id, *side);
                    return;
                }
                let place = (action.frame, action.node.clone());
                if let Some(visit) = self.open.get_mut(&place) {
                    // Who judges a transition does not act for the state.
                    if !matches!(action.what, Deed::Judge { .. }) {
                        visit.action = Some(masked_action(action));
                        self.asked.insert(action.id, place);
                    }
                }
            }
            Effect::Left {
                place,
                outcome,
                next,
            } => {
                if let Some(visit) = self.open.remove(&key(place)) {
                    let to = next.clone();
                    self.left(at, place, visit, outcome, to.map(Ok));
                }
            }
            Effect::Finish(finish) => {
                // A state that nothing led out of.
                let mut stuck: Vec<_> = self.open.drain().collect();
                stuck.sort_by(|a, b| a.0.cmp(&b.0));
                for ((frame, node), visit) in stuck {
                    let told = finish.error.as_ref().map(|error| error.message.clone());
                    let told = told.unwrap_or_else(|| "the run ended".to_owned());
                    let told = secret::mask(&told).into_owned();
                    let outcome = match visit.error.clone() {
                        Some(error) => Ending::Failure(error),
                        // The action went well, and no transition took what it gave.
                        None if !visit.result.is_null() => Ending::Success,
                        None => Ending::Failure(told.clone()),
                    };
                    let place = Place { frame, node };
                    self.left(at, &place, visit, &outcome, Some(Err(told)));
                }
                if let (Status::Failed, Some(error)) = (finish.status, &finish.error) {
                    let error = secret::mask(&error.message).into_owned();
                    self.push(|| LogEntry::Error {
                        error,
                        timestamp: iso(at),
                    });
                }
            }
            Effect::Sleep { .. } | Effect::Stop(_) | Effect::Yield => {}
        }
    }

    /// A state was left: for another one, for the end, or, with the reason, for nowhere.
    fn left(
        &mut self,
        at: u64,
        place: &Place,
        visit: Visit,
        outcome: &Ending,
        to: Option<Result<String, String>>,
    ) {
        let state = place.node.clone();
        self.push(|| {
            let (tool, params) = match visit.action {
                Some(action) => {
                    let (tool, params) = told(action.what);
                    (Some(tool), params)
                }
                None => (None, Json::Null),
            };
            LogEntry::Execution {
                tool,
                params,
                result: visit.result,
                tool_success: matches!(outcome, Ending::Success | Ending::Skipped),
                error: match outcome {
                    Ending::Failure(error) => Some(secret::mask(error).into_owned()),
                    Ending::Timeout => visit.error.map(|error| secret::mask(&error).into_owned()),
                    Ending::Success | Ending::Skipped => None,
                },
                elapsed_time: seconds(at.saturating_sub(visit.since)),
                transition: to.map(|to| LoggedTransition {
                    from_state: state.clone(),
                    condition_met: to.is_ok(),
                    message: to.as_ref().err().cloned(),
                    to_state: to.ok(),
                }),
                timestamp: iso(visit.since),
                state,
            }
        });
    }

    fn checked(&self, side: ContractSide, found: &Value) -> ContractCheck {
        let declared: &[Variable] = match side {
            ContractSide::Arguments => &self.graph.arguments,
            ContractSide::ReturnValues => &self.graph.return_values,
        };
        let is_set = |variable: &Variable| found.get(&variable.name).is_some();
        let missing: Vec<String> = declared
            .iter()
            .filter(|variable| variable.required && !is_set(variable))
            .map(|variable| variable.name.to_string())
            .collect();
        ContractCheck {
            valid: missing.is_empty(),
            missing_vars: missing,
            validation_log: declared
                .iter()
                .map(|variable| VariableCheck {
                    variable: variable.name.to_string(),
                    status: match is_set(variable) {
                        true => VariableStatus::Present,
                        false => VariableStatus::Missing,
                    },
                    required: variable.required,
                })
                .collect(),
            validation_type: side,
        }
    }
}

fn key(place: &Place) -> (u32, String) {
    (place.frame, place.node.clone())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a run are far below 2^53"
)]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// What an action was, and with what.
fn told(deed: Deed) -> (String, Json) {
    match deed {
        Deed::Tool {
            tool, parameters, ..
        } => (tool, parameters.to_json()),
        Deed::Shell {
            command,
            env,
            working_directory,
            ..
        } => {
            let mut params = json!({"command": command});
            if !env.is_empty() {
                let env = env
                    .into_iter()
                    .map(|(name, value)| (name, Json::from(value)));
                params["env"] = Json::Object(env.collect::<Map<_, _>>());
            }
            if let Some(directory) = working_directory {
                params["working_directory"] = directory.into();
            }
            ("shell".to_owned(), params)
        }
        Deed::Prompt {
            message,
            kind,
            options,
        } => {
            let options: Vec<Json> = options.iter().map(Value::to_json).collect();
            let params = json!({"message": message, "kind": kind, "options": options});
            ("prompt".to_owned(), params)
        }
        Deed::Delegate {
            instructions,
            agent,
            ..
        } => {
            let params = json!({"instructions": instructions, "agent": agent});
            ("delegate".to_owned(), params)
        }
        Deed::DelegateItem {
            agent,
            task,
            inputs,
            ..
        } => {
            let params = json!({"agent": agent, "task": task, "inputs": inputs.to_json()});
            ("delegate".to_owned(), params)
        }
        Deed::Call {
            workflow,
            inputs,
            variables,
            session,
            ..
        } => {
            let params = json!({
                "workflow_name": workflow,
                "inputs": inputs.to_json(),
                "initial_variables": variables.to_json(),
                "session_id": session,
            });
            ("run_workflow".to_owned(), params)
        }
        Deed::Environment { variables, .. } => {
            ("environment".to_owned(), json!({"variables": variables}))
        }
        Deed::Judge { .. } => ("judge".to_owned(), Json::Null),
    }
}
