//! How a frame ends, and how a run begins and begins again.

use flow_model::graph::{ErrorAction, Operation, Target, Template};
use flow_model::tools::ContractSide;

use super::data::Checkpoint;
use super::effect::{Effect, Ending, Finish, Status};
use super::event::{ActionId, Failure, FailureKind};
use super::frame::{BodyRef, Frame, FrameId, ROOT};
use super::gather::Ended;
use super::machine::{Extras, Machine, Next, plain};
use super::settle::UNCOLLECTED;
use super::state::Change;
use crate::input;
use crate::value::Value;

impl<'r> Machine<'r> {
    /// A frame has reached the end of its body, or returned.
    pub(super) fn complete(&mut self, id: FrameId, value: Option<Value>) {
        self.leave_all(id);
        self.close_containers(id, Target::Complete);
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        match frame.body {
            BodyRef::Main => self.complete_run(value),
            BodyRef::Task(_) => {
                let parent = frame.parent;
                self.discard_frame(id);
                self.child_ended(parent, Ended::Done(value.unwrap_or_default()));
            }
            BodyRef::OnError => {
                let failure = frame.error.clone();
                self.end_failed(failure);
            }
            BodyRef::Cleanup(task) => {
                let (parent, failure) = (frame.parent, frame.error.clone());
                let failure =
                    failure.unwrap_or_else(|| Failure::new(FailureKind::Child, "the task failed"));
                let returns = self
                    .graph
                    .tasks
                    .get(usize::from(task))
                    .and_then(|task| task.on_error.as_ref())
                    .is_some_and(|on_error| on_error.returns);
                if returns {
                    self.discard_frame(id);
                    self.child_ended(parent, Ended::Returned(failure));
                } else {
                    self.park_failed(id, failure);
                }
            }
        }
    }

    pub(super) fn complete_run(&mut self, value: Option<Value>) {
        if !self.graph.return_values.is_empty() && self.data.return_values.is_none() {
            self.look_up(ContractSide::ReturnValues, value);
            return;
        }
        let output = if self.graph.outputs.is_empty() {
            Ok(value.unwrap_or_default())
        } else {
            let mut outputs = Vec::with_capacity(self.graph.outputs.len());
            let mut failed = None;
            for output in self.graph.outputs.iter() {
                let rendered = match &output.value {
                    Template::Literal(literal) => Ok(Value::from(literal)),
                    template => self.evaluate(ROOT, None, Extras::default(), |evaluator, view| {
                        evaluator.render(template, view)
                    }),
                };
                let name = output.field.name.as_ref();
                let typed = match rendered {
                    Ok(value) => input::output(&output.field, value).map_err(|reason| {
                        let message = format!("the output `{name}` {reason}");
                        Failure::new(FailureKind::Validation, message)
                    }),
                    Err(failure) => {
                        let message =
                            format!("the output `{name}` has no value: {}", failure.message);
                        Err(Failure::new(failure.kind, message))
                    }
                };
                match typed {
                    Ok(value) => outputs.push((name, value)),
                    Err(failure) => {
                        failed = Some(failure);
                        break;
                    }
                }
            }
            match failed {
                Some(failure) => Err(failure),
                None => Ok(Value::map(outputs)),
            }
        };
        match output {
            Ok(output) => {
                self.data.output = output.clone();
                self.finish(Finish {
                    status: Status::Completed,
                    output,
                    error: None,
                });
            }
            Err(failure) => {
                self.fail_frame(ROOT, failure);
            }
        }
    }

    /// A frame has failed; what that means depends on whose it is.
    pub(super) fn fail_frame(&mut self, id: FrameId, failure: Failure) -> Next {
        self.abandon(id, Ending::from(&failure));
        let Some(frame) = self.data.frames.get(&id) else {
            return Next::Over;
        };
        match frame.body {
            BodyRef::Main => self.fail_workflow(failure),
            BodyRef::OnError => {
                // Failing failure steps do not hide why the run failed.
                let first = frame.error.clone();
                self.end_failed(first.or(Some(failure)));
            }
            BodyRef::Task(task) => self.fail_task(id, task, failure),
            BodyRef::Cleanup(_) => {
                let first = frame.error.clone();
                self.park_failed(id, first.unwrap_or(failure));
            }
        }
        Next::Over
    }

