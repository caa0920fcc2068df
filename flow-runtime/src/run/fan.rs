//! Fan-out: a task once per item, each in a frame of its own.

use std::collections::{BTreeMap, BTreeSet};

use flow_model::grammar::MAX_TASK_DEPTH;
use flow_model::graph::{FanOut, Node, OnChildError, Operation, Runner, Template};

use super::effect::{Action, Deed, Effect, Ending};
use super::event::{ActionId, Failure, FailureKind};
use super::frame::{BodyRef, Child, Children, Frame, FrameId, Item, Kept, Parent, Progress, Waits};
use super::machine::{Extras, Machine, Next, plain};
use super::name::Names;
use super::origin::reads_item;
use super::state::{Change, Store};
use crate::value::Value;

/// Milliseconds an agent may take for one item.
pub(super) const ITEM_TIMEOUT: u64 = 300_000;
/// How many of the tasks around a step a message names.
const SHOWN_TASKS: usize = 4;
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
    /// Starts the children of a fan-out.
    pub(super) fn fan_out(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        fan: &'r FanOut,
    ) -> Result<Next, Failure> {
        if let Some(children) = self.take_children(id, index) {
            self.fan_out_again(id, index, node, fan, children);
            return Ok(Next::Wait);
        }
        let items = self.items(id, node, &fan.items)?;
        let count = items.as_list().map_or(0, <[Value]>::len);
        if count == 0 {
            return self.settle_success(id, index, Value::list([]));
        }
        self.may_nest(id, node, fan)?;
        let prompt = self.sub_agents_prompt(id, node, fan, &items)?;
        let tasks = self.number_tasks(id, node);
        let names = Names {
            graph: self.graph,
            data: self.data,
        };
        let name = tasks.map(|tasks| names.of(id, node, tasks));
        let children = Children {
            items,
            waiting: (0..count).collect(),
            running: BTreeMap::new(),
            handed: BTreeMap::new(),
            results: BTreeMap::new(),
            failures: BTreeMap::new(),
            retries: BTreeMap::new(),
            stopped: false,
            collected: BTreeSet::new(),
            parked: BTreeMap::new(),
            tasks,
            name: name.unwrap_or_default(),
            prompt,
        };
        self.wait(id, index, Waits::Children(Box::new(children)));
        self.go_on(id, index, node, fan);
        Ok(Next::Wait)
    }

    /// The children that have not given a result go on, or begin.
    fn fan_out_again(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        fan: &'r FanOut,
        mut children: Box<Children>,
    ) {
        children.tasks = self.number_tasks(id, node);
        let names = Names {
            graph: self.graph,
            data: self.data,
        };
        let name = children.tasks.map(|tasks| names.of(id, node, tasks));
        children.name = name.unwrap_or_default();
        self.wait(id, index, Waits::Children(children));
        self.go_on(id, index, node, fan);
    }

    /// What the author tells every sub-agent, where that is the same for all. One that depends on
    /// the item must be one for every item before any is handed out.
    fn sub_agents_prompt(
        &mut self,
        id: FrameId,
        node: &Node,
        fan: &FanOut,
        items: &Value,
    ) -> Result<Option<String>, Failure> {
        let by_step = self.data.start.agent_driven && fan.is_delegated();
        let (true, Some(prompt), Runner::SubAgent) = (by_step, &fan.prompt, &fan.runner) else {
            return Ok(None);
        };
        if !reads_item(prompt) {
            let rendered = self.render(id, node, prompt, Extras::default())?;
            return Ok(Some(plain(&rendered)));
        }
        for item in items.as_list().unwrap_or_default() {
            let locals = [("item".to_owned(), item.clone())];
            let extras = Extras {
                locals: &locals,
                ..Extras::default()
            };
            self.render(id, node, prompt, extras)?;
        }
        Ok(None)
    }

    /// Tasks run inside tasks only so deep.
    fn may_nest(&self, id: FrameId, node: &Node, fan: &FanOut) -> Result<(), Failure> {
        let name = |body: BodyRef| match body {
            BodyRef::Task(task) | BodyRef::Cleanup(task) => self
                .graph
                .tasks
                .get(usize::from(task))
                .map(|task| task.name.as_ref()),
            BodyRef::Main | BodyRef::OnError => None,
        };
        let mut frame = self.data.frames.get(&id);
        let mut around = Vec::new();
        while let Some(here) = frame {
            around.extend(name(here.body));
            let parent = here.parent.map(|parent| parent.frame);
            frame = parent.and_then(|parent| self.data.frames.get(&parent));
        }
        if around.len() < MAX_TASK_DEPTH {
            return Ok(());
        }
        let mut chain: Vec<&str> = around.into_iter().take(SHOWN_TASKS).collect();
        chain.reverse();
        chain.extend(name(BodyRef::Task(fan.task)));
        let message = format!(
            "`{}` would run tasks more than {MAX_TASK_DEPTH} deep inside each other: … → {}; lead \
             into a task again only under a condition that ends",
            node.id,
            chain.join(" → ")
        );
        Err(Failure::new(FailureKind::Limit, message).at(&node.id))
    }

    fn children(&mut self, id: FrameId) -> Option<&mut Children> {
        match &mut self.data.frames.get_mut(&id)?.step.as_mut()?.waits {
            Waits::Children(children) => Some(children),
            _ => None,
        }
    }

    /// Starts as many waiting items as may run at once.
    fn start_children(&mut self, id: FrameId, node: &'r Node, fan: &'r FanOut) {
        // Sub-agents begin their tasks themselves.
        if self.data.start.agent_driven && fan.is_delegated() {
            return;
        }
        let limit = fan.at_once(&self.graph.limits);
        loop {
            let Some(children) = self.children(id) else {
                return;
            };
            if children.stopped || children.running.len() >= limit {
                return;
            }
            let Some(item) = children.waiting.pop_front() else {
                return;
            };
            self.begin_child(id, node, fan, item);
        }
    }

    /// Starts an item; one that cannot be started has failed.
    fn begin_child(&mut self, id: FrameId, node: &'r Node, fan: &'r FanOut, item: usize) {
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
            self.note_end(id, node, fan, item, None, Ended::Failed(failure));
        }
    }

    /// The number of a fan-out, by which its tasks are named in a run that an agent drives.
    fn number_tasks(&mut self, id: FrameId, node: &Node) -> Option<ActionId> {
        if !self.data.start.agent_driven {
            return None;
        }
        let tasks = self.next_action();
        self.data.waiting.insert(tasks, id);
        self.remember_first(id, &node.id, tasks);
        Some(tasks)
    }

    /// Remembers what a node hands out first.
    pub(super) fn remember_first(&mut self, id: FrameId, node: &str, action: ActionId) {
        let keeper = self.data.keeper(id);
        if let Some(frame) = self.data.frames.get_mut(&keeper)
            && !frame.first.contains_key(node)
        {
            frame.first.insert(node.to_owned(), action);
        }
    }

    /// The fan-out of a number, with the frame it is a step of.
    fn tasks(&self, tasks: ActionId) -> Option<(FrameId, u16)> {
        let id = *self.data.waiting.get(&tasks)?;
        let step = self.data.frames.get(&id)?.step.as_ref()?;
        match &step.waits {
            Waits::Children(children) if children.tasks == Some(tasks) => Some((id, step.node)),
            _ => None,
        }
    }

    pub(super) fn is_tasks(&self, tasks: ActionId) -> bool {
        self.tasks(tasks).is_some()
    }

    /// A sub-agent has begun a task.
    pub(super) fn taken(&mut self, tasks: ActionId, item: usize) {
        let Some((id, index)) = self.tasks(tasks) else {
            return;
        };
        let Some(node) = self.node(id, index) else {
            return;
        };
        let flow_model::graph::Kind::FanOut(fan) = &node.kind else {
            return;
        };
        let Some(children) = self.children(id) else {
            return;
        };
        // Most are taken from the front.
        let queued = children.waiting.iter().position(|waiting| *waiting == item);
        if let Some(queued) = queued {
            children.waiting.remove(queued);
            self.begin_child(id, node, fan, item);
            self.go_on(id, index, node, fan);
        }
    }

    /// Whoever drives the run cannot have its tasks done.
    pub(super) fn fail_tasks(&mut self, tasks: ActionId, failure: Failure) {
        let Some((id, index)) = self.tasks(tasks) else {
            return;
        };
        // Whoever says so is not told that it is no longer wanted.
        self.data.waiting.remove(&tasks);
        self.stop_step(id);
        let next = self.attempt_failed(id, index, failure, Value::Null);
        if let Next::Go(to) = next {
            self.go(id, to);
            self.data.ready.push_back(id);
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
                    let locals = [("item".to_owned(), value.clone())];
                    let extras = Extras {
                        locals: &locals,
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
                within: match self.within(id, &node.id).as_str() {
                    "" => format!("{}.{index}", node.id),
                    within => format!("{within}/{}.{index}", node.id),
                },
                attempt: 1,
                deadline: Some(self.at.saturating_add(ITEM_TIMEOUT)),
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
                template => self.start_value(child, template)?,
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
    fn go_on(&mut self, id: FrameId, index: u16, node: &'r Node, fan: &'r FanOut) {
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
    fn note_end(
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
                let tries = children.retries.entry(index).or_insert(0);
                if let OnChildError::RetryFailed(most) = fan.on_child_error
                    && *tries < most
                {
                    *tries += 1;
                    children.waiting.push_back(index);
                    unused = child;
                } else {
                    match (child, fan.on_child_error) {
                        (Some(_), OnChildError::Continue) => unused = child,
                        (Some(_), _) if returns => unused = child,
                        (Some(Child::Frame(frame)), _) => {
                            children.parked.insert(index, frame);
                        }
                        (Some(Child::Action(_)) | None, _) => {}
                    }
                    if children.collected.insert(index) {
                        collect = Some(failure.to_value());
                    }
                    if returns {
                        let given = Value::map([("error", failure.to_value())]);
                        children.results.insert(index, given);
                    } else {
                        children.failures.insert(index, failure);
                        children.stopped |= fan.on_child_error == OnChildError::FailAll;
                    }
                }
            }
        }
        if let Some(Child::Frame(frame)) = unused {
            self.discard_parked(frame);
        }
        if let (Some(path), Some(error)) = (&fan.collect_to, collect) {
            self.collect(id, node, path, index, error);
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
    ) {
        let mut segments = Vec::with_capacity(path.segments.len());
        for segment in path.segments.iter() {
            match self.render(id, node, segment, Extras::default()) {
                Ok(value) => segments.push(plain(&value)),
                Err(_) => return,
            }
        }
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
        // An error that cannot be collected must not hide the error itself.
        let _ = self.change(id, &[change]);
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
        let first = children
            .failures
            .iter()
            .next()
            .map(|(at, f)| (*at, f.message.clone()));
        if let Some((tasks, children)) = tasks {
            self.data.waiting.remove(&tasks);
            self.remember_tasks(&children);
        }
        let step = self.data.frames.get_mut(&id).map(|frame| frame.step.take());
        if let Some(Waits::Children(children)) = step.flatten().map(|step| step.waits) {
            self.keep_children(id, index, children);
        }
        let next = match (first, fan.on_child_error) {
            (None, _) | (Some(_), OnChildError::Continue) => {
                match self.settle_success(id, index, Value::list(results)) {
                    Ok(next) => next,
                    Err(failure) => self.failed(id, index, failure, Value::Null),
                }
            }
            (Some((at, message)), _) => {
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
