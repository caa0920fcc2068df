//! What happened to a run. The state of a run is the fold of its events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::secret::Reference;
use crate::value::Value;

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Milliseconds since 1970. Expressions evaluated because of this event see this time.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub what: Happening,
}

/// When the time of something that waits for somebody is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The timer of the container whose time it is; `None` for that of the step.
    pub timer: Option<ActionId>,
}

/// The number of an action within its run. Replay gives the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionId(pub u64);

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    /// The run began.
    Started(Start),
    /// An action ended with a result.
    Completed {
        /// Which one.
        action: ActionId,
        /// What it gave.
        result: Value,
    },
    /// An action was done by somebody who gave no result: what there was to write is written.
    Done {
        /// Which one.
        action: ActionId,
    },
    /// An action could not do what was asked.
    Failed {
        /// Which one.
        action: ActionId,
        /// Why.
        error: Failure,
        /// What it gave nevertheless.
        #[serde(default, skip_serializing_if = "is_null")]
        result: Value,
    },
    /// An action did not end in time.
    TimedOut {
        /// Which one.
        action: ActionId,
        /// What it had given until then.
        #[serde(default, skip_serializing_if = "is_null")]
        result: Value,
    },
    /// A person declined to answer.
    Declined {
        /// Which prompt.
        action: ActionId,
        /// Why.
        reason: String,
    },
    /// A timer ran out.
    Woke {
        /// Which one.
        timer: ActionId,
    },
    /// State was changed from outside.
    Updated {
        /// One batch.
        updates: Vec<Update>,
    },
    /// The run goes on after it had given way to others, or rested.
    Continued,
    /// Nobody drives the run, because all that is under way waits for somebody, or because whoever
    /// drove it has gone: its clock stands still until it continues.
    Rested,
    /// Somebody wants to be able to come back here.
    Checkpointed {
        /// Why.
        reason: String,
        /// The step it was said at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    /// A sub-agent has begun a task of a fan-out.
    Taken {
        /// The fan-out.
        tasks: ActionId,
        /// The index of the item.
        item: usize,
    },
    /// The clock ended evaluations while the event before this one was applied, or made the run
    /// give way. It is recorded with that event, so that a replay decides the same on any machine.
    Late {
        /// The evaluations, by what their randomness starts from.
        evaluations: Vec<u64>,
        /// Which time of being asked the clock said that the run is to give way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gave_way: Option<u64>,
    },
    /// Whoever drives the run has given it up: it has failed.
    GivenUp {
        /// Why.
        reason: String,
    },
    /// The run is to stop.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// A failed run is to try its failed step again.
    Resumed(Allowance),
}

impl Happening {
    /// The action or timer that is over with it.
    #[must_use]
    pub const fn ends(&self) -> Option<ActionId> {
        match self {
            Happening::Completed { action, .. }
            | Happening::Done { action }
            | Happening::Failed { action, .. }
            | Happening::TimedOut { action, .. }
            | Happening::Declined { action, .. } => Some(*action),
            Happening::Woke { timer } => Some(*timer),
            Happening::Started(_)
            | Happening::Updated { .. }
            | Happening::Continued
            | Happening::Rested
            | Happening::Checkpointed { .. }
            | Happening::Taken { .. }
            | Happening::Late { .. }
            | Happening::GivenUp { .. }
            | Happening::Cancelled { .. }
            | Happening::Resumed(_) => None,
        }
    }

    /// The action that it says the end of; a timer is none.
    #[must_use]
    pub const fn answers(&self) -> Option<ActionId> {
        match self {
            Happening::Woke { .. } => None,
            other => other.ends(),
        }
    }
}

/// What a run that tries again may do, where that is more than it might before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allowance {
    /// Executions of nodes allowed, those before included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Seconds it may take from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// How a run begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The run's id; random values are made from it.
    pub run: String,
    /// Inputs by name, checked and complete.
    pub inputs: Value,
    /// Variables of a states workflow by name.
    #[serde(default, skip_serializing_if = "is_null")]
    pub variables: Value,
    /// Values of declared environment arguments.
    #[serde(default, skip_serializing_if = "is_null")]
    pub env: Value,
    /// The terminal session the run was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The session that was opened last by whoever shares theirs with a run that was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_session: Option<String>,
    /// The session it was given was opened for this run alone, with the environment of whoever started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_session: bool,
    /// How many calls lie above this run.
    #[serde(default)]
    pub depth: u32,
    /// How deep the calls above this run allow calls to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u8>,
    /// Executions of nodes allowed, when the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Seconds the run may take, when the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Where the values of secret inputs come from; the inputs have placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Reference>,
    /// The directory of its definition, where workflows that it calls are looked for as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// The directory its commands run in, wherever it is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// An agent drives it: what is the agent's to do waits for the agent, whoever hosts the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent_driven: bool,
    /// The definition it came with, when that is to be kept for reuse after success.
    #[serde(default, skip_serializing_if = "is_null")]
    pub keep: Value,
}

/// One change of state from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// A path such as `raw.count`.
    pub path: String,
    /// How.
    pub operation: flow_model::graph::Operation,
    /// What.
    pub value: Value,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// A sentence that names the thing.
    pub message: String,
    /// The step it happened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// An action failed.
    Action,
    /// An action did not end in time.
    Timeout,
    /// An expression failed.
    Expression,
    /// A step read state that `needs_state` does not list.
    StateAccess,
    /// A write did not fit the state.
    State,
    /// A child of a fan-out failed.
    Child,
    /// An input or answer is not valid.
    Validation,
    /// A limit was reached.
    Limit,
    /// The run has taken longer than it may.
    TimeLimit,
    /// No transition held.
    NoTransition,
    /// A person declined.
    Refused,
    /// The run was cancelled.
    Cancelled,
    /// Environment variables that the workflow needs are not set.
    Arguments,
    /// Environment variables that the workflow is to set are not set.
    ReturnValues,
}

impl Failure {
    /// The same with what went wrong while it was handled.
    pub(super) fn with(&self, effect: &str, other: &Failure) -> Self {
        Failure {
            message: format!("{}; {effect}: {}", self.message, other.message),
            ..self.clone()
        }
    }

    /// A failure of a kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure {
            kind,
            message: message.into(),
            step: None,
        }
    }

    /// The same, in a step, which the message names from then on, unless it is somebody else's.
    #[must_use]
    pub fn at(mut self, step: &str) -> Self {
        if self.step.is_none() {
            self.step = Some(step.to_owned());
            let is_ours = self.kind != FailureKind::Action;
            if is_ours && !self.message.contains(&format!("`{step}`")) {
                self.message = format!("`{step}`: {}", self.message);
            }
        }
        self
    }

    /// Whether somebody has refused: that is no failure that a step could handle, and ends the run.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.kind == FailureKind::Refused
    }

    /// As templates of failure steps see it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let kind = serde_json::to_value(self.kind).unwrap_or_default();
        Value::map([
            ("message", Value::text(&self.message)),
            ("type", Value::from(&kind)),
            (
                "step",
                self.step.as_deref().map_or(Value::Null, Value::text),
            ),
        ])
    }
}

fn is_null(value: &Value) -> bool {
    *value == Value::Null
}
