//! What is over, for sub-agents that come late: how tasks ended, and which runs were called.

use std::collections::{BTreeMap, BTreeSet};

use flow_model::graph::Node;
use serde::{Deserialize, Serialize};

use super::effect::{Action, Deed};
use super::event::Failure;
use super::frame::{Children, Waits};
use super::handout::{Part, TaskState};
use super::machine::Machine;
use super::name::Names;
use crate::value::Value;

/// Fan-outs, and calls, that are remembered. A loop may make any number of them, and a sub-agent that asks for
/// a task of an earlier one has missed so much that it is told just that.
const KEPT: usize = 64;
/// Those of them whose results are remembered however large they are.
const WITH_RESULTS: usize = 8;
/// Bytes of results that are remembered beyond those.
const RESULT_BYTES: u64 = 1 << 20;

/// How the tasks of a fan-out that is over ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PastTasks {
    /// What the step of the fan-out was called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    /// How many items there were.
    #[serde(default)]
    count: usize,
    /// What tasks gave, by item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    results: BTreeMap<usize, Value>,
    /// Why tasks failed, by item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    failures: BTreeMap<usize, Failure>,
    /// Roughly the bytes of all results.
    #[serde(default)]
    bytes: u64,
    /// Items whose tasks were stopped, or never begun.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    stopped: BTreeSet<usize>,
}

impl PastTasks {
    fn of(children: &Children) -> Self {
        let has_ended = |item: &usize| {
            children.results.contains_key(item) || children.failures.contains_key(item)
        };
        PastTasks {
            name: children.name.clone(),
            count: children.count(),
            results: children.results.clone(),
            bytes: children.results.values().map(Value::size).sum(),
            failures: children.failures.clone(),
            stopped: (0..children.count())
                .filter(|item| !has_ended(item))
                .collect(),
        }
    }

    /// Whether the step of the fan-out had this name.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// How the task of an item ended; `None` where there was no such item.
    #[must_use]
    pub fn state(&self, item: usize) -> Option<TaskState<'_>> {
        Some(if let Some(failure) = self.failures.get(&item) {
            TaskState::Failed(failure)
        } else if self.stopped.contains(&item) {
            TaskState::Stopped
        } else if item < self.count {
            TaskState::Completed(self.results.get(&item))
        } else {
            return None;
        })
    }
}

/// A workflow that was called, over or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastCall {
    /// What the step was called.
    pub name: String,
    /// The key of its action, from which the run that was called follows.
    pub key: String,
    /// The task that it was a step of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

impl PastCall {
    /// What a name means in the workflow that was called, if it begins with the call.
    #[must_use]
    pub fn rest<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(self.name.as_str())?.strip_prefix('/')
    }
}

impl Machine<'_> {
    /// Remembers what a call is named, for those who ask for tasks of the workflow when it is over.
    pub(super) fn remember_call(&mut self, action: &Action, node: &Node) {
        if !self.data.start.agent_driven || !matches!(action.what, Deed::Call { .. }) {
            return;
        }
        let names = Names {
            graph: self.graph,
            data: self.data,
        };
        let call = PastCall {
            name: names.of(action.frame, node, action.id),
            key: action.key.clone(),
            task: match names.part_of(action.frame) {
                Part::Main => None,
                Part::Task { tasks, item } => Some(names.of_task(tasks, item)),
            },
        };
        let calls = &mut self.data.past_calls;
        calls.insert(action.id, call);
        while calls.len() > KEPT {
            calls.pop_first();
        }
    }

    /// Remembers how the tasks of a fan-out ended; those under way are stopped.
    pub(super) fn remember_tasks(&mut self, children: &Children) {
        let Some(tasks) = children.tasks else {
            return;
        };
        let past = &mut self.data.past_tasks;
        past.insert(tasks, PastTasks::of(children));
        while past.len() > KEPT {
            past.pop_first();
        }
        let mut bytes = 0;
        for older in past.values_mut().rev().skip(WITH_RESULTS) {
            bytes += older.bytes;
            if bytes > RESULT_BYTES {
                older.results.clear();
            }
        }
    }

    /// The same for every fan-out under way.
    pub(super) fn remember_all_tasks(&mut self) {
        let steps = self.data.frames.values();
        let steps = steps.filter_map(|frame| frame.step.as_ref());
        let under_way: Vec<Children> = steps
            .filter_map(|step| match &step.waits {
                Waits::Children(children) if children.tasks.is_some() => Some((**children).clone()),
                _ => None,
            })
            .collect();
        for children in &under_way {
            self.remember_tasks(children);
        }
    }
}
