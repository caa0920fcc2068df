//! Containers: their time, their attempts, and what a failure inside them means to them.

use flow_model::graph::{Body, Node, Outcome, Retry, Target};

use super::effect::{Effect, Ending};
use super::event::{ActionId, Failure, FailureKind};
use super::frame::{Child, Container, FrameId, Waits};
use super::machine::{Machine, Next};
use super::time::after;
use crate::value::Value;

impl<'r> Machine<'r> {
    /// Whether a container is being tried again, or resumed: it was opened and not left.
    pub(super) fn is_opened(&self, id: FrameId, index: u16) -> bool {
        let frame = self.data.frames.get(&id);
        let last = frame.and_then(|frame| frame.containers.last());
        last.is_some_and(|container| container.node == index)
    }

    /// An attempt of a container begins, and so does its time.
    pub(super) fn open_container(&mut self, id: FrameId, index: u16, node: &Node) {
        let has_own = node.timeout.is_some() || node.retry.is_some();
        if !has_own || !node.kind.is_kept_by_run() {
            return;
        }
        if !self.is_opened(id, index)
            && let Some(frame) = self.data.frames.get_mut(&id)
        {
            frame.containers.push(Container {
                node: index,
                attempt: 1,
                timer: None,
            });
        }
        let place = self.data.frames.get(&id).map(|it| it.containers.len());
        if let Some(last) = place.and_then(|count| count.checked_sub(1)) {
            self.start_timer(id, last);
        }
    }

    /// The time of a container begins, once more if it was running.
    fn start_timer(&mut self, id: FrameId, at: usize) {
        self.stop_timer(id, at);
        let frame = self.data.frames.get(&id);
        let index = frame.and_then(|frame| Some(frame.containers.get(at)?.node));
        let node = index.and_then(|index| self.node(id, index));
        let Some(seconds) = node.and_then(|node| node.timeout) else {
            return;
        };
        let timer = self.next_action();
        let until = after(self.at, seconds);
        self.data.waiting.insert(timer, id);
        self.effects.push(Effect::Sleep { timer, until });
        let frame = self.data.frames.get_mut(&id);
        if let Some(container) = frame.and_then(|frame| frame.containers.get_mut(at)) {
            container.timer = Some((timer, until));
        }
    }

    fn stop_timer(&mut self, id: FrameId, at: usize) {
        let frame = self.data.frames.get_mut(&id);
        let container = frame.and_then(|frame| frame.containers.get_mut(at));
        if let Some((timer, _)) = container.and_then(|container| container.timer.take()) {
            self.forget(timer);
        }
    }

    /// Something is no longer waited for.
    pub(super) fn forget(&mut self, id: ActionId) {
        if self.data.waiting.remove(&id).is_some() {
            self.effects.push(Effect::Stop(id));
        }
    }

    /// The clocks of a frame's containers stop; that they are open is remembered.
    pub(super) fn stop_timers(&mut self, id: FrameId) {
        let count = self.data.frames.get(&id).map(|it| it.containers.len());
        for at in 0..count.unwrap_or(0) {
            self.stop_timer(id, at);
        }
    }

    /// Whoever resumes a run gives containers their time and their attempts again.
    pub(super) fn reopen_containers(&mut self, id: FrameId) {
        let count = self.data.frames.get(&id).map(|it| it.containers.len());
        for at in 0..count.unwrap_or(0) {
            let frame = self.data.frames.get_mut(&id);
            if let Some(container) = frame.and_then(|frame| frame.containers.get_mut(at)) {
                container.attempt = 1;
            }
            self.start_timer(id, at);
        }
    }

    /// A frame goes on to a node: containers that do not surround it are over.
    pub(super) fn close_containers(&mut self, id: FrameId, to: Target) {
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        if frame.containers.is_empty() {
            return;
        }
        let body = self.body(frame.body);
        let stays = |container: &Container| match to {
            Target::Complete => false,
            // A loop whose next iteration comes is still in `loops`; one that a `goto` leads back
            // to begins anew.
            Target::Node(to) if to == container.node => {
                frame.loops.iter().any(|inner| inner.node == to)
            }
            Target::Node(to) => is_inside(body, to, container.node),
        };
        let keep = frame.containers.iter().take_while(|it| stays(it)).count();
        self.truncate_containers(id, keep);
    }

