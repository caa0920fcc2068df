//! What happened in a run, an entry for each state, made from the journal page by page: whoever asks
//! for the next page gets it from where the last one ended.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use flow_model::graph::{Kind, Node, Template, Variable};
use flow_model::tools::{
    ContractCheck, ContractSide, LogEntry, LoggedTransition, VariableCheck, VariableStatus,
};
use serde_json::{Map, Value as Json, json};

use super::local::{Error, Host};
use super::recorded::Recorded;
use super::secrets::masked_action;
use crate::journal::RunId;
use crate::run::frame::Waits;
use crate::run::response;
use crate::run::{Action, ActionId, Deed, Effect, Ending, Event, FailureKind, Happening, Onward};
use crate::run::{
    Place, Program, Run, Status, as_written, lateness, own_limit, time::iso, value_of,
};
use crate::secret;
use crate::value::Value;

/// Events that are read at once.
const BATCH: usize = 128;
/// Readers that are kept for whoever asks for the next page.
const READERS: usize = 4;

/// A part of what happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPage {
    /// The entries, oldest first.
    pub entries: Vec<LogEntry>,
    /// The number of the entry that follows, if there is one yet.
    pub next: Option<usize>,
}

impl Host {
    /// What happened in a run so far: an entry for each state or step that was left, with its
    /// transition inside, or whose transition is being judged, one for each look at the environment, and one for the error it ended
    /// with. `limit` entries from `first` on. Secrets are masked.
    ///
    /// A page costs what happened in it when the page before was asked for lately, else everything
    /// that happened before.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn execution_log(&self, run: RunId, first: usize, limit: usize) -> Result<LogPage, Error> {
        let mut reader = match self.inner.logs.take(run, first) {
            Some(reader) => reader,
            None => Reader::new(self.program(self.journal().run(run)?.definition)?),
        };
        let page = reader.page(self, run, first, limit)?;
        self.inner.logs.put(run, reader);
        Ok(page)
    }

    /// The last `limit` entries of what happened, with the number of the first of them. It costs
    /// everything that happened.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn latest_log(&self, run: RunId, limit: usize) -> Result<(usize, Vec<LogEntry>), Error> {
        let mut reader = Reader::new(self.program(self.journal().run(run)?.definition)?);
        while reader.read(self, run)? {
            reader.log.forget_all_but(limit);
        }
        let mut entries: Vec<LogEntry> = reader.log.entries.iter().cloned().collect();
        entries.extend(reader.judged());
        let older = entries.len().saturating_sub(limit);
        entries.drain(..older);
        Ok((reader.log.from + older, entries))
    }
}

/// Readers of logs, each after the last page that it gave.
#[derive(Default)]
pub(super) struct Logs(Mutex<VecDeque<(RunId, Reader)>>);

impl Logs {
    fn take(&self, run: RunId, first: usize) -> Option<Reader> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |(of, reader): &(RunId, Reader)| *of == run && reader.log.from <= first;
        let found = kept.iter().position(has)?;
        kept.remove(found).map(|(_, reader)| reader)
    }

    fn put(&self, run: RunId, reader: Reader) {
        // What the clock decided at the start of a run is recorded later, when it is driven.
        if reader.last <= 1 {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, _)| *of != run);
        kept.push_back((run, reader));
        if kept.len() > READERS {
            kept.pop_front();
        }
    }
}

/// A run while its log is read.
struct Reader {
    replayed: Run,
    log: Log,
    /// The number of the last event that was read.
    last: u64,
}

impl Reader {
    fn new(program: Arc<Program>) -> Self {
        Reader {
            replayed: Run::new(Arc::clone(&program)),
            log: Log::new(program),
            last: 0,
        }
    }

    fn page(
        &mut self,
        host: &Host,
        run: RunId,
        first: usize,
        limit: usize,
    ) -> Result<LogPage, Error> {
        self.log.skip_to(first);
        // One more tells whether another page follows.
        while self.log.entries.len() <= limit && self.read(host, run)? {}
        let has_more = self.log.entries.len() > limit;
        let mut entries: Vec<LogEntry> = self.log.entries.iter().take(limit).cloned().collect();
        if !has_more && first <= self.log.total {
            let room = limit - entries.len();
            entries.extend(self.judged().into_iter().take(room));
        }
        Ok(LogPage {
            entries,
            next: has_more.then(|| first.saturating_add(limit)),
        })
    }

