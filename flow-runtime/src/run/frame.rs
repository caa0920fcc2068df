//! Where a run is: one frame for the workflow, one for each child of a fan-out, one for failure
//! steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flow_model::graph::Target;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::computed::Cell;
use super::effect::Action;
use super::event::{ActionId, Failure};
use super::state::Store;
use crate::value::Value;

/// The number of a frame within its run.
pub type FrameId = u32;

/// The frame of the workflow itself.
pub const ROOT: FrameId = 0;

/// A body being executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Which steps it runs.
    pub body: BodyRef,
    /// The next node.
    pub at: Target,
    /// The fan-out it belongs to, and its item.
    pub parent: Option<Parent>,
    /// Inputs by name.
    pub inputs: Value,
    /// The item it works on.
    pub item: Option<Item>,
    /// State of its own; `None` for the workflow's.
    pub store: Option<Store>,
    /// Computed fields of workflows that were included, where it has state of its own.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub included: IndexMap<Arc<str>, Cell>,
    /// Loops around the next node, outermost first.
    pub loops: Vec<Loop>,
    /// Containers around the next node that have a time or attempts of their own, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// Nodes that were entered and not left, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<u16>,
    /// How often each `goto` has jumped.
    pub jumps: BTreeMap<u16, u32>,
    /// The step under way.
    pub step: Option<Step>,
    /// Why failure steps run.
    pub error: Option<Failure>,
    /// Where a task stood whose failure steps run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Box<Standing>>,
    /// What its node had done when it failed or was stopped, for whoever resumes the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Box<Kept>>,
    /// What was wanted first under the id of each node, of its own steps and of its failure steps;
    /// later ones are told apart by their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub first: BTreeMap<String, ActionId>,
    /// Terminal sessions that its steps have opened and that are open, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// The terminal session that a step of it has worked in first, while it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked_in: Option<String>,
    /// The last of its terminal sessions that was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

/// The steps a frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyRef {
    /// The workflow's.
    Main,
    /// The workflow's failure steps.
    OnError,
    /// A task's.
    Task(u16),
    /// A task's failure steps.
    Cleanup(u16),
}

/// The fan-out a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The frame whose step is the fan-out.
    pub frame: FrameId,
    /// The index of the item.
    pub index: usize,
}

/// The item of a fan-out that a frame works on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The item.
    pub value: Value,
    /// Its index.
    pub index: usize,
    /// How many there are.
    pub length: usize,
}

/// A loop under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loop {
    /// The loop's node.
    pub node: u16,
    /// The iteration, from 0.
    pub index: u64,
    /// The items; `None` for a `while`.
    pub items: Option<Value>,
}

/// A container under way that has a time or attempts of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// Its node.
    pub node: u16,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The timer of its attempt, and when it runs out.
    pub timer: Option<(ActionId, u64)>,
}

/// Where in its body a frame stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The next node.
    pub at: Target,
    /// Loops around it.
    pub loops: Vec<Loop>,
    /// Containers around it.
    pub containers: Vec<Container>,
    /// How often each `goto` has jumped.
    pub jumps: BTreeMap<u16, u32>,
    /// What the node had done.
    pub kept: Option<Box<Kept>>,
}

/// What a node had done when it failed or was stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The node.
    pub node: u16,
    /// What.
    pub what: Progress,
}

/// What a node had done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Children of a fan-out have ended, or stand somewhere.
    Children(Box<Children>),
    /// A workflow was called under this key, and has failed.
    Call(String),
}

/// A step under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its node.
    pub node: u16,
    /// When it began.
    pub since: u64,
    /// What it waits for.
    pub waits: Waits,
}

