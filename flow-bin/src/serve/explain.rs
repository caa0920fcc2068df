//! What a run of a workflow would do, for an agent that decides whether to start it.

use flow_model::expression::{self, Analysis};
use flow_model::graph::{
    Body, By, CallTarget, Expression, FanOut, Graph, Kind, Literal, Node, Outcome, Runner, Target,
    Template, ToolRef,
};
use flow_model::tools::{ExplainWorkflowResponse, PlannedStep};
use flow_runtime::value::Value as Given;
use serde_json::Value;

use crate::run::plan;

/// The plan of a workflow with these inputs; `find` knows the workflows that it calls.
pub(super) fn explained(
    graph: &Graph,
    inputs: &Given,
    find: impl Fn(&str) -> Option<Graph>,
) -> ExplainWorkflowResponse {
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
        required_tools: tools(graph, find),
        steps,
    }
}

/// The bodies of a workflow, in the order in which a plan lists their steps.
fn bodies(graph: &Graph) -> impl Iterator<Item = &Body> {
    plan::parts(graph).into_iter().map(|(_, body)| body)
}

/// Every step.
fn nodes(graph: &Graph) -> impl Iterator<Item = &Node> {
    bodies(graph).flat_map(|body| body.nodes.iter())
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
    let mut inside = node;
    while let Some((at, container)) =
        around.and_then(|at| Some((at, body.nodes.get(usize::from(at))?)))
    {
        match &container.kind {
            Kind::Condition { test } => {
                let (id, test) = (&container.id, test.source.trim());
                found.push(match is_otherwise(body, at, container, inside) {
                    true => format!("{id}: not ({test})"),
                    false => format!("{id}: {test}"),
                });
            }
            Kind::While { test, .. } => {
                found.push(format!("while {}: {}", container.id, test.source.trim()));
            }
            _ => {}
        }
        around = container.parent;
        inside = container;
    }
    found.reverse();
    found.extend(node.when.as_ref().map(|when| when.source.trim().to_owned()));
    found
}

/// Whether a step right inside a condition stands in its `else`: those steps come last, beginning
/// with the one that is reached when the condition does not hold.
fn is_otherwise(body: &Body, at: u16, condition: &Node, inside: &Node) -> bool {
    let Some(Target::Node(first)) = condition.next(Outcome::Else) else {
        return false;
    };
    let starts_here = body.nodes.get(usize::from(first));
    let mut otherwise = body.nodes.iter().skip(usize::from(first));
    starts_here.is_some_and(|node| node.parent == Some(at))
        && otherwise.any(|node| std::ptr::eq(node, inside))
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
            templates.extend([&call.inputs, &call.variables]);
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
    let writes = node.writes.iter().chain(node.error_writes.iter());
    templates.extend(writes.filter_map(|write| write.value.as_ref()));
    let written = written(graph);
    while let Some(template) = templates.pop() {
        match template {
            Template::Literal(_) => {}
            Template::Expression(expression) => expressions.push((expression, false)),
            Template::Text(expression)
            | Template::Command(expression)
            | Template::Pattern(expression) => {
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
                [name, ..] if is_field(graph, &written, name) => *name,
                _ => continue,
            };
            if !found.iter().any(|known| known == field) {
                found.push(field.to_owned());
            }
        }
    }
    found
}

fn is_field(graph: &Graph, written: &[&str], name: &str) -> bool {
    graph.state.iter().any(|initial| initial.name == name)
        || graph.computed.iter().any(|field| field.name == name)
        || written.contains(&name)
}

/// Fields that some step writes: that declares them too.
fn written(graph: &Graph) -> Vec<&str> {
    let writes = nodes(graph).flat_map(|node| node.writes.iter().chain(node.error_writes.iter()));
    let fields = writes.filter_map(|write| match write.path.segments.first() {
        Some(Template::Literal(Literal::Str(field))) => Some(field.as_ref()),
        _ => None,
    });
    fields.collect()
}

/// Tools that are not flow's own, of the workflow and of those it calls, each once.
fn tools(graph: &Graph, find: impl Fn(&str) -> Option<Graph>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut called: Vec<String> = vec![graph.name.to_string()];
    add_tools(graph, &mut found, &mut called);
    let mut looked_into = 1;
    while let Some(name) = called.get(looked_into) {
        looked_into += 1;
        if let Some(graph) = find(name) {
            add_tools(&graph, &mut found, &mut called);
        }
    }
    found
}