    /// Entries of states that were executed and whose transition somebody judges. They are no part
    /// of what follows: the whole entry comes when the state is left.
    fn judged(&self) -> Vec<LogEntry> {
        let frames = self.replayed.data().into_iter().flat_map(|it| &it.frames);
        let judged = frames.filter_map(|(frame, at)| match &at.step.as_ref()?.waits {
            Waits::Judgement {
                action, settled, ..
            } => {
                let place = Place {
                    frame: *frame,
                    node: action.node.clone(),
                    within: action.within.clone(),
                };
                let visit = self.log.open.get(&key(&place))?.clone();
                let outcome = match &settled.error {
                    Some(error) => Ending::Failure(error.message.clone()),
                    None => Ending::Success,
                };
                let node = self.log.node(&place);
                Some(entry(
                    self.log.last_at,
                    place,
                    node,
                    visit,
                    &outcome,
                    &Onward::End,
                ))
            }
            _ => None,
        });
        judged.collect()
    }

    /// Reads some events; whether there may be more.
    fn read(&mut self, host: &Host, run: RunId) -> Result<bool, Error> {
        let events = host.journal().events(run, self.last + 1.., BATCH)?;
        let mut recorded = Recorded::all(&events)?;
        let has_more = events.len() == BATCH;
        if has_more {
            // What the clock decided in the last of them may follow.
            recorded.pop();
        }
        for recorded in recorded {
            self.log.last_at = recorded.event.at;
            self.log.event(&recorded.event);
            let effects = recorded.apply(&mut self.replayed, None)?;
            let had_begun = self.log.has_begun;
            self.log.has_begun = self.replayed.has_begun();
            let opens = matches!(
                recorded.event.what,
                Happening::Started(_) | Happening::Resumed(_)
            );
            if opens {
                self.log.has_returned = false;
            }
            if opens && !had_begun {
                self.log.not_looked(recorded.event.at, &effects);
            }
            for effect in effects {
                self.log.not_looked_at_end(recorded.event.at, &effect);
                self.log.effect(recorded.event.at, &effect);
            }
            self.last = recorded.seq;
        }
        Ok(has_more)
    }
}

/// The log while events are read.
struct Log {
    program: Arc<Program>,
    /// Entries from the one of this number on; those before are not made.
    entries: VecDeque<LogEntry>,
    from: usize,
    /// How many there were so far.
    total: usize,
    /// When the last event happened.
    last_at: u64,
    /// States that were entered and not left.
    open: HashMap<(u32, String), Visit>,
    /// The states that wait for actions.
    asked: HashMap<ActionId, (u32, String)>,
    /// Looks at the environment that are not answered.
    looks: HashMap<ActionId, ContractSide>,
    /// Whether the arguments, where there are any, were found.
    has_begun: bool,
    /// Whether the return values were looked up.
    has_returned: bool,
}

/// A state that is being executed.
#[derive(Clone)]
struct Visit {
    since: u64,
    action: Option<Action>,
    /// When that was asked for.
    asked_at: u64,
    result: Json,
    /// What went wrong last.
    error: Option<String>,
}

impl Log {
    fn new(program: Arc<Program>) -> Self {
        Log {
            program,
            entries: VecDeque::new(),
            from: 0,
            total: 0,
            last_at: 0,
            open: HashMap::new(),
            asked: HashMap::new(),
            looks: HashMap::new(),
            has_begun: false,
            has_returned: false,
        }
    }

    /// Forgets the entries before one.
    fn skip_to(&mut self, first: usize) {
        let past = first.saturating_sub(self.from).min(self.entries.len());
        self.entries.drain(..past);
        self.from = first;
    }

    /// Forgets all but as many entries as these.
    fn forget_all_but(&mut self, limit: usize) {
        let older = self.entries.len().saturating_sub(limit);
        self.entries.drain(..older);
        self.from += older;
    }

    /// Counts an entry; makes it only when somebody wants it.
    fn push(&mut self, entry: impl FnOnce() -> LogEntry) {
        if self.total >= self.from {
            self.entries.push_back(entry());
        }
        self.total += 1;
    }