    pub(super) fn fail_task(&mut self, id: FrameId, task: u16, failure: Failure) {
        let handler = self
            .graph
            .tasks
            .get(usize::from(task))
            .and_then(|task| task.on_error.as_ref());
        let Some(handler) = handler.filter(|_| !failure.is_refusal()) else {
            self.park_failed(id, failure);
            return;
        };
        self.stop_timers(id);
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return;
        };
        frame.set_standing();
        frame.body = BodyRef::Cleanup(task);
        frame.at = handler.body.entry;
        frame.step = None;
        frame.error = Some(failure);
        self.data.ready.push_back(id);
    }

    pub(super) fn fail_workflow(&mut self, failure: Failure) {
        self.stop_all();
        let failure = match self.collect_error(&failure) {
            Ok(()) => failure,
            // One that has been said already is not said again.
            Err(_) if failure.message.contains(UNCOLLECTED) => failure,
            Err(uncollected) => failure.with(UNCOLLECTED, &uncollected),
        };
        self.data.error = Some(failure.clone());
        let on_error = &self.graph.on_error;
        if on_error.action == ErrorAction::CheckpointAndFail {
            self.data.checkpoint = Some(Checkpoint {
                at: self.at,
                event: self.data.applied,
                step: failure.step.clone(),
                reason: failure.message.clone(),
            });
        }
        let refused = failure.is_refusal() || failure.kind == FailureKind::Cancelled;
        if on_error.action == ErrorAction::RetryWorkflow && !self.data.again && !refused {
            self.data.again = true;
            self.restart();
            return;
        }
        if on_error.body.nodes.is_empty() || refused {
            self.end_failed(Some(failure));
            return;
        }
        self.data.count_failure_steps();
        // A frame of their own: resuming finds the workflow's where it failed.
        self.data.next_frame += 1;
        let inputs = self.data.start.inputs.clone();
        let mut frame = Frame::new(BodyRef::OnError, on_error.body.entry, inputs);
        frame.error = Some(failure);
        self.data.frames.insert(self.data.next_frame, frame);
        self.data.ready.push_back(self.data.next_frame);
    }

    /// Appends an error to where the document wants its errors.
    ///
    /// # Errors
    ///
    /// Why that does not take it.
    pub(super) fn collect_error(&mut self, failure: &Failure) -> Result<(), Failure> {
        if let Some(path) = &self.graph.on_error.collect_to {
            let segments: Vec<String> = path
                .segments
                .iter()
                .map(|segment| match segment {
                    Template::Literal(literal) => plain(&Value::from(literal)),
                    Template::Expression(_)
                    | Template::Text(_)
                    | Template::Command(_)
                    | Template::Pattern(_)
                    | Template::List(_)
                    | Template::Map(_) => String::new(),
                })
                .collect();
            let change = Change {
                tier: path.tier,
                path: segments,
                operation: Operation::Append,
                value: failure.to_value(),
            };
            self.change(ROOT, &[change])?;
        }
        Ok(())
    }

    pub(super) fn end_failed(&mut self, failure: Option<Failure>) {
        self.data.error.clone_from(&failure);
        self.finish(Finish {
            status: Status::Failed,
            output: Value::Null,
            error: failure,
        });
    }

    pub(super) fn finish(&mut self, finish: Finish) {
        self.stop_all();
        if let Some((timer, _)) = self.data.limit.take() {
            self.effects.push(Effect::Stop(timer));
        }
        if let Some(since) = self.data.counting_since.take() {
            self.data.used += self.at.saturating_sub(since);
        }
        self.data.status = finish.status;
        if finish.status != Status::Failed {
            self.discard_all();
        }
        self.data.resting = false;
        self.data.ready.clear();
        self.effects.push(Effect::Finish(finish));
    }

    /// Nothing that is under way is wanted any more.
    pub(super) fn stop_all(&mut self) {
        self.remember_all_tasks();
        let waiting: Vec<ActionId> = std::mem::take(&mut self.data.waiting).into_keys().collect();
        for action in waiting {
            self.effects.push(Effect::Stop(action));
        }
        self.data.under_way = 0;
        self.data.queue.clear();
        self.data.ready.clear();
        let frames: Vec<FrameId> = self.data.frames.keys().copied().collect();
        for frame in frames {
            self.abandon(frame, Ending::Stopped);
        }
        self.park_all();
    }

    /// The workflow from its start, with fresh state: why it failed before is left behind.
    pub(super) fn restart(&mut self) {
        self.data.error = None;
        let inputs = self.data.start.inputs.clone();
        self.data.frames.clear();
        self.data.parked.clear();
        self.data.frames.insert(
            ROOT,
            Frame::new(BodyRef::Main, self.graph.body.entry, inputs),
        );
        self.data.store = super::state::Store::default();
        self.data.computed.clear();
        self.data.included.clear();
        self.data.included_by.clear();
        self.data.variables = super::data::variables(&self.data.start);
        self.data.return_values = None;
        self.data.count_failure_steps();
        self.data.steps_before += std::mem::take(&mut self.data.steps);
        self.initialise();
    }

    /// Initial state, in document order, then everything computed.
    pub(super) fn initialise(&mut self) {
        let initials = self.graph.state.clone();
        for initial in initials.iter() {
            let Some(template) = &initial.value else {
                continue;
            };
            let value = match template {
                Template::Literal(literal) => Ok(Value::from(literal)),
                template => self.start_value(None, template),
            };
            let value = match value {
                Ok(value) => value,
                Err(failure) => {
                    let message = format!(
                        "the initial value of `{}` cannot be made: {}",
                        initial.name, failure.message
                    );
                    self.end_failed(Some(Failure::new(failure.kind, message)));
                    return;
                }
            };
            let bounds = self.bounds;
            let store = &mut self.data.store;
            if let Err(failure) = store.declare(initial.tier, &initial.name, value, bounds) {
                self.end_failed(Some(failure));
                return;
            }
        }
        self.recompute(super::computed::Changed::All);
        if let Some(Target::Node(entry)) = self.data.frames.get(&ROOT).map(|frame| frame.at) {
            let node = self.graph.body.nodes.get(usize::from(entry));
            self.data.last_node = node.map(|node| node.id.to_string());
        }
        self.data.ready.push_back(ROOT);
    }
}
