//! How the children of a fan-out end, and what that means to it.

use flow_model::graph::{FanOut, Node, OnChildError, Operation};

use super::effect::{Effect, Ending};
use super::event::{Failure, FailureKind};
use super::frame::{Child, FrameId, Kept, Parent, Progress, Waits};
use super::machine::{Extras, Machine, Next, plain};
use super::settle::UNCOLLECTED;
use super::state::Change;
use crate::value::Value;

/// Bytes at each end of a message that stay when it is shortened.
const MESSAGE_HEAD: usize = 300;
const MESSAGE_TAIL: usize = 1_500;

/// How a child of a fan-out ended.
pub(super) enum Ended {
    /// It gave this.
    Done(Value),
    /// It failed.
    Failed(Failure),
    /// It failed, and its task wants the error as its result.
    Returned(Failure),
}

impl From<Result<Value, Failure>> for Ended {
    fn from(ended: Result<Value, Failure>) -> Self {
        ended.map_or_else(Ended::Failed, Ended::Done)
    }
}

impl<'r> Machine<'r> {
    /// A child has ended; its fan-out hears of it before anything else happens.
    pub(super) fn child_ended(&mut self, parent: Option<Parent>, ended: Ended) {
        self.ended.extend(parent.map(|parent| (parent, ended)));
    }

    /// A fan-out hears of the end of a child: it goes on, or is over.
    pub(super) fn gathered(&mut self, parent: Parent, ended: Ended) {
        let Parent { frame: id, index } = parent;
        let step = self
            .data
            .frames
            .get(&id)
            .and_then(|frame| frame.step.as_ref());
        let Some(step_node) = step.map(|step| step.node) else {
            return;
        };
        let Some(node) = self.node(id, step_node) else {
            return;
        };
        let flow_model::graph::Kind::FanOut(fan) = &node.kind else {
            return;
        };
        let Some(children) = self.children(id) else {
            return;
        };
        children.handed.remove(&index);
        let Some(child) = children.running.remove(&index) else {
            return;
        };
        self.note_end(id, node, fan, index, Some(child), ended);
        self.go_on(id, step_node, node, fan);
    }

    /// Starts what may start now; when nothing is left, the fan-out is over.
    pub(super) fn go_on(&mut self, id: FrameId, index: u16, node: &'r Node, fan: &'r FanOut) {
        self.start_children(id, node, fan);
        let Some(children) = self.children(id) else {
            return;
        };
        // Tasks that sub-agents begin may wait while none is under way.
        if children.running.is_empty() && (children.stopped || children.waiting.is_empty()) {
            self.gather(id, index, node, fan);
        }
    }

    /// Remembers how an item ended.
    pub(super) fn note_end(
        &mut self,
        id: FrameId,
        node: &'r Node,
        fan: &'r FanOut,
        index: usize,
        child: Option<Child>,
        ended: Ended,
    ) {
        let Some(children) = self.children(id) else {
            return;
        };
        let mut collect = None;
        let mut unused = None;
        let returns = matches!(ended, Ended::Returned(_));
        match ended {
            Ended::Done(value) => {
                children.failures.remove(&index);
                children.results.insert(index, value);
            }
            // A task that returns its error has failed all the same: it is tried again and its
            // error collected before the error becomes what it gives.
            Ended::Failed(failure) | Ended::Returned(failure) => {
                let refused = failure.is_refusal();
                let tries = children.retries.entry(index).or_insert(0);
                if let OnChildError::RetryFailed(most) = fan.on_child_error
                    && *tries < most
                    && !refused
                {
                    *tries += 1;
                    children.waiting.push_back(index);
                    unused = child;
                } else {
                    match (child, fan.on_child_error) {
                        (Some(_), OnChildError::Continue) if !refused => unused = child,
                        (Some(_), _) if returns => unused = child,
                        (Some(Child::Frame(frame)), _) => {
                            children.parked.insert(index, frame);
                        }
                        (Some(Child::Action(_)) | None, _) => {}
                    }
                    if children.collected.insert(index) {
                        collect = Some(failure.clone());
                    }
                    if returns {
                        let given = Value::map([("error", failure.to_value())]);
                        children.results.insert(index, given);
                    } else {
                        children.failures.insert(index, failure);
                        // Whoever refuses one item refuses the run.
                        children.stopped |= refused || fan.on_child_error == OnChildError::FailAll;
                    }
                }
            }
        }
        if let Some(Child::Frame(frame)) = unused {
            self.discard_parked(frame);
        }
        if let (Some(path), Some(failure)) = (&fan.collect_to, collect)
            && let Err(other) = self.collect(id, node, path, index, failure.to_value())
            && let Some(children) = self.children(id)
        {
            let uncollected = failure.with(UNCOLLECTED, &other);
            children.uncollected.get_or_insert((index, uncollected));
        }
        if self.children(id).is_some_and(|children| children.stopped) {
            self.stop_children(id);
        }
    }

    fn collect(
        &mut self,
        id: FrameId,
        node: &'r Node,
        path: &'r flow_model::graph::StatePath,
        index: usize,
        error: Value,
    ) -> Result<(), Failure> {
        let mut segments = Vec::with_capacity(path.segments.len());
        for segment in path.segments.iter() {
            segments.push(plain(&self.render(id, node, segment, Extras::default())?));
        }
        self.may_write(id, path, &segments)?;
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        let value = match error {
            Value::Map(map) => {
                let mut map = (*map).clone();
                map.0.insert("index".into(), Value::Int(index));
                Value::Map(map.into())
            }
            other => other,
        };
        let change = Change {
            tier: path.tier,
            path: segments,
            operation: Operation::Append,
            value,
        };
        self.change(id, &[change])
    }

