//! The pure core of a run: events in, effects out.
//!
//! [`Run::apply`] holds all semantics of a workflow: no I/O, no clock, no randomness, no threads.
//! What happened comes in as an [`Event`], what is wanted goes out as [`Effect`]s, and the state
//! of the run is the fold of its events. Replaying the same events gives the same effects.

mod action;
mod computed;
mod contract;
mod data;
pub mod effect;
mod ending;
mod evaluate;
pub mod event;
mod fan;
pub mod frame;
mod handout;
mod machine;
mod observe;
mod origin;
mod pattern;
mod returns;
mod settle;
pub mod state;
mod table;
pub mod time;
mod track;
mod view;

use std::borrow::Cow;
use std::sync::Arc;

use flow_model::graph::{Graph, Kind, PromptKind};

use action::{seconds_for, shell_result};
pub use computed::Cell;
use computed::Dependents;
pub use data::{Checkpoint, Data};
pub use effect::{Action, Deed, Effect, Ending, Finish, Place, Status};
pub use evaluate::Expressions;
pub use event::{ActionId, Allowance, Event, Failure, FailureKind, Happening, Start, Update};
pub use fan::task_inputs;
use frame::{BodyRef, Child, Frame, ROOT, Waits};
pub use handout::{Handout, Handouts, Named, NamedTask, Part, TaskState, Tasks};
use machine::{Machine, Next};
pub use observe::{Observer, Transformation};
use origin::Origins;
pub use origin::{Origin, as_written};
use pattern::Patterns;
use state::{Change, parse_path};
use table::Tables;
use track::Tracks;
pub use view::{Evaluator, Field, View};

use crate::value::Value;

/// A workflow ready to run: its graph, and what is made from it once.
pub struct Program {
    graph: Cow<'static, Graph>,
    dependents: Dependents,
    patterns: Patterns,
    tables: Tables,
    tracks: Tracks,
    origins: Origins,
    evaluator: Box<dyn Evaluator>,
}

impl Program {
    /// A program of a graph.
    pub fn new(graph: impl Into<Cow<'static, Graph>>, evaluator: Box<dyn Evaluator>) -> Self {
        let graph = graph.into();
        Program {
            dependents: Dependents::of(&graph),
            patterns: Patterns::default(),
            tables: Tables::new(&graph),
            tracks: Tracks::of(&graph),
            origins: Origins::default(),
            graph,
            evaluator,
        }
    }

    /// Its graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("graph", &self.graph.name)
            .finish_non_exhaustive()
    }
}

/// A run of a program.
#[derive(Clone, Debug)]
pub struct Run {
    program: Arc<Program>,
    data: Option<Data>,
}

/// How much a run remembers of its state, roughly as bytes of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Written by steps.
    pub raw_bytes: u64,
    /// Set by hand.
    pub state_bytes: u64,
    /// Derived.
    pub computed_bytes: u64,
    /// Values of computed fields made so far that differed from the one before.
    pub transformations: u64,
    /// Events applied.
    pub events: u64,
}

