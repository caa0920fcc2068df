//! Visits of nodes, for whoever watches: each that is entered is left, in one way or another.

use std::borrow::Cow;

use flow_model::graph::{Node, Target};

use super::effect::{Effect, Ending, Onward, Place};
use super::event::Failure;
use super::frame::{FrameId, Loop};
use super::machine::Machine;

impl<'r> Machine<'r> {
    /// A node is entered.
    pub(super) fn visit(&mut self, id: FrameId, index: u16, node: &Node) {
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.visits.push(index);
        }
        self.effects.push(Effect::Entered(self.place(id, node)));
    }

    /// A node is left, and something comes next.
    pub(super) fn left(&mut self, id: FrameId, node: &Node, outcome: Ending, to: Target) {
        let at = self.data.frames.get(&id).and_then(|frame| {
            let nodes = &self.body(frame.body).nodes;
            let is_it =
                |index: &u16| matches!(nodes.get(usize::from(*index)), Some(n) if n.id == node.id);
            frame.visits.iter().rposition(is_it)
        });
        // A condition is left once it has decided; what happens in it is told of its steps.
        let (Some(at), Some(frame)) = (at, self.data.frames.get_mut(&id)) else {
            return;
        };
        frame.visits.remove(at);
        let next = self.onward(id, to);
        self.effects.push(Effect::Left {
            place: self.place(id, node),
            outcome,
            next,
        });
    }

    /// A frame goes on to a node: loops that do not surround it are over.
    pub(super) fn leave_loops(&mut self, id: FrameId, to: Target) {
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        let around = |node: &u16| frame.loops.iter().any(|inner| inner.node == *node);
        if frame.visits.iter().all(around) {
            return;
        }
        let over: Vec<u16> = frame
            .visits
            .iter()
            .copied()
            .filter(|it| !around(it))
            .collect();
        self.leave(id, over, &Ending::Success, to);
    }

    /// A frame has reached its end, from wherever it was.
    pub(super) fn leave_all(&mut self, id: FrameId) {
        if let Some(frame) = self.data.frames.get(&id)
            && !frame.visits.is_empty()
        {
            let over = frame.visits.clone();
            self.leave(id, over, &Ending::Success, Target::Complete);
        }
    }

    fn leave(&mut self, id: FrameId, over: Vec<u16>, outcome: &Ending, to: Target) {
        for index in over.into_iter().rev() {
            if let Some(node) = self.node(id, index) {
                self.left(id, node, outcome.clone(), to);
            }
        }
    }

    /// Nothing leads on from where a frame is: the innermost visit ends in this way, and what
    /// surrounds it fails with it or is stopped with it.
    pub(super) fn abandon(&mut self, id: FrameId, ending: Ending) {
        let visits = match self.data.frames.get_mut(&id) {
            Some(frame) => std::mem::take(&mut frame.visits),
            None => return,
        };
        self.left_nowhere(id, visits, ending);
    }

    /// Visits end, the innermost in this way. A failure that nothing inside a container handles is
    /// the container's.
    pub(super) fn left_nowhere(&mut self, id: FrameId, visits: Vec<u16>, ending: Ending) {
        let around = match &ending {
            Ending::Failure(_) | Ending::Timeout(_) => ending.clone(),
            Ending::Success | Ending::Skipped | Ending::Stopped | Ending::Stuck(_) => {
                Ending::Stopped
            }
        };
        let mut ending = Some(ending);
        for index in visits.into_iter().rev() {
            if let Some(node) = self.node(id, index) {
                self.effects.push(Effect::Left {
                    place: self.place(id, node),
                    outcome: ending.take().unwrap_or_else(|| around.clone()),
                    next: Onward::Nowhere,
                });
            }
        }
    }

    /// A container is left only to be entered once more.
    pub(super) fn leave_to_retry(&mut self, id: FrameId, index: u16, outcome: Ending) {
        let frame = self.data.frames.get(&id);
        let is_visited = frame.is_some_and(|frame| frame.visits.contains(&index));
        if let (true, Some(node)) = (is_visited, self.node(id, index)) {
            self.left(id, node, outcome, Target::Node(index));
        }
    }

    /// A frame goes on inside loops that ended when it failed: they are entered once more.
    pub(super) fn visit_loops(&mut self, id: FrameId) {
        let loops = self.data.frames.get(&id).map(|frame| &frame.loops);
        let loops: Vec<u16> = loops
            .into_iter()
            .flatten()
            .map(|inner| inner.node)
            .collect();
        for index in loops {
            if let Some(node) = self.node(id, index) {
                self.visit(id, index, node);
            }
        }
    }

    /// An item of a fan-out failed before any step of its task began.
    pub(super) fn tell_unstarted(
        &mut self,
        id: FrameId,
        node: &Node,
        item: usize,
        failure: &Failure,
    ) {
        self.data.next_frame += 1;
        let place = Place {
            frame: self.data.next_frame,
            node: node.id.to_string(),
            within: self.within_item(id, node, item),
        };
        self.effects.push(Effect::Entered(place.clone()));
        self.effects.push(Effect::Left {
            place,
            outcome: Ending::from(failure),
            next: Onward::Nowhere,
        });
    }

    /// What an item of a fan-out is known by before it has a frame, as in `all.1/each.0`.
    pub(super) fn within_item(&self, id: FrameId, node: &Node, item: usize) -> String {
        match self.within(id, &node.id).as_str() {
            "" => format!("{}.{item}", node.id),
            within => format!("{within}/{}.{item}", node.id),
        }
    }

    fn onward(&self, id: FrameId, to: Target) -> Onward {
        match to {
            Target::Complete => Onward::End,
            Target::Node(next) => match self.node(id, next) {
                Some(node) => Onward::Node(node.id.to_string()),
                None => Onward::End,
            },
        }
    }

    fn place(&self, frame: FrameId, node: &Node) -> Place {
        Place {
            frame,
            node: node.id.to_string(),
            within: self.within(frame, &node.id),
        }
    }

    /// The items of `foreach` that a node of a frame belongs to, as in `all.1/each.0`.
    pub(super) fn within(&self, id: FrameId, node: &str) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut at = Some((id, Cow::Borrowed(node)));
        while let Some((id, node)) = at.take() {
            let Some(frame) = self.data.frames.get(&id) else {
                break;
            };
            let nodes = &self.body(frame.body).nodes;
            let of_loop = |inner: &Loop| nodes.get(usize::from(inner.node)).map(|node| &node.id);
            let around = frame.loops.iter();
            let around = around.take_while(|inner| of_loop(inner).is_some_and(|it| **it != *node));
            let items = around.filter(|inner| inner.items.is_some());
            let items: Vec<String> = items
                .filter_map(|inner| Some(format!("{}.{}", of_loop(inner)?, inner.index)))
                .collect();
            parts.extend(items.into_iter().rev());
            // The fan-out that it is a child of.
            if let Some(parent) = frame.parent
                && let Some(above) = self.data.frames.get(&parent.frame)
                && let Target::Node(fan) = above.at
                && let Some(fan) = self.node(parent.frame, fan)
            {
                parts.push(format!("{}.{}", fan.id, parent.index));
                at = Some((parent.frame, Cow::Borrowed(&*fan.id)));
            }
        }
        parts.reverse();
        parts.join("/")
    }
}
