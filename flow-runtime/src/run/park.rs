//! What a node had done when it failed or was stopped, so that a resumed run does not do it again.

use std::collections::BTreeMap;

use super::effect::{Action, Deed, Ending};
use super::event::{Failure, FailureKind};
use super::frame::{
    BodyRef, Child, Children, Frame, FrameId, Kept, Progress, ROOT, Standing, Waits,
};
use super::gather::Ended;
use super::machine::Machine;
use flow_model::graph::Target;

impl Frame {
    /// Remembers where a task stands before its failure steps run.
    pub(super) fn set_standing(&mut self) {
        self.standing = Some(Box::new(Standing {
            at: self.at,
            loops: std::mem::take(&mut self.loops),
            containers: std::mem::take(&mut self.containers),
            jumps: std::mem::take(&mut self.jumps),
            kept: self.kept.take(),
        }));
    }

    /// The frame as it stands for whoever resumes it: where it failed, with nothing under way.
    pub(super) fn parked(mut self) -> Self {
        if let Some(standing) = self.standing.take() {
            let standing = *standing;
            if let BodyRef::Cleanup(task) = self.body {
                self.body = BodyRef::Task(task);
            }
            self.at = standing.at;
            self.loops = standing.loops;
            self.containers = standing.containers;
            self.jumps = standing.jumps;
            self.kept = standing.kept;
            self.error = None;
        }
        self.step = None;
        self.visits.clear();
        for container in &mut self.containers {
            container.timer = None;
        }
        self
    }
}

impl Children {
    /// What is left to do once the run is resumed: all but what has given a result.
    pub(super) fn go_on_later(&mut self) {
        for (item, child) in std::mem::take(&mut self.running) {
            if let Child::Frame(frame) = child {
                self.parked.insert(item, frame);
            }
        }
        let results = &self.results;
        let count = self.items.as_list().map_or(0, <[_]>::len);
        self.waiting = (0..count)
            .filter(|item| !results.contains_key(item))
            .collect();
        self.handed.clear();
        self.failures.clear();
        self.retries.clear();
        self.stopped = false;
        self.begun = false;
    }
}

impl Machine<'_> {
    /// A frame is over, and stands where it is for whoever resumes the run.
    pub(super) fn park(&mut self, id: FrameId) {
        self.stop_timers(id);
        if let Some(frame) = self.remove_frame(id) {
            self.data.parked.insert(id, frame.parked());
        }
    }

    /// Every child under way is parked; nothing is under way any more.
    pub(super) fn park_all(&mut self) {
        for (id, mut frame) in std::mem::take(&mut self.data.frames) {
            if let Some(step) = frame.step.take()
                && let Waits::Children(mut children) = step.waits
            {
                children.go_on_later();
                frame.kept = Some(Box::new(Kept {
                    node: step.node,
                    what: Progress::Children(children),
                }));
            }
            if id == ROOT {
                self.data.frames.insert(id, frame.parked());
            } else if frame.parent.is_some() {
                self.data.parked.insert(id, frame.parked());
            }
        }
    }

    /// A fan-out is over or stopped; what its children did is kept until its frame goes on.
    pub(super) fn keep_children(&mut self, id: FrameId, node: u16, mut children: Box<Children>) {
        children.go_on_later();
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.kept = Some(Box::new(Kept {
                node,
                what: Progress::Children(children),
            }));
        }
    }

    /// A call has failed; the run that it called can go on from where that failed, unless it was
    /// cancelled.
    pub(super) fn keep_call(&mut self, id: FrameId, node: u16, action: &Action, failure: &Failure) {
        if let Deed::Call { .. } = action.what
            && failure.kind != FailureKind::Cancelled
            && let Some(frame) = self.data.frames.get_mut(&id)
        {
            let what = Progress::Call(action.key.clone());
            frame.kept = Some(Box::new(Kept { node, what }));
        }
    }

    fn take_kept(&mut self, id: FrameId, node: u16) -> Option<Progress> {
        let frame = self.data.frames.get_mut(&id)?;
        let kept = frame.kept.take_if(|kept| kept.node == node)?;
        Some(kept.what)
    }

    /// What the children of a fan-out that is tried again have done.
    pub(super) fn take_children(&mut self, id: FrameId, node: u16) -> Option<Box<Children>> {
        match self.take_kept(id, node)? {
            Progress::Children(children) => Some(children),
            Progress::Call(_) => None,
        }
    }

    /// A call that is tried again goes on with the run that it called.
    pub(super) fn call_again(&mut self, id: FrameId, node: u16, action: &mut Action) {
        let Deed::Call { goes_on, .. } = &mut action.what else {
            return;
        };
        if let Some(Progress::Call(key)) = self.take_kept(id, node) {
            action.key = key;
            *goes_on = true;
        }
    }

    /// A frame goes on elsewhere: what its node had done is of no use any more.
    pub(super) fn discard_kept(&mut self, id: FrameId) {
        let frame = self.data.frames.get_mut(&id);
        if let Some(kept) = frame.and_then(|frame| frame.kept.take()) {
            self.discard(*kept);
        }
    }

    fn discard(&mut self, kept: Kept) {
        let mut discarded = vec![kept];
        while let Some(kept) = discarded.pop() {
            if let Progress::Children(children) = kept.what {
                for frame in children.parked.into_values() {
                    let frame = self.data.parked.remove(&frame);
                    discarded.extend(frame.and_then(|frame| frame.kept).map(|kept| *kept));
                }
            }
        }
    }

    /// A frame is over, and nobody needs it any more.
    pub(super) fn discard_frame(&mut self, id: FrameId) {
        self.park(id);
        self.discard_parked(id);
    }

    /// A parked frame is of no use any more.
    pub(super) fn discard_parked(&mut self, id: FrameId) {
        if let Some(frame) = self.data.parked.remove(&id)
            && let Some(kept) = frame.kept
        {
            self.discard(*kept);
        }
    }

    /// Nothing of the run is to go on.
    pub(super) fn discard_all(&mut self) {
        self.data.parked = BTreeMap::new();
        if let Some(frame) = self.data.frames.get_mut(&ROOT) {
            frame.kept = None;
        }
    }

    /// A parked child goes on from where it stands.
    pub(super) fn unpark(&mut self, id: FrameId) -> bool {
        let Some(frame) = self.data.parked.remove(&id) else {
            return false;
        };
        self.data.frames.insert(id, frame);
        self.go_on_from_here(id);
        true
    }

    /// A frame that failed or was stopped does its node again.
    pub(super) fn go_on_from_here(&mut self, id: FrameId) {
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return;
        };
        // A loop whose own test failed is in the iteration that it was in.
        if let (Target::Node(node), Some(inner)) = (frame.at, frame.loops.last_mut())
            && inner.node == node
        {
            match inner.index.checked_sub(1) {
                Some(before) => inner.index = before,
                None => drop(frame.loops.pop()),
            }
        }
        self.visit_loops(id);
        self.reopen_containers(id);
        self.data.ready.push_back(id);
    }

    /// A task that failed with its frame; it stands where it failed.
    pub(super) fn park_failed(&mut self, id: FrameId, failure: Failure) {
        let parent = self.data.frames.get(&id).and_then(|frame| frame.parent);
        self.abandon(id, Ending::Stopped);
        self.park(id);
        self.child_ended(parent, Ended::Failed(failure));
    }
}
