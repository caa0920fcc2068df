//! Names of steps and tasks, for whoever answers them.
//!
//! The name of a step is its node's id the first time a part of a run hands it out, and
//! `id~number` after that, with the number of the action. What belongs to a task of a fan-out has
//! the task's name before it, as in `research.0/find`, whoever does the task; a task is named by
//! its fan-out and the index of its item.

use flow_model::graph::{Graph, Kind, Node};

use super::data::Data;
use super::event::ActionId;
use super::frame::{BodyRef, Child, Children, Frame, FrameId, ROOT, Waits};
use super::handout::{Part, Tasks};

/// The names that things have as a run stands.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) graph: &'a Graph,
    pub(super) data: &'a Data,
}

impl<'a> Names<'a> {
    /// What a node hands out under a number, in a frame.
    pub(super) fn of(self, id: FrameId, node: &Node, number: ActionId) -> String {
        let keeper = self.data.keeper(id);
        let parent = self.data.frames.get(&keeper).and_then(|it| it.parent);
        let around = parent.map(|parent| (parent.index, self.children_of(parent.frame)));
        let (own, before) = match around {
            None => (keeper == ROOT && !self.data.again, String::new()),
            Some((item, Some((children, fan)))) => {
                let own = children.running.get(&item) == Some(&Child::Frame(id));
                let fresh = children.tries(item) == 0;
                (own && fresh, format!("{}/", of_item(children, fan, item)))
            }
            Some((_, None)) => (false, String::new()),
        };
        if own && first_in(self.data, keeper, &node.id) == Some(number) {
            format!("{before}{}", node.id)
        } else {
            format!("{before}{}~{}", node.id, number.0)
        }
    }

    /// A task.
    pub(super) fn of_task(self, tasks: ActionId, item: usize) -> String {
        match self.tasks(tasks) {
            Some(found) => {
                let name = self.of(found.frame, found.node, tasks);
                format!("{name}.{item}")
            }
            None => format!("{}.{item}", tasks.0),
        }
    }

    /// The children that a frame waits for, with the fan-out they are of.
    pub(super) fn children_of(self, frame: FrameId) -> Option<(&'a Children, &'a Node)> {
        let at = self.data.frames.get(&frame)?;
        let step = at.step.as_ref()?;
        let Waits::Children(children) = &step.waits else {
            return None;
        };
        Some((children, node_of(self.graph, at, step.node)?))
    }

    /// The part of the run that a frame belongs to.
    pub(super) fn part_of(self, frame: FrameId) -> Part {
        let mut at = frame;
        while let Some(parent) = self.data.frames.get(&at).and_then(|frame| frame.parent) {
            if let Some(tasks) = self.tasks_of(parent.frame)
                && tasks.fan.is_delegated()
            {
                return Part::Task {
                    tasks: tasks.id,
                    item: parent.index,
                };
            }
            at = parent.frame;
        }
        Part::Main
    }

    /// The fan-out that a frame waits for.
    pub(super) fn tasks_of(self, frame: FrameId) -> Option<Tasks<'a>> {
        match &self.data.frames.get(&frame)?.step.as_ref()?.waits {
            Waits::Children(children) => self.tasks(children.tasks?),
            _ => None,
        }
    }

    /// A fan-out that waits for its tasks.
    pub(super) fn tasks(self, id: ActionId) -> Option<Tasks<'a>> {
        let frame = *self.data.waiting.get(&id)?;
        let at = self.data.frames.get(&frame)?;
        let step = at.step.as_ref()?;
        let Waits::Children(children) = &step.waits else {
            return None;
        };
        let node = node_of(self.graph, at, step.node)?;
        let Kind::FanOut(fan) = &node.kind else {
            return None;
        };
        let task = self.graph.tasks.get(usize::from(fan.task))?;
        (children.tasks == Some(id)).then_some(Tasks {
            id,
            frame,
            node,
            fan,
            task,
            children,
        })
    }
}

/// The task of an item.
pub(super) fn of_item(children: &Children, fan: &Node, item: usize) -> String {
    match children.name.as_str() {
        "" => format!("{}.{item}", fan.id),
        name => format!("{name}.{item}"),
    }
}

/// A node of the body that a frame executes.
pub(super) fn node_of<'g>(graph: &'g Graph, frame: &Frame, node: u16) -> Option<&'g Node> {
    let body = match frame.body {
        BodyRef::Main => &graph.body,
        BodyRef::OnError => &graph.on_error.body,
        BodyRef::Task(task) => &graph.tasks.get(usize::from(task))?.body,
        BodyRef::Cleanup(task) => &graph.tasks.get(usize::from(task))?.on_error.as_ref()?.body,
    };
    body.nodes.get(usize::from(node))
}

/// What was handed out first under the id of a node.
pub(super) fn first_in(data: &Data, frame: FrameId, node: &str) -> Option<ActionId> {
    data.frames.get(&frame)?.first.get(node).copied()
}

/// A name as people read it: without the numbers that tell a step from the same step before.
#[must_use]
pub fn unnumbered(name: &str) -> String {
    let parts = name.split('/').map(|part| {
        let (before, rest) = part.split_once('~').unwrap_or((part, ""));
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        match rest.get(digits..) {
            // The tasks of a fan-out have their index after it.
            Some(index) if digits > 0 && (index.is_empty() || index.starts_with('.')) => {
                format!("{before}{index}")
            }
            _ => part.to_owned(),
        }
    });
    let parts: Vec<String> = parts.collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::unnumbered;

    #[test]
    fn people_read_names_without_the_numbers_of_visits() {
        for (name, read) in [
            ("judge", "judge"),
            ("judge~11", "judge"),
            ("all~4.1/ask~7", "all.1/ask"),
            ("call~3/all.0/q", "call/all.0/q"),
            ("odd~", "odd~"),
            ("odd~x", "odd~x"),
        ] {
            assert_eq!(unnumbered(name), read);
        }
    }
}