    fn event(&mut self, event: &Event) {
        let (action, result, error) = match &event.what {
            Happening::Completed { action, result } => (action, result, None),
            Happening::Done { action } => (action, &Value::Null, None),
            Happening::Failed {
                action,
                error,
                result,
            } => (action, result, Some(error.message.clone())),
            Happening::TimedOut { action, result } => (action, result, Some(self.late(*action))),
            Happening::Declined { action, reason } => (action, &Value::Null, Some(reason.clone())),
            _ => return,
        };
        if let Some(side) = self.looks.remove(action) {
            self.looked(event.at, side, result);
            return;
        }
        if let Some(place) = self.asked.remove(action)
            && let Some(visit) = self.open.get_mut(&place)
        {
            let result = match visit.action.as_ref().map(|action| &action.what) {
                Some(Deed::Call { .. }) => response::shown(result.clone()),
                _ => result.clone(),
            };
            visit.result = secret::mask_value(&result).to_json();
            visit.error = error.map(|error| secret::mask(&error).into_owned());
        }
    }

    /// What an action did not do in time.
    fn late(&self, action: ActionId) -> String {
        let visit = self.asked.get(&action).and_then(|it| self.open.get(it));
        let asked = visit.and_then(|visit| Some((visit, visit.action.as_ref()?)));
        let late = asked.and_then(|(visit, action)| {
            Some(lateness(&action.node, action.allowed(visit.asked_at)?))
        });
        late.unwrap_or_else(|| "it did not end in time".to_owned())
    }

    /// One side of the contract was looked up, with what was found.
    fn looked(&mut self, at: u64, side: ContractSide, found: &Value) {
        self.has_returned |= side == ContractSide::ReturnValues;
        let check = self.checked(side, found);
        let timestamp = iso(at);
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
    }

    /// A run that has no session to look into has none of its arguments.
    fn not_looked(&mut self, at: u64, effects: &[Effect]) {
        let looks = |effect: &Effect| match effect {
            Effect::Act(action) => matches!(action.what, Deed::Environment { .. }),
            _ => false,
        };
        if !self.program.graph().arguments.is_empty() && !effects.iter().any(looks) {
            self.looked(at, ContractSide::Arguments, &Value::Null);
        }
    }

    /// The same for its return values, when it ends.
    fn not_looked_at_end(&mut self, at: u64, effect: &Effect) {
        let Effect::Finish(finish) = effect else {
            return;
        };
        let kind = finish.error.as_ref().map(|error| error.kind);
        let is_checked = match finish.status {
            Status::Completed => true,
            Status::Failed => kind == Some(FailureKind::ReturnValues),
            Status::Cancelled | Status::Running => false,
        };
        if is_checked && !self.has_returned && !self.program.graph().return_values.is_empty() {
            self.looked(at, ContractSide::ReturnValues, &Value::Null);
        }
    }

    fn effect(&mut self, at: u64, effect: &Effect) {
        match effect {
            Effect::Entered(place) => {
                let visit = Visit {
                    since: at,
                    action: None,
                    asked_at: at,
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
                        visit.asked_at = at;
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
                    self.left(at, place, visit, outcome, next);
                }
            }
            Effect::Finish(finish) => {
                if let (Status::Failed, Some(error)) = (finish.status, &finish.error) {
                    let error = secret::mask(&error.message).into_owned();
                    self.push(|| LogEntry::Error {
                        error,
                        timestamp: iso(at),
                    });
                }
            }
            Effect::Sleep { .. } | Effect::Stop(_) | Effect::Yield | Effect::Told { .. } => {}
        }
    }

    /// A state was left: for another one, for the end, or for nowhere.
    fn left(&mut self, at: u64, place: &Place, visit: Visit, outcome: &Ending, next: &Onward) {
        let program = Arc::clone(&self.program);
        let node = node_of(&program, place);
        self.push(|| entry(at, place.clone(), node, visit, outcome, next));
    }

    /// The node that was visited.
    fn node(&self, place: &Place) -> Option<&Node> {
        node_of(&self.program, place)
    }

