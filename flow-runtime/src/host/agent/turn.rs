//! What an agent is told.

use super::AgentStep;
use super::desk::Called;
use super::step::Task;
use crate::journal::RunId;
use crate::run::Failure;
use crate::secret;
use crate::value::Value;

/// What an agent is told: a step to do, or how its part of the run stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The run that was asked about.
    pub run: RunId,
    /// The task that was asked about.
    pub task: Option<String>,
    /// How it stands.
    pub status: TurnStatus,
    /// What to do.
    pub step: Option<AgentStep>,
    /// Tasks of sub-agents that are not over: the first of them.
    pub open_tasks: Vec<Task>,
    /// How many there are.
    pub open_count: usize,
    /// The index of the first that is not listed, if there are more.
    pub open_next: Option<usize>,
    /// The step that those tasks belong to, for whoever has to start their sub-agents once more.
    pub open_step: Option<AgentStep>,
    /// The time that is waited for, in milliseconds since 1970.
    pub wakes: Option<u64>,
    /// What it gave.
    pub output: Value,
    /// Why it failed.
    pub error: Option<Failure>,
    /// The secrets that it waits for: inputs that were given by hand to a process that is gone.
    pub missing_secrets: Vec<String>,
    /// What whoever asked should know beside: that a result was not taken because there was one, or
    /// that what a task gave is no longer kept.
    pub note: Option<String>,
}

/// How a run, or a task of it, stands for whoever goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStatus {
    /// It goes on by itself.
    Running,
    /// It waits for the agent; a task may also wait for its turn.
    Waiting,
    /// It waits for sub-agents.
    WaitingForTasks,
    /// It waits for a time.
    Sleeping,
    /// It did what was asked.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl TurnStatus {
    /// Whether nothing follows.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            TurnStatus::Completed | TurnStatus::Failed | TurnStatus::Cancelled => true,
            TurnStatus::Running
            | TurnStatus::Waiting
            | TurnStatus::WaitingForTasks
            | TurnStatus::Sleeping => false,
        }
    }
}

impl Turn {
    pub(super) fn new(run: RunId, status: TurnStatus) -> Self {
        Turn {
            run,
            task: None,
            status,
            step: None,
            open_tasks: Vec::new(),
            open_count: 0,
            open_next: None,
            open_step: None,
            wakes: None,
            output: Value::Null,
            error: None,
            missing_secrets: Vec::new(),
            note: None,
        }
    }

    pub(super) fn of(mut self, task: &str) -> Self {
        self.task = Some(task.to_owned());
        self
    }

    /// The same, as agents may see it: without what stands for secrets.
    pub(super) fn masked(mut self) -> Self {
        for step in self.step.iter_mut().chain(&mut self.open_step) {
            mask(&mut step.instructions);
            step.definition.values_mut().for_each(mask_json);
            step.variable_replacements.values_mut().for_each(mask_json);
        }
        for task in &mut self.open_tasks {
            task.context = secret::mask_value(&task.context);
            task.prompt.iter_mut().for_each(mask);
        }
        self.output = secret::mask_value(&self.output);
        if let Some(error) = &mut self.error {
            mask(&mut error.message);
        }
        self
    }

    /// The same, for somebody who asked the run that called this one.
    pub(super) fn seen_from(mut self, run: RunId, called: &Called) -> Self {
        let call = &called.name;
        let before = |name: &mut String| *name = format!("{call}/{name}");
        self.run = run;
        self.task = called.seen_from(self.task);
        for task in &mut self.open_tasks {
            before(&mut task.id);
            task.run = run;
        }
        for step in self.step.iter_mut().chain(&mut self.open_step) {
            before(&mut step.id);
            let tasks = step.definition.get_mut("tasks");
            for task in tasks
                .and_then(|tasks| tasks.as_array_mut())
                .into_iter()
                .flatten()
            {
                if let Some(id) = task["task_id"].as_str() {
                    task["task_id"] = format!("{call}/{id}").into();
                }
                task["workflow_id"] = run.to_string().into();
            }
        }
        self
    }
}

fn mask(text: &mut String) {
    if secret::concerns(text) {
        *text = secret::mask(text).into_owned();
    }
}

fn mask_json(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => mask(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(mask_json),
        serde_json::Value::Object(map) => map.values_mut().for_each(mask_json),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}
