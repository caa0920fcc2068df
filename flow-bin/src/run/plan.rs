//! `flow run --dry-run`: what would happen, as far as that is known before anything has.

use std::cell::Cell;
use std::sync::Arc;

use anyhow::Result;
use flow_model::graph::{
    Body, CallTarget, Expression, Field, Graph, Kind, Literal, Node, Operation, PromptKind,
    Template, ToolRef,
};
use flow_model::picture;
use flow_runtime::expression::{
    Context, Engine, ErrorKind, EvalError, Instant, Scope, View, truth,
};
use flow_runtime::run::as_written;
use flow_runtime::value::Value;
use serde_json::json;

use crate::cli::RunFormat;
use crate::exit::Exit;
use crate::output::{Cell as Column, Output, Paint, plain, table};

/// Words that stand for something that differs from run to run.
const FLEETING: [&str; 5] = ["now", "uuid", "Date", "random", "run."];

/// Prints the plan of a run.
pub(super) fn show(
    graph: &Graph,
    inputs: &Value,
    format: RunFormat,
    output: &mut Output,
) -> Result<Exit> {
    match format {
        RunFormat::Text => {}
        RunFormat::Json => {
            output.line(format_args!("{:#}", as_json(graph, inputs)))?;
            return Ok(Exit::Done);
        }
        RunFormat::Jsonl => {
            output.line(as_json(graph, inputs))?;
            return Ok(Exit::Done);
        }
    }
    let plan = Plan {
        graph,
        inputs,
        engine: Engine::new(),
    };
    let steps = plan.steps();
    let shown_inputs = shown_inputs(graph, inputs);
    let picture = picture::ascii(graph);
    output.line(picture.trim_end())?;
    if let Some(map) = shown_inputs.as_object().filter(|map| !map.is_empty()) {
        output.line("\nInputs")?;
        let rows: Vec<Vec<Column>> = map
            .iter()
            .map(|(name, value)| {
                let value = value.to_string();
                vec![
                    Column::new("", plain),
                    Column::new(name, Paint::cyan),
                    Column::new(&value, plain),
                ]
            })
            .collect();
        output.print(table(&rows, output.paint, output.width()))?;
    }
    output.line("\nSteps")?;
    let rows: Vec<Vec<Column>> = steps
        .iter()
        .flat_map(|step| {
            let id = match &step.part {
                Some(part) => format!("{part}/{}", step.node.id),
                None => step.node.id.to_string(),
            };
            let look = if step.does.known { plain } else { Paint::dim };
            // A command of several lines is shown as such.
            let mut lines = step.does.text.trim_end().lines();
            let first = vec![
                Column::new("", plain),
                Column::new(&id, Paint::cyan),
                Column::new(step.node.kind.word(), plain),
                Column::new(lines.next().unwrap_or_default(), look),
            ];
            let others = lines.map(move |line| {
                let mut row: Vec<Column> = ["", "", ""].map(|it| Column::new(it, plain)).into();
                row.push(Column::new(line, look));
                row
            });
            std::iter::once(first).chain(others)
        })
        .collect();
    output.print(table(&rows, output.paint, output.width()))?;
    output.flush()?;
    output.tell("nothing was run; what depends on results is shown as it is written");
    Ok(Exit::Done)
}

/// The plan of a run.
pub(crate) fn as_json(graph: &Graph, inputs: &Value) -> serde_json::Value {
    let plan = Plan {
        graph,
        inputs,
        engine: Engine::new(),
    };
    let steps = plan.steps();
    let steps = steps.iter().map(|step| {
        json!({
            "task": step.part,
            "id": step.node.id,
            "type": step.node.kind.word(),
            "does": step.does.text,
            "known": step.does.known,
        })
    });
    json!({
        "workflow": graph.name,
        "inputs": shown_inputs(graph, inputs),
        "steps": steps.collect::<Vec<_>>(),
    })
}

/// The inputs of a run, without secrets.
pub(crate) fn shown_inputs(graph: &Graph, inputs: &Value) -> serde_json::Value {
    let mut shown = inputs.to_json();
    let fields = graph.inputs.as_deref().unwrap_or_default();
    for field in fields.iter().filter(|field| field.secret) {
        let value = shown.get_mut(field.name.as_ref());
        if let Some(value) = value.filter(|it| !it.is_null()) {
            *value = "***".into();
        }
    }
    shown
}

/// What the failure steps of a workflow, and of its tasks, are called.
pub(crate) const ON_ERROR: &str = "on_error";

