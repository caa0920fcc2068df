//! The pure core of a run: events in, effects out.
//!
//! [`Run::apply`] holds all semantics of a workflow: no I/O, no clock, no randomness, no threads.
//! What happened comes in as an [`Event`], what is wanted goes out as [`Effect`]s, and the state
//! of the run is the fold of its events. Replaying the same events gives the same effects.

mod action;
mod arrival;
mod child;
mod clock;
mod computed;
mod container;
mod contract;
mod data;
pub mod effect;
mod ending;
mod evaluate;
pub mod event;
mod fan;
pub mod frame;
mod gather;
mod handout;
mod machine;
mod meaning;
mod name;
mod observe;
mod origin;
mod parameter;
mod park;
mod past;
mod path;
mod pattern;
mod program;
mod refusal;
pub(crate) mod response;
mod resume;
mod returns;
mod sessions;
mod settle;
pub mod state;
mod table;
pub mod time;
mod track;
pub mod typed;
mod view;
mod visit;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

pub(crate) use action::{AGENT_TIMEOUT, SHELL_RESULT_BYTES};
pub(crate) use arrival::lateness;
pub use child::task_inputs;
pub use computed::Cell;
pub(crate) use contract::value_of;
use data::begin;
pub use data::{Checkpoint, Data};
pub use effect::{Action, Deed, Effect, Ending, Finish, Onward, Place, Status, read_answer};
pub use evaluate::Expressions;
pub use event::{ActionId, Allowance, Due, Event, Failure, FailureKind, Happening, Start, Update};
use frame::Waits;
pub use handout::{Handout, Handouts, Named, NamedTask, Part, TaskState, Tasks};
use machine::Machine;
pub(crate) use meaning::own_limit;
pub use name::unnumbered;
pub use observe::{Observer, Transformation};
pub use origin::{Origin, as_written};
pub use past::{PastCall, PastTasks};
pub use program::Program;
pub use refusal::Refusal;
pub(crate) use returns::unfit;
pub use view::{Evaluator, Field, View};