    fn truncate_containers(&mut self, id: FrameId, keep: usize) {
        let count = self.data.frames.get(&id).map(|it| it.containers.len());
        for at in keep..count.unwrap_or(0) {
            self.stop_timer(id, at);
        }
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.containers.truncate(keep);
        }
    }

    /// A step has failed and does not say what then: the containers around it may, the innermost
    /// first.
    pub(super) fn unhandled(&mut self, id: FrameId, index: u16, failure: Failure) -> Next {
        let around = self.node(id, index).and_then(|node| node.parent);
        self.reaches(id, around, failure)
    }

    /// A failure reaches a container, and unless that says what then, the ones around it.
    fn reaches(&mut self, id: FrameId, container: Option<u16>, failure: Failure) -> Next {
        let mut next = container;
        while let Some(outer) = next {
            let Some(node) = self.node(id, outer) else {
                break;
            };
            if self.catches(id, outer, node, &failure) {
                self.close_inside(id, outer, Ending::from(&failure));
                return self.attempt_failed(id, outer, failure, Value::Null);
            }
            if let Err(failure) = self.write_error(id, node, &failure, &Value::Null) {
                return self.fail_frame(id, failure);
            }
            next = node.parent;
        }
        // Whoever resumes the run finds the frame where it is.
        self.fail_frame(id, failure)
    }

    fn catches(&self, id: FrameId, index: u16, node: &Node, failure: &Failure) -> bool {
        let outcome = match failure.kind {
            FailureKind::Timeout => Outcome::Timeout,
            _ => Outcome::Failure,
        };
        self.next_attempt(id, index, node).is_some()
            || node.fallback_value.is_some()
            || node.next(outcome).is_some()
    }

    /// The attempt that a container has had, if it may have another.
    fn next_attempt(&self, id: FrameId, index: u16, node: &Node) -> Option<(Retry, u32)> {
        let retry = node.retry.filter(|_| node.kind.is_kept_by_run())?;
        let frame = self.data.frames.get(&id)?;
        let mut opened = frame.containers.iter();
        let attempt = opened.find(|it| it.node == index)?.attempt;
        (attempt < retry.attempts).then_some((retry, attempt))
    }

    /// An attempt of a node has failed: a container may have another, which begins at its start.
    pub(super) fn attempt_failed(
        &mut self,
        id: FrameId,
        index: u16,
        failure: Failure,
        result: Value,
    ) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        let Some((retry, attempt)) = self.next_attempt(id, index, node) else {
            return self.failed(id, index, failure, result);
        };
        self.close_inside(id, index, Ending::Stopped);
        self.leave_to_retry(id, index, Ending::from(&failure));
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return Next::Over;
        };
        if let Some(container) = frame.containers.last_mut() {
            container.attempt += 1;
        }
        if let Some(last) = frame.containers.len().checked_sub(1) {
            self.stop_timer(id, last);
        }
        self.discard_kept(id);
        let (timer, until) = self.pause(id, node, retry, attempt);
        self.wait(id, index, Waits::Again { timer, until });
        Next::Wait
    }

    /// The pause before the next attempt begins: its timer, and when it is over.
    pub(super) fn pause(
        &mut self,
        id: FrameId,
        node: &Node,
        retry: Retry,
        attempt: u32,
    ) -> (ActionId, u64) {
        self.track_retry(id, node);
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let mut delay = retry.delay * retry.backoff.powi(exponent);
        if let Some(most) = retry.max_delay {
            delay = delay.min(most);
        }
        let timer = self.next_action();
        let until = after(self.at, delay);
        self.data.waiting.insert(timer, id);
        self.effects.push(Effect::Sleep { timer, until });
        (timer, until)
    }

    /// Everything inside a container is over; the container itself is not.
    fn close_inside(&mut self, id: FrameId, index: u16, ending: Ending) {
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        let body = self.body(frame.body);
        let outside = |node: u16| node != index && !is_inside(body, node, index);
        let loops = frame.loops.iter().take_while(|it| outside(it.node)).count();
        let opened = frame.containers.iter();
        let opened = opened.take_while(|it| it.node == index || outside(it.node));
        let opened = opened.count();
        self.truncate_containers(id, opened);
        // Told while the loops around them are known.
        self.leave_inside(id, index, ending);
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.loops.truncate(loops);
            frame.step = None;
            frame.at = Target::Node(index);
        }
    }

    /// Visits inside a container end; where the frame stands is kept.
    fn leave_inside(&mut self, id: FrameId, index: u16, ending: Ending) {
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        let body = self.body(frame.body);
        let visits = frame.visits.iter().copied();
        let inside: Vec<u16> = visits.filter(|it| is_inside(body, *it, index)).collect();
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.visits.retain(|it| !is_inside(body, *it, index));
        }
        self.left_nowhere(id, inside, ending);
    }

    /// The time of a container has run out, if that is what a timer was for.
    pub(super) fn container_woke(&mut self, timer: ActionId) -> bool {
        let Some(id) = self.data.waiting.get(&timer).copied() else {
            return false;
        };
        let frame = self.data.frames.get_mut(&id);
        let container = frame.and_then(|frame| {
            let mut containers = frame.containers.iter_mut();
            containers.find(|it| it.timer.is_some_and(|(own, _)| own == timer))
        });
        let Some(container) = container else {
            return false;
        };
        container.timer = None;
        let index = container.node;
        self.data.waiting.remove(&timer);
        let Some(node) = self.node(id, index) else {
            return true;
        };
        self.stop_step(id);
        // Its time is up, not that of what is in it.
        self.leave_inside(id, index, Ending::Stopped);
        let seconds = node.timeout.unwrap_or_default();
        let message = format!(
            "`{}` did not end within {seconds} s; `timeout` gives it longer",
            node.id
        );
        let failure = Failure::new(FailureKind::Timeout, message).at(&node.id);
        let next = self.reaches(id, Some(index), failure);
        self.move_on(id, next);
        true
    }

    /// Stops what a frame waits for. What a fan-out has done is kept.
    pub(super) fn stop_step(&mut self, id: FrameId) {
        self.data.ready.retain(|ready| *ready != id);
        self.data.queue.retain(|queued| *queued != id);
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return;
        };
        let Some(step) = frame.step.take() else {
            return;
        };
        match step.waits {
            Waits::Action(action)
            | Waits::Judgement { action, .. }
            | Waits::Environment { action, .. } => {
                self.forget(action.id);
                self.release();
            }
            Waits::Turn(action) => self.forget(action.id),
            Waits::Pause { timer, .. } | Waits::Again { timer, .. } | Waits::Time { timer, .. } => {
                self.forget(timer);
            }
            Waits::Children(mut children) => {
                self.remember_tasks(&children);
                if let Some(tasks) = children.tasks {
                    self.forget(tasks);
                }
                children.handed.clear();
                for (item, child) in std::mem::take(&mut children.running) {
                    match child {
                        Child::Frame(frame) => {
                            children.parked.insert(item, frame);
                            self.stop_frame(frame);
                        }
                        Child::Action(action) => {
                            self.forget(action);
                            self.release();
                        }
                    }
                }
                self.keep_children(id, step.node, children);
            }
        }
    }
}

/// Whether a node stands in a container, however deep.
fn is_inside(body: &Body, node: u16, container: u16) -> bool {
    let mut at = body.nodes.get(usize::from(node));
    while let Some(parent) = at.and_then(|node| node.parent) {
        if parent == container {
            return true;
        }
        at = body.nodes.get(usize::from(parent));
    }
    false
}
