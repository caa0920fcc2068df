//! What every picture draws: the bodies of a graph, with their ways out merged into arrows.

use crate::graph::{Body, Condition, ErrorAction, Graph, Guard, Kind, Node, Target};

use super::label;

/// A graph, ready to be drawn.
pub(super) struct Sketch<'g> {
    pub(super) graph: &'g Graph,
    /// The body of the run first.
    pub(super) sections: Vec<Section<'g>>,
}

/// One body.
pub(super) struct Section<'g> {
    pub(super) role: Role,
    pub(super) body: &'g Body,
    /// Where execution starts; `None` when it starts nowhere.
    pub(super) entry: Option<Goal>,
    /// In document order of their nodes; at most one for each pair of ends.
    pub(super) arrows: Vec<Arrow>,
    /// The container of each node, without containers that contain themselves.
    pub(super) parents: Vec<Option<usize>>,
    /// The fan-out nodes and the tasks they run.
    pub(super) fans: Vec<(usize, usize)>,
}

/// What a body is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// What the run does.
    Main,
    /// What a task does per item.
    Task(usize),
    /// What happens when a task fails.
    TaskFailure(usize),
    /// What happens when a step fails.
    Failure,
}

/// A way from one node to another, or to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: Goal,
    /// When it is taken; empty where that goes without saying.
    pub(super) label: String,
    pub(super) tone: Tone,
}

/// Where an arrow leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Goal {
    Node(usize),
    End,
}

/// What taking an arrow says about the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    /// Things go as they should.
    Plain,
    /// The node was skipped.
    Aside,
    /// Something went wrong.
    Trouble,
    /// A task is run.
    Task,
}

impl<'g> Sketch<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        let mut sections = vec![Section::new(graph, Role::Main, &graph.body)];
        for (index, task) in graph.tasks.iter().enumerate() {
            sections.push(Section::new(graph, Role::Task(index), &task.body));
            if let Some(failure) = &task.on_error
                && !failure.body.nodes.is_empty()
            {
                let role = Role::TaskFailure(index);
                sections.push(Section::new(graph, role, &failure.body));
            }
        }
        if !graph.on_error.body.nodes.is_empty() {
            sections.push(Section::new(graph, Role::Failure, &graph.on_error.body));
        }
        Sketch { graph, sections }
    }
}

impl<'g> Section<'g> {
    fn new(graph: &Graph, role: Role, body: &'g Body) -> Self {
        let count = body.nodes.len();
        let arrows = body
            .nodes
            .iter()
            .enumerate()
            .flat_map(|(index, node)| arrows(index, node, count))
            .collect();
        let fans = body.nodes.iter().enumerate().filter_map(|(index, node)| {
            let Kind::FanOut(fan) = &node.kind else {
                return None;
            };
            let task = usize::from(fan.task);
            (task < graph.tasks.len()).then_some((index, task))
        });
        Section {
            role,
            body,
            entry: goal(body.entry, count),
            arrows,
            parents: (0..count).map(|index| parent(body, index)).collect(),
            fans: fans.collect(),
        }
    }

    /// The arrows of each node.
    pub(super) fn arrows_by_node(&self) -> Vec<Vec<&Arrow>> {
        let mut lists = vec![Vec::new(); self.body.nodes.len()];
        for arrow in &self.arrows {
            lists[arrow.from].push(arrow);
        }
        lists
    }

    /// What the body is called; `None` for the body of the run.
    pub(super) fn heading(&self, graph: &Graph) -> Option<Heading> {
        let task = |index: usize| {
            graph
                .tasks
                .get(index)
                .map_or_else(String::new, |task| label::clean(&task.name))
        };
        match self.role {
            Role::Main => None,
            Role::Task(index) => {
                let description = graph
                    .tasks
                    .get(index)
                    .and_then(|t| t.description.as_deref());
                Some(Heading {
                    title: format!("task {}", task(index)),
                    word: "task",
                    name: task(index),
                    text: label::clean(description.unwrap_or("")),
                })
            }
            Role::TaskFailure(index) => {
                let failure = graph.tasks.get(index).and_then(|t| t.on_error.as_ref());
                let text = match failure.is_some_and(|failure| failure.returns) {
                    true => "then the error is the result",
                    false => "then the task fails",
                };
                Some(Heading {
                    title: format!("when {} fails", task(index)),
                    word: "when it fails",
                    name: String::new(),
                    text: text.to_owned(),
                })
            }
            Role::Failure => Some(Heading {
                title: "when a step fails".to_owned(),
                word: "when a step fails",
                name: String::new(),
                text: match graph.on_error.action {
                    ErrorAction::Fail => "then the run fails",
                    ErrorAction::CheckpointAndFail => "then the run fails after a checkpoint",
                    ErrorAction::Continue => "then the run goes on",
                    ErrorAction::RetryWorkflow => "then the run starts over, once",
                }
                .to_owned(),
            }),
        }
    }
}

/// The title of a body that is not the run's own.
pub(super) struct Heading {
    /// What sort of body it is, and of which task.
    title: String,
    /// What sort of body it is.
    pub(super) word: &'static str,
    /// The name of the task it is, if any.
    pub(super) name: String,
    /// What it does or what comes after it.
    pub(super) text: String,
}

impl Heading {
    /// The title on one line.
    pub(super) fn line(&self) -> String {
        match self.text.is_empty() {
            true => self.title.clone(),
            false => format!("{} – {}", self.title, self.text),
        }
    }
}