/// Why an event cannot be applied. Such an event is not to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has begun already.
    #[error("the run has begun already")]
    AlreadyStarted,
    /// The run has not begun.
    #[error("the run has not begun")]
    NotStarted,
    /// The run is over.
    #[error("the run is over: it {0}")]
    Over(&'static str),
    /// The run has not failed, so there is nothing to resume.
    #[error("the run has not failed; there is nothing to try again")]
    NotFailed,
    /// A run that is to go on may not execute a single step.
    #[error("the run has executed {executed} steps; allow more than that, not {allowed}")]
    TooFew {
        /// Executions it would be allowed.
        allowed: u64,
        /// Executions it had.
        executed: u64,
    },
    /// The answer to a prompt is not valid.
    #[error("the answer is not valid: {0}")]
    Invalid(String),
    /// A change of state does not fit.
    #[error("{0}")]
    State(String),
    /// A task cannot be begun.
    #[error("{0}")]
    Task(&'static str),
}

impl Run {
    /// A run that has not begun.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        Run {
            program,
            data: None,
        }
    }

    /// A run as it was written down.
    #[must_use]
    pub fn restore(program: Arc<Program>, data: Data) -> Self {
        Run {
            program,
            data: Some(data),
        }
    }

    /// Everything the run remembers, to be written down.
    #[must_use]
    pub fn data(&self) -> Option<&Data> {
        self.data.as_ref()
    }

    /// The state as one map: computed fields, then written ones.
    #[must_use]
    pub fn flattened(&self) -> Value {
        let Some(data) = &self.data else {
            return Value::Null;
        };
        let (graph, dependents) = (self.program.graph(), &self.program.dependents);
        let view = View::of_state(graph, dependents, data, 0, 0);
        let mut fields = Vec::new();
        for name in view.field_names() {
            if let Field::Value(value) = view.field(None, name) {
                fields.push((name, value));
            }
        }
        Value::map(fields)
    }

    /// How much the run remembers of its state.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let Some(data) = &self.data else {
            return Sizes::default();
        };
        let tier = |fields: &indexmap::IndexMap<Arc<str>, Value>| {
            let fields = fields.iter();
            let bytes = fields.map(|(name, value)| name.len() as u64 + 4 + value.size());
            bytes.sum()
        };
        let computed = data.computed.iter().map(|cell| match cell {
            Cell::Value(value) => value.size(),
            Cell::Failed(reason) => reason.len() as u64,
            Cell::Unset => 0,
        });
        Sizes {
            raw_bytes: tier(&data.store.raw),
            state_bytes: tier(&data.store.state),
            computed_bytes: computed.sum(),
            transformations: data.transformations,
            events: data.applied,
        }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// How the run stands.
    #[must_use]
    pub fn status(&self) -> Status {
        self.data
            .as_ref()
            .map_or(Status::Running, |data| data.status)
    }

    /// The actions under way, in the order they were handed out. A host that takes a run over does
    /// these again, with the same keys.
    #[must_use]
    pub fn pending(&self) -> Vec<Effect> {
        let Some(data) = self
            .data
            .as_ref()
            .filter(|data| data.status == Status::Running)
        else {
            return Vec::new();
        };
        let mut pending: Vec<(ActionId, Effect)> = Vec::new();
        for frame in data.frames.values() {
            match frame.step.as_ref().map(|step| (&step.waits, step.since)) {
                Some((
                    Waits::Action(action)
                    | Waits::Judgement { action, .. }
                    | Waits::Environment { action, .. },
                    _,
                )) => {
                    pending.push((action.id, Effect::Act((**action).clone())));
                }
                Some((Waits::Time { timer, seconds }, since)) => {
                    let until = time::after(since, *seconds);
                    pending.push((
                        *timer,
                        Effect::Sleep {
                            timer: *timer,
                            until,
                        },
                    ));
                }
                Some((Waits::Pause { timer, .. }, _)) => {
                    pending.push((
                        *timer,
                        Effect::Sleep {
                            timer: *timer,
                            until: 0,
                        },
                    ));
                }
                Some((Waits::Children(children), _)) => {
                    let handed = children.handed.values();
                    pending.extend(handed.map(|item| (item.id, Effect::Act(item.clone()))));
                }
                Some((Waits::Turn(_), _)) | None => {}
            }
        }
        if let Some((timer, until)) = data.limit {
            pending.push((timer, Effect::Sleep { timer, until }));
        }
        if !data.ready.is_empty() {
            pending.push((ActionId(u64::MAX), Effect::Yield));
        }
        pending.sort_by_key(|(id, _)| *id);
        pending.into_iter().map(|(_, effect)| effect).collect()
    }

    /// The actions under way for a host that takes the run over at this time, in milliseconds since
    /// 1970. What it does from the beginning has its whole time again; a person's time runs on.
    #[must_use]
    pub fn taken_over(&self, at: u64) -> Vec<Effect> {
        let mut pending = self.pending();
        for effect in &mut pending {
            let Effect::Act(action) = effect else {
                continue;
            };
            let again = match &action.what {
                Deed::Shell { .. }
                | Deed::Tool { .. }
                | Deed::Call { .. }
                | Deed::Environment { .. } => true,
                Deed::Prompt { .. }
                | Deed::Delegate { .. }
                | Deed::DelegateItem { .. }
                | Deed::Judge { .. } => false,
            };
            let frame = self
                .data
                .as_ref()
                .and_then(|data| data.frames.get(&action.frame));
            let since = frame.and_then(|frame| frame.step.as_ref().map(|step| step.since));
            if again && let (Some(deadline), Some(since)) = (action.deadline, since) {
                action.deadline =
                    Some(at.max(since).saturating_add(deadline.saturating_sub(since)));
            }
        }
        pending
    }

    /// Whether an event may be applied, and so recorded. Late and repeated results may: they are
    /// recorded and change nothing.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self, what: &Happening) -> Result<(), Refusal> {
        let Some(data) = &self.data else {
            return match what {
                Happening::Started(_) => Ok(()),
                _ => Err(Refusal::NotStarted),
            };
        };
        match what {
            Happening::Started(_) => Err(Refusal::AlreadyStarted),
            Happening::Resumed(allowance) if data.status == Status::Failed => {
                match allowance.max_steps {
                    Some(allowed) if allowed <= data.steps => Err(Refusal::TooFew {
                        allowed,
                        executed: data.steps,
                    }),
                    Some(_) | None => Ok(()),
                }
            }
            Happening::Resumed(_) => Err(Refusal::NotFailed),
            Happening::Updated { updates } => {
                over(data)?;
                let changes = changes(updates)?;
                let computed = |change: &&Change| {
                    let graph = self.program.graph();
                    graph
                        .computed
                        .iter()
                        .any(|field| field.name == change.path[0])
                };
                if let Some(change) = changes.iter().find(computed) {
                    let message = format!("`{}` is computed and cannot be written", change.path[0]);
                    return Err(Refusal::State(message));
                }
                let mut trial = data.store.clone();
                let max = self.program.graph().limits.max_state_bytes;
                trial
                    .apply(&changes, max)
                    .map_err(|failure| Refusal::State(failure.message))
            }
            Happening::Completed { action, result } => self.check_answer(data, *action, result),
            Happening::Cancelled { .. }
            | Happening::Checkpointed { .. }
            | Happening::Rested
            | Happening::GivenUp { .. } => over(data),
            Happening::Taken { tasks, item } => {
                over(data)?;
                self.check_taken(*tasks, *item)
            }
            Happening::Failed { .. }
            | Happening::TimedOut { .. }
            | Happening::Declined { .. }
            | Happening::Woke { .. }
            | Happening::Late { .. }
            | Happening::Continued => Ok(()),
        }
    }

    /// Whether the answer to a prompt, or a judgement, is valid.
    fn check_answer(&self, data: &Data, action: ActionId, result: &Value) -> Result<(), Refusal> {
        let Some((node, deed)) = self.asked(data, action) else {
            return Ok(());
        };
        let invalid = |message: String| Err(Refusal::Invalid(message));
        let (kind, options) = match deed {
            Deed::Prompt { kind, options, .. } => (kind, options),
            Deed::Judge { choices, .. } if !settle::is_judgement(choices, result) => {
                let states: Vec<String> = choices
                    .iter()
                    .enumerate()
                    .map(|(index, (_, state))| format!("{index} (`{state}`)"))
                    .collect();
                return invalid(format!(
                    "answer `{{\"choice\": …}}` with one of {}, or null if none holds",
                    states.join(", ")
                ));
            }
            _ => return Ok(()),
        };
        match kind {
            PromptKind::Info => Ok(()),
            PromptKind::Confirm => match result.get("confirmed") {
                Some(Value::Bool(_)) => Ok(()),
                _ => {
                    invalid("answer `{\"confirmed\": true}` or `{\"confirmed\": false}`".to_owned())
                }
            },
            PromptKind::Choice => match result.get("selected") {
                Some(selected) if options.contains(selected) => Ok(()),
                _ => {
                    let allowed: Vec<String> = options.iter().map(Value::to_string).collect();
                    invalid(format!(
                        "answer `{{\"selected\": …}}` with one of {}",
                        allowed.join(", ")
                    ))
                }
            },
            PromptKind::Text => {
                let Some(input @ Value::Str(_)) = result.get("input") else {
                    return invalid("answer `{\"input\": \"…\"}` with a text".to_owned());
                };
                let Kind::Prompt(prompt) = &node.kind else {
                    return Ok(());
                };
                match crate::input::check_text(&prompt.validation, input) {
                    None => Ok(()),
                    Some(fault) => invalid(fault.to_string()),
                }
            }
        }
    }

    /// The node and deed of an action under way.
    fn asked<'a>(
        &'a self,
        data: &'a Data,
        id: ActionId,
    ) -> Option<(&'a flow_model::graph::Node, &'a Deed)> {
        let frame = data.frames.get(data.waiting.get(&id)?)?;
        let step = frame.step.as_ref()?;
        let (Waits::Action(action) | Waits::Judgement { action, .. }) = &step.waits else {
            return None;
        };
        let graph = self.program.graph();
        let body = match frame.body {
            BodyRef::Main => &graph.body,
            BodyRef::OnError => &graph.on_error.body,
            BodyRef::Task(task) => &graph.tasks.get(usize::from(task))?.body,
            BodyRef::Cleanup(task) => &graph.tasks.get(usize::from(task))?.on_error.as_ref()?.body,
        };
        let node = body.nodes.get(usize::from(step.node))?;
        (action.id == id).then_some((node, &action.what))
    }

    /// Applies an event and says what is wanted now.
    ///
    /// # Errors
    ///
    /// Why it cannot be applied; the run is as it was.
    pub fn apply(&mut self, event: &Event) -> Result<Vec<Effect>, Refusal> {
        self.advance(event, None)
    }

    /// The same, with somebody watching computed fields being made.
    ///
    /// # Errors
    ///
    /// As for [`Run::apply`].
    pub fn apply_watched(
        &mut self,
        event: &Event,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Effect>, Refusal> {
        self.advance(event, Some(observer))
    }

    fn advance(
        &mut self,
        event: &Event,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Vec<Effect>, Refusal> {
        self.check(&event.what)?;
        if let Happening::Started(start) = &event.what {
            self.data = Some(begin(start, event.at, self.program.graph()));
        }
        let Some(data) = &mut self.data else {
            return Err(Refusal::NotStarted);
        };
        data.applied += 1;
        let program = Arc::clone(&self.program);
        let mut machine = Machine {
            graph: &program.graph,
            dependents: &program.dependents,
            evaluator: program.evaluator.as_ref(),
            patterns: &program.patterns,
            tables: &program.tables,
            tracks: program.tracks,
            data,
            effects: Vec::new(),
            observer: match observer {
                Some(observer) => Some(observer),
                None => None,
            },
            at: event.at,
            stretch: 0,
        };
        machine.event(&event.what);
        machine.pump();
        machine.count_time();
        Ok(machine.effects)
    }
}

fn over(data: &Data) -> Result<(), Refusal> {
    match data.status {
        Status::Running => Ok(()),
        Status::Completed => Err(Refusal::Over("completed")),
        Status::Failed => Err(Refusal::Over("failed")),
        Status::Cancelled => Err(Refusal::Over("was cancelled")),
    }
}

fn changes(updates: &[Update]) -> Result<Vec<Change>, Refusal> {
    updates
        .iter()
        .map(|update| {
            let (tier, path) = parse_path(&update.path)
                .ok_or_else(|| Refusal::State(format!("`{}` is not a state path", update.path)))?;
            Ok(Change {
                tier,
                path,
                operation: update.operation,
                value: update.value.clone(),
            })
        })
        .collect()
}

/// The variables a run begins with.
fn variables(start: &Start) -> indexmap::IndexMap<Arc<str>, Value> {
    let mut variables = match &start.variables {
        Value::Map(given) => given.0.clone(),
        _ => indexmap::IndexMap::new(),
    };
    if let Some(session) = &start.session {
        variables.insert(Arc::from("session_id"), Value::text(session));
    }
    variables
}

fn begin(start: &Start, at: u64, graph: &Graph) -> Data {
    Data {
        started_at: at,
        status: Status::Running,
        applied: 0,
        store: state::Store::default(),
        computed: Vec::new(),
        included: indexmap::IndexMap::new(),
        variables: variables(start),
        frames: [(
            ROOT,
            Frame::new(BodyRef::Main, graph.body.entry, start.inputs.clone()),
        )]
        .into(),
        next_frame: ROOT,
        next_action: 0,
        waiting: std::collections::BTreeMap::new(),
        under_way: 0,
        queue: std::collections::VecDeque::new(),
        ready: std::collections::VecDeque::new(),
        steps: 0,
        evaluations: 0,
        transformations: 0,
        again: false,
        last_node: None,
        environment: start.env.clone(),
        return_values: None,
        deepest: start.depth,
        output: Value::Null,
        error: None,
        limit: None,
        used: 0,
        counting_since: None,
        resting: false,
        checkpoint: None,
        failed_tasks: std::collections::BTreeMap::new(),
        start: start.clone(),
    }
}

impl Machine<'_> {
    fn event(&mut self, what: &Happening) {
        match what {
            Happening::Started(_) => self.open(),
            Happening::Completed { action, result } => self.completed(*action, result),
            Happening::Failed {
                action,
                error,
                result,
            } => self.unsuccessful(*action, error.clone(), result),
            Happening::TimedOut { action, result } => {
                let failure = Failure::new(FailureKind::Timeout, "the step did not end in time");
                self.unsuccessful(*action, failure, result);
            }
            Happening::Declined { action, reason } => self.declined(*action, reason),
            Happening::Woke { timer } => self.woke(*timer),
            Happening::Updated { updates } => {
                if let Ok(changes) = changes(updates) {
                    // Checked before it was recorded; a refusal here changes nothing.
                    let _ = self.change(ROOT, &changes);
                }
            }
            Happening::Continued => self.data.resting = false,
            Happening::Rested => self.data.resting = true,
            Happening::Late { .. } => {}
            Happening::Checkpointed { reason, step } => {
                self.data.checkpoint = Some(Checkpoint {
                    at: self.at,
                    event: self.data.applied,
                    step: step.clone(),
                    reason: reason.clone(),
                });
            }
            Happening::Taken { tasks, item } => self.taken(*tasks, *item),
            Happening::GivenUp { reason } => {
                let failure = Failure::new(FailureKind::Action, reason.clone());
                self.end_failed(Some(failure));
            }
            Happening::Cancelled { reason } => {
                let failure = Failure::new(FailureKind::Cancelled, reason.clone());
                self.data.error = Some(failure.clone());
                self.finish(Finish {
                    status: Status::Cancelled,
                    output: Value::Null,
                    error: Some(failure),
                });
            }
            Happening::Resumed(allowance) => self.resume(*allowance),
        }
    }

    /// The frame and the step that wait for an action, unless the answer is late, repeated, or to
    /// something that was not handed out.
    fn answered(&mut self, action: ActionId) -> Option<(frame::FrameId, frame::Step)> {
        self.awaited(action, |waits| match waits {
            Waits::Action(asked) | Waits::Judgement { action: asked, .. } => asked.id == action,
            Waits::Environment { action: asked, .. } => asked.id == action,
            Waits::Children(_) => true,
            Waits::Turn(_) | Waits::Pause { .. } | Waits::Time { .. } => false,
        })
    }

    fn awaited(
        &mut self,
        id: ActionId,
        is_meant: impl FnOnce(&Waits) -> bool,
    ) -> Option<(frame::FrameId, frame::Step)> {
        let frame_id = *self.data.waiting.get(&id)?;
        let frame = self.data.frames.get_mut(&frame_id)?;
        let step = frame.step.take_if(|step| is_meant(&step.waits))?;
        self.data.waiting.remove(&id);
        Some((frame_id, step))
    }

    fn completed(&mut self, action: ActionId, result: &Value) {
        // Tasks complete by themselves, when the last of them does.
        if self.is_tasks(action) {
            return;
        }
        let Some((id, step)) = self.answered(action) else {
            return;
        };
        let node = step.node;
        let next = match step.waits {
            Waits::Action(asked) => {
                self.release();
                self.action_ended(id, node, *asked, Ok(result.clone()))
            }
            Waits::Judgement { edges, settled, .. } => {
                self.release();
                self.judged(id, node, &edges, *settled, result)
            }
            Waits::Children(children) => {
                self.put_back(id, step.node, step.since, Waits::Children(children));
                self.release();
                self.item_ended(id, action, Ok(result.clone()));
                return;
            }
            Waits::Environment { action, value } => {
                self.release();
                if let Deed::Environment { side, .. } = action.what {
                    self.environment_found(side, value, result);
                }
                return;
            }
            // Not what is answered by a result.
            Waits::Turn(_) | Waits::Pause { .. } | Waits::Time { .. } => return,
        };
        self.move_on(id, node, next);
    }

    fn put_back(&mut self, id: frame::FrameId, node: u16, since: u64, waits: Waits) {
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.step = Some(frame::Step { node, since, waits });
        }
    }

    fn move_on(&mut self, id: frame::FrameId, node: u16, next: Next) {
        if let Next::Go(to) = next {
            self.go(id, node, to);
            self.data.ready.push_back(id);
        }
    }

    fn unsuccessful(&mut self, action: ActionId, failure: Failure, result: &Value) {
        if self.is_tasks(action) {
            self.fail_tasks(action, failure);
            return;
        }
        let Some((id, step)) = self.answered(action) else {
            return;
        };
        let node = step.node;
        match step.waits {
            Waits::Action(asked) => {
                self.release();
                let next = if let Deed::Call { .. } | Deed::Tool { .. } = &asked.what
                    && *result != Value::Null
                {
                    self.retry_or_fail(id, node, *asked, failure, result.clone())
                } else {
                    self.retry_or_fail(id, node, *asked, failure, Value::Null)
                };
                self.move_on(id, node, next);
            }
            Waits::Judgement { .. } => {
                self.release();
                let next = self.fail_frame(id, failure);
                self.move_on(id, node, next);
            }
            Waits::Children(children) => {
                self.put_back(id, step.node, step.since, Waits::Children(children));
                self.release();
                self.item_ended(id, action, Err(failure));
            }
            Waits::Environment { action, .. } => {
                self.release();
                if let Deed::Environment { side, .. } = action.what {
                    self.environment_lost(side, &failure);
                }
            }
            // Not what is answered by a result.
            Waits::Turn(_) | Waits::Pause { .. } | Waits::Time { .. } => {}
        }
    }

    fn declined(&mut self, action: ActionId, reason: &str) {
        if self.is_tasks(action) {
            self.fail_tasks(action, Failure::new(FailureKind::Refused, reason));
            return;
        }
        let Some((id, step)) = self.answered(action) else {
            return;
        };
        self.release();
        if let Waits::Children(children) = step.waits {
            let node = step.node;
            self.put_back(id, node, step.since, Waits::Children(children));
            let failure = Failure::new(FailureKind::Refused, reason);
            self.item_ended(id, action, Err(failure));
            return;
        }
        let confirm = matches!(
            &step.waits,
            Waits::Action(asked) if matches!(asked.what, Deed::Prompt { kind: PromptKind::Confirm, .. })
        );
        let next = if confirm {
            let answer = Value::map([("confirmed", Value::Bool(false))]);
            match self.settle_success(id, step.node, answer) {
                Ok(next) => next,
                Err(failure) => self.failed(id, step.node, failure, Value::Null),
            }
        } else {
            let node = self
                .node(id, step.node)
                .map_or(String::new(), |node| node.id.to_string());
            let failure = Failure::new(FailureKind::Refused, reason).at(&node);
            self.fail_frame(id, failure)
        };
        self.move_on(id, step.node, next);
    }

    /// An item that was handed to an agent has ended.
    fn item_ended(&mut self, id: frame::FrameId, action: ActionId, ended: Result<Value, Failure>) {
        let waits = self
            .data
            .frames
            .get(&id)
            .and_then(|frame| frame.step.as_ref());
        let index = match waits.map(|step| &step.waits) {
            Some(Waits::Children(children)) => children
                .running
                .iter()
                .find(|(_, child)| **child == Child::Action(action))
                .map(|(index, _)| *index),
            _ => None,
        };
        if let Some(index) = index {
            self.child_ended(Some(frame::Parent { frame: id, index }), ended);
        }
    }

    /// An action gave a result: what that means depends on the node.
    fn action_ended(
        &mut self,
        id: frame::FrameId,
        index: u16,
        action: Action,
        result: Result<Value, Failure>,
    ) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        let raw = match result {
            Ok(value) => value,
            Err(failure) => return self.retry_or_fail(id, index, action, failure, Value::Null),
        };
        let meaning = match &node.kind {
            Kind::Shell(shell) => shell_result(node, shell.output, &raw),
            Kind::Tool { .. } | Kind::Call(_) => tool_result(node, &action.what, &raw),
            Kind::Delegate { .. } => match self.answer(id, index, node, &action, &raw) {
                Ok(answer) => answer,
                Err(next) => return next,
            },
            _ => Ok(raw.clone()),
        };
        let value = match meaning {
            Ok(value) => value,
            Err(failure) => return self.retry_or_fail(id, index, action, failure, raw),
        };
        if let Kind::Call(call) = &node.kind
            && call.shares_computed
            && let Some(Value::Map(computed)) = raw.get("computed")
        {
            for (name, value) in &computed.0 {
                self.data.included.insert(name.clone(), value.clone());
            }
        }
        // An await that finds nothing has timed out, though its result says success.
        let missed = matches!(&action.what, Deed::Tool { tool, builtin: true, .. } if tool == "await_output")
            && value
                .get("match_text")
                .is_none_or(|text| *text == Value::Null);
        if missed {
            let failure = Failure::new(FailureKind::Timeout, "the pattern was not found in time");
            return self.retry_or_fail(id, index, action, failure, value);
        }
        match self.settle_success(id, index, value) {
            Ok(next) => next,
            Err(failure) => self.failed(id, index, failure, raw),
        }
    }

    /// The next attempt, or the failure.
    fn retry_or_fail(
        &mut self,
        id: frame::FrameId,
        index: u16,
        action: Action,
        failure: Failure,
        result: Value,
    ) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        let Some(retry) = node.retry.filter(|retry| action.attempt < retry.attempts) else {
            return self.failed(id, index, failure, result);
        };
        self.track_retry(id, node);
        let exponent = i32::try_from(action.attempt - 1).unwrap_or(i32::MAX);
        let mut delay = retry.delay * retry.backoff.powi(exponent);
        if let Some(most) = retry.max_delay {
            delay = delay.min(most);
        }
        let timer = self.next_action();
        let until = time::after(self.at, delay);
        self.data.waiting.insert(timer, id);
        self.effects.push(Effect::Sleep { timer, until });
        self.wait(
            id,
            index,
            Waits::Pause {
                timer,
                action: Box::new(action),
            },
        );
        Next::Wait
    }

    fn woke(&mut self, timer: ActionId) {
        if self.data.limit.is_some_and(|(limit, _)| limit == timer) {
            self.data.limit = None;
            // There is no time left to begin again.
            self.data.again = true;
            let seconds = self.limit_seconds().unwrap_or_default();
            let message =
                format!("the run has taken more than {seconds} s; `limits.timeout` allows no more");
            // Failure steps that run out of time do not begin again.
            let is_cleaning = |frame: &Frame| frame.body == BodyRef::OnError;
            let mut frames = self.data.frames.iter();
            let cleaning = frames.find(|(_, frame)| is_cleaning(frame));
            let id = cleaning.map_or(ROOT, |(id, _)| *id);
            self.fail_frame(id, Failure::new(FailureKind::Limit, message));
            return;
        }
        let slept = self.awaited(timer, |waits| {
            matches!(waits, Waits::Time { .. } | Waits::Pause { .. })
        });
        let Some((id, step)) = slept else {
            return;
        };
        match step.waits {
            Waits::Time { seconds, .. } => {
                let result = Value::map([
                    ("resumed", Value::Bool(true)),
                    ("duration", Value::number(seconds)),
                ]);
                let next = match self.settle_success(id, step.node, result) {
                    Ok(next) => next,
                    Err(failure) => self.failed(id, step.node, failure, Value::Null),
                };
                self.move_on(id, step.node, next);
            }
            Waits::Pause { action, .. } => {
                let mut again = *action;
                let allowed = self
                    .node(id, step.node)
                    .and_then(|node| seconds_for(node, &again.what));
                again.attempt += 1;
                again.id = self.next_action();
                again.deadline = allowed.map(|seconds| time::after(self.at, seconds));
                self.dispatch(id, step.node, again);
            }
            Waits::Action(_)
            | Waits::Turn(_)
            | Waits::Judgement { .. }
            | Waits::Environment { .. }
            | Waits::Children(_) => {}
        }
    }

    /// Tries the failed step again: the workflow's own frame still stands where it failed.
    fn resume(&mut self, allowance: Allowance) {
        let start = &mut self.data.start;
        start.max_steps = allowance.max_steps.or(start.max_steps);
        start.timeout = allowance.timeout.or(start.timeout);
        self.data.status = Status::Running;
        self.data.error = None;
        // Whoever tries again gives the run its time again.
        self.data.used = 0;
        self.data.return_values = None;
        if self.data.steps == 0 {
            // Its arguments were not set, or its initial state could not be made.
            match self.data.environment == Value::Null {
                true => self.open(),
                false => self.restart(),
            }
            return;
        }
        let on_resume = self.graph.on_resume;
        if on_resume.reset_error_counts {
            self.reset_tracks();
        }
        let entry = self.graph.body.entry;
        let Some(frame) = self.data.frames.get_mut(&ROOT) else {
            return;
        };
        if !on_resume.skip_completed_steps {
            frame.at = entry;
            frame.loops.clear();
            frame.jumps.clear();
            self.data.ready.push_back(ROOT);
            return;
        }
        let at = frame.at;
        if let (false, flow_model::graph::Target::Node(index)) = (on_resume.retry_failed_steps, at)
            && let Some(node) = self.node(ROOT, index)
            && let Some(to) = node.next(flow_model::graph::Outcome::Success)
        {
            // The failed step is left as it is.
            self.go(ROOT, index, to);
            self.data.ready.push_back(ROOT);
            return;
        }
        let Some(frame) = self.data.frames.get_mut(&ROOT) else {
            return;
        };
        // A loop whose own test failed is in the iteration that it was in.
        if let (flow_model::graph::Target::Node(node), Some(inner)) =
            (frame.at, frame.loops.last_mut())
            && inner.node == node
        {
            match inner.index.checked_sub(1) {
                Some(before) => inner.index = before,
                None => drop(frame.loops.pop()),
            }
        }
        self.data.ready.push_back(ROOT);
    }

    /// Seconds the run may take.
    fn limit_seconds(&self) -> Option<f64> {
        self.data.start.timeout.or(self.graph.limits.timeout)
    }

    /// Keeps the clock of `limits.timeout`: it stands still while only people or agents are waited
    /// for.
    fn count_time(&mut self) {
        let Some(limit) = self.limit_seconds() else {
            return;
        };
        if self.data.status != Status::Running {
            return;
        }
        let limit = (limit * 1000.0) as u64;
        let agent_driven = self.data.start.agent_driven;
        let is_persons = |frame: &Frame| match frame.step.as_ref().map(|step| &step.waits) {
            Some(Waits::Action(action)) if agent_driven => action.what.is_for_agent(),
            Some(Waits::Action(action)) => matches!(
                action.what,
                Deed::Prompt { .. } | Deed::Delegate { .. } | Deed::DelegateItem { .. }
            ),
            Some(Waits::Judgement { .. } | Waits::Children(_)) => true,
            Some(
                Waits::Turn(_)
                | Waits::Pause { .. }
                | Waits::Time { .. }
                | Waits::Environment { .. },
            )
            | None => false,
        };
        let waits_for_people = self.data.resting || self.data.frames.values().all(is_persons);
        match (self.data.counting_since, waits_for_people) {
            (None, false) => {
                self.data.counting_since = Some(self.at);
                let timer = self.next_action();
                let until = self.at.saturating_add(limit.saturating_sub(self.data.used));
                self.data.limit = Some((timer, until));
                self.effects.push(Effect::Sleep { timer, until });
            }
            (Some(since), true) => {
                self.data.used += self.at.saturating_sub(since);
                self.data.counting_since = None;
                if let Some((timer, _)) = self.data.limit.take() {
                    self.effects.push(Effect::Stop(timer));
                }
            }
            (Some(_), false) | (None, true) => {}
        }
    }

    /// A value for a task's initial state.
    pub(super) fn start_value(
        &mut self,
        id: frame::FrameId,
        template: &flow_model::graph::Template,
    ) -> Result<Value, Failure> {
        self.data.evaluations += 1;
        let view = View {
            graph: self.graph,
            dependents: self.dependents,
            data: self.data,
            frame: self.data.frames.get(&id),
            needs: None,
            error: None,
            result: None,
            locals: &[],
            has_state: false,
            at: self.at,
            seed: self.data.evaluations,
        };
        self.evaluator.render(template, &view)
    }
}

/// What a tool's result means.
fn tool_result(
    node: &flow_model::graph::Node,
    deed: &Deed,
    result: &Value,
) -> Result<Value, Failure> {
    let judged = matches!(
        deed,
        Deed::Tool { builtin: true, .. } | Deed::Call { response: true, .. }
    );
    if judged && result.get("success") == Some(&Value::Bool(false)) {
        let error = result.get("error").and_then(Value::as_str);
        let message = match error {
            Some(error) => format!("`{}` failed: {error}", node.id),
            None => format!("`{}` failed", node.id),
        };
        return Err(Failure::new(FailureKind::Action, message));
    }
    Ok(match (deed, result.get("outputs")) {
        (
            Deed::Call {
                response: false, ..
            },
            Some(outputs),
        ) => outputs.clone(),
        _ => result.clone(),
    })
}