    fn checked(&self, side: ContractSide, found: &Value) -> ContractCheck {
        let declared: &[Variable] = match side {
            ContractSide::Arguments => &self.program.graph().arguments,
            ContractSide::ReturnValues => &self.program.graph().return_values,
        };
        let is_set = |variable: &Variable| value_of(found, &variable.name).is_some();
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

/// The node of the workflow's own body that is visited at a place.
fn node_of<'p>(program: &'p Program, place: &Place) -> Option<&'p Node> {
    let mut nodes = program.graph().body.nodes.iter();
    nodes.find(|node| *node.id == *place.node)
}

/// What a node asks that the run does by itself, as it is written.
fn asked(node: &Node) -> (Option<String>, Json) {
    let written = |template: &Template| match template {
        Template::Literal(literal) => Value::from(literal).to_json(),
        template => Json::from(as_written(template)),
    };
    let params = match &node.kind {
        Kind::Wait { seconds, .. } => json!({"duration_seconds": written(seconds)}),
        Kind::SetState => {
            let updates = node.writes.iter().map(|write| {
                let path: Vec<String> = write.path.segments.iter().map(as_written).collect();
                let value = write.value.as_ref().map_or(Json::Null, written);
                (path.join("."), value)
            });
            json!({"updates": updates.collect::<Map<String, Json>>()})
        }
        _ => return (None, Json::Null),
    };
    (Some(node.kind.word().to_owned()), params)
}

/// The entry of a state that was executed.
fn entry(
    at: u64,
    place: Place,
    node: Option<&Node>,
    visit: Visit,
    outcome: &Ending,
    next: &Onward,
) -> LogEntry {
    let state = place.node;
    let late = visit.action.as_ref().and_then(|action| {
        let result = Value::from(&visit.result);
        own_limit(&action.what, &result)
    });
    let waited = visit.result.get("success") == Some(&Json::Bool(true));
    let (tool, params) = match visit.action {
        Some(action) => {
            let (tool, params) = told(action.what);
            (Some(tool), params)
        }
        None => node.map_or((None, Json::Null), asked),
    };
    let error = match outcome {
        Ending::Stopped => Some("it was stopped"),
        ended => ended.error(),
    };
    let error = error.map(|error| secret::mask(error).into_owned());
    LogEntry::Execution {
        tool,
        params,
        result: visit.result,
        tool_success: match outcome {
            // Its action went well, and no transition took what it gave.
            Ending::Success | Ending::Skipped | Ending::Stuck(_) => true,
            // An await that found nothing has waited, as it was asked to.
            Ending::Timeout(_) => late.is_some() && waited,
            Ending::Failure(_) | Ending::Stopped => false,
        },
        error: match outcome {
            Ending::Stuck(_) => None,
            Ending::Timeout(_) => visit.error.or(late).or_else(|| error.clone()),
            _ => error.clone(),
        },
        elapsed_time: seconds(at.saturating_sub(visit.since)),
        transition: match next {
            Onward::Node(to) => Some(LoggedTransition {
                from_state: state.clone(),
                condition_met: true,
                message: None,
                to_state: Some(to.clone()),
            }),
            Onward::End => None,
            Onward::Nowhere => Some(LoggedTransition {
                from_state: state.clone(),
                condition_met: false,
                message: error,
                to_state: None,
            }),
        },
        timestamp: iso(visit.since),
        state,
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
            definition,
            max_states,
            execution_timeout,
            save_on_success,
            names_session: _,
            depth: _,
            max_depth: _,
            response: _,
            goes_on: _,
        } => {
            let mut params = json!({
                "workflow_name": workflow,
                "inputs": inputs.to_json(),
                "initial_variables": variables.to_json(),
                "session_id": session,
            });
            let definition = definition.as_ref().map(Value::to_json);
            let given = [
                ("workflow_definition", definition),
                ("max_states", max_states.map(Json::from)),
                ("execution_timeout", execution_timeout.map(Json::from)),
                ("save_on_success", save_on_success.map(Json::from)),
            ];
            for (name, value) in given {
                if let Some(value) = value {
                    params[name] = value;
                }
            }
            ("run_workflow".to_owned(), params)
        }
        Deed::Environment { variables, .. } => {
            ("environment".to_owned(), json!({"variables": variables}))
        }
        Deed::Judge { .. } => ("judge".to_owned(), Json::Null),
    }
}