/// What a step waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// An action.
    Action(Box<Action>),
    /// Its turn: too many actions are under way.
    Turn(Box<Action>),
    /// The pause before the next attempt.
    Pause {
        /// The timer.
        timer: ActionId,
        /// When it is over, in milliseconds since 1970.
        #[serde(default)]
        until: u64,
        /// What will be tried again.
        action: Box<Action>,
    },
    /// The pause before a container is tried again.
    Again {
        /// The timer.
        timer: ActionId,
        /// When it is over, in milliseconds since 1970.
        #[serde(default)]
        until: u64,
    },
    /// A `wait` step's time.
    Time {
        /// The timer.
        timer: ActionId,
        /// Seconds.
        seconds: f64,
    },
    /// Somebody's judgement.
    Judgement {
        /// The action that asks.
        action: Box<Action>,
        /// The edges asked about.
        edges: Vec<u16>,
        /// What the step's own action gave.
        settled: Box<Settled>,
    },
    /// Its children.
    Children(Box<Children>),
    /// A side of the contract, before the first step or after the last.
    Environment {
        /// The action that looks.
        action: Box<Action>,
        /// What the run gives when the contract holds.
        value: Option<Value>,
    },
}

/// How a step's action ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// How.
    pub outcome: flow_model::graph::Outcome,
    /// What it gave.
    pub result: Value,
    /// Why it failed.
    pub error: Option<Failure>,
}

/// The children of a fan-out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Children {
    /// All items.
    pub items: Value,
    /// Items that have not begun, in order.
    pub waiting: std::collections::VecDeque<usize>,
    /// Frames under way, or actions handed to an agent, by item.
    pub running: BTreeMap<usize, Child>,
    /// What was handed to an agent, by item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handed: BTreeMap<usize, Action>,
    /// Results by item.
    pub results: BTreeMap<usize, Value>,
    /// Failures by item.
    pub failures: BTreeMap<usize, Failure>,
    /// How often each item has been tried again.
    pub retries: BTreeMap<usize, u32>,
    /// A child failed and the others are being stopped.
    pub stopped: bool,
    /// A sub-agent has begun a task since the step was handed out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// Items whose failure has been collected.
    pub collected: BTreeSet<usize>,
    /// The first item whose failure could not be collected, and that failure with why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncollected: Option<(usize, Failure)>,
    /// Frames of items that failed or were stopped, which stand where that happened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parked: BTreeMap<usize, FrameId>,
    /// The number of the fan-out, in a run that an agent drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ActionId>,
    /// What its step is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What the author tells sub-agents, where that is not the standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<OwnPrompt>,
}

/// What the author of a fan-out tells its sub-agents, as it was when the step began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OwnPrompt {
    /// The same for all.
    Shared(String),
    /// What depends on the item, by item.
    OfItems(Vec<String>),
}

impl OwnPrompt {
    /// That of one item, where it depends on the item.
    #[must_use]
    pub fn of_item(&self, item: usize) -> Option<&str> {
        match self {
            OwnPrompt::Shared(_) => None,
            OwnPrompt::OfItems(prompts) => prompts.get(item).map(String::as_str),
        }
    }
}

impl Children {
    /// Whether nobody has begun anything since the step was handed out.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        !self.begun && self.running.is_empty()
    }

    /// How often an item has been tried again.
    #[must_use]
    pub fn tries(&self, item: usize) -> u32 {
        self.retries.get(&item).copied().unwrap_or(0)
    }

    /// How many items there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.items.as_list().map_or(0, <[Value]>::len)
    }
}

/// A child under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Child {
    /// A frame of this run.
    Frame(FrameId),
    /// An item handed to an agent.
    Action(ActionId),
}

impl Frame {
    /// A frame at the start of a body.
    #[must_use]
    pub fn new(body: BodyRef, at: Target, inputs: Value) -> Self {
        Frame {
            body,
            at,
            parent: None,
            inputs,
            item: None,
            store: None,
            included: IndexMap::new(),
            loops: Vec::new(),
            containers: Vec::new(),
            visits: Vec::new(),
            jumps: BTreeMap::new(),
            step: None,
            error: None,
            standing: None,
            kept: None,
            first: BTreeMap::new(),
            sessions: Vec::new(),
            worked_in: None,
            closed: None,
        }
    }
}
