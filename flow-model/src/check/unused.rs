//! Things that are declared and that nothing uses.

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Act, Field, Step, all_steps};
use crate::source::Spanned;

/// State fields that the engine itself writes and a definition may declare for others to read.
pub(super) const KEPT: &[&str] = &[
    "steps_completed",
    "steps_failed",
    "retry_counts",
    "last_error",
];

impl<'d> Checker<'d> {
    pub(super) fn unused(&mut self) {
        let document = self.document;
        self.inputs(
            0,
            document.inputs.as_deref().unwrap_or_default(),
            "workflow",
        );
        for (index, task) in document.tasks.iter().enumerate() {
            if !task.imported && !self.mentioned(&task.name.value) {
                self.inputs(
                    index + 1,
                    task.inputs.as_deref().unwrap_or_default(),
                    "task",
                );
            }
        }
        self.state();
        self.results();
        self.tasks();
    }

    fn inputs(&mut self, unit: usize, fields: &'d [Field<'d>], noun: &str) {
        for field in fields {
            let name = &field.name.value;
            // Agents get a task's inputs as they are, read by a template or not.
            let handed_out = unit > 0 && self.handed_out(unit - 1);
            if !self.uses.reads_input(unit, name) && !self.mentioned(name) && !handed_out {
                self.report(
                    Diagnostic::new(Code::UnusedInput, field.name.span)
                        .message(format!("nothing in the {noun} reads the input `{name}`"))
                        .help(format!("read it as `inputs.{name}`, or drop it")),
                );
            }
        }
    }

    fn handed_out(&self, task: usize) -> bool {
        let name = &self.document.tasks[task].name.value;
        all_steps(&self.document.steps).into_iter().any(|step| {
            matches!(&step.act, Act::FanOut { task, agent: Some(agent), .. }
                if task.value == *name && agent.value != "@task")
        })
    }

    fn mentioned(&self, name: &str) -> bool {
        self.lost.mentions(name)
    }

    fn state(&mut self) {
        let document = self.document;
        let has_outputs = !document.outputs.is_empty();
        let main = all_steps(&document.steps);
        let shared = document.tasks.iter().filter(|task| task.shares_state);
        let shared: Vec<&'d Step<'d>> = shared.flat_map(|task| all_steps(&task.steps)).collect();
        let failing = all_steps(&document.on_error.steps);
        let writes = |name: &str| {
            let mut steps = main.iter().chain(&shared).chain(&failing);
            steps.any(|step| {
                let fields = step.writes.iter().chain(&step.error_writes);
                fields
                    .map(|write| write.path.text)
                    .any(|path| starts_with(path, name))
            })
        };
        for field in &document.state {
            let name = &field.name.value;
            let kept = KEPT.contains(&name.as_str()) || self.collects(name);
            let read = self.uses.reads_field(0, name) || self.mentioned(name);
            // Without `outputs` the state is the result, so what is written is used.
            if !read && !kept && (has_outputs || !writes(name)) {
                self.unused_field(&field.name);
            }
        }
        for (index, task) in document.tasks.iter().enumerate() {
            for field in &task.state {
                let name = &field.name.value;
                let space = if task.shares_state { 0 } else { index + 1 };
                let written = all_steps(&task.steps)
                    .into_iter()
                    .flat_map(|step| &step.writes)
                    .any(|write| starts_with(write.path.text, name));
                let read = self.uses.reads_field(space, name) || self.mentioned(name);
                if !read && !written && !task.imported {
                    self.unused_field(&field.name);
                }
            }
        }
    }

    /// Whether errors are collected in a field: for whoever looks at the run, read or not.
    fn collects(&self, name: &str) -> bool {
        let steps = all_steps(&self.document.steps);
        let children = steps.iter().filter_map(|step| match &step.act {
            Act::FanOut { collect_to, .. } => *collect_to,
            _ => None,
        });
        let mut paths = self
            .document
            .on_error
            .collect_to
            .into_iter()
            .chain(children);
        paths.any(|tree| tree.as_str().is_some_and(|path| starts_with(path, name)))
    }

    fn unused_field(&mut self, name: &'d Spanned<String>) {
        self.report(
            Diagnostic::new(Code::UnusedState, name.span)
                .message(format!("nothing reads the state field `{}`", name.value))
                .help("read it, return it under `outputs`, or drop it"),
        );
    }

    /// Results that are lost because `outputs` does not return them.
    fn results(&mut self) {
        let document = self.document;
        if document.outputs.is_empty() {
            return;
        }
        let declared: Vec<&str> = document
            .state
            .iter()
            .map(|f| f.name.value.as_str())
            .collect();
        let mut told: Vec<&str> = Vec::new();
        for step in all_steps(&document.steps) {
            for write in step.writes.iter().filter(|write| write.value.is_none()) {
                let dialect = document.dialect;
                let Some((_, field)) = super::scope::static_field(write.path.text, dialect) else {
                    continue;
                };
                let read = self.uses.reads_field(0, field) || self.mentioned(field);
                if read || declared.contains(&field) || told.contains(&field) {
                    continue;
                }
                told.push(field);
                self.report(
                    Diagnostic::new(Code::UnusedOutput, write.path.span)
                        .message(format!(
                            "the result in `{field}` is neither read nor returned"
                        ))
                        .help("add it to `outputs`, or drop `output_to`"),
                );
            }
        }
    }

    fn tasks(&mut self) {
        let document = self.document;
        if document.form.is_none() {
            return;
        }
        let tasks = document
            .tasks
            .iter()
            .flat_map(|task| all_steps(&task.steps));
        let named: Vec<&str> = all_steps(&document.steps)
            .into_iter()
            .chain(tasks)
            .filter_map(|step| match &step.act {
                Act::FanOut { task, .. } => Some(task.value.as_str()),
                _ => None,
            })
            .collect();
        for task in &document.tasks {
            let name = task.name.value.as_str();
            if !named.contains(&name) && !task.imported && !self.mentioned(name) {
                self.report(
                    Diagnostic::new(Code::UnusedTask, task.name.span)
                        .message(format!("nothing runs the task `{name}`"))
                        .help("run it with `foreach`, or drop it"),
                );
            }
        }
    }
}

/// Whether a path writes into a field.
fn starts_with(path: &str, field: &str) -> bool {
    let rest = path
        .strip_prefix("raw.")
        .or_else(|| path.strip_prefix("state."))
        .unwrap_or(path);
    rest.strip_prefix(field)
        .is_some_and(|tail| tail.is_empty() || tail.starts_with('.'))
}