/// The parts of a workflow that a run may come to, in the order in which a plan has them: its own
/// steps, its tasks with their failure steps, its failure steps. An import may bring tasks along that
/// nothing runs.
pub(crate) fn parts(graph: &Graph) -> Vec<(Option<String>, &Body)> {
    let mut wanted = vec![false; graph.tasks.len()];
    let mut bodies = vec![&graph.body, &graph.on_error.body];
    while let Some(body) = bodies.pop() {
        for node in body.nodes.iter() {
            let Kind::FanOut(fan) = &node.kind else {
                continue;
            };
            let task = usize::from(fan.task);
            if let (Some(is_wanted @ false), Some(task)) =
                (wanted.get_mut(task), graph.tasks.get(task))
            {
                *is_wanted = true;
                bodies.push(&task.body);
                bodies.extend(task.on_error.as_ref().map(|on_error| &on_error.body));
            }
        }
    }
    let mut parts = vec![(None, &graph.body)];
    let tasks = graph.tasks.iter().zip(wanted);
    for (task, _) in tasks.filter(|(_, is_wanted)| *is_wanted) {
        parts.push((Some(task.name.to_string()), &task.body));
        if let Some(on_error) = &task.on_error {
            parts.push((Some(format!("{}/{ON_ERROR}", task.name)), &on_error.body));
        }
    }
    parts.push((Some(ON_ERROR.to_owned()), &graph.on_error.body));
    parts
}

struct Plan<'a> {
    graph: &'a Graph,
    inputs: &'a Value,
    engine: Engine,
}

struct Planned<'a> {
    /// The task, or the failure steps, it belongs to.
    part: Option<String>,
    node: &'a Node,
    does: Known,
}

/// A text, and whether everything in it is known.
struct Known {
    text: String,
    known: bool,
}

impl<'a> Plan<'a> {
    fn steps(&self) -> Vec<Planned<'a>> {
        let mut steps = Vec::new();
        for (part, body) in parts(self.graph) {
            for node in body.nodes.iter() {
                // A task's inputs are its items', which are not known.
                let inputs = part.is_none().then_some(self.inputs);
                let does = self.does(node, inputs);
                steps.push(Planned {
                    part: part.clone(),
                    node,
                    does,
                });
            }
        }
        steps
    }

    fn fields(&self) -> &[Field] {
        self.graph.inputs.as_deref().unwrap_or_default()
    }

    fn does(&self, node: &Node, inputs: Option<&Value>) -> Known {
        let mut line = Line {
            plan: self,
            inputs,
            text: String::new(),
            known: true,
        };
        if let Some(when) = &node.when {
            line.say("when ");
            line.test(when);
            line.say(": ");
        }
        match &node.kind {
            Kind::Condition { test } => {
                line.say("if ");
                line.test(test);
            }
            Kind::While { test, bound } => {
                line.say("while ");
                line.test(test);
                line.say(&format!(", at most {} times", bound.times));
            }
            Kind::Loop { items } => {
                line.say("for each of ");
                line.value(items);
            }
            Kind::FanOut(fan) => {
                let task = self.graph.tasks.get(usize::from(fan.task));
                line.say(task.map_or("task", |task| &task.name));
                line.say(" for each of ");
                line.value(&fan.items);
            }
            Kind::Jump(_) => {}
            Kind::Goto { bound } => line.say(&format!("at most {} times", bound.times)),
            Kind::Return { value } => {
                if let Some(value) = value {
                    line.value(value);
                }
            }
            Kind::SetState => {
                for (index, write) in node.writes.iter().enumerate() {
                    if index > 0 {
                        line.say(", ");
                    }
                    for (index, segment) in write.path.segments.iter().enumerate() {
                        line.say(if index > 0 { "." } else { "" });
                        line.text(segment);
                    }
                    line.say(match write.operation {
                        Operation::Set => " = ",
                        Operation::Append => " gets one more item: ",
                        Operation::Increment => " += ",
                        Operation::Merge => " is merged with ",
                    });
                    match &write.value {
                        Some(value) => line.value(value),
                        // Only an increment can do without.
                        None => line.say("1"),
                    }
                }
            }
            Kind::Call(call) => {
                match &call.target {
                    CallTarget::Name(name) => line.text(name),
                    CallTarget::Definition(_) => line.say("a definition given inline"),
                }
                match &call.inputs {
                    Template::Map(inputs) => {
                        for (name, value) in inputs.iter() {
                            line.say(&format!(" {name}="));
                            line.value(value);
                        }
                    }
                    Template::Literal(Literal::Map(inputs)) => {
                        for (name, value) in inputs.iter() {
                            line.say(&format!(" {name}="));
                            line.value(&Template::Literal(value.clone()));
                        }
                    }
                    Template::Literal(Literal::Null) => {}
                    whole => {
                        line.say(" inputs=");
                        line.value(whole);
                    }
                }
            }
            Kind::Shell(shell) => {
                line.say("$ ");
                line.command(&shell.command);
            }
            Kind::Tool { tool, parameters } => {
                line.say(match tool {
                    ToolRef::Builtin(name) | ToolRef::Host(name) => name,
                    ToolRef::Declared(index) => {
                        let tool = self.graph.tools.get(usize::from(*index));
                        tool.map_or("tool", |tool| &tool.name)
                    }
                });
                line.say(" ");
                line.value(parameters);
            }
            Kind::Prompt(prompt) => {
                line.say(match prompt.kind {
                    PromptKind::Info => "tells: ",
                    PromptKind::Confirm => "asks yes or no: ",
                    PromptKind::Text => "asks: ",
                    PromptKind::Choice => "asks which: ",
                });
                line.text(&prompt.message);
            }
            Kind::Wait { seconds, .. } => {
                line.text(seconds);
                line.say(" seconds");
            }
            Kind::Delegate {
                instructions,
                agent,
                ..
            } => {
                line.say(&format!("to {}: ", agent.as_deref().unwrap_or("an agent")));
                line.text(instructions);
            }
        }
        Known {
            text: line.text,
            known: line.known,
        }
    }
}

