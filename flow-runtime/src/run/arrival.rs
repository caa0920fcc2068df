//! What an event means to the step that waits for it.

use std::sync::Arc;

use flow_model::graph::{Kind, PromptKind, Text};
use indexmap::IndexMap;

use super::action::shell_result;
use super::computed::{Cell, Changed};
use super::data::Checkpoint;
use super::effect::{Action, Deed, Finish, Status};
use super::event::{ActionId, Failure, FailureKind, Happening};
use super::frame::{Child, FrameId, Parent, ROOT, Step, Waits};
use super::machine::{Machine, Next, plain};
use super::meaning::tool_result;
use super::path::changes;
use super::response::{self, COMPUTED_ERRORS, unasked};
use super::returns::of_item;
use crate::value::Value;

impl Machine<'_> {
    pub(super) fn event(&mut self, what: &Happening) {
        match what {
            Happening::Started(_) => self.open(),
            Happening::Completed { action, result } => self.completed(*action, Some(result)),
            Happening::Done { action } => self.completed(*action, None),
            Happening::Failed {
                action,
                error,
                result,
            } => self.unsuccessful(*action, error.clone(), result),
            Happening::TimedOut { action, result } => {
                let failure = self.lateness(*action);
                self.unsuccessful(*action, failure, result);
            }
            Happening::Declined { action, reason } => self.declined(*action, reason),
            Happening::Woke { timer } => self.woke(*timer),
            Happening::Updated { updates } => {
                if let Ok(changes) = changes(self.graph, self.data, updates) {
                    // Checked before it was recorded; a refusal here changes nothing.
                    let _ = self.change(ROOT, &changes);
                }
            }
            Happening::Continued => self.data.resting = false,
            Happening::Rested => self.data.resting = true,
            Happening::Late { .. } => {}
            Happening::Checkpointed { reason, step } => {
                self.data.checkpoint = Some(Checkpoint {
                    at: self.at,
                    event: self.data.applied,
                    step: step.clone(),
                    reason: reason.clone(),
                });
            }
            Happening::Taken { tasks, item } => self.taken(*tasks, *item),
            Happening::GivenUp { reason } => {
                let failure = Failure::new(FailureKind::Action, reason.clone());
                self.end_failed(Some(failure));
            }
            Happening::Cancelled { reason } => {
                let failure = Failure::new(FailureKind::Cancelled, reason.clone());
                self.data.error = Some(failure.clone());
                self.finish(Finish {
                    status: Status::Cancelled,
                    output: Value::Null,
                    error: Some(failure),
                });
            }
            Happening::Resumed(allowance) => self.resume(*allowance),
        }
    }

    /// The frame and the step that wait for an action, unless the answer is late, repeated, or to
    /// something that was not handed out.
    fn answered(&mut self, action: ActionId) -> Option<(FrameId, Step)> {
        self.awaited(action, |waits| match waits {
            Waits::Action(asked) | Waits::Judgement { action: asked, .. } => asked.id == action,
            Waits::Environment { action: asked, .. } => asked.id == action,
            Waits::Children(children) => {
                let mut running = children.running.values();
                running.any(|child| matches!(child, Child::Action(own) if *own == action))
            }
            Waits::Turn(_) | Waits::Pause { .. } | Waits::Again { .. } | Waits::Time { .. } => {
                false
            }
        })
    }

    pub(super) fn awaited(
        &mut self,
        id: ActionId,
        is_meant: impl FnOnce(&Waits) -> bool,
    ) -> Option<(FrameId, Step)> {
        let frame_id = *self.data.waiting.get(&id)?;
        let frame = self.data.frames.get_mut(&frame_id)?;
        let step = frame.step.take_if(|step| is_meant(&step.waits))?;
        self.data.waiting.remove(&id);
        Some((frame_id, step))
    }

    /// An action has ended; without a result it was just done.
    fn completed(&mut self, action: ActionId, result: Option<&Value>) {
        // Tasks complete by themselves, when the last of them does.
        if self.is_tasks(action) {
            return;
        }
        let Some((id, step)) = self.answered(action) else {
            return;
        };
        let node = step.node;
        let next = match step.waits {
            Waits::Action(asked) => {
                self.release();
                match result {
                    Some(result) => self.action_ended(id, node, *asked, Ok(result.clone())),
                    None => self.settle_done(id, node, &asked),
                }
            }
            Waits::Judgement { edges, settled, .. } => {
                self.release();
                self.judged(id, node, &edges, *settled, result.unwrap_or(&Value::Null))
            }
            Waits::Children(children) => {
                self.put_back(id, step.node, step.since, Waits::Children(children));
                self.release();
                self.item_ended(id, action, Ok(result.unwrap_or(&Value::Null)));
                return;
            }
            Waits::Environment { action, value } => {
                self.release();
                if let Deed::Environment { side, .. } = action.what {
                    self.environment_found(side, value, result.unwrap_or(&Value::Null));
                }
                return;
            }
            // Not what is answered by a result.
            Waits::Turn(_) | Waits::Pause { .. } | Waits::Again { .. } | Waits::Time { .. } => {
                return;
            }
        };
        self.move_on(id, next);
    }

    fn put_back(&mut self, id: FrameId, node: u16, since: u64, waits: Waits) {
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.step = Some(Step { node, since, waits });
        }
    }

    pub(super) fn move_on(&mut self, id: FrameId, next: Next) {
        if let Next::Go(to) = next {
            self.go(id, to);
            self.data.ready.push_back(id);
        }
    }

    /// What an action that did not end in time did not do.
    fn lateness(&self, action: ActionId) -> Failure {
        let frame = self.data.waiting.get(&action);
        let frame = frame.and_then(|frame| self.data.frames.get(frame));
        let step = frame.and_then(|frame| frame.step.as_ref());
        let late = step.and_then(|step| match &step.waits {
            Waits::Action(asked)
            | Waits::Judgement { action: asked, .. }
            | Waits::Environment { action: asked, .. } => {
                Some((asked.node.as_str(), asked.allowed(step.since)?))
            }
            Waits::Children(children) => {
                let asked = children.handed.values().find(|it| it.id == action)?;
                Some((asked.node.as_str(), asked.allowed(step.since)?))
            }
            Waits::Turn(_) | Waits::Pause { .. } | Waits::Again { .. } | Waits::Time { .. } => None,
        });
        let message = match late {
            Some((node, allowed)) => lateness(node, allowed),
            None => "the step did not end in time".to_owned(),
        };
        Failure::new(FailureKind::Timeout, message)
    }

    fn unsuccessful(&mut self, action: ActionId, failure: Failure, result: &Value) {
        if self.is_tasks(action) {
            self.fail_tasks(action, failure);
            return;
        }
        let Some((id, step)) = self.answered(action) else {
            return;
        };
        let node = step.node;
        match step.waits {
            Waits::Action(asked) => {
                self.release();
                let result = match &asked.what {
                    // Nobody has answered: it had no more time, or whoever ran it is gone.
                    Deed::Call { .. } if *result == Value::Null => self
                        .node(id, node)
                        .map_or(Value::Null, |node| unasked(node, &failure.message)),
                    Deed::Call { .. } | Deed::Tool { .. } => result.clone(),
                    _ => Value::Null,
                };
                let next = self.retry_or_fail(id, node, *asked, failure, result);
                self.move_on(id, next);
            }
            Waits::Judgement { .. } => {
                self.release();
                let next = self.fail_frame(id, failure);
                self.move_on(id, next);
            }
            Waits::Children(children) => {
                self.put_back(id, step.node, step.since, Waits::Children(children));
                self.release();
                self.item_ended(id, action, Err(failure));
            }
            Waits::Environment { action, .. } => {
                self.release();
                if let Deed::Environment { side, .. } = action.what {
                    self.environment_lost(side, &failure);
                }
            }
            // Not what is answered by a result.
            Waits::Turn(_) | Waits::Pause { .. } | Waits::Again { .. } | Waits::Time { .. } => {}
        }
    }

    fn declined(&mut self, action: ActionId, reason: &str) {
        if self.is_tasks(action) {
            self.fail_tasks(action, Failure::new(FailureKind::Refused, reason));
            return;
        }
        let Some((id, step)) = self.answered(action) else {
            return;
        };
        self.release();
        if let Waits::Children(children) = step.waits {
            let node = step.node;
            self.put_back(id, node, step.since, Waits::Children(children));
            let failure = Failure::new(FailureKind::Refused, reason);
            self.item_ended(id, action, Err(failure));
            return;
        }
        // Saying no is an answer to some questions, and none to a message.
        let no = match &step.waits {
            Waits::Action(asked) => match asked.what {
                Deed::Prompt {
                    kind: kind @ (PromptKind::Confirm | PromptKind::Info),
                    ..
                } => Some(kind.answer()),
                _ => None,
            },
            _ => None,
        };
        let next = if let Some(field) = no {
            let answer = Value::map([(field, Value::Bool(false))]);
            match self.settle_success(id, step.node, answer) {
                Ok(next) => next,
                Err(failure) => self.failed(id, step.node, failure, Value::Null),
            }
        } else {
            let node = self
                .node(id, step.node)
                .map_or(String::new(), |node| node.id.to_string());
            let failure = Failure::new(FailureKind::Refused, reason).at(&node);
            self.fail_frame(id, failure)
        };
        self.move_on(id, next);
    }

    /// An item that was handed to an agent has ended.
    fn item_ended(&mut self, id: FrameId, action: ActionId, ended: Result<&Value, Failure>) {
        let frame = self.data.frames.get(&id);
        let step = frame.and_then(|frame| frame.step.as_ref());
        let handed = step.and_then(|step| match &step.waits {
            Waits::Children(children) => {
                let mut handed = children.handed.iter();
                handed.find(|(_, asked)| asked.id == action)
            }
            _ => None,
        });
        let Some((index, asked)) = handed else {
            return;
        };
        let parent = Parent {
            frame: id,
            index: *index,
        };
        let ended = ended.map(|result| of_item(&asked.what, result));
        self.child_ended(Some(parent), ended.into());
    }

    /// An action gave a result: what that means depends on the node.
    fn action_ended(
        &mut self,
        id: FrameId,
        index: u16,
        action: Action,
        result: Result<Value, Failure>,
    ) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        let raw = match result {
            Ok(value) => value,
            Err(failure) => return self.retry_or_fail(id, index, action, failure, Value::Null),
        };
        self.note_sessions(id, &action.what, &raw);
        let raw = match action.what {
            Deed::Call { .. } => response::shown(raw),
            _ => raw,
        };
        let meaning = match &node.kind {
            Kind::Shell(shell) => shell_result(node, shell, &raw),
            Kind::Tool { .. } | Kind::Call(_) => tool_result(node, &action.what, &raw),
            Kind::Delegate { .. } => match self.answer(id, index, node, &action, &raw) {
                Ok(answer) => answer,
                Err(next) => return next,
            },
            _ => Ok(raw.clone()),
        };
        let value = match meaning {
            Ok(value) => value,
            Err(failure) => return self.retry_or_fail(id, index, action, failure, raw),
        };
        if let Kind::Call(call) = &node.kind
            && call.shares_computed
            && raw.get("computed").is_some()
        {
            self.include(id, &action, computed_fields(&raw));
        }
        match self.settle_success(id, index, value) {
            Ok(next) => next,
            Err(failure) => self.failed(id, index, failure, raw),
        }
    }

    /// Adds the computed fields of a workflow that was included to the state that a frame works on.
    fn include(&mut self, id: FrameId, action: &Action, fields: Vec<(Arc<str>, Cell)>) {
        let own = self.data.frames.get_mut(&id);
        if let Some(frame) = own.filter(|frame| frame.store.is_some()) {
            frame.included.extend(fields);
            return;
        }
        let mut changed: Vec<Text> = Vec::new();
        for (name, cell) in fields {
            let call = action.key.clone();
            self.data.included_by.insert(name.clone(), call);
            if self.data.included.get(&name) != Some(&cell) {
                changed.push(name.to_string().into());
                self.data.included.insert(name, cell);
            }
        }
        self.recompute(Changed::Included(&changed));
        self.data.evaluations += 1;
    }

    /// The next attempt, or the failure.
    fn retry_or_fail(
        &mut self,
        id: FrameId,
        index: u16,
        action: Action,
        failure: Failure,
        result: Value,
    ) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        if failure.is_refusal() {
            self.keep_call(id, index, &action, &failure);
            return self.fail_frame(id, failure.at(&node.id));
        }
        let Some(retry) = node.retry.filter(|retry| action.attempt < retry.attempts) else {
            self.keep_call(id, index, &action, &failure);
            let failure = match (failure.kind, &action.what) {
                // A run that was cancelled is a call that failed.
                (FailureKind::Cancelled, Deed::Call { .. }) => Failure {
                    kind: FailureKind::Action,
                    ..failure
                },
                _ => failure,
            };
            return self.failed(id, index, failure, result);
        };
        let (timer, until) = self.pause(id, node, retry, action.attempt);
        self.wait(
            id,
            index,
            Waits::Pause {
                timer,
                until,
                action: Box::new(action),
            },
        );
        Next::Wait
    }
}

/// The computed fields that the result of a call brings along, those whose rule failed among them.
fn computed_fields(result: &Value) -> Vec<(Arc<str>, Cell)> {
    let entries = |of: &str| match result.get(of) {
        Some(Value::Map(entries)) => entries.0.clone(),
        _ => IndexMap::new(),
    };
    let made = entries("computed").into_iter();
    let made = made.map(|(name, value)| (name, Cell::Value(value)));
    let failed = entries(COMPUTED_ERRORS).into_iter();
    let failed = failed.map(|(name, reason)| (name, Cell::Failed(plain(&reason))));
    made.chain(failed).collect()
}

/// What a step did not do in the milliseconds that it had.
pub(crate) fn lateness(node: &str, allowed: u64) -> String {
    let seconds = allowed as f64 / 1000.0;
    format!("`{node}` did not end within {seconds} s; `timeout` gives it longer")
}
