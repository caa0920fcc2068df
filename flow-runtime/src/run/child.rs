//! One item of a fan-out: how its task begins, and what it is given.

use flow_model::graph::{FanOut, Node, Operation, Runner, Template};

use super::effect::{Action, Deed, Effect};
use super::event::{Failure, FailureKind};
use super::frame::{BodyRef, Child, Frame, FrameId, Item, Parent};
use super::gather::Ended;
use super::machine::{Extras, Machine, plain};
use super::state::{Change, Store};
use crate::value::Value;

impl<'r> Machine<'r> {
    /// Starts an item; one that cannot be started has failed.
    pub(super) fn begin_child(
        &mut self,
        id: FrameId,
        node: &'r Node,
        fan: &'r FanOut,
        item: usize,
    ) {
        let children = self.children(id);
        let parked = children.and_then(|children| children.parked.remove(&item));
        if let Some(child) = parked
            && self.unpark(child)
        {
            if let Some(children) = self.children(id) {
                children.running.insert(item, Child::Frame(child));
            }
            return;
        }
        if let Err(failure) = self.start_child(id, node, fan, item) {
            self.tell_unstarted(id, node, item, &failure);
            self.note_end(id, node, fan, item, None, Ended::Failed(failure));
        }
    }

    fn start_child(
        &mut self,
        id: FrameId,
        node: &'r Node,
        fan: &'r FanOut,
        index: usize,
    ) -> Result<(), Failure> {
        let task = self.graph.tasks.get(usize::from(fan.task));
        let Some(task) = task else {
            return Err(Failure::new(FailureKind::Child, "the task does not exist"));
        };
        let Some(children) = self.children(id) else {
            return Ok(());
        };
        let items = children.items.as_list().unwrap_or_default();
        let length = items.len();
        let value = items.get(index).cloned().unwrap_or_default();
        let inputs = bind(task, &value).map_err(|message| {
            let message = format!("item {index} of `{}` {message}", node.id);
            Failure::new(FailureKind::Validation, message)
        })?;
        let parent = Parent { frame: id, index };
        if let Runner::Agent(agent) = &fan.runner {
            let prompt = match &fan.prompt {
                None => None,
                Some(template) => {
                    let item = Item {
                        value: value.clone(),
                        index,
                        length,
                    };
                    let extras = Extras {
                        item: Some(&item),
                        ..Extras::default()
                    };
                    Some(plain(&self.render(id, node, template, extras)?))
                }
            };
            let number = self.next_action();
            let action = Action {
                id: number,
                key: format!("{}-{}", self.data.start.run, number.0),
                frame: id,
                node: node.id.to_string(),
                within: self.within_item(id, node, index),
                attempt: 1,
                deadline: None,
                what: Deed::DelegateItem {
                    agent: agent.to_string(),
                    task: task.name.to_string(),
                    inputs,
                    prompt,
                },
            };
            self.data.waiting.insert(number, id);
            self.data.under_way += 1;
            self.effects.push(Effect::Act(action.clone()));
            if let Some(children) = self.children(id) {
                children.handed.insert(index, action);
                children.running.insert(index, Child::Action(number));
            }
            return Ok(());
        }
        self.data.next_frame += 1;
        let child = self.data.next_frame;
        let mut frame = Frame::new(BodyRef::Task(fan.task), task.body.entry, inputs);
        frame.parent = Some(parent);
        frame.item = Some(Item {
            value,
            index,
            length,
        });
        frame.store = (!task.shares_state).then(Store::default);
        self.data.frames.insert(child, frame);
        if let Some(children) = self.children(id) {
            children.running.insert(index, Child::Frame(child));
        }
        if let Err(failure) = self.initialise_task(child, task) {
            self.data.frames.remove(&child);
            if let Some(children) = self.children(id) {
                children.running.remove(&index);
            }
            return Err(failure);
        }
        self.data.ready.push_back(child);
        Ok(())
    }

    fn initialise_task(
        &mut self,
        child: FrameId,
        task: &flow_model::graph::Task,
    ) -> Result<(), Failure> {
        for initial in task.state.iter() {
            let Some(template) = &initial.value else {
                continue;
            };
            let value = match template {
                Template::Literal(literal) => Value::from(literal),
                template => self.start_value(Some(child), template)?,
            };
            let change = Change {
                tier: initial.tier,
                path: vec![initial.name.to_string()],
                operation: Operation::Set,
                value,
            };
            self.change(child, &[change])?;
        }
        Ok(())
    }
}

/// What a sub-agent is told of its item: the inputs of its task, or the item as it is where it
/// does not fit them.
#[must_use]
pub fn task_inputs(task: &flow_model::graph::Task, item: &Value) -> Value {
    bind(task, item).unwrap_or_else(|_| match item {
        Value::Map(_) => item.clone(),
        other => Value::map([("item", other.clone())]),
    })
}

/// The inputs of a task for one item.
fn bind(task: &flow_model::graph::Task, item: &Value) -> Result<Value, String> {
    let Some(fields) = &task.inputs else {
        return Ok(match item {
            Value::Map(_) => item.clone(),
            other => Value::map([("item", other.clone())]),
        });
    };
    let given: Vec<(&str, Value)> = match item {
        Value::Map(map) => map
            .0
            .iter()
            .map(|(key, value)| (key.as_ref(), value.clone()))
            .collect(),
        other => {
            let mut required = fields.iter().filter(|field| field.required);
            let target = match (required.next(), required.next(), fields.len()) {
                (Some(only), None, _) => Some(only),
                (None, _, 1) => fields.first(),
                _ => None,
            };
            match target {
                Some(field) => vec![(field.name.as_ref(), other.clone())],
                None if fields.is_empty() => Vec::new(),
                None => {
                    return Err(format!(
                        "is {} and the task has no single required input to take it",
                        other.noun()
                    ));
                }
            }
        }
    };
    // What an item has beyond the inputs stays with the item: it was not made for this task alone.
    let is_input = |name: &str| fields.iter().any(|field| field.name == name);
    let own: Vec<_> = given
        .iter()
        .filter(|(name, _)| is_input(name))
        .cloned()
        .collect();
    if let Ok(inputs) = crate::input::complete(fields, &own) {
        return Ok(inputs);
    }
    crate::input::complete(fields, &given).map_err(|faults| {
        let messages: Vec<String> = faults.into_iter().map(|fault| fault.to_string()).collect();
        format!(
            "does not fit the inputs of the task: {}",
            messages.join("; ")
        )
    })
}
