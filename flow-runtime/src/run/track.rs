//! `steps_completed`, `steps_failed`, `retry_counts` and `last_error`: kept by the engine for
//! definitions that declare them.

use flow_model::graph::{Graph, Kind, Node, Operation, Tier};

use super::event::Failure;
use super::frame::{FrameId, ROOT};
use super::machine::Machine;
use super::state::Change;
use crate::value::Value;

const COMPLETED: &str = "steps_completed";
const FAILED: &str = "steps_failed";
const RETRIES: &str = "retry_counts";
const LAST: &str = "last_error";

/// Where what is kept stands; none of it for most definitions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tracks {
    completed: Option<Tier>,
    failed: Option<Tier>,
    retries: Option<Tier>,
    last: Option<Tier>,
}

impl Tracks {
    pub(super) fn of(graph: &Graph) -> Self {
        let declared = |name: &str| {
            let field = graph.state.iter().find(|field| field.name == name);
            field.map(|field| field.tier)
        };
        Tracks {
            completed: declared(COMPLETED),
            failed: declared(FAILED),
            retries: declared(RETRIES),
            last: declared(LAST),
        }
    }
}

fn set(tier: Tier, field: &str, value: Value) -> Change {
    Change {
        tier,
        path: vec![field.to_owned()],
        operation: Operation::Set,
        value,
    }
}

impl Machine<'_> {
    /// A step has ended for good.
    pub(super) fn track(&mut self, id: FrameId, node: &Node, failure: Option<&Failure>) {
        if !self.is_tracked(id, node) {
            return;
        }
        let mut changes = Vec::new();
        let tracks = self.tracks;
        let (from, to) = match failure {
            None => ((tracks.failed, FAILED), (tracks.completed, COMPLETED)),
            Some(_) => ((tracks.completed, COMPLETED), (tracks.failed, FAILED)),
        };
        if let Some(without) = self.list_without(from, node) {
            changes.push(without);
        }
        if let Some(with) = self.list_with(to, node) {
            changes.push(with);
        }
        if let (Some(tier), Some(failure)) = (tracks.last, failure) {
            changes.push(set(tier, LAST, failure.to_value()));
        }
        self.keep(&changes);
    }

    /// A step is tried once more.
    pub(super) fn track_retry(&mut self, id: FrameId, node: &Node) {
        if let Some(tier) = self.tracks.retries
            && self.is_tracked(id, node)
        {
            self.keep(&[Change {
                tier,
                path: vec![RETRIES.to_owned(), node.id.to_string()],
                operation: Operation::Increment,
                value: Value::Int(1),
            }]);
        }
    }

    /// Error counters start from zero.
    pub(super) fn reset_tracks(&mut self) {
        let tracks = self.tracks;
        let fresh = [
            (tracks.failed, FAILED, Value::list([])),
            (tracks.retries, RETRIES, Value::map::<&str>([])),
            (tracks.last, LAST, Value::Null),
        ];
        let changes = fresh.into_iter();
        let changes = changes.filter_map(|(tier, field, value)| Some(set(tier?, field, value)));
        let changes: Vec<Change> = changes.collect();
        self.keep(&changes);
    }

    /// Steps that do something, of the workflow itself and of tasks that share its state.
    fn is_tracked(&self, id: FrameId, node: &Node) -> bool {
        let shares = self
            .data
            .frames
            .get(&id)
            .is_some_and(|it| it.store.is_none());
        let acts = match node.kind {
            Kind::FanOut(_)
            | Kind::SetState
            | Kind::Call(_)
            | Kind::Shell(_)
            | Kind::Tool { .. }
            | Kind::Prompt(_)
            | Kind::Wait { .. }
            | Kind::Delegate { .. } => true,
            Kind::Condition { .. }
            | Kind::While { .. }
            | Kind::Loop { .. }
            | Kind::Jump(_)
            | Kind::Goto { .. }
            | Kind::Return { .. } => false,
        };
        shares && acts
    }

    fn list_without(&self, (tier, field): (Option<Tier>, &str), node: &Node) -> Option<Change> {
        let tier = tier?;
        let steps = self.data.store.get(tier, field)?.as_list()?;
        let is_this = |step: &Value| step.as_str() == Some(&node.id);
        let left = steps.iter().filter(|step| !is_this(step)).cloned();
        let left = Value::list(left);
        (left.as_list()?.len() < steps.len()).then(|| set(tier, field, left))
    }

    fn list_with(&self, (tier, field): (Option<Tier>, &str), node: &Node) -> Option<Change> {
        let tier = tier?;
        let steps = self.data.store.get(tier, field).and_then(Value::as_list);
        let mut steps = steps.unwrap_or_default().iter();
        if steps.any(|step| step.as_str() == Some(&node.id)) {
            return None;
        }
        Some(Change {
            tier,
            path: vec![field.to_owned()],
            operation: Operation::Append,
            value: Value::text(&node.id),
        })
    }

    fn keep(&mut self, changes: &[Change]) {
        if !changes.is_empty() {
            // What does not fit the state, because the definition uses it otherwise, is not kept.
            let _ = self.change(ROOT, changes);
        }
    }
}
