//! What a run of a workflow would do, for an agent that decides whether to start it.

use flow_model::expression::{self, Analysis};
use flow_model::graph::{
    Body, By, CallTarget, Expression, FanOut, Graph, Kind, Node, Runner, Template, ToolRef,
};
use flow_model::tools::{ExplainWorkflowResponse, PlannedStep};
use flow_runtime::value::Value as Given;
use serde_json::Value;

use crate::run::plan;

/// The plan of a workflow with these inputs.
pub(super) fn explained(graph: &Graph, inputs: &Given) -> ExplainWorkflowResponse {
    let mut plan = plan::as_json(graph, inputs);
    let shown = plan["inputs"].take();
    let planned = plan["steps"].as_array().cloned().unwrap_or_default();
    let nodes = bodies(graph).flat_map(|body| body.nodes.iter().map(move |node| (body, node)));
    let steps = planned.iter().zip(nodes);
    let steps: Vec<PlannedStep> = steps
        .map(|(planned, (body, node))| step(graph, planned, body, node))
        .collect();
    ExplainWorkflowResponse {
        workflow: graph.name.to_string(),
        inputs: shown,
        estimated_duration: duration(graph, &steps),
        required_tools: tools(graph),
        steps,
    }
}

/// The bodies of a workflow, in the order in which a plan lists their steps.
fn bodies(graph: &Graph) -> impl Iterator<Item = &Body> {
    let tasks = graph.tasks.iter().map(|task| &task.body);
    let on_error = std::iter::once(&graph.on_error.body);
    std::iter::once(&graph.body).chain(tasks).chain(on_error)
}

fn step(graph: &Graph, planned: &Value, body: &Body, node: &Node) -> PlannedStep {
    let text = |field: &str| planned[field].as_str().unwrap_or_default().to_owned();
    PlannedStep {
        step_id: text("id"),
        kind: text("type"),
        task: planned["task"].as_str().map(str::to_owned),
        does: text("does"),
        known: planned["known"].as_bool().unwrap_or_default(),
        done_by: done_by(node).to_owned(),
        conditions: conditions(body, node),
        estimated_sub_agents: match &node.kind {
            Kind::FanOut(fan) => sub_agents(fan, &text("does")),
            _ => None,
        },
        dependencies: reads(graph, node),
    }
}

/// Who does a step when an agent drives the run.
fn done_by(node: &Node) -> &'static str {
    match &node.kind {
        Kind::Shell(shell) => match shell.by {
            By::Server => "server",
            By::Host | By::Agent => "agent",
        },
        Kind::Tool { tool, .. } => match tool {
            ToolRef::Builtin(_) => "server",
            ToolRef::Declared(_) | ToolRef::Host(_) => "agent",
        },
        Kind::Prompt(_) => "person, asked by the agent",
        Kind::Delegate { .. } => "agent",
        Kind::FanOut(fan) => match fan.runner {
            Runner::Host => "server",
            Runner::SubAgent | Runner::Agent(_) => "sub-agents",
        },
        Kind::Condition { .. }
        | Kind::While { .. }
        | Kind::Loop { .. }
        | Kind::Jump(_)
        | Kind::Goto { .. }
        | Kind::Return { .. }
        | Kind::SetState
        | Kind::Call(_)
        | Kind::Wait { .. } => "server",
    }
}

/// What must hold for a step to be reached: the containers it stands in, and its own `when`.
fn conditions(body: &Body, node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    let mut around = node.parent;
    while let Some(container) = around.and_then(|at| body.nodes.get(usize::from(at))) {
        match &container.kind {
            Kind::Condition { test } => {
                found.push(format!("{}: {}", container.id, test.source.trim()));
            }
            Kind::While { test, .. } => {
                found.push(format!("while {}: {}", container.id, test.source.trim()));
            }
            _ => {}
        }
        around = container.parent;
    }
    found.reverse();
    found.extend(node.when.as_ref().map(|when| when.source.trim().to_owned()));
    found
}

/// How many children a fan-out over known items has: the plan shows the list then.
fn sub_agents(fan: &FanOut, does: &str) -> Option<u64> {
    if !fan.is_delegated() {
        return None;
    }
    let (_, items) = does.split_once(" for each of ")?;
    let items: Vec<Value> = serde_json::from_str(items).ok()?;
    Some(items.len() as u64)
}