/// A line of the plan as it is written.
struct Line<'p> {
    plan: &'p Plan<'p>,
    inputs: Option<&'p Value>,
    text: String,
    known: bool,
}

impl Line<'_> {
    fn say(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// What is known, or else the text as it is written.
    fn either(&mut self, known: Option<String>, written: impl FnOnce() -> String) {
        match known {
            Some(known) => self.text.push_str(&known),
            None => {
                self.known = false;
                self.text.push_str(&written());
            }
        }
    }

    fn evaluated<T>(
        &self,
        text: &str,
        work: impl FnOnce(&Engine, &Context<'_>) -> Result<T, EvalError>,
    ) -> Option<T> {
        if FLEETING.iter().any(|word| text.contains(word)) {
            return None;
        }
        let scope = OnlyInputs {
            plan: self.plan,
            inputs: self.inputs,
            strayed: Cell::new(false),
        };
        let instant = Instant::new(0, 0);
        let value = work(&self.plan.engine, &Context::new(&scope, &instant)).ok()?;
        (!scope.strayed.get()).then_some(value)
    }

    fn template(&self, template: &Template) -> Option<Value> {
        let text = as_written(template);
        self.evaluated(&text, |engine, context| engine.render(template, context))
    }

    fn test(&mut self, test: &Expression) {
        let known = self.evaluated(&test.source, |engine, context| {
            engine.eval_expression(test, context)
        });
        let known = known.map(|value| format!("{} ({})", test.source, truth(&value, test.dialect)));
        self.either(known, || test.source.to_string());
    }

    fn value(&mut self, template: &Template) {
        let known = self.template(template).map(|value| value.to_string());
        self.either(known, || as_written(template));
    }

    fn text(&mut self, template: &Template) {
        let known = self.template(template).map(|value| match value {
            Value::Str(text) => text.to_string(),
            other => other.to_string(),
        });
        self.either(known, || as_written(template));
    }

    fn command(&mut self, template: &Template) {
        let text = as_written(template);
        let known = self.evaluated(&text, |engine, context| {
            engine.render_command(template, context)
        });
        self.either(known, || text);
    }
}

/// Knows the inputs, and notices when anything else is wanted.
struct OnlyInputs<'a> {
    plan: &'a Plan<'a>,
    inputs: Option<&'a Value>,
    strayed: Cell<bool>,
}

impl Scope for OnlyInputs<'_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        match self.inputs {
            Some(inputs) if name == "inputs" => {
                let shown = inputs.as_map().map(|map| {
                    map.0.iter().map(|(name, value)| {
                        let is_secret = |field: &&Field| field.secret && field.name == **name;
                        match self.plan.fields().iter().find(is_secret) {
                            Some(_) if *value != Value::Null => (name, Value::text("***")),
                            _ => (name, value.clone()),
                        }
                    })
                });
                Some(Value::map(shown.into_iter().flatten()))
            }
            _ => {
                self.strayed.set(true);
                None
            }
        }
    }

    fn field(&self, _view: View, name: &str) -> Result<Option<Value>, EvalError> {
        self.strayed.set(true);
        let message = format!("`{name}` is not known yet");
        Err(EvalError::new(ErrorKind::Undefined, message))
    }

    fn fields(&self, _view: View) -> Vec<Arc<str>> {
        self.strayed.set(true);
        Vec::new()
    }
}