use crate::value::Value;

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

    /// The derived state: the workflow's own computed fields, and those of workflows it includes.
    #[must_use]
    pub fn derived(&self) -> Value {
        self.computed(|field| match field {
            Field::Value(value) => Some(value),
            Field::Unset | Field::Failed(_) | Field::Hidden => None,
        })
    }

    /// Those of them whose rule failed, each with why.
    #[must_use]
    pub fn derived_errors(&self) -> Value {
        self.computed(|field| match field {
            Field::Failed(reason) => Some(Value::text(reason)),
            Field::Value(_) | Field::Unset | Field::Hidden => None,
        })
    }

    fn computed(&self, wanted: impl Fn(Field) -> Option<Value>) -> Value {
        let Some(data) = &self.data else {
            return Value::Null;
        };
        let (graph, dependents) = (self.program.graph(), &self.program.dependents);
        let view = View::of_state(graph, dependents, data, 0, 0);
        let tier = Some(flow_model::graph::Tier::Computed);
        let names = view.field_names().into_iter();
        Value::map(names.filter_map(|name| Some((name, wanted(view.field(tier, name))?))))
    }

    /// The computed fields that are read from workflows which were included, each with the key of the
    /// call that it came with.
    #[must_use]
    pub fn included(&self) -> Vec<(&str, &str)> {
        let Some(data) = &self.data else {
            return Vec::new();
        };
        let is_read = |name: &str| {
            let own = self.program.dependents.index(name);
            let own = own.and_then(|own| data.computed.get(own));
            data.is_included(name) && own.is_none_or(|own| *own == Cell::Unset)
        };
        let fields = data.included_by.iter();
        fields
            .map(|(name, call)| (name.as_ref(), call.as_str()))
            .filter(|(name, _)| is_read(name))
            .collect()
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

    /// Whether the workflow itself has begun: its arguments, where it has any, were found.
    pub(crate) fn has_begun(&self) -> bool {
        let found = |data: &Data| data.environment != Value::Null;
        self.program.graph().arguments.is_empty() || self.data.as_ref().is_some_and(found)
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
                Some((Waits::Pause { timer, until, .. } | Waits::Again { timer, until }, _)) => {
                    let (timer, until) = (*timer, *until);
                    pending.push((timer, Effect::Sleep { timer, until }));
                }
                Some((Waits::Children(children), _)) => {
                    let handed = children.handed.values();
                    pending.extend(handed.map(|item| (item.id, Effect::Act(item.clone()))));
                }
                Some((Waits::Turn(_), _)) | None => {}
            }
            let timers = frame.containers.iter().filter_map(|it| it.timer);
            pending.extend(timers.map(|(timer, until)| (timer, Effect::Sleep { timer, until })));
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

    /// By when something that is asked of somebody, or by a run that was called, must be answered:
    /// the time that its step or a container around it states.
    #[must_use]
    pub fn due(&self, action: &Action) -> Option<Due> {
        let data = self.data.as_ref()?;
        let own = action.deadline.map(|at| Due { at, timer: None });
        let mut earliest = own.filter(|_| action.what.runs_on());
        let mut around = data.frames.get(&action.frame);
        while let Some(frame) = around {
            for (timer, at) in frame.containers.iter().filter_map(|it| it.timer) {
                if earliest.is_none_or(|due| at < due.at) {
                    let timer = Some(timer);
                    earliest = Some(Due { at, timer });
                }
            }
            around = frame.parent.and_then(|it| data.frames.get(&it.frame));
        }
        earliest
    }

    /// Whether a timer only bounds what goes on beside it: that of `limits.timeout`, and those of
    /// containers, unless an agent drives the run and waits for them.
    #[must_use]
    pub fn is_bound(&self, timer: ActionId) -> bool {
        let Some(data) = &self.data else {
            return false;
        };
        if data.limit.is_some_and(|(limit, _)| limit == timer) {
            return true;
        }
        let frame = data.waiting.get(&timer).and_then(|it| data.frames.get(it));
        let mut containers = frame.iter().flat_map(|frame| &frame.containers);
        let is_own = containers.any(|it| it.timer.is_some_and(|(own, _)| own == timer));
        is_own && !self.is_agent_driven()
    }

    /// The actions under way for a host that takes the run over at this time, in milliseconds since
    /// 1970. What it does from the beginning has its whole time again; that of a person or of a call runs on.
    #[must_use]
    pub fn taken_over(&self, at: u64) -> Vec<Effect> {
        let mut pending = self.pending();
        for effect in &mut pending {
            let Effect::Act(action) = effect else {
                continue;
            };
            let again = !action.what.runs_on();
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

    /// What of the effects of events that others have recorded still counts after the last of those
    /// events, for a host that takes them in at this time, in milliseconds since 1970. What has a
    /// result by then has been done, and nobody does it again; what has none is wanted once.
    #[must_use]
    pub fn still_wanted(&self, effects: Vec<Effect>, at: u64) -> Vec<Effect> {
        let is_wanting =
            |it: &Effect| matches!(it, Effect::Act(_) | Effect::Sleep { .. } | Effect::Yield);
        if !effects.iter().any(is_wanting) {
            return effects;
        }
        let id = |effect: &Effect| match effect {
            Effect::Act(action) => Some(action.id),
            Effect::Sleep { timer, .. } => Some(*timer),
            _ => None,
        };
        let pending = self.taken_over(at).into_iter();
        let mut pending: HashMap<Option<ActionId>, Effect> =
            pending.map(|effect| (id(&effect), effect)).collect();
        let wanted = effects.into_iter().rev().filter_map(|effect| match effect {
            Effect::Act(_) | Effect::Sleep { .. } | Effect::Yield => pending.remove(&id(&effect)),
            told @ (Effect::Stop(_)
            | Effect::Entered(_)
            | Effect::Left { .. }
            | Effect::Told { .. }
            | Effect::Finish(_)) => Some(told),
        });
        let mut wanted: Vec<Effect> = wanted.collect();
        wanted.reverse();
        wanted
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
        let since = data.next_action;
        let program = Arc::clone(&self.program);
        let mut machine = Machine {
            graph: &program.graph,
            dependents: &program.dependents,
            evaluator: program.evaluator.as_ref(),
            patterns: &program.patterns,
            tables: &program.tables,
            tracks: program.tracks,
            bounds: program.bounds(),
            data,
            effects: Vec::new(),
            observer: match observer {
                Some(observer) => Some(observer),
                None => None,
            },
            at: event.at,
            stretch: 0,
            ended: VecDeque::new(),
        };
        machine.event(&event.what);
        // What the clock decided is said afterwards: nothing goes on because of it.
        if !matches!(event.what, Happening::Late { .. }) {
            machine.pump();
        }
        machine.count_time();
        let effects = machine.effects;
        self.keep_origins(since);
        Ok(effects)
    }
}