/// The state fields a step reads: those it says, or those its templates name.
fn reads(graph: &Graph, node: &Node) -> Vec<String> {
    if let Some(needs) = &node.needs_state {
        return needs.iter().map(ToString::to_string).collect();
    }
    let mut found = Vec::new();
    let mut expressions: Vec<(&Expression, bool)> = Vec::new();
    let mut templates: Vec<&Template> = Vec::new();
    expressions.extend(node.when.as_ref().map(|when| (when, false)));
    match &node.kind {
        Kind::Condition { test } | Kind::While { test, .. } => expressions.push((test, false)),
        Kind::Loop { items } => templates.push(items),
        Kind::FanOut(fan) => templates.push(&fan.items),
        Kind::Return { value } => templates.extend(value),
        Kind::Call(call) => {
            let (CallTarget::Name(target) | CallTarget::Definition(target)) = &call.target;
            templates.push(target);
            templates.extend(call.inputs.iter().map(|(_, value)| value));
        }
        Kind::Shell(shell) => {
            templates.push(&shell.command);
            templates.extend(shell.env.iter().map(|(_, value)| value));
        }
        Kind::Tool { parameters, .. } => templates.push(parameters),
        Kind::Prompt(prompt) => {
            templates.push(&prompt.message);
            templates.extend(&prompt.options);
        }
        Kind::Wait { seconds, .. } => templates.push(seconds),
        Kind::Delegate { instructions, .. } => templates.push(instructions),
        Kind::Jump(_) | Kind::Goto { .. } | Kind::SetState => {}
    }
    if let Kind::SetState = node.kind {
        templates.extend(node.writes.iter().filter_map(|write| write.value.as_ref()));
    }
    while let Some(template) = templates.pop() {
        match template {
            Template::Literal(_) => {}
            Template::Expression(expression) => expressions.push((expression, false)),
            Template::Text(expression) | Template::Command(expression) => {
                expressions.push((expression, true));
            }
            Template::List(items) => templates.extend(items.iter()),
            Template::Map(entries) => templates.extend(entries.iter().map(|(_, value)| value)),
        }
    }
    for (expression, is_text) in expressions {
        let analysis: Analysis = if is_text {
            expression::template(&expression.source, expression.dialect)
        } else {
            expression::expression(&expression.source, expression.dialect)
        };
        for read in analysis.reads {
            let path: Vec<&str> = read.path.iter().map(String::as_str).collect();
            let field = match path.as_slice() {
                ["state" | "raw" | "computed" | "this", field, ..] => *field,
                [name, ..] if is_field(graph, name) => *name,
                _ => continue,
            };
            if !found.iter().any(|known| known == field) {
                found.push(field.to_owned());
            }
        }
    }
    found
}

fn is_field(graph: &Graph, name: &str) -> bool {
    graph.state.iter().any(|initial| initial.name == name)
        || graph.computed.iter().any(|field| field.name == name)
}

/// Tools that are not flow's own, each once.
fn tools(graph: &Graph) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for node in bodies(graph).flat_map(|body| body.nodes.iter()) {
        let Kind::Tool { tool, .. } = &node.kind else {
            continue;
        };
        let name = match tool {
            ToolRef::Builtin(_) => continue,
            ToolRef::Host(name) => name.to_string(),
            ToolRef::Declared(index) => {
                let declared = graph.tools.get(usize::from(*index));
                declared.map_or(String::new(), |tool| tool.name.to_string())
            }
        };
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// What is known of how long a run takes: its waits, and what it asks of others.
fn duration(graph: &Graph, steps: &[PlannedStep]) -> String {
    let nodes = || bodies(graph).flat_map(|body| body.nodes.iter());
    let waits = nodes().filter_map(|node| match &node.kind {
        Kind::Wait {
            seconds: Template::Literal(literal),
            ..
        } => match Given::from(literal) {
            Given::Int(seconds) => Some(seconds as f64),
            Given::Float(seconds) => Some(seconds),
            _ => None,
        },
        _ => None,
    });
    let waited: f64 = waits.sum();
    let by = |who: &str| steps.iter().filter(|step| step.done_by == who).count();
    let people = by("person, asked by the agent");
    let agents = by("agent") + by("sub-agents");
    let mut parts = Vec::new();
    if waited > 0.0 {
        parts.push(format!("{waited} s of waiting"));
    }
    for (count, what) in [(agents, "for agents"), (people, "for a person")] {
        match count {
            0 => {}
            1 => parts.push(format!("1 step {what}")),
            count => parts.push(format!("{count} steps {what}")),
        }
    }
    if let Some(limit) = graph.limits.timeout {
        parts.push(format!("at most {limit} s of the server's own time"));
    }
    if parts.is_empty() {
        "as long as its commands take".to_owned()
    } else {
        parts.join(", ")
    }
}