    /// Stops the children that still run.
    fn stop_children(&mut self, id: FrameId) {
        let Some(children) = self.children(id) else {
            return;
        };
        children.handed.clear();
        let running = std::mem::take(&mut children.running);
        children.waiting.clear();
        for (item, child) in &running {
            if let Child::Frame(frame) = child {
                children.parked.insert(*item, *frame);
            }
        }
        for child in running.into_values() {
            match child {
                Child::Frame(frame) => self.stop_frame(frame),
                Child::Action(action) => {
                    if self.data.waiting.remove(&action).is_some() {
                        self.effects.push(Effect::Stop(action));
                        self.release();
                    }
                }
            }
        }
    }

    /// Ends a frame and everything below it without a result.
    pub(super) fn stop_frame(&mut self, id: FrameId) {
        // The next to stop is the last: what is below a frame comes before what is beside it.
        let mut stopping = vec![Child::Frame(id)];
        while let Some(child) = stopping.pop() {
            let id = match child {
                Child::Frame(id) => id,
                Child::Action(_) => {
                    self.release();
                    continue;
                }
            };
            self.abandon(id, Ending::Stopped);
            let Some(mut frame) = self.data.frames.remove(&id) else {
                continue;
            };
            self.data.ready.retain(|ready| *ready != id);
            self.data.queue.retain(|queued| *queued != id);
            let waiting = self.data.waiting.iter();
            let actions: Vec<_> = waiting
                .filter(|(_, frame)| **frame == id)
                .map(|(action, _)| *action)
                .collect();
            for action in actions {
                self.data.waiting.remove(&action);
                self.effects.push(Effect::Stop(action));
            }
            let step = frame.step.take();
            match step.map(|step| (step.node, step.waits)) {
                Some((
                    _,
                    Waits::Action(_) | Waits::Judgement { .. } | Waits::Environment { .. },
                )) => {
                    self.release();
                }
                Some((node, Waits::Children(mut children))) => {
                    self.remember_tasks(&children);
                    stopping.extend(children.running.values().rev());
                    children.go_on_later();
                    frame.kept = Some(Box::new(Kept {
                        node,
                        what: Progress::Children(children),
                    }));
                }
                Some((
                    _,
                    Waits::Turn(_) | Waits::Pause { .. } | Waits::Again { .. } | Waits::Time { .. },
                ))
                | None => {}
            }
            self.data.parked.insert(id, frame.parked());
        }
    }

    /// All children have ended.
    fn gather(&mut self, id: FrameId, index: u16, node: &'r Node, fan: &'r FanOut) {
        let Some(children) = self.children(id) else {
            return;
        };
        let count = children.items.as_list().map_or(0, <[Value]>::len);
        let results: Vec<Value> = (0..count)
            .map(|at| children.results.get(&at).cloned().unwrap_or_default())
            .collect();
        let failures = children.failures.len();
        let tasks = children.tasks.map(|tasks| (tasks, children.clone()));
        let mut failed = children.failures.iter();
        let refusal = failed.clone().find(|(_, failure)| failure.is_refusal());
        let refusal = refusal.map(|(at, refusal)| (*at, refusal.clone()));
        let first = failed.next().map(|(at, f)| (*at, f.message.clone()));
        // An error that is neither collected nor told would be lost.
        let uncollected = children.uncollected.take();
        let uncollected = uncollected.map(|(at, failure)| (at, failure.message));
        let goes_on = fan.on_child_error == OnChildError::Continue && uncollected.is_none();
        let failures = failures.max(usize::from(uncollected.is_some()));
        let first = uncollected.or(first);
        if let Some((tasks, children)) = tasks {
            self.data.waiting.remove(&tasks);
            self.remember_tasks(&children);
        }
        let step = self.data.frames.get_mut(&id).map(|frame| frame.step.take());
        if let Some(Waits::Children(children)) = step.flatten().map(|step| step.waits) {
            self.keep_children(id, index, children);
        }
        if let Some((at, refusal)) = refusal {
            let message = format!("item {at} of `{}`: {}", node.id, refusal.message);
            let message = both_ends(message);
            self.fail_frame(id, Failure { message, ..refusal });
            return;
        }
        let next = match first.filter(|_| !goes_on) {
            None => match self.settle_success(id, index, Value::list(results)) {
                Ok(next) => next,
                Err(failure) => self.failed(id, index, failure, Value::Null),
            },
            Some((at, message)) => {
                let message = format!(
                    "{failures} of {count} children of `{}` failed; the first is item {at}: {message}",
                    node.id
                );
                let failure = Failure::new(FailureKind::Child, both_ends(message));
                self.attempt_failed(id, index, failure, Value::list(results))
            }
        };
        if let Next::Go(to) = next {
            self.go(id, to);
            self.data.ready.push_back(id);
        }
    }
}

/// A message of failures inside failures without its middle: where it went wrong is at its
/// beginning, and why at its end.
fn both_ends(message: String) -> String {
    if message.len() <= MESSAGE_HEAD + MESSAGE_TAIL {
        return message;
    }
    let mut head = MESSAGE_HEAD;
    let mut tail = message.len() - MESSAGE_TAIL;
    while !message.is_char_boundary(head) {
        head -= 1;
    }
    while !message.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{} … {}", &message[..head], &message[tail..])
}
