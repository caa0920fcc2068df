//! Recursion that cannot end: workflows that call themselves, tasks that fan out to themselves.

use super::Checker;
use super::flow::reach;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::all_steps;
use crate::graph::{
    Body, CallTarget, Dialect, Graph, Kind, Literal, Node, Runner, Target, Template,
};

/// The workflow, then its tasks in order.
const WORKFLOW: usize = 0;

/// The node that leads from one body into another whatever happens, and which body that is.
type Entry = (u16, usize);

impl<'d> Checker<'d> {
    /// Bodies that lead into themselves again on every way through them.
    pub(super) fn recursion(&mut self, graph: &Graph) {
        let endless = endless(graph);
        let mut told = vec![false; endless.len()];
        for start in 0..endless.len() {
            // An endless body leads to an endless one, and so into a circle.
            let mut trail: Vec<usize> = Vec::new();
            let mut here = start;
            while let (Some((_, next)), false) = (endless[here], trail.contains(&here)) {
                trail.push(here);
                here = next;
            }
            let Some(first) = trail.iter().position(|body| *body == here) else {
                continue;
            };
            let circle = &trail[first..];
            if circle.iter().any(|body| told[*body]) {
                continue;
            }
            circle.iter().for_each(|body| told[*body] = true);
            self.endless(graph, circle, &endless);
        }
    }

    fn endless(&mut self, graph: &Graph, circle: &[usize], endless: &[Option<Entry>]) {
        let document = self.document;
        let Some(&body) = circle.first() else {
            return;
        };
        let steps = match body.checked_sub(1) {
            None => &document.steps,
            Some(task) => &document.tasks[task].steps,
        };
        let node = endless[body].map(|(node, _)| usize::from(node));
        let Some(step) = node.and_then(|node| all_steps(steps).get(node).copied()) else {
            return;
        };
        let name = |body: usize| match body.checked_sub(1) {
            None => graph.name.as_ref(),
            Some(task) => graph.tasks[task].name.as_ref(),
        };
        let here = name(body);
        let finding = Diagnostic::new(Code::EndlessRecursion, step.head);
        self.report(match (body, circle) {
            (WORKFLOW, [_]) => finding
                .message(format!("every way through `{here}` calls it again"))
                .label("this call cannot be avoided")
                .help("call it under a condition that ends"),
            (_, [_]) => finding
                .message(format!("every way through the task `{here}` runs it again"))
                .label("this step cannot be avoided, and its list is never empty")
                .help("run it under a condition that ends, or over items that become none"),
            _ => {
                let mut names: Vec<&str> = circle.iter().map(|body| name(*body)).collect();
                names.push(here);
                finding
                    .message(format!(
                        "every way through `{here}` leads to it again: {}",
                        names.join(" → ")
                    ))
                    .label("this step cannot be avoided")
                    .help("lead on under a condition that ends, or over items that become none")
            }
        });
    }
}

/// For each body that cannot end, the first step that leads into another such body.
fn endless(graph: &Graph) -> Vec<Option<Entry>> {
    let bodies: Vec<&Body> = std::iter::once(&graph.body)
        .chain(graph.tasks.iter().map(|task| &task.body))
        .collect();
    let mut ends = vec![false; bodies.len()];
    // A body ends if a way through it leads into no body that does not.
    loop {
        let found = (0..bodies.len()).find(|at| {
            let lost = |node: &Node| entered(graph, node).is_some_and(|body| !ends[body]);
            !ends[*at] && has_way(bodies[*at], lost)
        });
        match found {
            Some(body) => ends[body] = true,
            None => break,
        }
    }
    let entry = |at: usize| -> Option<Entry> {
        let body = bodies[at];
        let lost = |at: u16| {
            let node = body.nodes.get(usize::from(at))?;
            entered(graph, node).filter(|body| !ends[*body])
        };
        let reached = reach(body, body.entry, |at| lost(at).is_none());
        let entries = reached.into_iter().filter_map(|at| Some((at, lost(at)?)));
        entries.min().filter(|_| !ends[at])
    };
    (0..bodies.len()).map(entry).collect()
}

/// Whether some way leads through a body around the nodes from which none does.
fn has_way(body: &Body, lost: impl Fn(&Node) -> bool) -> bool {
    let passes = |at: u16| {
        let node = body.nodes.get(usize::from(at));
        node.is_some_and(|node| !lost(node))
    };
    let completes = |at: &u16| {
        let node = body.nodes.get(usize::from(*at));
        node.is_some_and(|node| node.edges.iter().any(|edge| edge.to == Target::Complete))
    };
    body.entry == Target::Complete
        || reach(body, body.entry, passes)
            .iter()
            .any(|at| passes(*at) && completes(at))
}

/// The body that a node leads into whatever happens.
fn entered(graph: &Graph, node: &Node) -> Option<usize> {
    if node.when.is_some() {
        return None;
    }
    match &node.kind {
        Kind::Call(call) => match &call.target {
            CallTarget::Name(Template::Literal(Literal::Str(name))) if *name == graph.name => {
                Some(WORKFLOW)
            }
            _ => None,
        },
        // An agent that gets the whole item runs no step of the task here.
        Kind::FanOut(fan) => match &fan.runner {
            Runner::Agent(_) => None,
            Runner::Host | Runner::SubAgent => {
                let task = usize::from(fan.task);
                // A task that does not exist has its own finding.
                (task < graph.tasks.len() && has_items(&fan.items)).then_some(task + 1)
            }
        },
        _ => None,
    }
}

/// Whether a list has items, whatever happens.
fn has_items(items: &Template) -> bool {
    match items {
        Template::Literal(Literal::List(items)) => !items.is_empty(),
        Template::List(items) => !items.is_empty(),
        Template::Expression(expression) => {
            let spreads = expression.dialect == Dialect::Js && expression.source.contains("...");
            !spreads && is_list(&expression.source)
        }
        Template::Literal(_)
        | Template::Text(_)
        | Template::Command(_)
        | Template::Pattern(_)
        | Template::Map(_) => false,
    }
}

/// Whether an expression is one pair of brackets with something in it. A bracket inside a text
/// may hide that, and then nothing is said.
fn is_list(source: &str) -> bool {
    let Some(inner) = source
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        return false;
    };
    let mut open = 0_usize;
    let balanced = inner.chars().all(|c| match c {
        '[' => {
            open += 1;
            true
        }
        ']' => {
            let closes = open > 0;
            open = open.saturating_sub(1);
            closes
        }
        _ => true,
    });
    balanced && open == 0 && !inner.trim().is_empty()
}
