//! How the tasks of fan-outs that are over ended, for their sub-agents.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::Failure;
use super::frame::{Children, Waits};
use super::handout::TaskState;
use super::machine::Machine;
use crate::value::Value;

/// Fan-outs whose results are remembered: sub-agents that ask for those of earlier ones are told
/// only how they ended.
const KEPT: usize = 8;

static NOTHING: Value = Value::Null;

/// How the tasks of a fan-out that is over ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PastTasks {
    /// What tasks gave, by item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    results: BTreeMap<usize, Value>,
    /// Why tasks failed, by item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    failures: BTreeMap<usize, Failure>,
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
            results: children.results.clone(),
            failures: children.failures.clone(),
            stopped: (0..children.count())
                .filter(|item| !has_ended(item))
                .collect(),
        }
    }

    /// How the task of an item ended.
    #[must_use]
    pub fn state(&self, item: usize) -> TaskState<'_> {
        if let Some(failure) = self.failures.get(&item) {
            return TaskState::Failed(failure);
        }
        if self.stopped.contains(&item) {
            return TaskState::Stopped;
        }
        TaskState::Completed(self.results.get(&item).unwrap_or(&NOTHING))
    }
}

impl Machine<'_> {
    /// Remembers how the tasks of a fan-out ended; those under way are stopped.
    pub(super) fn remember_tasks(&mut self, children: &Children) {
        let Some(tasks) = children.tasks else {
            return;
        };
        let past = &mut self.data.past_tasks;
        past.insert(tasks, PastTasks::of(children));
        let older = past.len().saturating_sub(KEPT);
        for past in past.values_mut().take(older) {
            past.results.clear();
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
