//! Answers that were prepared in a file, held against the steps that there are.

use std::collections::BTreeSet;

use flow_model::graph::{CallTarget, Graph, Kind, Literal, Runner, Template};
use flow_model::suggest::nearest;

/// The steps of a workflow and of those it calls.
struct Steps {
    /// All of them.
    ids: BTreeSet<String>,
    /// Those that may ask something.
    asking: BTreeSet<String>,
    /// Whether there are others that nobody knows before they run.
    has_more: bool,
}

/// Warnings about answers to steps that do not exist; `find` knows the workflows that are called.
pub(crate) fn warnings(
    answered: &[String],
    graph: &Graph,
    find: impl Fn(&str) -> Option<Graph>,
) -> Vec<String> {
    if answered.is_empty() {
        return Vec::new();
    }
    let steps = Steps::of(graph, find);
    if steps.has_more {
        return Vec::new();
    }
    let unknown = answered.iter().filter(|step| !steps.has(step));
    let mut warnings: Vec<String> = unknown
        .map(|step| {
            let asking = steps.asking.iter().map(String::as_str);
            let near = match nearest(step, asking) {
                Some(near) => format!("; did you mean `{near}`?"),
                None if steps.asking.is_empty() => "; no step asks anything".to_owned(),
                None => {
                    let asking: Vec<String> =
                        steps.asking.iter().map(|id| format!("`{id}`")).collect();
                    format!("; those that ask: {}", asking.join(", "))
                }
            };
            format!("there is no step `{step}` to answer{near}")
        })
        .collect();
    warnings.sort();
    warnings
}

impl Steps {
    /// Whether a step may have this name: its id, after the items and calls it belongs to, and
    /// before a number where it comes up again.
    fn has(&self, name: &str) -> bool {
        let (unnumbered, _) = name.rsplit_once('~').unwrap_or((name, ""));
        [name, unnumbered].into_iter().any(|name| {
            let ends = name.match_indices('/').map(|(at, _)| &name[at + 1..]);
            ends.chain([name]).any(|id| self.ids.contains(id))
        })
    }

    fn of(graph: &Graph, find: impl Fn(&str) -> Option<Graph>) -> Self {
        let mut steps = Steps {
            ids: BTreeSet::new(),
            asking: BTreeSet::new(),
            has_more: false,
        };
        let mut called = vec![graph.name.to_string()];
        steps.add(graph, &mut called);
        let mut looked_into = 1;
        while let Some(name) = called.get(looked_into) {
            looked_into += 1;
            match find(name) {
                Some(graph) => steps.add(&graph, &mut called),
                None => steps.has_more = true,
            }
        }
        steps
    }

    fn add(&mut self, graph: &Graph, called: &mut Vec<String>) {
        for node in graph.nodes() {
            let id = node.id.to_string();
            match &node.kind {
                Kind::Prompt(_) | Kind::Delegate { .. } => {
                    self.asking.insert(id.clone());
                }
                Kind::FanOut(fan) if matches!(fan.runner, Runner::Agent(_)) => {
                    self.asking.insert(id.clone());
                }
                Kind::Call(call) => match &call.target {
                    CallTarget::Name(Template::Literal(Literal::Str(name))) => {
                        if !called.iter().any(|known| known == name) {
                            called.push(name.to_string());
                        }
                    }
                    CallTarget::Name(_) | CallTarget::Definition(_) => self.has_more = true,
                },
                _ => {}
            }
            self.ids.insert(id);
        }
    }
}