/// The tools of one workflow, and the workflows it calls by names that are known.
fn add_tools(graph: &Graph, found: &mut Vec<String>, called: &mut Vec<String>) {
    for node in nodes(graph) {
        let (name, known) = match &node.kind {
            Kind::Tool { tool, .. } => match tool {
                ToolRef::Builtin(_) => continue,
                ToolRef::Host(name) => (name.to_string(), &mut *found),
                ToolRef::Declared(index) => match graph.tools.get(usize::from(*index)) {
                    Some(declared) => (declared.name.to_string(), &mut *found),
                    None => continue,
                },
            },
            Kind::Call(call) => match &call.target {
                CallTarget::Name(Template::Literal(Literal::Str(name))) => {
                    (name.to_string(), &mut *called)
                }
                CallTarget::Name(_) | CallTarget::Definition(_) => continue,
            },
            _ => continue,
        };
        if !known.contains(&name) {
            known.push(name);
        }
    }
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
    // What a failure leads to is not expected.
    let is_expected = |step: &&PlannedStep| {
        let part = step.task.as_deref().unwrap_or_default();
        part.rsplit('/').next() != Some(plan::ON_ERROR)
    };
    let by = |who: &str| {
        let expected = steps.iter().filter(is_expected);
        expected.filter(|step| step.done_by == who).count()
    };
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

#[cfg(test)]
mod tests {
    use flow_model::compile;
    use flow_model::loader::NoLoader;
    use flow_model::source::Source;

    use super::*;

    fn graph(definition: &str) -> Graph {
        let compiled = compile(Source::new("main.yaml", definition), &NoLoader);
        compiled.into_graph().expect("it has no errors")
    }

    fn step<'a>(plan: &'a ExplainWorkflowResponse, id: &str) -> &'a PlannedStep {
        let mut steps = plan.steps.iter();
        steps
            .find(|step| step.step_id == id)
            .expect("it is planned")
    }

    #[test]
    fn a_step_of_an_else_needs_the_opposite() {
        let definition = "inputs: {deploy: boolean, fast: boolean}
steps:
  - id: which
    type: condition
    if: '{{ inputs.deploy }}'
    then:
      - {id: yes, type: shell, command: make}
    else:
      - {id: no, type: shell, command: make}
      - id: inner
        type: condition
        if: '{{ inputs.fast }}'
        then:
          - {id: quick, type: shell, command: make}
        else:
          - {id: slow, type: shell, command: make}
  - {id: after, type: shell, command: make}
";
        let plan = explained(&graph(definition), &Given::Null, |_| None);
        assert_eq!(step(&plan, "yes").conditions, ["which: inputs.deploy"]);
        assert_eq!(step(&plan, "no").conditions, ["which: not (inputs.deploy)"]);
        assert_eq!(
            step(&plan, "slow").conditions,
            ["which: not (inputs.deploy)", "inner: not (inputs.fast)"]
        );
        assert_eq!(step(&plan, "after").conditions, [""; 0]);
    }

    #[test]
    fn tools_of_called_workflows_are_required_too_and_calls_in_circles_end() {
        let parent = "name: parent
tools: {own: {}}
steps:
  - {type: mcp_call, tool: own}
  - {type: call, workflow: child}
";
        let child = "name: child
tools: {far: {}, own: {}, sweep: {}}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps: [{type: mcp_call, tool: far}, {type: mcp_call, tool: own}]
    on_error: {steps: [{type: mcp_call, tool: sweep}]}
steps:
  - {type: foreach, items: [1], task: one}
  - {type: call, workflow: parent}
";
        let find = |name: &str| (name == "child").then(|| graph(child));
        let plan = explained(&graph(parent), &Given::Null, find);
        assert_eq!(plan.required_tools, ["own", "far", "sweep"]);
    }

    #[test]
    fn a_plan_has_what_may_be_run_and_nothing_else() {
        let definition = "state: {n: 0, names: [], one: {}}
tasks:
  used:
    inputs: {n: {type: integer, required: true}}
    steps: [{id: in, type: foreach, items: [1], task: inner}]
    on_error: {steps: [{id: sweep, type: delegate, instructions: Sweep.}]}
  inner: {inputs: {n: {type: integer, required: true}}, steps: [{id: deep, type: shell_command, command: make}]}
  unused: {inputs: {n: {type: integer, required: true}}, steps: [{id: never, type: shell, command: make}]}
steps:
  - id: write
    type: set_state
    updates:
      - {path: n, operation: increment}
      - {path: names, operation: append, value: a}
      - {path: one, operation: merge, value: {b: 1}}
  - {id: all, type: foreach, items: [1], task: used}
";
        let plan = explained(&graph(definition), &Given::Null, |_| None);
        let steps = plan.steps.iter();
        let ids: Vec<&str> = steps.map(|step| step.step_id.as_str()).collect();
        assert_eq!(ids, ["write", "all", "in", "sweep", "deep"]);
        assert_eq!(
            step(&plan, "write").does,
            r#"n += 1, names gets one more item: "a", one is merged with {"b":1}"#
        );
        assert_eq!(step(&plan, "sweep").task.as_deref(), Some("used/on_error"));
        assert_eq!(plan.estimated_duration, "as long as its commands take");
    }

    #[test]
    fn a_field_that_only_a_write_declares_is_a_dependency() {
        let definition = "steps:
  - {id: look, type: shell, command: ls, output_format: lines, output_to: files}
  - {id: tell, type: shell, command: 'echo {{ files }}'}
";
        let plan = explained(&graph(definition), &Given::Null, |_| None);
        assert_eq!(step(&plan, "tell").dependencies, ["files"]);
    }
}