fn goal(target: Target, count: usize) -> Option<Goal> {
    match target {
        Target::Complete => Some(Goal::End),
        Target::Node(index) => {
            let index = usize::from(index);
            (index < count).then_some(Goal::Node(index))
        }
    }
}

/// The container of a node, when following containers from it ends.
fn parent(body: &Body, index: usize) -> Option<usize> {
    let above = |index: usize| -> Option<usize> {
        let parent = usize::from(body.nodes.get(index)?.parent?);
        (parent < body.nodes.len()).then_some(parent)
    };
    let first = above(index)?;
    let mut here = Some(first);
    for _ in 0..body.nodes.len() {
        match here {
            Some(at) => here = above(at),
            None => return Some(first),
        }
    }
    None
}

/// One way out under construction: the guards that lead to the same place.
struct Way {
    to: Goal,
    words: Vec<String>,
    tone: Tone,
    /// Whether the ordinary outcome is among its guards.
    ordinary: bool,
}

fn arrows(index: usize, node: &Node, count: usize) -> Vec<Arrow> {
    let mut ways: Vec<Way> = Vec::new();
    for (at, edge) in node.edges.iter().enumerate() {
        let Some(to) = goal(edge.to, count) else {
            continue;
        };
        let mut word = label::guard(node, &edge.guard);
        if word.is_empty() && at > 0 {
            word = "otherwise".to_owned();
        }
        let tone = tone(&edge.guard);
        let ordinary = is_ordinary(&edge.guard);
        match ways.iter_mut().find(|way| way.to == to) {
            Some(way) => {
                if !word.is_empty() && !way.words.contains(&word) {
                    way.words.push(word);
                }
                way.tone = way.tone.min(tone);
                way.ordinary |= ordinary;
            }
            None => ways.push(Way {
                to,
                words: if word.is_empty() { vec![] } else { vec![word] },
                tone,
                ordinary,
            }),
        }
    }
    // A return ends the body whether or not an edge says so.
    if ways.is_empty() && matches!(node.kind, Kind::Return { .. }) {
        ways.push(Way {
            to: Goal::End,
            words: vec![],
            tone: Tone::Plain,
            ordinary: true,
        });
    }
    let alone = ways.len() == 1;
    ways.into_iter()
        .map(|way| Arrow {
            from: index,
            to: way.to,
            label: if alone && way.ordinary {
                String::new()
            } else {
                way.words.join(" or ")
            },
            tone: way.tone,
        })
        .collect()
}

/// Whether the guard is the one that a node without branches has.
fn is_ordinary(guard: &Guard) -> bool {
    match guard {
        Guard::Always
        | Guard::Success
        | Guard::InTime
        | Guard::When(Condition::Always | Condition::Success(true)) => true,
        Guard::Failure
        | Guard::Timeout
        | Guard::Skip
        | Guard::Then
        | Guard::Else
        | Guard::Body
        | Guard::Done
        | Guard::When(_)
        | Guard::Judged(_) => false,
    }
}

fn tone(guard: &Guard) -> Tone {
    match guard {
        Guard::Failure
        | Guard::Timeout
        | Guard::When(Condition::Success(false) | Condition::TimedOut(true)) => Tone::Trouble,
        Guard::Skip => Tone::Aside,
        Guard::Always
        | Guard::Success
        | Guard::InTime
        | Guard::Then
        | Guard::Else
        | Guard::Body
        | Guard::Done
        | Guard::When(_)
        | Guard::Judged(_) => Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::samples::{self, Draft};

    fn words(draft: Draft) -> Vec<(Goal, String, Tone)> {
        let graph = samples::graph("g", "", draft.body());
        let sketch = Sketch::new(&graph);
        let arrows = sketch.sections[0].arrows.iter();
        let arrows = arrows.filter(|arrow| arrow.from == 0);
        arrows
            .map(|arrow| (arrow.to, arrow.label.clone(), arrow.tone))
            .collect()
    }

    fn step() -> Draft {
        Draft::default().node("a", samples::shell("a"))
    }

    fn other(draft: Draft) -> Draft {
        draft.node("b", samples::shell("b"))
    }

    #[test]
    fn success_goes_without_saying_where_there_is_no_other_way() {
        let arrows = words(other(step().then("b").to(Guard::Skip, "b")));
        assert_eq!(arrows, [(Goal::Node(1), String::new(), Tone::Plain)]);
    }

    #[test]
    fn success_is_said_where_there_is_another_way() {
        let arrows = words(other(step().then("b").to(Guard::Failure, "end")));
        let success = (Goal::Node(1), "success".to_owned(), Tone::Plain);
        let failure = (Goal::End, "failure".to_owned(), Tone::Trouble);
        assert_eq!(arrows, [success, failure]);
    }

    #[test]
    fn what_remains_is_otherwise() {
        let arrows = words(other(
            step().to(Guard::Timeout, "end").to(Guard::Always, "b"),
        ));
        assert_eq!(
            arrows[1],
            (Goal::Node(1), "otherwise".to_owned(), Tone::Plain)
        );
    }

    #[test]
    fn a_return_leads_to_the_end() {
        let arrows = words(Draft::default().node("a", samples::finish("1")));
        assert_eq!(arrows, [(Goal::End, String::new(), Tone::Plain)]);
    }
}
