//! Everything a run remembers. It can be written down and read back; the rest is derived.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use flow_model::graph::Graph;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::computed::Cell;
use super::effect::Status;
use super::event::{ActionId, Failure, Start};
use super::frame::{BodyRef, Frame, FrameId, ROOT};
use super::origin::Origin;
use super::past::{PastCall, PastTasks};
use super::state::Store;
use crate::value::Value;

/// The memory of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// How it began.
    pub start: Start,
    /// When it began, in milliseconds since 1970.
    pub started_at: u64,
    /// How it stands.
    pub status: Status,
    /// Events applied so far.
    pub applied: u64,
    /// The written state.
    pub store: Store,
    /// The derived state, in the graph's order.
    pub computed: Vec<Cell>,
    /// Computed fields of included workflows, as they were when those were over.
    pub included: IndexMap<Arc<str>, Cell>,
    /// The key of the call that each of them came with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub included_by: BTreeMap<Arc<str>, String>,
    /// Variables of the states form.
    pub variables: IndexMap<Arc<str>, Value>,
    /// Frames by number.
    pub frames: BTreeMap<FrameId, Frame>,
    /// Frames of failed and stopped children, where that happened: whoever resumes the run goes on
    /// from there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parked: BTreeMap<FrameId, Frame>,
    /// The number of the next frame.
    pub next_frame: FrameId,
    /// The number of the next action or timer.
    pub next_action: u64,
    /// The frame that waits for an action or timer.
    pub waiting: BTreeMap<ActionId, FrameId>,
    /// Actions handed out, so that no more than the limit are under way at once.
    pub under_way: u64,
    /// Frames whose action waits for its turn.
    pub queue: VecDeque<FrameId>,
    /// Frames that can go on.
    pub ready: VecDeque<FrameId>,
    /// Nodes executed, failure steps not among them.
    pub steps: u64,
    /// Failure steps executed, since they last began or the run was resumed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failure_steps: u64,
    /// Nodes executed that count no more: failure steps before those, and all of them before the
    /// workflow was run again from its start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps_before: u64,
    /// Evaluations so far; random values are made from it and from the run.
    pub evaluations: u64,
    /// Values of computed fields made so far.
    pub transformations: u64,
    /// The workflow has been run again after a failure.
    pub again: bool,
    /// The last node of the workflow's own body.
    pub last_node: Option<String>,
    /// Values of the declared arguments, by name.
    #[serde(default, skip_serializing_if = "is_null")]
    pub environment: Value,
    /// Values of the declared return values that are set, once they were looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_values: Option<Value>,
    /// The deepest call so far.
    pub deepest: u32,
    /// What the run gave.
    pub output: Value,
    /// Why it failed.
    pub error: Option<Failure>,
    /// The timer of `limits.timeout`, and when it runs out.
    pub limit: Option<(ActionId, u64)>,
    /// Milliseconds of `limits.timeout` used up before the current stretch.
    pub used: u64,
    /// When the current stretch of counted time began.
    pub counting_since: Option<u64>,
    /// Nobody drives the run: the clock stands still.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resting: bool,
    /// Where somebody last wanted to be able to come back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// How the tasks of fan-outs that are over ended, by the number of the fan-out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub past_tasks: BTreeMap<ActionId, PastTasks>,
    /// The last calls, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub past_calls: BTreeMap<ActionId, PastCall>,
    /// Where the values of what waits come from, as they were when it began to wait; only where an
    /// agent drives the run and may want to know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<ActionId, Origin>,
    /// Whether the run has closed the terminal session it was given, or that was near.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_session_closed: bool,
    /// The terminal session that the workflow had last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_session: Option<String>,
}

impl Data {
    /// Whether a name means a computed field of a workflow that was included, and nothing of the
    /// workflow itself. Nobody here writes such a field.
    pub(super) fn is_included(&self, name: &str) -> bool {
        self.included.contains_key(name)
            && !self.store.raw.contains_key(name)
            && !self.store.state.contains_key(name)
    }

    /// The frame that remembers what a frame hands out first: failure steps of the workflow count
    /// with its own steps, also when they run once more.
    pub(super) fn keeper(&self, id: FrameId) -> FrameId {
        match self.frames.get(&id).map(|frame| frame.body) {
            Some(BodyRef::OnError) => ROOT,
            Some(BodyRef::Main | BodyRef::Task(_) | BodyRef::Cleanup(_)) | None => id,
        }
    }

    /// Nodes executed, all in all.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.steps_before + self.steps + self.failure_steps
    }

    /// Failure steps are counted from here.
    pub(super) fn count_failure_steps(&mut self) {
        self.steps_before += std::mem::take(&mut self.failure_steps);
    }

    /// Whether a frame runs failure steps, or a task that those have begun.
    pub(super) fn is_cleaning(&self, id: FrameId) -> bool {
        let mut around = self.frames.get(&id);
        while let Some(frame) = around {
            if matches!(frame.body, BodyRef::OnError | BodyRef::Cleanup(_)) {
                return true;
            }
            around = frame.parent.and_then(|it| self.frames.get(&it.frame));
        }
        false
    }

    /// The frames that belong to no fan-out: the workflow's, and that of its failure steps.
    pub(super) fn heads(&self) -> impl Iterator<Item = FrameId> + '_ {
        let heads = self
            .frames
            .iter()
            .filter(|(_, frame)| frame.parent.is_none());
        heads.map(|(id, _)| *id)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_null(value: &Value) -> bool {
    *value == Value::Null
}

/// A place in a run that somebody wants to be able to come back to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The number of its event.
    pub event: u64,
    /// The step it was said at.
    pub step: Option<String>,
    /// Why.
    pub reason: String,
}

/// The variables a run begins with.
pub(super) fn variables(start: &Start) -> IndexMap<Arc<str>, Value> {
    match &start.variables {
        Value::Map(given) => given.0.clone(),
        _ => IndexMap::new(),
    }
}

/// What a run that begins remembers.
pub(super) fn begin(start: &Start, at: u64, graph: &Graph) -> Data {
    Data {
        started_at: at,
        status: Status::Running,
        applied: 0,
        store: Store::default(),
        computed: Vec::new(),
        included: IndexMap::new(),
        included_by: BTreeMap::new(),
        variables: variables(start),
        frames: [(
            ROOT,
            Frame::new(BodyRef::Main, graph.body.entry, start.inputs.clone()),
        )]
        .into(),
        parked: BTreeMap::new(),
        next_frame: ROOT,
        next_action: 0,
        waiting: BTreeMap::new(),
        under_way: 0,
        queue: VecDeque::new(),
        ready: VecDeque::new(),
        steps: 0,
        failure_steps: 0,
        steps_before: 0,
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
        past_tasks: BTreeMap::new(),
        past_calls: BTreeMap::new(),
        origins: BTreeMap::new(),
        given_session_closed: false,
        last_session: start.session.clone(),
        start: start.clone(),
    }
}

impl Data {
    /// What the randomness of an evaluation starts from: the run's own, and the same whenever the
    /// run is replayed.
    pub(super) fn seed(&self) -> u64 {
        own(&self.start.run) ^ self.evaluations
    }
}

/// The number of a run, by FNV-1a.
fn own(run: &str) -> u64 {
    run.bytes().fold(0xcbf2_9ce4_8422_2325, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
